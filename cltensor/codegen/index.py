"""Indexing: gather, advanced indexing, take, put, scatter and its reductions, and the index_*
family.

Lays each operation out for the kernels of moves.py and words its errors as torch does. Indices are
checked in the kernel (see checks.py): out of range is never read or written. Knows operands and
backends, nothing of tensors. Selection by mask lives in mask.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .. import dtypes
from ..layouts import numel
from .checks import Describe
from .moves import (
    Scalar,
    Through,
    combine,
    copy_strided,
    dense,
    fill_strided,
    move,
    scalar_operand,
    scalar_words,
)
from .operand import Operand
from .region import Dims, dense_strides, empty, index_type, is_gpu, run, workers

if TYPE_CHECKING:
    from ..runtime import Backend


# -- errors, in torch's words ---------------------------------------------------------------------


def _bounds_error(
    kind: type[Exception], dims: Sequence[int], sizes: Sequence[int], prefix: str = ""
) -> Describe:
    def describe(value: int, ordinal: int) -> Exception:
        return kind(
            f"{prefix}index {value} is out of bounds for dimension {dims[ordinal]} "
            f"with size {sizes[ordinal]}"
        )

    return describe


def _select_error(shape: tuple[int, ...], dim: int) -> Describe:
    def describe(value: int, ordinal: int) -> Exception:
        if len(shape) > 1:
            return RuntimeError(
                f"INDICES element is out of DATA bounds, id={value} axis_dim={shape[dim]}"
            )
        return IndexError("index out of range in self")

    return describe


def _self_error(value: int, ordinal: int) -> Exception:
    return IndexError("index out of range in self")


# -- reading --------------------------------------------------------------------------------------


def _over(index: Operand, ndim: int, dim: int) -> tuple[int, ...]:
    """Lay a 1-D (or 0-D) index along `dim` of a space of `ndim` dims."""
    step = index.strides[0] if index.strides else 0
    return tuple(step if d == dim else 0 for d in range(ndim))


def gather(backend: Backend, src: Operand, dim: int, index: Operand) -> Operand:
    """Return `out[i][j] = src[index[i][j]][j]` (for dim 0) in the shape of `index`.

    RuntimeError for an index that is negative or too large.
    """
    result = empty(backend, src.dtype, index.shape)
    if not index.shape:  # 0-d operands count as one element
        through = [
            Through(
                index,
                (),
                max(1, src.shape[0] if src.shape else 1),
                src.strides[0] if src.strides else 1,
            )
        ]
        strides: tuple[int, ...] = ()
    elif not src.shape:
        through, strides = [Through(index, index.strides, 1, 1)], (0,)
    else:
        strides = tuple(0 if d == dim else s for d, s in enumerate(src.strides))
        through = [Through(index, index.strides, src.shape[dim], src.strides[dim])]
    error = _bounds_error(RuntimeError, [dim], [through[0].size])
    move(backend, "get", result, src, index.shape, result.strides, strides, through, False, error)
    return result


def index_select(
    backend: Backend,
    src: Operand,
    dim: int,
    index: Operand,
    describe: Describe | None = None,
) -> Operand:
    """Return the positions `index` (1-D) of `dim`; `describe` replaces torch's index_select
    error (an embedding's, say).
    """
    if not src.shape:
        result = empty(backend, src.dtype, ())
        through = [Through(index, (), 1, 1)]
        move(
            backend,
            "get",
            result,
            src,
            (),
            (),
            (),
            through,
            False,
            describe or _select_error(src.shape, dim),
        )
        return result
    length = numel(index.shape)
    if length and len(src.shape) > 1 and not src.shape[dim]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    shape = (*src.shape[:dim], length, *src.shape[dim + 1 :])
    result = empty(backend, src.dtype, shape)
    strides = tuple(0 if d == dim else s for d, s in enumerate(src.strides))
    through = [Through(index, _over(index, len(shape), dim), src.shape[dim], src.strides[dim])]
    error = describe or _select_error(src.shape, dim)
    if length and not numel(shape):  # nothing to move, yet an index may be out of range
        probe = Operand(backend.alloc(1), dtypes.uint8, (src.shape[dim],), (0,), 0)
        index_select(backend, probe, 0, index, describe=_select_error(src.shape, dim))
    move(backend, "get", result, src, shape, result.strides, strides, through, False, error)
    return result


def _flat_error(n: int) -> Describe:
    def describe(value: int, ordinal: int) -> Exception:
        return IndexError(
            f"out of range: tried to access index {value} on a tensor of {n} elements."
        )

    return describe


def take(backend: Backend, src: Operand, index: Operand) -> Operand:
    """Return `src` flattened, at `index` (negative counts from the end), in the shape of
    `index`.
    """
    result = empty(backend, src.dtype, index.shape)
    flat = dense(backend, src)
    n = numel(src.shape)
    if n == 0 and numel(index.shape):
        raise IndexError("take(): tried to take from an empty tensor")
    through = [Through(index, index.strides, n, 1)]
    zeros = (0,) * len(index.shape)
    move(
        backend,
        "get",
        result,
        flat,
        index.shape,
        result.strides,
        zeros,
        through,
        True,
        _flat_error(n),
    )
    return result


def put(
    backend: Backend, dst: Operand, index: Operand, src: Operand, accumulate: bool = False
) -> None:
    """Write `src` (shape of `index`) at flat positions of `dst`, in place; IndexError out of
    range.
    """
    flat = dense(backend, dst)
    n = numel(dst.shape)
    if n == 0 and numel(index.shape):
        raise IndexError(
            "put_(): attempting to put into an empty tensor"
        )  # torch reaches this only with indices
    through = [Through(index, index.strides, n, 1)]
    space, zeros = index.shape, (0,) * len(index.shape)
    action = "add" if accumulate else "move"
    every = range(len(space))
    combine(
        backend, action, flat, src, space, every, zeros, src.strides, through, True, _flat_error(n)
    )
    if flat is not dst:
        copy_strided(backend, flat, dst)


class _Advanced(NamedTuple):
    space: tuple[int, ...]
    sliced_strides: tuple[int, ...]
    block: range
    through: list[Through]
    describe: Describe


def _advanced(x: Operand, indices: Sequence[tuple[int, Operand]]) -> _Advanced:
    """Lay out `x[..., i, j, ...]`: the sliced dims of `x` with the index block where the indexed dims stand
    when they are neighbours, else first.
    """
    dims = [d for d, _ in indices]
    block_shape = indices[0][1].shape
    sliced = [d for d in range(len(x.shape)) if d not in dims]
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    position = sum(d < dims[0] for d in sliced) if adjacent else 0
    before, after = sliced[:position], sliced[position:]
    space = (*(x.shape[d] for d in before), *block_shape, *(x.shape[d] for d in after))
    strides = (
        *(x.strides[d] for d in before),
        *(0 for _ in block_shape),
        *(x.strides[d] for d in after),
    )
    left, right = (0,) * len(before), (0,) * len(after)
    through = [
        Through(i, (*left, *i.strides, *right), x.shape[d], x.strides[d]) for d, i in indices
    ]
    error = _bounds_error(IndexError, range(len(dims)), [x.shape[d] for d in dims])
    return _Advanced(space, strides, range(position, position + len(block_shape)), through, error)


def advanced_shape(shape: Sequence[int], indices: Sequence[tuple[int, Operand]]) -> tuple[int, ...]:
    """Return the shape of `advanced_get`'s result."""
    probe = Operand(None, dtypes.uint8, tuple(shape), dense_strides(shape))  # type: ignore[arg-type]
    return _advanced(probe, indices).space


def advanced_get(
    backend: Backend,
    src: Operand,
    indices: Sequence[tuple[int, Operand]],
) -> Operand:
    """Return `src` indexed in the given dims by index operands of one common (broadcast) shape, as
    numpy and torch do.

    The result has the other dims with the block of index dims where the indexed dims stand when they are
    neighbours, else first. Negative indices wrap; IndexError out of range.
    """
    plan = _advanced(src, indices)
    result = empty(backend, src.dtype, plan.space)
    move(
        backend,
        "get",
        result,
        src,
        plan.space,
        result.strides,
        plan.sliced_strides,
        plan.through,
        True,
        plan.describe,
    )
    return result


def advanced_set(
    backend: Backend,
    dst: Operand,
    indices: Sequence[tuple[int, Operand]],
    values: Operand | Scalar,
    accumulate: bool = False,
) -> None:
    """Write `values` (already expanded to `advanced_shape`) into `dst` at the indices; see Note
    [Order of writes].
    """
    plan = _advanced(dst, indices)
    if not isinstance(values, Operand):
        if not accumulate:
            move(
                backend,
                "set",
                dst,
                scalar_words(dst.dtype, values),
                plan.space,
                plan.sliced_strides,
                (),
                plan.through,
                True,
                plan.describe,
            )
            return
        values = scalar_operand(backend, dst.dtype, values, plan.space)
    action = "add" if accumulate else "move"
    combine(
        backend,
        action,
        dst,
        values,
        plan.space,
        plan.block,
        plan.sliced_strides,
        values.strides,
        plan.through,
        True,
        plan.describe,
    )


# -- writing along a dim --------------------------------------------------------------------------

_ACTIONS = {
    None: "move",
    "add": "add",
    "sum": "add",
    "multiply": "mul",
    "prod": "mul",
    "amax": "amax",
    "amin": "amin",
    "mean": "add",
}


def _counts(
    backend: Backend,
    dst: Operand,
    space: Sequence[int],
    colliding: Sequence[int],
    through: Through,
    keep: Sequence[int],
    include_self: bool,
    describe: Describe,
) -> Operand:
    """Count the contributions to each element of `dst` (dense, int32)."""
    counts = empty(backend, dtypes.int32, dst.shape)
    fill_strided(backend, counts, 1 if include_self else 0)
    ones = scalar_operand(backend, dtypes.int32, 1, space)
    dim = next(d for d in range(len(dst.shape)) if not keep[d]) if dst.shape else 0
    strides = tuple(s if keep[d] else 0 for d, s in enumerate(counts.strides)) or (0,) * len(space)
    step = counts.strides[dim] if dst.shape else 1
    combine(
        backend,
        "add",
        counts,
        ones,
        space,
        colliding,
        strides,
        ones.strides,
        [through._replace(step=step)],
        False,
        describe,
    )
    return counts


def _divide(backend: Backend, dst: Operand, counts: Operand) -> None:
    """Divide `dst` by counts, where counts are above 1; integers round down."""
    dims = Dims(dst.shape, [dst.strides, counts.strides])
    gpu = is_gpu(backend)
    kind = index_type(backend, dst, counts)
    run(
        backend,
        "index/divide",
        f"index_divide_{dst.dtype.code}_r{dims.rank}",
        [dst.buffer, counts.buffer],
        [dims.n, dst.offset, counts.offset, *dims.args()],
        dims.n if gpu else workers(backend, dims.n),
        dims.n * (2 * dst.dtype.itemsize + 4),
        dt=dst.dtype,
        I=kind,
        rank=dims.rank,
        gpu=gpu,
    )


def _along(
    backend: Backend,
    dst: Operand,
    dim: int,
    index: Operand,
    index_strides: Sequence[int],
    space: Sequence[int],
    src: Operand,
    reduce: str | None,
    include_self: bool,
    describe: Describe,
    factor: Operand | None = None,
    wrap: bool = False,
) -> None:
    if not numel(tuple(space)):
        return
    if reduce not in _ACTIONS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}."
        )
    action = _ACTIONS[reduce]
    if dst.dtype is dtypes.complex32 and action != "move":
        raise NotImplementedError(
            f"scatter with reduce={reduce!r} is not implemented for 'ComplexHalf'"
        )
    if dst.dtype.is_complex and action in ("amax", "amin"):
        raise NotImplementedError(
            f"scatter with reduce={reduce!r} is not implemented for '{dst.dtype.scalar_name}'"
        )
    keep = [d != dim for d in range(len(dst.shape))]
    strides = tuple(s if k else 0 for s, k in zip(dst.strides, keep, strict=True))
    step = dst.strides[dim] if dst.shape else 1
    through = Through(index, tuple(index_strides), dst.shape[dim] if dst.shape else 1, step)
    colliding = [dim] if space else []
    if not dst.shape and space:  # a 0-d destination is one element of one dim
        strides, colliding = (0,) * len(space), list(range(len(space)))
    if not include_self and action != "move":
        if action in ("amax", "amin"):  # any contribution is a neutral start for these
            move(backend, "set", dst, src, space, strides, src.strides, [through], wrap, describe)
        else:
            start = scalar_words(dst.dtype, 1 if action == "mul" else 0)
            move(backend, "set", dst, start, space, strides, (), [through], wrap, describe)
    combine(
        backend,
        action,
        dst,
        src,
        space,
        colliding,
        strides,
        src.strides,
        [through],
        wrap,
        describe,
        factor,
    )
    if reduce == "mean":
        counts = _counts(backend, dst, space, colliding, through, keep, include_self, describe)
        _divide(backend, dst, counts)


