"""Tensors with memory as the caller chooses: with dims in a given order, or on a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import creation, dtypes
from .creation.factory import factory
from .host import mapped_file
from .runtime import device
from .tensor import Tensor

__all__ = ["empty_permuted", "from_file"]


@factory
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dt: dtypes.dtype | None,
    dev: device,
) -> Tensor:
    """Make a tensor of undefined content, dense in memory with its dims in the order of `physical_layout`, outermost first."""
    rank = len(size)
    if len(physical_layout) != rank:
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {rank} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    seen = set()
    for at, d in enumerate(physical_layout):
        if not 0 <= d < rank:
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {rank - 1}, but got {d} at index {at}).  "
                "NB: negative dims not currently supported; file an issue if you want it."
            )
        if d in seen:
            raise RuntimeError("Duplicate dim not allowed")
        seen.add(d)
    made = creation.empty([size[d] for d in physical_layout], dtype=dt, device=dev)
    return made.permute(sorted(range(rank), key=lambda at: physical_layout[at]))


def from_file(
    filename: str | os.PathLike,
    shared: bool | None = False,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Make a 1-d cpu tensor of `size` elements on the bytes of a file.

    shared: writes to the tensor change the file, which is made or grown as needed; otherwise they stay in memory.
    """
    dt = dtypes.get_default_dtype() if dtype is None else dtype
    if dt.np is None:
        raise RuntimeError(f"from_file: unsupported dtype {dt}")
    if not size:
        return creation.empty(0, dtype=dt, device="cpu")
    return creation.from_numpy(mapped_file(filename, bool(shared), size * dt.itemsize).view(dt.np))
