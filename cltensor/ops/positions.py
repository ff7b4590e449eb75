"""Positions of elements: coordinates of linear indices, and coordinates of what is not zero in a fixed number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes
from . import writes
from .core import Tensor
from .row import FUNCTIONS, public


@public(method=False)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Turn linear indices into a tuple of coordinates in a tensor of that shape; indices out of range wrap around."""
    if indices.dtype.category != 1:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, int | Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes: Sequence[Any] = (shape,) if isinstance(shape, int) else shape
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    indices = indices.to(dtypes.int64)
    found, step = [], 1
    for n in reversed(sizes):
        found.append(indices.div(step, rounding_mode="floor") % n)
        step *= n
    return tuple(reversed(found))


@public()
def nonzero_static(
    input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None
) -> Tensor:
    """Return the coordinates of the first `size` elements that are not zero, (size, ndim), missing rows filled."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = FUNCTIONS["nonzero"](input)[:size]
    missing = found.new_full((size - found.shape[0], input.ndim), fill_value)
    return writes.deliver(FUNCTIONS["cat"]([found, missing]), out, "nonzero_static", ())
