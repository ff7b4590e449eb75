"""Tensors in `.npz` files, by name, through numpy. The files hold data only: nothing in them is ever run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..creation import tensor
from ..host import host_array
from ..serialization import archive
from ..tensor import Tensor

__all__ = ["check_names", "load", "save"]


def check_names(tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless every key is a text and every value a tensor."""
    for name, t in tensors.items():
        if not isinstance(name, str) or not isinstance(t, Tensor):
            raise ValueError(f"expected a dict from names to tensors, but {name!r} is {type(t)}")


def save(tensors: Mapping[str, Tensor], file: Any, compressed: bool = False) -> None:
    """Write tensors to an `.npz` file for numpy, without adding a suffix. TypeError for dtypes that numpy lacks."""
    check_names(tensors)
    for name, t in tensors.items():
        if t.dtype.np is None:
            raise TypeError(f"numpy has no type for tensor {name!r} of dtype {t.dtype}")
    arrays: dict[str, Any] = {name: host_array(t.detach()) for name, t in tensors.items()}
    with archive.output(file) as out:
        (np.savez_compressed if compressed else np.savez)(out, **arrays)


def load(file: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """Read an `.npz` file's arrays as tensors on `device`. ValueError for Python objects, which are never unpickled."""
    with np.load(file, allow_pickle=False) as found:
        return {name: tensor(found[name], device=device) for name in found.files}
