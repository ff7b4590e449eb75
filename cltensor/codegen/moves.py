"""The two kernels behind indexing, and strided copies and fills: launching them over regions and
index operands.

`move` reads through index operands (or writes through them where order does not matter); `combine`
writes or reduces into positions where several contributions may meet, always in index order. Owns
how the work is divided; what an operation means is index.py's. Knows nothing of tensors.

Note [Order of writes]: a duplicate index means "the last one wins" for plain writes on a CPU
schedule, and a sum (product, maximum ...) taken in index order for reductions on every schedule, so
results are the same in every run. Plain writes on a GPU schedule leave the winner among duplicates
open, as torch does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import dtypes
from . import rows
from .checks import Describe, checking
from .operand import Operand
from .region import GRAIN, STREAM, Dims, empty, index_type, is_dense, is_gpu, run, storage, workers
from .source import include

if TYPE_CHECKING:
    from ..runtime import Backend

Scalar = complex | float | int | bool
# A GPU schedule gives a lane to each position that cannot collide when there are this many, else it
# sorts.
_SERIAL_LANES = 4096
ANYWHERE = 8  # elements moved in order in the time that one is found anywhere
FEW = 8  # places along a dim that make no tile
LINE = 64  # bytes of a cache line
PHASED = 4  # lines of a row that begins anywhere from which on they go past the cache


class Through(NamedTuple):
    """An index operand laid over the iteration space, and what it indexes."""

    operand: Operand
    strides: tuple[int, ...]  # over the iteration space
    size: int  # of the indexed dim
    step: int  # its stride in the indexed operand


class Meeting(NamedTuple):
    """A reduction of `src` into `dst`: positions along `c` may meet, those along `s` do not."""

    action: str
    dst: Operand
    src: Operand
    c: Dims
    s: Dims
    through: Sequence[Through]
    wrap: bool
    describe: Describe
    factor: Operand | None


# -- the two kernels ------------------------------------------------------------------------------


def _targets(through: Sequence[Through]) -> list[int]:
    return [v for t in through for v in (t.operand.offset, t.size, t.step)]


def move(
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
    """Launch index/move.mako over `space`; `src` is an operand or the two words of a scalar's bits."""
    if not math.prod(space):
        return
    source = [src] if isinstance(src, Operand) else []
    words: Sequence[int] = () if isinstance(src, Operand) else src
    scalar = not source
    operands = [dst, *source, *(t.operand for t in through)]
    strides = [dst_strides, *([] if scalar else [src_strides]), *(t.strides for t in through)]
    dims = Dims(space, strides)
    gpu = is_gpu(backend)
    if side == "get" and describe is not None and not gpu and source:
        if rows.take(backend, dst, source[0], dims, through, wrap, describe):
            return
    kind = index_type(backend, *operands)
    moving = 1 if scalar else 2
    hoist = (
        not gpu and all(s[-1] == 0 for s in dims.strides[moving:]) if dims.sizes[-1] >= 8 else False
    )
    side_by_side = () if gpu else dims.units()
    step = 0 if gpu or through or scalar else _step_in_runs(dims, dst.dtype.itemsize)
    nbytes = dims.n * dst.dtype.itemsize
    streamed = step != 0 and nbytes >= STREAM and backend.info.host_shared
    if gpu:
        work = dims.n
    else:
        pace = ANYWHERE if through and not hoist else 1
        work = workers(backend, pace * dims.n, backend.tuned.get("move.grain", GRAIN))
    shape = "s" if scalar else ""
    name = f"{side}{shape}_b{dst.dtype.itemsize}_r{dims.rank}_k{len(through)}"
    name += "_back" * (step < 0) + "_streamed" * streamed
    key: dict[str, Any] = {
        "T": storage(dst.dtype),
        "I": kind,
        "rank": dims.rank,
        "side": side,
        "index": tuple(t.operand.dtype.cl for t in through),
        "widths": tuple(t.operand.dtype.itemsize for t in through),
        "wrap": wrap,
        "hoist": hoist or (not gpu and not through),
        "units": side_by_side[:moving],
        "flat": side_by_side[moving:],
        "gpu": gpu,
        "scalar": scalar,
        "step": step,
        "size": dst.dtype.itemsize,
        "headers": include("stream") if streamed else "",
    }
    buffers = [x.buffer for x in operands]
    offsets = [dst.offset, *(x.offset for x in source)]
    longs = words
    nbytes *= 1 if scalar else 2
    nbytes += sum(dims.n * t.operand.dtype.itemsize for t in through)
    if not through:
        run(
            backend,
            "index/move",
            name,
            buffers,
            [dims.n, *offsets, *dims.args()],
            work,
            nbytes,
            longs,
            **key,
        )
        return
    assert describe is not None
    with checking(backend, describe) as status:
        scalars = [status.offset, dims.n, *offsets, *_targets(through), *dims.args()]
        run(
            backend,
            "index/move",
            name,
            [*buffers, status.buffer],
            scalars,
            work,
            nbytes,
            longs,
            **key,
        )


