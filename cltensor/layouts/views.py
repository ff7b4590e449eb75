"""Layouts of views: slices, selections, permutations, windows and the like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index as as_index
from typing import Any

from ..size import Size, sized
from ..symbols import is_symbol, remembered
from .basics import Layout, Shape, storage_extent, wrap_dim, wrap_dims


def slice_(
    shape: Shape,
    strides: Shape,
    offset: int,
    dim: int,
    start: int | None,
    stop: int | None,
    step: int = 1,
) -> Layout:
    """Return the layout of `start:stop:step` along `dim`.

    Ends are clamped as by Python's slices; the step must be positive.
    """
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    sizes, steps = [*shape], [*strides]  # lists: an item of a Size takes ten times as long
    dim = wrap_dim(dim, len(sizes))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    n, stride = sizes[dim], steps[dim]
    if step == 1 and start is not None and stop is not None and 0 <= start <= stop <= n:
        size = stop - start
        if size.__class__ is not int and not is_symbol(size):
            size = as_index(size)
    else:
        start, stop, step = slice(start, stop, step).indices(n)
        size = max(0, (stop - start + step - 1) // step)
    sizes[dim], steps[dim] = size, stride * step
    return sized(sizes), tuple(steps), offset + start * stride


def narrow(shape: Shape, strides: Shape, offset: int, dim: int, start: int, length: int) -> Layout:
    """Return the layout of `length` entries from `start` along `dim`.

    IndexError or RuntimeError out of range.
    """
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = shape[wrap_dim(dim, len(shape))]
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    if start < 0:
        start += size
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_(shape, strides, offset, dim, start, start + length)


def select(shape: Shape, strides: Shape, offset: int, dim: int, index: int) -> Layout:
    """Return the layout at `index` of `dim`, which is dropped; IndexError out of range."""
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    sizes = [*shape]
    dim = wrap_dim(dim, len(sizes))
    size = sizes.pop(dim)
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at dimension "
            f"{dim}"
        )
    start = offset + (index + size if index < 0 else index) * strides[dim]
    return sized(sizes), strides[:dim] + strides[dim + 1 :], start


def without(shape: Shape, strides: Shape, dim: int) -> tuple[Shape, Shape]:
    """Return shape and strides without those of `dim`."""
    sizes = [*shape]
    del sizes[dim]
    return sized(sizes), strides[:dim] + strides[dim + 1 :]


def permutation(dims: Sequence[int], ndim: int) -> Shape:
    """Return `dims` wrapped, checked to be a permutation; RuntimeError otherwise."""
    if len(dims) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    order = tuple(wrap_dim(dim, ndim) for dim in dims)
    if len(set(order)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return order


def permute(shape: Shape, strides: Shape, offset: int, dims: Sequence[int]) -> Layout:
    """Return the layout with dimension i taken from `dims[i]`."""
    order = permutation(dims, len(shape))
    return tuple(shape[i] for i in order), tuple(strides[i] for i in order), offset


@remembered(4096)
def permuted(shape: Shape, strides: Shape, dims: Shape) -> tuple[Shape, Shape, Shape]:
    """Return shape and strides with the dims permuted, and the permutation with its dims wrapped."""
    order = permutation(dims, len(shape))
    return Size([shape[i] for i in order]), tuple([strides[i] for i in order]), order


def permute_inverse(dims: Sequence[int]) -> Shape:
    """Return the permutation that undoes `dims` (wrapped)."""
    inverse = [0] * len(dims)
    for i, dim in enumerate(dims):
        inverse[dim] = i
    return tuple(inverse)


def transpose(shape: Shape, strides: Shape, offset: int, dim0: int, dim1: int) -> Layout:
    """Return the layout with two dimensions exchanged."""
    ndim = len(shape)
    a = dim0 if dim0.__class__ is int and 0 <= dim0 < ndim else wrap_dim(dim0, ndim)
    b = dim1 if dim1.__class__ is int and 0 <= dim1 < ndim else wrap_dim(dim1, ndim)
    if a == b:
        return shape, strides, offset
    sizes, steps = [*shape], [*strides]
    sizes[a], sizes[b] = sizes[b], sizes[a]
    steps[a], steps[b] = steps[b], steps[a]
    return sized(sizes), tuple(steps), offset


def movedim_order(
    ndim: int, source: int | Sequence[int], destination: int | Sequence[int]
) -> Shape:
    """Return the permutation that moves `source` dims to `destination`, the others in order."""
    if source.__class__ is int and destination.__class__ is int and ndim:
        order = [*range(ndim)]
        order.insert(wrap_dim(destination, ndim), order.pop(wrap_dim(source, ndim)))
        return tuple(order)
    # hasattr, because isinstance(x, SupportsIndex) takes longer than the rest
    src: tuple[Any, ...] = (source,) if hasattr(source, "__index__") else tuple(source)
    dst: tuple[Any, ...] = (
        (destination,) if hasattr(destination, "__index__") else tuple(destination)
    )
    if len(src) != len(dst):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(src)} dims) should contain the same number of dims as destination ({list(dst)} dims)"
        )
    wrapped_src = tuple(wrap_dim(dim, ndim) for dim in src)
    wrapped_dst = tuple(wrap_dim(dim, ndim) for dim in dst)
    if len(set(wrapped_src)) != len(src):
        raise RuntimeError(f"movedim: repeated dim in `source` ({list(src)})")
    if len(set(wrapped_dst)) != len(dst):
        raise RuntimeError(f"movedim: repeated dim in `destination` ({list(dst)})")
    if ndim == 0:
        return ()
    placed = dict(zip(wrapped_dst, wrapped_src, strict=True))
    rest = (dim for dim in range(ndim) if dim not in wrapped_src)
    return tuple(placed[i] if i in placed else next(rest) for i in range(ndim))


def unfold(shape: Shape, strides: Shape, offset: int, dim: int, size: int, step: int) -> Layout:
    """Return the layout of windows of `size` every `step` along `dim`.

    The window is a new last dimension.
    """
    dim = wrap_dim(dim, len(shape))
    extent, stride = (shape[dim], strides[dim]) if shape else (1, 1)
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > extent:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {extent} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not shape:
        return (size,), (1,), offset
    count = (extent - size) // step + 1
    return (
        (*shape[:dim], count, *shape[dim + 1 :], size),
        (*strides[:dim], stride * step, *strides[dim + 1 :], stride),
        offset,
    )


def diagonal(
    shape: Shape,
    strides: Shape,
    offset: int,
    diagonal_offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
) -> Layout:
    """Return the layout of a diagonal of dims `dim1`, `dim2`, as a new last dimension."""
    shape, ndim = tuple(shape), len(shape)  # items of a plain tuple are read faster than a Size's
    a, b = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if diagonal_offset >= 0:
        size, skip = max(min(shape[a], shape[b] - diagonal_offset), 0), diagonal_offset * strides[b]
    else:
        size = max(min(shape[a] + diagonal_offset, shape[b]), 0)
        skip = -diagonal_offset * strides[a]
    rest = [i for i in range(ndim) if i != a and i != b]
    return (
        sized([*[shape[i] for i in rest], size]),
        (*[strides[i] for i in rest], strides[a] + strides[b]),
        offset + (skip if size else 0),
    )


def squeeze(
    shape: Shape, strides: Shape, offset: int, dims: int | Iterable[int] | None = None
) -> Layout:
    """Return the layout without those of `dims` (default: all) that have size 1."""
    if dims.__class__ is int and 0 < len(shape) <= 64:  # most calls
        dim = wrap_dim(dims, len(shape))
        if shape[dim] != 1:
            return shape, strides, offset
        return *without(shape, strides, dim), offset
    if dims is None and 1 not in shape and len(shape) <= 64:
        return shape, strides, offset
    gone = wrap_dims(dims, len(shape))
    keep = [i for i, size in enumerate(shape) if size != 1 or i not in gone]
    return tuple(shape[i] for i in keep), tuple(strides[i] for i in keep), offset


def unsqueeze(shape: Shape, strides: Shape, offset: int, dim: int) -> Layout:
    """Return the layout with a new dimension of size 1 at `dim`."""
    sizes, steps = [*shape], [*strides]
    dim = wrap_dim(dim, len(sizes) + 1)
    steps.insert(dim, sizes[dim] * steps[dim] if dim < len(sizes) else 1)
    sizes.insert(dim, 1)
    return sized(sizes), tuple(steps), offset


def as_strided(
    shape: Sequence[int], strides: Sequence[int], offset: int, itemsize: int, storage_bytes: int
) -> Layout:
    """Return the given layout after checking that it stays inside a storage of `storage_bytes`."""
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(stride < 0 for stride in strides):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(strides)}"
        )
    if any(size < 0 for size in shape):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and "
            f"strides={list(strides)}"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    needed = storage_extent(tuple(shape), tuple(strides), offset) * itemsize
    if needed > storage_bytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize {itemsize} requiring a storage size of {needed} are out of bounds for storage of size {storage_bytes}"
        )
    return tuple(shape), tuple(strides), offset
