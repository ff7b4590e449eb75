"""Shapes, strides and offsets: what a view is, as pure functions on tuples of ints.

Everything is counted in elements. Owns views, broadcasting, reshaping without a copy, dense stride
orders, joint collapsing and overlap; raises torch's errors for impossible requests. Must not know
of devices, buffers or tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from math import gcd, prod

Shape = tuple[int, ...]
Layout = tuple[Shape, Shape, int]

NO_OVERLAP, FULL_OVERLAP, PARTIAL_OVERLAP, TOO_HARD = "NO", "FULL", "PARTIAL", "TOO_HARD"


# -- basics ---------------------------------------------------------------------------------------


def numel(shape: Shape) -> int:
    """Return the number of elements of a shape."""
    return prod(shape)


@functools.lru_cache(maxsize=8192)
def contiguous_strides(shape: Shape) -> Shape:
    """Return row-major strides; a dimension of size 0 counts as 1."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        if size > 1:
            step *= size
    return tuple(strides[::-1])


@functools.lru_cache(maxsize=4096)
def channels_last_strides(shape: Shape) -> Shape:
    """Return the strides of a batch of images (N, C, *spatial) whose channels vary fastest."""
    return dense_strides(shape, (1, *range(len(shape) - 1, 1, -1), 0))


def is_contiguous(shape: Shape, strides: Shape) -> bool:
    """Tell whether elements lie in row-major order without gaps.

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


def is_channels_last(shape: Shape, strides: Shape) -> bool:
    """Tell whether a 4-d or 5-d layout is dense with channels fastest.

    Strides of size-1 dimensions are ignored.
    """
    ndim = len(shape)
    if ndim not in (4, 5):
        return False
    step = 1
    for dim in (1, *range(ndim - 1, 1, -1), 0):
        if shape[dim] != 1:
            if strides[dim] != step:
                return False
            step *= shape[dim]
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


def wrap_dim(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front.

    IndexError when it is out of range. A 0-dim tensor takes -1 and 0.
    """
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


def wrap_dims(dims: int | Iterable[int] | None, ndim: int) -> Shape:
    """Return `dims` counted from the front, in the given order.

    None means all. Repeats are a RuntimeError.
    """
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        return (wrap_dim(dims, ndim),) if ndim or wrap_dim(dims, ndim) else ()
    wrapped = tuple(wrap_dim(dim, ndim) for dim in dims)
    for i, dim in enumerate(wrapped):
        if dim in wrapped[:i]:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return wrapped if ndim else ()


def reduced_shape(shape: Shape, dims: Shape, keepdim: bool) -> Shape:
    """Return the shape left after reducing over wrapped `dims`."""
    if keepdim:
        return tuple(1 if i in dims else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in dims)


