"""Shapes and dimensions: counting elements, row-major order, wrapping dims, checking sizes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..errors import class_name
from ..symbols import remembered

Shape = tuple[int, ...]
Layout = tuple[Shape, Shape, int]

_MOST = 2**63 - 1


def numel(shape: Shape) -> int:
    """Return the number of elements of a shape."""
    return prod(shape)


@remembered(8192)
def contiguous_strides(shape: Shape) -> Shape:
    """Return row-major strides; a dimension of size 0 counts as 1. RuntimeError past 64 bits."""
    strides = []
    step = 1
    for size in reversed(shape):
        if step > _MOST:
            raise RuntimeError("Stride calculation overflowed")
        strides.append(step)
        if size > 1:
            step *= size
    if step > _MOST and 0 not in shape:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return tuple(strides[::-1])


def is_contiguous(shape: Shape, strides: Shape) -> bool:
    """Return whether elements lie in row-major order without gaps.

    Strides of size-1 dimensions are ignored.
    """
    if strides == contiguous_strides(shape):
        return True
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1:
            if stride != step:
                return 0 in shape
            step *= size
    return True


def storage_extent(shape: Shape, strides: Shape, offset: int = 0) -> int:
    """Return how many elements from the start of the storage a view reaches.

    0 when the view is empty.
    """
    reach = offset + 1
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0
        reach += (size - 1) * stride
    return reach


def storage_bytes(shape: Shape, strides: Shape | None, offset: int, itemsize: int) -> int:
    """Return the size of a storage that a layout fits in, `strides` None being row-major; RuntimeError past 64 bits."""
    if strides is None:
        contiguous_strides(shape)  # checks the number of elements
        count = prod(shape)
        found = offset + count if count else 0
    else:
        found = storage_extent(shape, strides, offset)
    if found * itemsize > _MOST:
        said = "" if strides is None else f" and strides={list(strides)}"
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}{said}")
    return found * itemsize


def wrap_dim(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front.

    IndexError when it is out of range, TypeError for what is no integer. A 0-dim tensor takes -1 and 0.
    """
    if dim.__class__ is not int and (dim.__class__ is bool or not hasattr(dim, "__index__")):
        raise TypeError(f"argument 'dim' must be int, not {class_name(dim)}")
    if 0 <= dim < ndim:
        return dim
    if -ndim <= dim < 0:
        return dim + ndim
    if ndim == 0 and -1 <= dim <= 0:
        return 0
    span = ndim or 1
    raise IndexError(
        f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {dim})"
    )


def own_dim(dim: int, ndim: int) -> int:
    """Do what `wrap_dim` does, but refuse any dim of a 0-dim tensor."""
    if not ndim and dim.__class__ is int:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def wrap_dims(dims: Any, ndim: int) -> Shape:
    """Return `dims`, an int or several, counted from the front, in the given order.

    None means all. Repeats, and tensors of more than 64 dims, are a RuntimeError.
    """
    if ndim > 64:
        raise RuntimeError("only tensors with up to 64 dims are supported")
    if dims is None:
        return tuple(range(ndim))
    if hasattr(dims, "__index__"):
        return (wrap_dim(dims, ndim),) if ndim or wrap_dim(dims, ndim) else ()
    wrapped: list[int] = []
    for dim in dims:
        dim = wrap_dim(dim, ndim)
        if dim in wrapped:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        wrapped.append(dim)
    return tuple(wrapped) if ndim else ()


def reduced_shape(shape: Shape, dims: Shape, keepdim: bool) -> Shape:
    """Return the shape left after reducing over wrapped `dims`."""
    if len(dims) == len(shape):  # all dims: wrapped ones do not repeat
        return (1,) * len(shape) if keepdim else ()
    if keepdim:
        return tuple([1 if i in dims else size for i, size in enumerate(shape)])
    return tuple([size for i, size in enumerate(shape) if i not in dims])


def check_shape(shape: Sequence[int]) -> Shape:
    """Return `shape` as a tuple; RuntimeError when a size is negative."""
    for size in shape:
        if size < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {size}: {list(shape)}"
            )
    return tuple(shape)
