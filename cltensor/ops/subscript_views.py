"""The views that a subscript's integers, slices, Nones and Ellipsis make: one after the other, each with its gradient, or
all in one step where there is no history.

Must not know of index tensors (index.py).
"""

from __future__ import annotations

import operator

from .. import layouts
from ..size import sized
from . import core, parts
from .core import Tensor

SCALAR = "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
_PLAIN = (int, type(None))


def select_at(x: Tensor, dim: int, index: int, place: int) -> Tensor:
    """Return the view at one index of a dim; `place`: the item's position in the subscript, which the error names."""
    sizes, strides = [*x.shape], x._strides
    if not sizes and not index:
        raise IndexError(SCALAR)
    n = sizes.pop(dim) if dim < len(sizes) else 0
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {n}")
    start = x._offset + (index + n if index < 0 else index) * strides[dim]
    return core.view(
        x, sized(sizes), strides[:dim] + strides[dim + 1 :], start, "SelectBackward0", parts.select_back, None,
        {"dim": dim, "index": index},
    )  # fmt: skip


def _bounds(part: slice) -> tuple[int | None, int | None, int]:
    """Return start, stop and step of a slice as ints or None; ValueError for a step that is not positive."""
    start, stop, step = part.start, part.stop, part.step
    if step is None and start.__class__ in _PLAIN and stop.__class__ in _PLAIN:
        return start, stop, 1
    try:
        start = start if start is None else operator.index(start)
        stop = stop if stop is None else operator.index(stop)
        step = 1 if step is None else operator.index(step)
    except TypeError:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
        ) from None
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    return start, stop, step


def slice_at(x: Tensor, dim: int, part: slice, *, skip_whole: bool) -> Tensor:
    """Return the view of a range of a dim; with `skip_whole`, the tensor itself where that is all of it."""
    start, stop, step = _bounds(part)
    shape = x.shape
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    n = shape[dim]
    if skip_whole and step == 1 and not start and (stop is None or stop >= n):
        return x
    new = layouts.slice_(shape, x._strides, x._offset, dim, start, stop, step)
    saved = {"dim": dim, "start": start or 0, "end": n if stop is None else stop, "step": step}
    return core.view(x, *new, "SliceBackward0", parts.slice_back, None, saved)


def alias(x: Tensor) -> Tensor:
    """Return a view of all of a tensor."""
    return core.view(x, x.shape, x._strides, x._offset, "AliasBackward0", lambda ctx, g: g, None)


def view_at_once(x: Tensor, index: tuple) -> Tensor | None:
    """Return the view for a subscript of ints, slices, Nones and an Ellipsis, made in one step; None for any other, or
    one that is wrong.

    For tensors without history: where there is one, each item is a view with a node of its own.
    """
    sizes, strides, offset = tuple(x.shape), x._strides, x._offset
    ndim, d, whole = len(sizes), 0, False  # whole: whether there was an Ellipsis
    new_sizes: list[int] = []
    new_strides: list[int] = []
    for place, item in enumerate(index):
        if item is None:
            new_sizes.append(1)
            new_strides.append(sizes[d] * strides[d] if d < ndim else 1)
            continue
        if item is Ellipsis:
            after = ndim - sum([i is not None for i in index[place + 1 :]])
            if whole or after < d:
                return None
            whole = True
            new_sizes += sizes[d:after]
            new_strides += strides[d:after]
            d = after
            continue
        if d == ndim:
            return None
        n, stride = sizes[d], strides[d]
        if item.__class__ is int:
            if not -n <= item < n:
                return None
            offset += (item + n if item < 0 else item) * stride
        elif item.__class__ is slice:
            start, stop, step = item.indices(n)
            if step < 0:
                return None
            length = stop - start if step == 1 else (stop - start + step - 1) // step
            new_sizes.append(length if length > 0 else 0)
            new_strides.append(stride * step)
            offset += start * stride
        else:
            return None
        d += 1
    shape = sized([*new_sizes, *sizes[d:]])
    steps = (*new_strides, *strides[d:])
    return core.view(x, shape, steps, offset, "AliasBackward0", None, None)