# -- broadcasting ---------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _broadcast_two(a: Shape, b: Shape) -> Shape:
    ndim = max(len(a), len(b))
    shape = []
    for i in range(ndim):
        x = a[i - ndim] if ndim - i <= len(a) else 1
        y = b[i - ndim] if ndim - i <= len(b) else 1
        if x != y and x != 1 and y != 1:
            # torch looks at the last dimension first
            for j in range(ndim - 1, i, -1):
                u = a[j - ndim] if ndim - j <= len(a) else 1
                v = b[j - ndim] if ndim - j <= len(b) else 1
                if u != v and u != 1 and v != 1:
                    i, x, y = j, u, v
                    break
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at "
                f"non-singleton dimension {i}"
            )
        shape.append(y if x == 1 else x)
    return tuple(shape)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape that all `shapes` broadcast to; RuntimeError names the sizes that differ."""
    if not shapes:
        return ()
    result = tuple(shapes[0])
    for shape in shapes[1:]:
        if shape != result:
            result = _broadcast_two(result, tuple(shape))
    return result


def expand_shape(shape: Shape, sizes: Sequence[int], type_name: str = "torch.FloatTensor") -> Shape:
    """Return `sizes` with each -1 replaced by the size it keeps.

    RuntimeError where `shape` does not expand to it.
    """
    lead = len(sizes) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({type_name}{{{list(shape)}}}, size={list(sizes)}): the number of sizes "
            f"provided ({len(sizes)}) "
            f"must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    result = list(sizes)
    for i in range(len(sizes) - 1, -1, -1):
        target = sizes[i]
        if i < lead:
            if target < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({target}) isn't allowed in a leading, "
                    f"non-existing dimension {i}"
                )
        elif target == -1:
            result[i] = shape[i - lead]
        elif target != shape[i - lead] and (shape[i - lead] != 1 or target < 0):
            raise RuntimeError(
                f"The expanded size of the tensor ({target}) must match the existing size "
                f"({shape[i - lead]}) at "
                f"non-singleton dimension {i}.  Target sizes: {list(sizes)}.  Tensor sizes: "
                f"{list(shape)}"
            )
    return tuple(result)


@functools.lru_cache(maxsize=4096)
def expand_strides(shape: Shape, strides: Shape, newshape: Shape) -> Shape:
    """Return the strides of a view expanded to `newshape` (no -1).

    RuntimeError where it does not expand.
    """
    if shape == newshape:
        return strides
    expand_shape(shape, newshape)
    if not shape:
        return (0,) * len(newshape)
    lead = len(newshape) - len(shape)
    result = [
        0 if old == 1 and new != 1 else stride
        for old, new, stride in zip(shape, newshape[lead:], strides, strict=True)
    ]
    for size in reversed(newshape[:lead]):
        # A new dimension of size 1 is given the stride that continues the one behind it.
        behind = newshape[len(newshape) - len(result)] * result[0]
        result.insert(0, behind if size == 1 else 0)
    return tuple(result)


def expand(shape: Shape, strides: Shape, offset: int, sizes: Sequence[int]) -> Layout:
    """Return the layout of a view expanded to `sizes` (-1 keeps a size)."""
    newshape = expand_shape(shape, sizes)
    return newshape, expand_strides(shape, strides, newshape), offset


# -- reshaping ------------------------------------------------------------------------------------


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
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
            "dimension size -1 "
            "can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")


def view_strides(shape: Shape, strides: Shape, newshape: Shape) -> Shape | None:
    """Return strides that show the same elements as `newshape`, or None when only a copy can.

    Runs of dimensions that step evenly through memory are cut into new ones; `newshape` has as many
    elements.
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


def view(shape: Shape, strides: Shape, offset: int, sizes: Sequence[int]) -> Layout:
    """Return the layout of `view(*sizes)`; RuntimeError when that needs a copy."""
    newshape = infer_shape(sizes, prod(shape))
    found = view_strides(shape, strides, newshape)
    if found is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across "
            "two contiguous subspaces). Use .reshape(...) instead."
        )
    return newshape, found, offset


def flatten_shape(shape: Shape, start_dim: int = 0, end_dim: int = -1) -> Shape:
    """Return the shape with dimensions `start_dim` to `end_dim` made one.

    A 0-dim shape becomes (1,).
    """
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return (1,)
    return (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :])


def unflatten_shape(shape: Shape, dim: int, sizes: Sequence[int]) -> Shape:
    """Return the shape with dimension `dim` cut into `sizes` (one may be -1)."""
    dim = wrap_dim(dim, len(shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        inner = infer_shape(sizes, shape[dim])
    except RuntimeError as error:
        if "inferred" in str(error):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}\n") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({shape[dim]}) in "
            "the input tensor"
        ) from None
    return (*shape[:dim], *inner, *shape[dim + 1 :])