def _step_in_runs(dims: Dims, size: int) -> int:
    """Return 1 or -1 where vectors of a source lie in the order of the destination's, or in the reverse of it; else 0."""
    to, of = (strides[-1] for strides in dims.strides[:2])
    return of if to == 1 and abs(of) == 1 and size <= 8 and dims.sizes[-1] * size >= LINE else 0


def combine(
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
    """Launch index/write.mako; `colliding` names the dims of `space` along which positions may meet."""
    if not math.prod(space):
        return
    gpu = is_gpu(backend)
    if gpu and action == "move":
        move(backend, "set", dst, src, space, dst_strides, src_strides, through, wrap, describe)
        return
    strides = [dst_strides, src_strides, *(t.strides for t in through)]
    safe = [d for d in range(len(space)) if d not in colliding]

    def part(dims: Sequence[int]) -> Dims:
        return Dims([space[d] for d in dims], [[s[d] for d in dims] for s in strides])

    c, s = part(colliding), part(safe)
    meeting = Meeting(action, dst, src, c, s, through, wrap, describe, factor)
    operands = [dst, src, *(t.operand for t in through)]
    kind = index_type(backend, *operands)
    hoist = all(not any(t.strides[d] for d in safe if space[d] != 1) for t in through)
    if gpu and s.n < _SERIAL_LANES and c.n > 32:
        _combine_sorted(backend, meeting, hoist, kind)
        return
    if not gpu and rows.combine(backend, meeting):
        return
    # The walk with the shorter steps in memory goes inside.
    near_c, near_s = _step(c), _step(s)
    # A loop over few positions of s inside would cost more than looking every index up in the loop
    # over c.
    outer = "c" if s.n >= 8 and (hoist or near_s <= near_c) else "s"
    hoist = hoist and outer == "c"
    inner = s if outer == "c" else c
    units = () if gpu or inner.n == 1 else inner.units()[:2]
    work: int | tuple[int, int] = s.n
    if not gpu:
        wanted = workers(backend, c.n * s.n)
        # With c outside every work-item reads all indices: no more of them than cores.
        work = (
            min(wanted, backend.info.compute_units, max(1, s.n // 16))
            if outer == "c"
            else min(wanted, s.n)
        )
    key: dict[str, Any] = {
        "T": storage(dst.dtype),
        "dt": dst.dtype if action != "move" else None,
        "I": kind,
        "rank_c": c.rank,
        "rank_s": s.rank,
        "action": action,
        "index": tuple(t.operand.dtype.cl for t in through),
        "wrap": wrap,
        "hoist": hoist,
        "outer": outer,
        "units": units,
        "gpu": gpu,
        "scale": factor is not None,
    }
    what = f"b{dst.dtype.itemsize}" if action == "move" else dst.dtype.code
    name = f"index_{action}_{what}_{outer}_r{c.rank}{s.rank}_k{len(through)}"
    buffers = [
        x.buffer for x in (dst, src, *([factor] if factor else []), *(t.operand for t in through))
    ]
    nbytes = c.n * s.n * (3 * dst.dtype.itemsize + 8)
    with checking(backend, describe) as status:
        scalars = [
            status.offset,
            c.n,
            s.n,
            dst.offset,
            src.offset,
            *_targets(through),
            *c.args(),
            *s.args(),
        ]
        run(backend, "index/write", name, [*buffers, status.buffer], scalars, work, nbytes, **key)


def _step(dims: Dims) -> int:
    """How far a walk along the nearest dim goes in the source and the indices."""
    return min(
        (
            sum(abs(strides[d]) for strides in dims.strides[1:])
            for d, n in enumerate(dims.sizes)
            if n > 1
        ),
        default=1 << 62,
    )


def _combine_sorted(backend: Backend, meeting: Meeting, hoist: bool, kind: str) -> None:
    """Reduce by destination on a GPU schedule: sort the destinations, then one lane walks each
    run of equal ones.
    """
    from .sort import sort_flat  # sort.py uses this module

    action, dst, src, c, s, through, wrap, describe, factor = meeting
    index = tuple(t.operand.dtype.cl for t in through)
    rows = 1 if hoist else s.n
    common: dict[str, Any] = {
        "I": kind,
        "rank_c": c.rank,
        "rank_s": s.rank,
        "index": index,
        "wrap": wrap,
        "hoist": hoist,
        "gpu": True,
    }
    keys = empty(backend, dtypes.int64, (rows * c.n,))
    with checking(backend, describe) as status:
        buffers = [keys.buffer, *(t.operand.buffer for t in through), status.buffer]
        scalars = [status.offset, rows * c.n, c.n, *_targets(through), *c.args(), *s.args()]
        name = f"index_keys_r{c.rank}{s.rank}_k{len(through)}"
        run(backend, "index/keys", name, buffers, scalars, rows * c.n, rows * c.n * 16, **common)
    ordered, order = sort_flat(backend, keys)
    buffers = [dst.buffer, src.buffer, *([factor.buffer] if factor else [])]
    buffers += [ordered.buffer, order.buffer, *(t.operand.buffer for t in through)]
    scalars = [
        rows * c.n,
        c.n,
        s.n,
        dst.offset,
        src.offset,
        *_targets(through),
        *c.args(),
        *s.args(),
    ]
    key: dict[str, Any] = {**common, "dt": dst.dtype, "action": action, "scale": factor is not None}
    name = f"index_runs_{action}_{dst.dtype.code}_r{c.rank}{s.rank}_k{len(through)}"
    run(backend, "index/runs", name, buffers, scalars, c.n * s.n, c.n * s.n * 16, **key)


def scalar_words(dt: dtypes.dtype, value: Scalar) -> tuple[int, int]:
    """Return the storage bits of a scalar as two signed 64-bit words."""
    raw = scalar_bytes(dt, value).ljust(16, b"\0")
    return tuple(int(v) for v in np.frombuffer(raw, np.int64))  # type: ignore[return-value]


def scalar_bytes(dt: dtypes.dtype, value: Scalar) -> bytes:
    """Return how `value` is stored as `dt`; integers wrap."""
    if dt is dtypes.bfloat16:
        bits = int(np.float32(complex(value).real).view(np.uint32))
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


def scalar_operand(
    backend: Backend, dt: dtypes.dtype, value: Scalar, shape: Sequence[int] = ()
) -> Operand:
    """Put a scalar on the device and expand it to `shape`."""
    one = empty(backend, dt, ())
    backend.write(one.buffer, 0, np.frombuffer(scalar_bytes(dt, value), np.uint8))
    return one._replace(shape=tuple(shape), strides=(0,) * len(shape))


def copy_strided(backend: Backend, src: Operand, dst: Operand) -> None:
    """Copy `src` to `dst` of the same shape and item size; strides of either sign, zero only in
    `src`.
    """
    if not math.prod(src.shape):
        return
    size = dst.dtype.itemsize
    if is_dense(src) and is_dense(dst):
        backend.copy(
            src.buffer,
            src.offset * size,
            dst.buffer,
            dst.offset * size,
            math.prod(src.shape) * size,
        )
        return
    if not _copy_tiled(backend, src, dst):
        order = _along_rows(src)
        if order is not None:
            src, dst = _ordered(src, order), _ordered(dst, order)
        move(backend, "set", dst, src, dst.shape, dst.strides, src.strides)


def _along_rows(src: Operand) -> list[int] | None:
    """Return an order of dims in which rows are read where the last dim has few places, such as channels; None where it is not so."""
    shape, strides = src.shape, src.strides
    last = first = len(shape) - 1
    if last < 1 or shape[last] >= FEW or strides[last - 1] != 1 or abs(strides[last]) <= 1:
        return None
    first -= 1
    while first and strides[first - 1] == strides[first] * shape[first]:
        first -= 1
    return [*range(first), last, *range(first, last)]


def _ordered(x: Operand, order: Sequence[int]) -> Operand:
    """See an operand with its dims in another order."""
    return x._replace(
        shape=tuple([x.shape[d] for d in order]), strides=tuple([x.strides[d] for d in order])
    )


def _copy_tiled(backend: Backend, src: Operand, dst: Operand) -> bool:
    """Copy by tiles where the two sides run along different dims and it pays; tell whether that
    was so.
    """
    dims = Dims(dst.shape, [dst.strides, src.strides])
    to, of = ([abs(s) for s in strides] for strides in dims.strides)
    a = min(range(dims.rank), key=lambda d: to[d])
    b = min((d for d in range(dims.rank) if of[d]), key=lambda d: of[d], default=a)
    na, nb = dims.sizes[a], dims.sizes[b]
    if a == b or min(na, nb) < FEW or dims.n < 4096 or of[a] < 4 * of[b] or to[b] < 4 * to[a]:
        return False
    rest = [d for d in range(dims.rank) if d not in (a, b)]
    outer = Dims([dims.sizes[d] for d in rest], [[s[d] for d in rest] for s in dims.strides])
    gpu = is_gpu(backend)
    size = dst.dtype.itemsize
    unit = dims.strides[0][a] == 1 and dims.strides[1][b] == 1
    vector = 0 if gpu or not unit or size > 8 or nb < 16 // size else min(16, LINE // size)
    side, lanes = LINE // size, 64 if gpu else 1
    tile_a = tile_b = backend.tuned.get("copy.tile", 16) if gpu else 16
    if vector:
        tile_a, tile_b = 2 * side, side * backend.tuned.get("copy.vectors", 64)
    tiles = outer.n * -(-na // tile_a) * -(-nb // tile_b)
    work = (min(tiles, 1 << 16) * lanes, lanes) if gpu else min(tiles, workers(backend, dims.n))
    d, s = dims.strides
    scalars = [outer.n, dst.offset, src.offset, na, nb, d[a], d[b], s[a], s[b], *outer.args()]
    steps = [k for count, k in zip(outer.sizes, outer.strides[0], strict=True) if count > 1]
    places = [dst.buffer.address, *(size * k for k in (dst.offset, d[b], *steps))]
    large = vector > 0 and backend.info.host_shared and dims.n * size >= STREAM
    phased = large and any(place % LINE for place in places)
    streamed = large and not (phased and na < PHASED * side)
    phased = phased and streamed
    run(
        backend,
        "move/tile",
        f"copy_tile_b{size}_r{outer.rank}_v{vector}{'_streamed' * streamed}{'_phased' * phased}",
        [dst.buffer, src.buffer],
        scalars,
        work,
        2 * dims.n * size,
        T=storage(dst.dtype),
        I=index_type(backend, dst, src),
        rank=outer.rank,
        gpu=gpu,
        tile_a=tile_a,
        tile_b=tile_b,
        lanes=lanes,
        vector=vector,
        side=side,
        size=size,
        headers=include("ahead") * (vector > 0) + include("stream") * streamed,
        streamed=streamed,
        phased=phased,
    )
    return True


def fill_strided(backend: Backend, dst: Operand, value: Scalar) -> None:
    """Set every element of a strided region."""
    move(backend, "set", dst, scalar_words(dst.dtype, value), dst.shape, dst.strides, ())


def dense(backend: Backend, x: Operand) -> Operand:
    """Return `x` itself when row-major without gaps, else a copy that is."""
    if is_dense(x):
        return x
    result = empty(backend, x.dtype, x.shape)
    copy_strided(backend, x, result)
    return result
