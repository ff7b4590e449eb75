"""Indexing kernels: gather, advanced indexing, scatter and its reductions, take, and the index_* family.

Every form is one of two kernels. `index_move` reads through index operands (or writes through them where order does not
matter); `index_write` combines values into positions where several may meet, always in index order, so results are the
same in every run. Indices are checked in the kernel (see checks.py): out of range is never read or written. Knows
operands and backends, nothing of tensors. Selection by mask lives in mask.py.

Note [Order of writes]: a duplicate index means "the last one wins" for plain writes on a CPU schedule, and a sum (product,
maximum ...) taken in index order for reductions on every schedule. Plain writes on a GPU schedule leave the winner among
duplicates open, as torch does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import dtypes
from .checks import Describe, checking
from .operand import Operand
from .region import (
    Dims,
    as_dtype,
    dense_strides,
    empty,
    from_host,
    index_type,
    is_dense,
    is_gpu,
    narrow,
    run,
    storage,
    workers,
)

if TYPE_CHECKING:
    from ..runtime import Backend

Scalar = complex | float | int | bool
# A GPU schedule gives a lane to each position that cannot collide when there are this many, else it sorts.
_SERIAL_LANES = 4096


class Through(NamedTuple):
    """An index operand laid over the iteration space, and what it indexes."""

    index: Operand
    strides: tuple[int, ...]  # over the iteration space
    size: int  # of the indexed dim
    step: int  # its stride in the indexed operand


# -- the two kernels ------------------------------------------------------------------------------


def _targets(through: Sequence[Through]) -> list[int]:
    return [v for t in through for v in (t.index.offset, t.size, t.step)]


def _move(
    backend: Backend,
    side: str,
    dst: Operand,
    src: Operand | tuple[int, int],
    space: Sequence[int],
    dst_strides: Sequence[int],
    src_strides: Sequence[int],
    through: Sequence[Through] = (),
    wrap: bool = False,
    describe: Describe | None = None,
) -> None:
    """Launch index_move over `space`; `src` is an operand or the two words of a scalar's bits."""
    if not math.prod(space):
        return
    scalar = not isinstance(src, Operand)
    operands = [dst, *([] if scalar else [src]), *(t.index for t in through)]
    strides = [dst_strides, *([] if scalar else [src_strides]), *(t.strides for t in through)]
    dims = Dims(space, strides)
    gpu = is_gpu(backend)
    kind = index_type(backend, *operands)
    moving = 1 if scalar else 2
    hoist = not gpu and all(s[-1] == 0 for s in dims.strides[moving:]) if dims.sizes[-1] >= 8 else False
    units = () if gpu else dims.units()[:moving]
    if gpu:
        work = dims.n
    else:
        work = workers(backend, dims.n)
    shape = "s" if scalar else ""
    name = f"{side}{shape}_b{dst.dtype.itemsize}_r{dims.rank}_k{len(through)}"
    key = dict(
        T=storage(dst.dtype), I=kind, rank=dims.rank, side=side, index=tuple(t.index.dtype.cl for t in through),
        wrap=wrap, hoist=hoist or (not gpu and not through), units=units, gpu=gpu, scalar=scalar,
    )  # fmt: skip
    buffers = [x.buffer for x in operands]
    offsets = [dst.offset] if scalar else [dst.offset, src.offset]
    longs = () if not scalar else src
    nbytes = dims.n * dst.dtype.itemsize * (1 if scalar else 2) + sum(dims.n * t.index.dtype.itemsize for t in through)
    if not through:
        run(backend, "index_move", name, buffers, [dims.n, *offsets, *dims.args()], work, nbytes, longs, **key)
        return
    assert describe is not None
    with checking(backend, describe) as status:
        scalars = [status.offset, dims.n, *offsets, *_targets(through), *dims.args()]
        run(backend, "index_move", name, [*buffers, status.buffer], scalars, work, nbytes, longs, **key)


