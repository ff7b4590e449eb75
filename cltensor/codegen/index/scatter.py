"""Writing along a dim at the positions an index operand names: scatter and its reductions, index_add and the like.

Lays each operation out for the kernels of moves.py and words its errors as torch does, as lookup.py does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ... import dtypes
from ...layouts import numel
from ..checks import Describe
from ..move.copies import fill_strided
from ..operand import Operand
from ..region import Dims, empty, index_type, is_gpu, run, workers
from ..scalars import Scalar, scalar_operand, scalar_words
from . import claims, rows
from .lookup import bounds_error, over
from .moves import Through, combine, move

if TYPE_CHECKING:
    from ...runtime import Backend

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
        if action in ("amax", "amin"):  # any contribution to an element can start its extreme
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
    error = bounds_error(RuntimeError, [dim], [size])
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


def fits_anew(
    backend: Backend,
    dt: dtypes.dtype,
    shape: tuple[int, ...],
    count: int,
    adds: bool,
    number: bool,
) -> bool:
    """Return whether `scattered` can build rows anew with `count` elements written, or with `adds` added, to each.

    `number`: one number is written `count` times.
    """
    if is_gpu(backend):
        many = claims.fits(backend, dt, numel(shape[:-1]), shape[-1], count, adds)
        return many and (adds or number)
    return rows.fits_anew(backend, dt, shape[-1], adds)


def scattered(
    backend: Backend,
    dt: dtypes.dtype,
    shape: tuple[int, ...],
    base: Operand | None,
    index: Operand,
    src: Operand | Scalar,
    reduce: str | None = None,
) -> Operand:
    """Return the result of `scatter` along the last dim into a copy of `base`, or into zeros, if `fits_anew`.

    All operands are dense and have the same rows. `src` may be one element repeated, or a number, which can only be
    written, not added.
    """
    if not index.shape:  # a 0-d index counts as one element
        index = index._replace(shape=(1,), strides=(1,))
    error = bounds_error(RuntimeError, [len(shape) - 1], [shape[-1]])
    value = src if isinstance(src, Operand) else scalar_words(dt, src)
    make = claims.anew if is_gpu(backend) else rows.anew
    return make(backend, _ACTIONS[reduce], dt, shape, base, index, value, error)


def _self_error(value: int, ordinal: int) -> Exception:
    return IndexError("index out of range in self")


def _rows(dst: Operand, dim: int, index: Operand) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not dst.shape:
        return (numel(index.shape),), (index.strides[0] if index.strides else 0,)
    length = numel(index.shape)
    return (*dst.shape[:dim], length, *dst.shape[dim + 1 :]), over(index, len(dst.shape), dim)


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
        bounds_error(RuntimeError, [dim], [dst.shape[dim]]) if len(dst.shape) > 1 else _self_error
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
    error = bounds_error(IndexError, [dim], [size], "index_copy_(): ")
    _along(backend, dst, dim, index, strides, space, _aligned(src, space), None, True, error)


def index_fill(
    backend: Backend, dst: Operand, dim: int, index: Operand, value: Operand | Scalar
) -> None:
    """Fill the positions `index` (1-D, negative allowed) of `dim`, in place; `value` is a scalar
    or a 0-d operand.
    """
    space, strides = _rows(dst, dim, index)
    size = dst.shape[dim] if dst.shape else 1
    error = bounds_error(IndexError, [dim], [size])
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