def scatter(
    backend: Backend,
    dst: Operand,
    dim: int,
    index: Operand,
    src: Operand | Scalar,
    reduce: str | None = None,
    include_self: bool = True,
) -> None:
    """Write or reduce `src` into `dst[index[i][j]][j]` (for dim 0), in place.

    `reduce`: None, "add"/"sum", "multiply"/"prod", "amax", "amin" or "mean". With
    `include_self=False` the old value of an element that is written does not count. `src` covers at
    least the shape of `index`. RuntimeError for an index that is negative or too large.
    """
    space = index.shape
    size = dst.shape[dim] if dst.shape else 1
    error = _bounds_error(RuntimeError, [dim], [size])
    if not isinstance(src, Operand):
        if reduce is None:
            strides = tuple(0 if d == dim else s for d, s in enumerate(dst.strides))
            if not dst.shape:
                strides = (0,) * len(space)
            elif not space:
                strides = ()
            through = [Through(index, index.strides, size, dst.strides[dim] if dst.shape else 1)]
            move(
                backend,
                "set",
                dst,
                scalar_words(dst.dtype, src),
                space,
                strides,
                (),
                through,
                False,
                error,
            )
            return
        src = scalar_operand(backend, dst.dtype, src, space)
    if not space and dst.shape:  # a 0-d index counts as one element
        space, index = (1,), index._replace(shape=(1,), strides=(1,))
    if len(src.shape) != len(space):
        src = src._replace(shape=space, strides=(1,) * len(space))
    _along(backend, dst, dim, index, index.strides, space, src, reduce, include_self, error)