def _write(
    backend: Backend,
    action: str,
    dst: Operand,
    src: Operand,
    space: Sequence[int],
    colliding: Sequence[int],
    dst_strides: Sequence[int],
    src_strides: Sequence[int],
    through: Sequence[Through],
    wrap: bool,
    describe: Describe,
    factor: Operand | None = None,
) -> None:
    """Launch index_write; `colliding` names the dims of `space` along which positions may meet."""
    if not math.prod(space):
        return
    gpu = is_gpu(backend)
    if gpu and action == "move":
        _move(backend, "set", dst, src, space, dst_strides, src_strides, through, wrap, describe)
        return
    strides = [dst_strides, src_strides, *(t.strides for t in through)]
    safe = [d for d in range(len(space)) if d not in colliding]

    def part(dims: Sequence[int]) -> Dims:
        return Dims([space[d] for d in dims], [[s[d] for d in dims] for s in strides])

    c, s = part(colliding), part(safe)
    operands = [dst, src, *(t.index for t in through)]
    kind = index_type(backend, *operands)
    hoist = all(not any(t.strides[d] for d in safe if space[d] != 1) for t in through)
    if gpu and s.n < _SERIAL_LANES and c.n > 32:
        _write_sorted(backend, action, dst, src, c, s, through, wrap, describe, factor, hoist, kind)
        return
    # The walk with the shorter steps in memory goes inside.
    near_c = min((abs(x) for x, n in zip(c.strides[1], c.sizes, strict=True) if n > 1), default=1 << 62)
    near_s = min((abs(x) for x, n in zip(s.strides[1], s.sizes, strict=True) if n > 1), default=1 << 62)
    # A loop over few positions of s inside would cost more than looking every index up in the loop over c.
    outer = "c" if s.n >= 8 and (hoist or near_s <= near_c) else "s"
    hoist = hoist and outer == "c"
    inner = s if outer == "c" else c
    units = () if gpu or inner.n == 1 else inner.units()[:2]
    work: int | tuple[int, int] = s.n
    if not gpu:
        wanted = workers(backend, c.n * s.n)
        # With c outside every work-item reads all indices: no more of them than cores.
        work = min(wanted, backend.info.compute_units, max(1, s.n // 16)) if outer == "c" else min(wanted, s.n)
    key = dict(
        T=storage(dst.dtype), dt=dst.dtype if action != "move" else None, I=kind, rank_c=c.rank, rank_s=s.rank,
        action=action, index=tuple(t.index.dtype.cl for t in through), wrap=wrap, hoist=hoist, outer=outer,
        units=units, gpu=gpu, scale=factor is not None,
    )  # fmt: skip
    what = f"b{dst.dtype.itemsize}" if action == "move" else dst.dtype.code
    name = f"index_{action}_{what}_{outer}_r{c.rank}{s.rank}_k{len(through)}"
    buffers = [x.buffer for x in (dst, src, *([factor] if factor else []), *(t.index for t in through))]
    nbytes = c.n * s.n * (3 * dst.dtype.itemsize + 8)
    with checking(backend, describe) as status:
        scalars = [
            status.offset, c.n, s.n, dst.offset, src.offset, *_targets(through), *c.args(), *s.args()
        ]  # fmt: skip
        run(backend, "index_write", name, [*buffers, status.buffer], scalars, work, nbytes, **key)


def _write_sorted(
    backend: Backend,
    action: str,
    dst: Operand,
    src: Operand,
    c: Dims,
    s: Dims,
    through: Sequence[Through],
    wrap: bool,
    describe: Describe,
    factor: Operand | None,
    hoist: bool,
    kind: str,
) -> None:
    """Reduce by destination on a GPU schedule: sort the destinations, then one lane walks each run of equal ones."""
    from .sort import sort_flat

    index = tuple(t.index.dtype.cl for t in through)
    rows = 1 if hoist else s.n
    common = dict(I=kind, rank_c=c.rank, rank_s=s.rank, index=index, wrap=wrap, hoist=hoist, gpu=True)
    keys = empty(backend, dtypes.int64, (rows * c.n,))
    with checking(backend, describe) as status:
        buffers = [keys.buffer, *(t.index.buffer for t in through), status.buffer]
        scalars = [status.offset, rows * c.n, c.n, *_targets(through), *c.args(), *s.args()]
        name = f"index_keys_r{c.rank}{s.rank}_k{len(through)}"
        run(backend, "index_keys", name, buffers, scalars, rows * c.n, rows * c.n * 16, **common)
    ordered, order = sort_flat(backend, keys)
    buffers = [dst.buffer, src.buffer, *([factor.buffer] if factor else [])]
    buffers += [ordered.buffer, order.buffer, *(t.index.buffer for t in through)]
    scalars = [rows * c.n, c.n, s.n, dst.offset, src.offset, *_targets(through), *c.args(), *s.args()]
    key = dict(common, dt=dst.dtype, action=action, scale=factor is not None)
    name = f"index_runs_{action}_{dst.dtype.code}_r{c.rank}{s.rank}_k{len(through)}"
    run(backend, "index_runs", name, buffers, scalars, c.n * s.n, c.n * s.n * 16, **key)


def _bits(dt: dtypes.dtype, value: Scalar) -> tuple[int, int]:
    """Return the storage bits of a scalar as two signed 64-bit words."""
    raw = scalar_bytes(dt, value).ljust(16, b"\0")
    return tuple(int(v) for v in np.frombuffer(raw, np.int64))  # type: ignore[return-value]


def scalar_bytes(dt: dtypes.dtype, value: Scalar) -> bytes:
    """Return how `value` is stored as `dt`; integers wrap."""
    if dt is dtypes.bfloat16:
        bits = int(np.float32(value).view(np.uint32))
        if value != value:
            return b"\xc0\x7f"
        return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF).to_bytes(2, "little")
    if dt is dtypes.complex32:
        value = complex(value)
        return np.array([value.real, value.imag], np.float16).tobytes()
    assert dt.np is not None
    if dt.category == dtypes.INTEGRAL:
        number = int(value.real if isinstance(value, complex) else value)
        return (number & (2 ** (8 * dt.itemsize) - 1)).to_bytes(dt.itemsize, "little")
    with np.errstate(over="ignore"):
        return np.array(value).astype(dt.np).tobytes()


def scalar_operand(backend: Backend, dt: dtypes.dtype, value: Scalar, shape: Sequence[int] = ()) -> Operand:
    """Put a scalar on the device and expand it to `shape`."""
    one = empty(backend, dt, ())
    backend.write(one.buffer, 0, np.frombuffer(scalar_bytes(dt, value), np.uint8))
    return one._replace(shape=tuple(shape), strides=(0,) * len(shape))


def copy_strided(backend: Backend, src: Operand, dst: Operand) -> None:
    """Copy `src` to `dst` of the same shape and item size; strides of either sign, zero only in `src`."""
    if not math.prod(src.shape):
        return
    size = dst.dtype.itemsize
    if is_dense(src) and is_dense(dst):
        backend.copy(src.buffer, src.offset * size, dst.buffer, dst.offset * size, math.prod(src.shape) * size)
        return
    if not _copy_tiled(backend, src, dst):
        _move(backend, "set", dst, src, dst.shape, dst.strides, src.strides)


def _copy_tiled(backend: Backend, src: Operand, dst: Operand) -> bool:
    """Copy by tiles where the two sides run along different dims and it pays; tell whether that was so."""
    dims = Dims(dst.shape, [dst.strides, src.strides])
    to, of = ([abs(s) for s in strides] for strides in dims.strides)
    a = min(range(dims.rank), key=lambda d: to[d])
    b = min((d for d in range(dims.rank) if of[d]), key=lambda d: of[d], default=a)
    na, nb = dims.sizes[a], dims.sizes[b]
    if a == b or min(na, nb) < 8 or dims.n < 4096 or of[a] < 4 * of[b] or to[b] < 4 * to[a]:
        return False
    rest = [d for d in range(dims.rank) if d not in (a, b)]
    outer = Dims([dims.sizes[d] for d in rest], [[s[d] for d in rest] for s in dims.strides])
    gpu = is_gpu(backend)
    size = dst.dtype.itemsize
    tile, lanes = (16, 64) if gpu else (64 if size == 1 else 32 if size <= 4 else 16, 1)
    tiles = outer.n * -(-na // tile) * -(-nb // tile)
    work = (min(tiles, 1 << 16) * lanes, lanes) if gpu else min(tiles, workers(backend, dims.n))
    d, s = dims.strides
    scalars = [outer.n, dst.offset, src.offset, na, nb, d[a], d[b], s[a], s[b], *outer.args()]
    run(
        backend, "copy_tile", f"copy_tile_b{size}_r{outer.rank}", [dst.buffer, src.buffer], scalars, work,
        2 * dims.n * size, T=storage(dst.dtype), I=index_type(backend, dst, src), rank=outer.rank, gpu=gpu, tile=tile,
        lanes=lanes, unit_d=d[a] == 1, unit_s=s[b] == 1,
    )  # fmt: skip
    return True


def fill_strided(backend: Backend, dst: Operand, value: Scalar) -> None:
    """Set every element of a strided region."""
    _move(backend, "set", dst, _bits(dst.dtype, value), dst.shape, dst.strides, ())


def dense(backend: Backend, x: Operand) -> Operand:
    """Return `x` itself when row-major without gaps, else a copy that is."""
    if is_dense(x):
        return x
    result = empty(backend, x.dtype, x.shape)
    copy_strided(backend, x, result)
    return result


# -- errors, in torch's words ---------------------------------------------------------------------


def _bounds_error(kind: type[Exception], dims: Sequence[int], sizes: Sequence[int], prefix: str = "") -> Describe:
    def describe(value: int, ordinal: int) -> Exception:
        return kind(
            f"{prefix}index {value} is out of bounds for dimension {dims[ordinal]} with size {sizes[ordinal]}"
        )

    return describe


def _select_error(src: Operand, dim: int) -> Describe:
    def describe(value: int, ordinal: int) -> Exception:
        if len(src.shape) > 1:
            return RuntimeError(f"INDICES element is out of DATA bounds, id={value} axis_dim={src.shape[dim]}")
        return IndexError("index out of range in self")

    return describe


def _self_error(value: int, ordinal: int) -> Exception:
    return IndexError("index out of range in self")


# -- reading --------------------------------------------------------------------------------------


def _over(index: Operand, ndim: int, dim: int) -> tuple[int, ...]:
    """Lay a 1-D (or 0-D) index along `dim` of a space of `ndim` dims."""
    step = index.strides[0] if index.strides else 0
    return tuple(step if d == dim else 0 for d in range(ndim))


def gather(backend: Backend, src: Operand, dim: int, index: Operand, out: Operand | None = None) -> Operand:
    """Return `out[i][j] = src[index[i][j]][j]` (for dim 0) in the shape of `index`.

    RuntimeError for an index that is negative or too large.
    """
    result = out or empty(backend, src.dtype, index.shape)
    if not index.shape:  # 0-d operands count as one element
        through = [Through(index, (), max(1, src.shape[0] if src.shape else 1), src.strides[0] if src.strides else 1)]
        strides: tuple[int, ...] = ()
    elif not src.shape:
        through, strides = [Through(index, index.strides, 1, 1)], (0,)
    else:
        strides = tuple(0 if d == dim else s for d, s in enumerate(src.strides))
        through = [Through(index, index.strides, src.shape[dim], src.strides[dim])]
    error = _bounds_error(RuntimeError, [dim], [through[0].size])
    _move(backend, "get", result, src, index.shape, result.strides, strides, through, False, error)
    return result


def index_select(
    backend: Backend,
    src: Operand,
    dim: int,
    index: Operand,
    out: Operand | None = None,
    describe: Describe | None = None,
) -> Operand:
    """Return the positions `index` (1-D) of `dim`; `describe` replaces torch's index_select error (an embedding's, say)."""
    if not src.shape:
        result = out or empty(backend, src.dtype, ())
        through = [Through(index, (), 1, 1)]
        _move(backend, "get", result, src, (), (), (), through, False, describe or _select_error(src, dim))
        return result
    length = math.prod(index.shape)
    shape = (*src.shape[:dim], length, *src.shape[dim + 1 :])
    result = out or empty(backend, src.dtype, shape)
    strides = tuple(0 if d == dim else s for d, s in enumerate(src.strides))
    through = [Through(index, _over(index, len(shape), dim), src.shape[dim], src.strides[dim])]
    error = describe or _select_error(src, dim)
    _move(backend, "get", result, src, shape, result.strides, strides, through, False, error)
    return result


def _flat_error(n: int) -> Describe:
    def describe(value: int, ordinal: int) -> Exception:
        return IndexError(f"out of range: tried to access index {value} on a tensor of {n} elements.")

    return describe


def take(backend: Backend, src: Operand, index: Operand, out: Operand | None = None) -> Operand:
    """Return `src` flattened, at `index` (negative counts from the end), in the shape of `index`."""
    result = out or empty(backend, src.dtype, index.shape)
    flat = dense(backend, src)
    n = math.prod(src.shape)
    if n == 0 and math.prod(index.shape):
        raise IndexError("take(): tried to take from an empty tensor")
    through = [Through(index, index.strides, n, 1)]
    zeros = (0,) * len(index.shape)
    _move(backend, "get", result, flat, index.shape, result.strides, zeros, through, True, _flat_error(n))
    return result


def put(backend: Backend, dst: Operand, index: Operand, src: Operand, accumulate: bool = False) -> None:
    """Write `src` (shape of `index`) at flat positions of `dst`, in place; IndexError out of range."""
    flat = dense(backend, dst)
    n = math.prod(dst.shape)
    if n == 0 and math.prod(index.shape):
        raise IndexError("put_(): attempting to put into an empty tensor")  # torch reaches this only with indices
    through = [Through(index, index.strides, n, 1)]
    space, zeros = index.shape, (0,) * len(index.shape)
    action = "add" if accumulate else "move"
    every = range(len(space))
    _write(backend, action, flat, src, space, every, zeros, src.strides, through, True, _flat_error(n))
    if flat is not dst:
        copy_strided(backend, flat, dst)


class _Advanced(NamedTuple):
    space: tuple[int, ...]
    sliced_strides: tuple[int, ...]
    block: range
    through: list[Through]
    describe: Describe


def _advanced(x: Operand, indices: Sequence[tuple[int, Operand]], position: int | None) -> _Advanced:
    """Lay out `x[..., i, j, ...]`: the sliced dims of `x` with the index block put in at `position` among them."""
    dims = [d for d, _ in indices]
    block_shape = indices[0][1].shape
    sliced = [d for d in range(len(x.shape)) if d not in dims]
    if position is None:
        adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
        position = sum(d < dims[0] for d in sliced) if adjacent else 0
    before, after = sliced[:position], sliced[position:]
    space = (*(x.shape[d] for d in before), *block_shape, *(x.shape[d] for d in after))
    strides = (*(x.strides[d] for d in before), *(0 for _ in block_shape), *(x.strides[d] for d in after))
    left, right = (0,) * len(before), (0,) * len(after)
    through = [Through(i, (*left, *i.strides, *right), x.shape[d], x.strides[d]) for d, i in indices]
    error = _bounds_error(IndexError, range(len(dims)), [x.shape[d] for d in dims])
    return _Advanced(space, strides, range(position, position + len(block_shape)), through, error)


def advanced_shape(
    shape: Sequence[int], indices: Sequence[tuple[int, Operand]], position: int | None = None
) -> tuple[int, ...]:
    """Return the shape of `advanced_get`'s result."""
    probe = Operand(None, dtypes.uint8, tuple(shape), dense_strides(shape))  # type: ignore[arg-type]
    return _advanced(probe, indices, position).space


def advanced_get(
    backend: Backend,
    src: Operand,
    indices: Sequence[tuple[int, Operand]],
    position: int | None = None,
    out: Operand | None = None,
) -> Operand:
    """Return `src` indexed in the given dims by index operands of one common (broadcast) shape, as numpy and torch do.

    The result has the other dims with the block of index dims put in at `position` among them; by default where the
    indexed dims stand when they are neighbours, else first. Negative indices wrap; IndexError out of range.
    """
    plan = _advanced(src, indices, position)
    result = out or empty(backend, src.dtype, plan.space)
    _move(
        backend, "get", result, src, plan.space, result.strides, plan.sliced_strides, plan.through, True, plan.describe
    )  # fmt: skip
    return result


def advanced_set(
    backend: Backend,
    dst: Operand,
    indices: Sequence[tuple[int, Operand]],
    values: Operand | Scalar,
    accumulate: bool = False,
    position: int | None = None,
) -> None:
    """Write `values` (already expanded to `advanced_shape`) into `dst` at the indices; see Note [Order of writes]."""
    plan = _advanced(dst, indices, position)
    if not isinstance(values, Operand):
        if not accumulate:
            _move(
                backend, "set", dst, _bits(dst.dtype, values), plan.space, plan.sliced_strides, (), plan.through, True,
                plan.describe,
            )  # fmt: skip
            return
        values = scalar_operand(backend, dst.dtype, values, plan.space)
    action = "add" if accumulate else "move"
    _write(
        backend, action, dst, values, plan.space, plan.block, plan.sliced_strides, values.strides, plan.through, True,
        plan.describe,
    )  # fmt: skip


# -- writing along a dim --------------------------------------------------------------------------

_ACTIONS = {
    None: "move", "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "amax", "amin": "amin",
    "mean": "add",
}  # fmt: skip


def _counts(
    backend: Backend, dst: Operand, space: Sequence[int], colliding: Sequence[int], through: Through,
    keep: Sequence[int], include_self: bool, describe: Describe,
) -> Operand:  # fmt: skip
    """Count the contributions to each element of `dst` (dense, int32)."""
    counts = empty(backend, dtypes.int32, dst.shape)
    fill_strided(backend, counts, 1 if include_self else 0)
    ones = scalar_operand(backend, dtypes.int32, 1, space)
    dim = next(d for d in range(len(dst.shape)) if not keep[d]) if dst.shape else 0
    strides = tuple(s if keep[d] else 0 for d, s in enumerate(counts.strides))
    step = counts.strides[dim] if dst.shape else 1
    _write(backend, "add", counts, ones, space, colliding, strides, ones.strides, [through._replace(step=step)], False, describe)
    return counts


def _divide(backend: Backend, dst: Operand, counts: Operand) -> None:
    """Divide `dst` by counts, where counts are above 1; integers round down."""
    dims = Dims(dst.shape, [dst.strides, counts.strides])
    gpu = is_gpu(backend)
    kind = index_type(backend, dst, counts)
    run(
        backend, "index_divide", f"index_divide_{dst.dtype.code}_r{dims.rank}", [dst.buffer, counts.buffer],
        [dims.n, dst.offset, counts.offset, *dims.args()], dims.n if gpu else workers(backend, dims.n),
        dims.n * (2 * dst.dtype.itemsize + 4), dt=dst.dtype, I=kind, rank=dims.rank, gpu=gpu,
    )  # fmt: skip


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
    if not math.prod(space):
        return
    if reduce not in _ACTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    action = _ACTIONS[reduce]
    if dst.dtype is dtypes.complex32 and action != "move":
        raise NotImplementedError(f"scatter with reduce={reduce!r} is not implemented for 'ComplexHalf'")
    if dst.dtype.is_complex and action in ("amax", "amin"):
        raise NotImplementedError(f"scatter with reduce={reduce!r} is not implemented for '{dst.dtype.scalar_name}'")
    keep = [d != dim for d in range(len(dst.shape))]
    strides = tuple(s if k else 0 for s, k in zip(dst.strides, keep, strict=True))
    step = dst.strides[dim] if dst.shape else 1
    through = Through(index, tuple(index_strides), dst.shape[dim] if dst.shape else 1, step)
    colliding = [dim] if space else []
    if not dst.shape and space:  # a 0-d destination is one element of one dim
        strides, colliding = (0,) * len(space), list(range(len(space)))
    if not include_self and action != "move":
        if action in ("amax", "amin"):  # any contribution is a neutral start for these
            _move(backend, "set", dst, src, space, strides, src.strides, [through], wrap, describe)
        else:
            start = _bits(dst.dtype, 1 if action == "mul" else 0)
            _move(backend, "set", dst, start, space, strides, (), [through], wrap, describe)
    _write(
        backend, action, dst, src, space, colliding, strides, src.strides, [through], wrap, describe, factor
    )  # fmt: skip
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

    `reduce`: None, "add"/"sum", "multiply"/"prod", "amax", "amin" or "mean". With `include_self=False` the old value of
    an element that is written does not count. `src` covers at least the shape of `index`. RuntimeError for an index that
    is negative or too large.
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
            _move(backend, "set", dst, _bits(dst.dtype, src), space, strides, (), through, False, error)
            return
        src = scalar_operand(backend, dst.dtype, src, space)
    if not space and dst.shape:  # a 0-d index counts as one element
        space, index = (1,), index._replace(shape=(1,), strides=(1,))
    if len(src.shape) != len(space):
        src = src._replace(shape=space, strides=(1,) * len(space))
    _along(backend, dst, dim, index, index.strides, space, src, reduce, include_self, error)


def _rows(dst: Operand, dim: int, index: Operand) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not dst.shape:
        return (math.prod(index.shape),), (index.strides[0] if index.strides else 0,)
    length = math.prod(index.shape)
    return (*dst.shape[:dim], length, *dst.shape[dim + 1 :]), _over(index, len(dst.shape), dim)


def _aligned(src: Operand, space: Sequence[int]) -> Operand:
    if len(src.shape) == len(space):
        return src
    return src._replace(shape=tuple(space), strides=(src.strides[0] if src.strides else 0,) * len(space))


def index_add(
    backend: Backend, dst: Operand, dim: int, index: Operand, src: Operand, alpha: Scalar = 1
) -> None:
    """Add `alpha * src` to the positions `index` (1-D) of `dim`, in place, duplicates in index order."""
    space, strides = _rows(dst, dim, index)
    factor = None if alpha == 1 else scalar_operand(backend, dst.dtype, alpha)
    error = _bounds_error(RuntimeError, [dim], [dst.shape[dim]]) if len(dst.shape) > 1 else _self_error
    _along(backend, dst, dim, index, strides, space, _aligned(src, space), "add", True, error, factor)


def index_reduce(
    backend: Backend, dst: Operand, dim: int, index: Operand, src: Operand, reduce: str, include_self: bool = True
) -> None:
    """Reduce `src` into the positions `index` (1-D) of `dim`, in place; `reduce`: prod, mean, amax or amin."""
    space, strides = _rows(dst, dim, index)
    _along(backend, dst, dim, index, strides, space, _aligned(src, space), reduce, include_self, _self_error)


def index_copy(backend: Backend, dst: Operand, dim: int, index: Operand, src: Operand) -> None:
    """Copy `src` to the positions `index` (1-D) of `dim`, in place; the last of duplicates wins on a CPU."""
    space, strides = _rows(dst, dim, index)
    size = dst.shape[dim] if dst.shape else 1
    error = _bounds_error(IndexError, [dim], [size], "index_copy_(): ")
    _along(backend, dst, dim, index, strides, space, _aligned(src, space), None, True, error)


def index_fill(backend: Backend, dst: Operand, dim: int, index: Operand, value: Operand | Scalar) -> None:
    """Fill the positions `index` (1-D, negative allowed) of `dim`, in place; `value` is a scalar or a 0-d operand."""
    space, strides = _rows(dst, dim, index)
    size = dst.shape[dim] if dst.shape else 1
    error = _bounds_error(IndexError, [dim], [size])
    kept = tuple(0 if d == dim else s for d, s in enumerate(dst.strides)) if dst.shape else (0,)
    through = [Through(index, strides, size, dst.strides[dim] if dst.shape else 1)]
    if isinstance(value, Operand):
        _move(backend, "set", dst, value, space, kept, (0,) * len(space), through, True, error)
    else:
        _move(backend, "set", dst, _bits(dst.dtype, value), space, kept, (), through, True, error)