# -- views ----------------------------------------------------------------------------------------


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

    Ends are clamped as Python's are, step is positive.
    """
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    start, stop, step = slice(start, stop, step).indices(shape[dim])
    size = max(0, (stop - start + step - 1) // step)
    return (
        (*shape[:dim], size, *shape[dim + 1 :]),
        (*strides[:dim], strides[dim] * step, *strides[dim + 1 :]),
        offset + start * strides[dim],
    )


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
    """Return the layout without `dim`, at `index` of it; IndexError out of range."""
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    size = shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at dimension "
            f"{dim}"
        )
    if index < 0:
        index += size
    return (
        shape[:dim] + shape[dim + 1 :],
        strides[:dim] + strides[dim + 1 :],
        offset + index * strides[dim],
    )


def permutation(dims: Sequence[int], ndim: int) -> Shape:
    """Return `dims` wrapped, checked to be a permutation; RuntimeError otherwise."""
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            "length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = "
            f"{len(dims)}"
        )
    order = tuple(wrap_dim(dim, ndim) for dim in dims)
    if len(set(order)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return order


def permute(shape: Shape, strides: Shape, offset: int, dims: Sequence[int]) -> Layout:
    """Return the layout with dimension i taken from `dims[i]`."""
    order = permutation(dims, len(shape))
    return tuple(shape[i] for i in order), tuple(strides[i] for i in order), offset


def permute_inverse(dims: Sequence[int]) -> Shape:
    """Return the permutation that undoes `dims` (wrapped)."""
    inverse = [0] * len(dims)
    for i, dim in enumerate(dims):
        inverse[dim] = i
    return tuple(inverse)


def transpose(shape: Shape, strides: Shape, offset: int, dim0: int, dim1: int) -> Layout:
    """Return the layout with two dimensions exchanged."""
    a, b = wrap_dim(dim0, len(shape)), wrap_dim(dim1, len(shape))
    if a == b:
        return shape, strides, offset
    sizes, steps = list(shape), list(strides)
    sizes[a], sizes[b] = sizes[b], sizes[a]
    steps[a], steps[b] = steps[b], steps[a]
    return tuple(sizes), tuple(steps), offset


def movedim_order(
    ndim: int, source: int | Sequence[int], destination: int | Sequence[int]
) -> Shape:
    """Return the permutation that moves `source` dims to `destination`, the others in order."""
    src = (source,) if isinstance(source, int) else tuple(source)
    dst = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(src) != len(dst):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(src)} dims) should "
            "contain the same number "
            f"of dims as destination ({list(dst)} dims)"
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
    ndim = len(shape)
    a, b = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if diagonal_offset >= 0:
        size, skip = max(min(shape[a], shape[b] - diagonal_offset), 0), diagonal_offset * strides[b]
    else:
        size, skip = (
            max(min(shape[a] + diagonal_offset, shape[b]), 0),
            -diagonal_offset * strides[a],
        )
    rest = [i for i in range(ndim) if i not in (a, b)]
    return (
        (*(shape[i] for i in rest), size),
        (*(strides[i] for i in rest), strides[a] + strides[b]),
        offset + (skip if size else 0),
    )


def squeeze(
    shape: Shape, strides: Shape, offset: int, dims: int | Iterable[int] | None = None
) -> Layout:
    """Return the layout without those of `dims` (default: all) that have size 1."""
    gone = wrap_dims(dims, len(shape))
    keep = [i for i, size in enumerate(shape) if size != 1 or i not in gone]
    return tuple(shape[i] for i in keep), tuple(strides[i] for i in keep), offset


def unsqueeze(shape: Shape, strides: Shape, offset: int, dim: int) -> Layout:
    """Return the layout with a new dimension of size 1 at `dim`."""
    dim = wrap_dim(dim, len(shape) + 1)
    stride = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], stride, *strides[dim:]), offset


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
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, "
            "and itemsize "
            f"{itemsize} requiring a storage size of {needed} are out of bounds for storage of "
            f"size {storage_bytes}"
        )
    return tuple(shape), tuple(strides), offset


def check_shape(shape: Sequence[int]) -> Shape:
    """Return `shape` as a tuple; RuntimeError when a size is negative."""
    for size in shape:
        if size < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {size}: {list(shape)}"
            )
    return tuple(shape)


# -- splitting ------------------------------------------------------------------------------------


def split_sizes(size: int, split: int | Sequence[int], dim: int = 0) -> list[int]:
    """Return the lengths of the pieces of a dimension of `size`.

    RuntimeError when they do not fit.
    """
    if isinstance(split, int):
        if split < 0:
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={split}"
            )
        if split == 0:
            if size:
                raise RuntimeError(
                    "split_size can only be 0 if dimension size is 0, but got dimension size of "
                    f"{size}"
                )
            return [0]
        return [min(split, size - start) for start in range(0, size, split)] or [0]
    if any(length < 0 for length in split):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split)}"
        )
    if sum(split) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size "
            f"at dimension {dim}),"
            f" but got split_sizes={list(split)}"
        )
    return list(split)


def chunk_sizes(size: int, chunks: int) -> list[int]:
    """Return the lengths of at most `chunks` equal pieces (the last may be shorter)."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if size == 0:
        return [0] * chunks
    return split_sizes(size, -(-size // chunks))


def tensor_split_bounds(size: int, sections: int | Sequence[int]) -> list[tuple[int, int]]:
    """Return (start, stop) of each of `sections` near-equal pieces, or cut at given indices."""
    if isinstance(sections, int):
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        small, extra = divmod(size, sections)
        cuts = [i * small + min(i, extra) for i in range(1, sections)]
    else:
        cuts = list(sections)
    starts, stops = [0, *cuts], [*cuts, size]
    return [slice(a, b).indices(size)[:2] for a, b in zip(starts, stops, strict=True)]


# -- dense stride orders --------------------------------------------------------------------------


def dense_strides(shape: Shape, order: Sequence[int]) -> Shape:
    """Return gapless strides.

    `order` lists the dimensions, fastest first. Beyond a size of 0 strides are 0.
    """
    strides = [1] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def is_non_overlapping_and_dense(shape: Shape, strides: Shape) -> bool:
    """Tell whether the elements fill a gapless block, each once, in any order of dimensions."""
    if strides == contiguous_strides(shape) or 0 in shape:
        return True
    step = 1
    for stride, size in sorted(pair for pair in zip(strides, shape, strict=True) if pair[1] != 1):
        if stride != step:
            return False
        step *= size
    return True


def _stride_order(shape: Shape, operands: Sequence[Shape]) -> list[int]:
    """Sort dimensions fastest first, by the first operand that tells two of them apart.

    Stride 0 tells nothing, so this is no total order: the insertion sort, from row-major order, is
    part of the rule.
    """
    ndim = len(shape)
    order = list(range(ndim - 1, -1, -1))
    for i in range(1, ndim):
        moving = i
        for j in range(i - 1, -1, -1):
            below, above = order[j], order[moving]
            verdict = 0
            for strides in operands:
                s, t = strides[below], strides[above]
                if s == 0 or t == 0:
                    continue
                if s != t:
                    verdict = 1 if s > t else -1
                    break
                if shape[below] > shape[above]:
                    verdict = 1
                    break
            if verdict > 0:
                order[j], order[moving] = above, below
                moving = j
            elif verdict < 0:
                break
    return order


@functools.lru_cache(maxsize=4096)
def preserve_strides(shape: Shape, strides: Shape) -> Shape:
    """Return dense strides that keep an old tensor's order of dims (torch.preserve_format)."""
    if is_non_overlapping_and_dense(shape, strides):
        return strides
    return dense_strides(shape, _stride_order(shape, (strides,)))


def elementwise_strides(shape: Shape, operands: Sequence[tuple[Shape, Shape]]) -> Shape:
    """Return the strides of a pointwise result of `shape` over `(shape, strides)` operands.

    A dense layout that all operands share is kept; else dimensions are ordered by the operands'
    strides, the first operand that tells two dimensions apart deciding. Python scalars count as
    operands of shape ().
    """
    row_major = contiguous_strides(shape)
    same_shape = True
    for operand_shape, strides in operands:
        if operand_shape != shape:
            same_shape = False
        elif strides != row_major:
            break
    else:
        if same_shape:
            return row_major
    return _elementwise_strides(shape, tuple(operands))


@functools.lru_cache(maxsize=4096)
def _elementwise_strides(shape: Shape, operands: tuple[tuple[Shape, Shape], ...]) -> Shape:
    if all(s == shape for s, _ in operands):
        if all(is_contiguous(*o) for o in operands):
            return contiguous_strides(shape)
        if len(shape) == 4 and all(is_channels_last(*o) for o in operands):
            return channels_last_strides(shape)
        first = operands[0][1]
        if all(strides == first for _, strides in operands) and is_non_overlapping_and_dense(
            shape, first
        ):
            return first
    seen = []
    for operand_shape, strides in operands:
        lead = len(shape) - len(operand_shape)
        inner = (
            0 if size == 1 and shape[lead + i] != 1 else strides[i]
            for i, size in enumerate(operand_shape)
        )
        seen.append((0,) * lead + tuple(inner))
    order = _stride_order(shape, seen)
    return (
        contiguous_strides(shape)
        if order == [*range(len(shape) - 1, -1, -1)]
        else dense_strides(shape, order)
    )


# -- collapsing and overlap -----------------------------------------------------------------------


@functools.lru_cache(maxsize=8192)
def _collapse(shape: Shape, operands: tuple[Shape, ...]) -> tuple[Shape, tuple[Shape, ...]]:
    sizes: list[int] = []
    kept: list[list[int]] = [[] for _ in operands]
    for dim, size in enumerate(shape):
        if size == 1:
            continue
        steps = [strides[dim] for strides in operands]
        if sizes and all(k[-1] == step * size for k, step in zip(kept, steps, strict=True)):
            sizes[-1] *= size
            for k, step in zip(kept, steps, strict=True):
                k[-1] = step
        else:
            sizes.append(size)
            for k, step in zip(kept, steps, strict=True):
                k.append(step)
    return tuple(sizes), tuple(tuple(k) for k in kept)


def collapse(shape: Shape, strides_list: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """Merge neighbouring dims that all operands step through evenly, and drop those of size 1.

    Row-major order of the elements is kept. One element gives shape (); no elements give shape
    (0,).
    """
    if 0 in shape:
        return (0,), [(1,)] * len(strides_list)
    sizes, strides = _collapse(shape, tuple(strides_list))
    return sizes, list(strides)


def internal_overlap(shape: Shape, strides: Shape) -> str:
    """Tell whether a view shows a cell of memory twice: NO, FULL (a stride is 0) or TOO_HARD."""
    if is_non_overlapping_and_dense(shape, strides):
        return NO_OVERLAP
    if any(size > 1 and stride == 0 for size, stride in zip(shape, strides, strict=True)):
        return FULL_OVERLAP
    return TOO_HARD


def overlap(a: Layout, b: Layout) -> str:
    """Compare two views of one storage: NO, FULL (same cells, same order), PARTIAL or TOO_HARD."""
    if a == b:
        return FULL_OVERLAP
    if 0 in a[0] or 0 in b[0]:
        return NO_OVERLAP
    if not (is_non_overlapping_and_dense(*a[:2]) and is_non_overlapping_and_dense(*b[:2])):
        return TOO_HARD
    a_end, b_end = storage_extent(*a), storage_extent(*b)
    if a[2] == b[2] and a_end == b_end:
        return FULL_OVERLAP if a[1] == b[1] else PARTIAL_OVERLAP
    return PARTIAL_OVERLAP if a[2] < b_end and b[2] < a_end else NO_OVERLAP


def may_share(a: Layout, b: Layout) -> bool:
    """Tell whether two views of one storage may show a common cell.

    Exact for disjoint ranges and strided combs.
    """
    if 0 in a[0] or 0 in b[0]:
        return False
    if a[2] >= storage_extent(*b) or b[2] >= storage_extent(*a):
        return False
    steps = [
        t for shape, strides, _ in (a, b) for s, t in zip(shape, strides, strict=True) if s > 1
    ]
    common = gcd(*steps)
    # Every address is the offset plus a multiple of `common`: different remainders never meet.
    return common == 0 or (a[2] - b[2]) % common == 0