def _rows(dst: Operand, dim: int, index: Operand) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not dst.shape:
        return (numel(index.shape),), (index.strides[0] if index.strides else 0,)
    length = numel(index.shape)
    return (*dst.shape[:dim], length, *dst.shape[dim + 1 :]), _over(index, len(dst.shape), dim)


def _aligned(src: Operand, space: Sequence[int]) -> Operand:
    if len(src.shape) == len(space):
        return src
    return src._replace(
        shape=tuple(space), strides=(src.strides[0] if src.strides else 0,) * len(space)
    )


def index_add(
    backend: Backend, dst: Operand, dim: int, index: Operand, src: Operand, alpha: Scalar = 1
) -> None:
    """Add `alpha * src` to the positions `index` (1-D) of `dim`, in place, duplicates in index
    order.
    """
    space, strides = _rows(dst, dim, index)
    factor = None if alpha == 1 else scalar_operand(backend, dst.dtype, alpha)
    error = (
        _bounds_error(RuntimeError, [dim], [dst.shape[dim]]) if len(dst.shape) > 1 else _self_error
    )
    _along(
        backend, dst, dim, index, strides, space, _aligned(src, space), "add", True, error, factor
    )


def index_reduce(
    backend: Backend,
    dst: Operand,
    dim: int,
    index: Operand,
    src: Operand,
    reduce: str,
    include_self: bool = True,
) -> None:
    """Reduce `src` into the positions `index` (1-D) of `dim`, in place; `reduce`: prod, mean,
    amax or amin.
    """
    space, strides = _rows(dst, dim, index)
    _along(
        backend,
        dst,
        dim,
        index,
        strides,
        space,
        _aligned(src, space),
        reduce,
        include_self,
        _self_error,
    )


