"""Reshaping: inferred sizes, and the strides of views that need no copy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..size import Size, sized
from ..symbols import remembered
from .basics import Layout, Shape, contiguous_strides, wrap_dim


def infer_shape(shape: Sequence[int], count: int) -> Shape:
    """Return `shape` with its one -1 worked out for `count` elements.

    RuntimeError where none fits.
    """
    known = 1
    unknown = -1
    for i, size in enumerate(shape):
        if size >= 0:
            known *= size
        elif size == -1:
            if unknown >= 0:
                raise RuntimeError("only one dimension can be inferred")
            unknown = i
        else:
            raise RuntimeError(
                f"invalid shape dimension {size} at index {i} of shape {list(shape)}"
            )
    if unknown < 0:
        if known == count:
            return tuple(shape)
    elif known > 0 and count % known == 0:
        return (*shape[:unknown], count // known, *shape[unknown + 1 :])
    elif known == 0 and count == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")


def view_strides(shape: Shape, strides: Shape, newshape: Shape) -> Shape | None:
    """Return the strides of a view of the same elements with shape `newshape`, or None if that needs a copy.

    Runs of dims that step evenly through memory are divided into the new dims. `newshape` must have as
    many elements.
    """
    if shape == newshape and (0 in shape or 1 not in shape):
        return strides
    if strides == contiguous_strides(shape) or 0 in shape:
        return contiguous_strides(newshape)
    result = [0] * len(newshape)
    target = len(newshape) - 1
    run = 1  # elements in the current run of old dimensions, and the stride of its innermost one
    base = strides[-1] if strides else 1
    for i in range(len(shape) - 1, -1, -1):
        run *= shape[i]
        if i > 0 and (shape[i - 1] == 1 or strides[i - 1] == run * base):
            continue
        placed = 1
        while target >= 0 and (placed < run or newshape[target] == 1):
            result[target] = placed * base
            placed *= newshape[target]
            target -= 1
        if placed != run:
            return None
        if i > 0:
            base = strides[i - 1]
            run = 1
    if not shape:
        return contiguous_strides(newshape)
    return tuple(result) if target < 0 else None


@remembered(4096)
def shape_for(sizes: Shape, shape: Shape) -> Size:
    """Return the shape for `sizes`, of which one may be -1, of the elements of a tensor of this shape."""
    return Size(infer_shape(sizes, prod(shape)))


@remembered(4096)
def reshape(shape: Shape, strides: Shape, sizes: Shape) -> tuple[Shape, Shape | None]:
    """Return the shape for `sizes`, of which one may be -1, and the strides of a view of that shape, None if it needs a
    copy.
    """
    newshape = Size(infer_shape(sizes, prod(shape)))
    return newshape, view_strides(tuple(shape), strides, newshape)


def view(shape: Shape, strides: Shape, offset: int, sizes: Sequence[int]) -> Layout:
    """Return the layout of `view(*sizes)`; RuntimeError when that needs a copy."""
    newshape, found = reshape(shape, strides, tuple(sizes))
    if found is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return newshape, found, offset


def flatten_shape(shape: Shape, start_dim: int = 0, end_dim: int = -1) -> Shape:
    """Return the shape with dimensions `start_dim` to `end_dim` made one.

    A 0-dim shape becomes (1,).
    """
    sizes = [*shape]
    start, end = wrap_dim(start_dim, len(sizes)), wrap_dim(end_dim, len(sizes))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    sizes[start : end + 1] = [prod(sizes[start : end + 1])]  # no sizes make one of 1
    return sized(sizes)


def unflatten_shape(shape: Shape, dim: int, sizes: Sequence[int]) -> Shape:
    """Return the shape with dimension `dim` cut into `sizes` (one may be -1)."""
    dim = wrap_dim(dim, len(shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        inner = infer_shape(sizes, shape[dim])
    except RuntimeError as error:
        if "is invalid for input" not in str(error):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}\n") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the input tensor"
        ) from None
    return (*shape[:dim], *inner, *shape[dim + 1 :])