def index_copy(backend: Backend, dst: Operand, dim: int, index: Operand, src: Operand) -> None:
    """Copy `src` to the positions `index` (1-D) of `dim`, in place; the last of duplicates wins
    on a CPU.
    """
    space, strides = _rows(dst, dim, index)
    size = dst.shape[dim] if dst.shape else 1
    error = _bounds_error(IndexError, [dim], [size], "index_copy_(): ")
    _along(backend, dst, dim, index, strides, space, _aligned(src, space), None, True, error)


def index_fill(
    backend: Backend, dst: Operand, dim: int, index: Operand, value: Operand | Scalar
) -> None:
    """Fill the positions `index` (1-D, negative allowed) of `dim`, in place; `value` is a scalar
    or a 0-d operand.
    """
    space, strides = _rows(dst, dim, index)
    size = dst.shape[dim] if dst.shape else 1
    error = _bounds_error(IndexError, [dim], [size])
    kept = tuple(0 if d == dim else s for d, s in enumerate(dst.strides)) if dst.shape else (0,)
    through = [Through(index, strides, size, dst.strides[dim] if dst.shape else 1)]
    if isinstance(value, Operand):
        move(backend, "set", dst, value, space, kept, (0,) * len(space), through, True, error)
    else:
        move(
            backend,
            "set",
            dst,
            scalar_words(dst.dtype, value),
            space,
            kept,
            (),
            through,
            True,
            error,
        )
