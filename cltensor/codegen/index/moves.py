"""The two kernels behind indexing: launching them over regions and index operands.

`move` reads through index operands (or writes through them where order does not matter); `combine`
writes or reduces into positions that several contributions may share, always in index order. Owns
how the work is divided; what an operation means is in lookup.py and scatter.py. Knows nothing of tensors.

Note [Order of writes]: a duplicate index means "the last one wins" for plain writes on a CPU
schedule, and a sum (product, maximum ...) taken in index order for reductions on every schedule, so
results are the same in every run. Plain writes on a GPU schedule leave the winner among duplicates
open, as torch does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import dtypes
from ..checks import Describe, checking
from ..operand import Operand
from ..region import (
    GRAIN,
    LINE,
    STREAM,
    Dims,
    empty,
    group_limit,
    index_type,
    is_gpu,
    past_cache,
    run,
    storage,
    workers,
)
from ..source import include
from . import rows
from .lanes import move as move_by_lanes

if TYPE_CHECKING:
    from ...runtime import Backend

# A GPU schedule gives a lane to each position that cannot collide if there are at least _SERIAL_LANES of them per
# compute unit; else it sorts the destinations. It also sorts where a lane would take more than _SERIAL_STEPS steps, and
# there are few keys to sort.
_SERIAL_LANES, _SERIAL_STEPS = 256, 256
# Contributions of a row that a work-group sorts in local memory: at most _ROW; of which a lane holds
# usually _EACH, and at most _HELD.
_ROW, _HELD, _EACH = 2048, 8, 4
_ROOM = 1 << 14  # bytes of local memory for that, at most, so that several groups run at once
_GROUPS = 1 << 16  # work-groups, at most; together they walk through all rows
FAR = 16  # prefetch distance at random addresses, in units of eight elements
ANYWHERE = 8  # elements moved in order in the time of one at a random address


class Through(NamedTuple):
    """An index operand laid over the iteration space, and what it indexes."""

    operand: Operand
    strides: tuple[int, ...]  # over the iteration space
    size: int  # of the indexed dim
    step: int  # its stride in the indexed operand


class Meeting(NamedTuple):
    """A reduction of `src` into `dst`; what its fields say is what `combine` was called with.

    Dims have the strides of the destination, the source and each index operand.
    """

    action: str
    dst: Operand
    src: Operand
    c: Dims  # dims along which destinations may coincide
    s: Dims  # dims along which they do not
    through: Sequence[Through]
    wrap: bool  # negative indices count from the end
    describe: Describe  # makes the error for a bad index
    factor: Operand | None  # one element, by which the source is multiplied; None for 1


# -- the two kernels ------------------------------------------------------------------------------


def _targets(through: Sequence[Through]) -> list[int]:
    return [v for t in through for v in (t.operand.offset, t.size, t.step)]


class _Launch(NamedTuple):
    """A kernel, and how its work is divided: arguments of `region.run`."""

    template: str
    name: str
    work: int | tuple[int, int]  # work-items, elements, or global and local size
    nbytes: int  # memory traffic
    key: dict[str, Any]  # the template's variables

    def run(
        self,
        backend: Backend,
        buffers: Sequence[Any],
        scalars: Sequence[int],
        longs: Sequence[int] = (),
    ) -> None:
        run(
            backend, self.template, self.name, buffers, scalars, self.work, self.nbytes, longs, **self.key
        )  # fmt: skip


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
    """Move elements over `space`; `src` is an operand or the two words of a scalar's bits."""
    if not math.prod(space):
        return
    source = [src] if isinstance(src, Operand) else []
    words: Sequence[int] = () if isinstance(src, Operand) else src
    strides = [dst_strides, *([src_strides] if source else []), *(t.strides for t in through)]
    dims = Dims(space, strides)
    if is_gpu(backend):
        move_by_lanes(backend, side, [dst, *source], words, dims, through, wrap, describe)
        return
    if side == "get" and describe is not None and source:
        if rows.take(backend, dst, source[0], dims, through, wrap, describe):
            return
    operands = [dst, *source, *(t.operand for t in through)]
    launch = _moving(backend, side, operands, not source, dims, through, wrap)
    buffers = [x.buffer for x in operands]
    places = [dims.n, dst.offset, *(x.offset for x in source)]
    if not through:
        launch.run(backend, buffers, [*places, *dims.args()], words)
        return
    assert describe is not None
    with checking(backend, describe) as status:
        scalars = [status.offset, *places, *_targets(through), *dims.args()]
        launch.run(backend, [*buffers, status.buffer], scalars, words)


def _moving(
    backend: Backend,
    side: str,
    operands: Sequence[Operand],
    scalar: bool,
    dims: Dims,
    through: Sequence[Through],
    wrap: bool,
) -> _Launch:
    """Choose the kernel of a move and divide its work; `operands`: destination, source unless a scalar, indices."""
    dt = operands[0].dtype
    moving = 1 if scalar else 2
    hoist = dims.sizes[-1] >= 8 and all(s[-1] == 0 for s in dims.strides[moving:])
    units = dims.units()
    step = 0 if through or scalar else _step_in_runs(dims, dt.itemsize)
    streamed = step != 0 and past_cache(backend, dims.n * dt.itemsize)
    ahead = 0
    if side == "get" and through and not hoist and dims.sizes[-1] >= FAR * 16:
        reach = sum([abs(t.step) * t.size for t in through]) * dt.itemsize
        ahead = FAR if reach > STREAM else 0
    pace = ANYWHERE if through and not hoist else 1
    work = workers(backend, pace * dims.n, backend.tuned.get("move.grain", GRAIN))
    shape = "s" if scalar else ""
    name = f"{side}{shape}_b{dt.itemsize}_r{dims.rank}_k{len(through)}"
    name += "_back" * (step < 0) + "_streamed" * streamed
    key: dict[str, Any] = {
        "T": storage(dt),
        "I": index_type(backend, *operands),
        "rank": dims.rank,
        "side": side,
        "index": tuple(t.operand.dtype.cl for t in through),
        "widths": tuple(t.operand.dtype.itemsize for t in through),
        "wrap": wrap,
        "hoist": hoist or not through,
        "units": units[:moving],
        "flat": units[moving:],
        "scalar": scalar,
        "step": step,
        "size": dt.itemsize,
        "headers": include("stream") * streamed + include("ahead") * (ahead > 0),
        "ahead": ahead,
    }
    nbytes = dims.n * (moving * dt.itemsize + sum(t.operand.dtype.itemsize for t in through))
    return _Launch("index/move", name, work, nbytes, key)


def _step_in_runs(dims: Dims, size: int) -> int:
    """Return 1 or -1 if the source is contiguous in the order of the destination, or in its reverse; else 0."""
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
    """Write or reduce in index order; `colliding` names the dims of `space` along which destinations may coincide."""
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

    meeting = Meeting(
        action, dst, src, part(colliding), part(safe), through, wrap, describe, factor
    )
    c, s = meeting.c, meeting.s
    hoist = all(not any(t.strides[d] for d in safe if space[d] != 1) for t in through)
    lanes = _SERIAL_LANES * backend.info.compute_units
    near = s.n < lanes or _step(c) < _step(s)
    if gpu and c.n > 32 and near and not hoist and _combine_in_rows(backend, meeting):
        return
    if gpu and c.n > 32 and (s.n < lanes or (hoist and c.n > _SERIAL_STEPS)):
        _combine_sorted(backend, meeting, hoist)
        return
    if not gpu and rows.combine(backend, meeting):
        return
    launch = _walking(backend, meeting, hoist)
    buffers = [x.buffer for x in (dst, src, *([factor] if factor else []))]
    buffers += [t.operand.buffer for t in through]
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
        launch.run(backend, [*buffers, status.buffer], scalars)


def _walking(backend: Backend, meeting: Meeting, hoist: bool) -> _Launch:
    """Choose the loop order of a reduction and divide its work; `hoist`: indices do not vary along `s`."""
    action, dst, _, c, s, through, _, _, factor = meeting
    gpu = is_gpu(backend)
    # The dims with the shorter strides make the inner loop; but an inner loop over few positions of s would cost more
    # than looking up every index in an inner loop over c.
    outer = "c" if s.n >= 8 and (hoist or _step(s) <= _step(c)) else "s"
    inner = s if outer == "c" else c
    work = s.n
    if not gpu:
        work = min(workers(backend, c.n * s.n), s.n)
        if outer == "c":  # every work-item reads all indices: no more of them than cores
            work = min(work, backend.info.compute_units, max(1, s.n // 16))
    key: dict[str, Any] = {
        **_common(backend, meeting, hoist and outer == "c"),
        "T": storage(dst.dtype),
        "dt": dst.dtype if action != "move" else None,
        "action": action,
        "outer": outer,
        "units": () if gpu or inner.n == 1 else inner.units()[:2],
        "scale": factor is not None,
    }
    what = f"b{dst.dtype.itemsize}" if action == "move" else dst.dtype.code
    name = f"index_{action}_{what}_{outer}_r{c.rank}{s.rank}_k{len(through)}"
    nbytes = c.n * s.n * (3 * dst.dtype.itemsize + 8)
    return _Launch("index/write", name, work, nbytes, key)


def _common(backend: Backend, meeting: Meeting, hoist: bool) -> dict[str, Any]:
    """Return the template variables that all kernels of a reduction take."""
    operands = [meeting.dst, meeting.src, *(t.operand for t in meeting.through)]
    return {
        "I": index_type(backend, *operands),
        "rank_c": meeting.c.rank,
        "rank_s": meeting.s.rank,
        "index": tuple(t.operand.dtype.cl for t in meeting.through),
        "wrap": meeting.wrap,
        "hoist": hoist,
        "gpu": is_gpu(backend),
    }


def _step(dims: Dims) -> int:
    """Return the smallest step of a dim, in elements of the source and the indices together."""
    return min(
        (
            sum(abs(strides[d]) for strides in dims.strides[1:])
            for d, n in enumerate(dims.sizes)
            if n > 1
        ),
        default=1 << 62,
    )


class _Shares(NamedTuple):
    """How a work-group takes rows into local memory."""

    lanes: int  # of the group
    rows: int  # of the group
    size: int  # places for contributions to a row, a power of two


def _shares(backend: Backend, dt: dtypes.dtype, count: int, places: int) -> _Shares | None:
    """Return the shares for rows of `count` contributions to `places` places; None if local memory is too small."""
    size = 1 << max((count - 1).bit_length(), 1)
    lanes = min(256, max(64, size // _EACH), group_limit(backend))
    rows = max(_EACH * lanes // size, 1)
    accumulator = summed(dt)
    room = rows * size * (4 + accumulator.itemsize)
    if size > min(_ROW, _HELD * lanes) or room > min(_ROOM, backend.info.local_mem):
        return None
    return _Shares(lanes, rows, size) if places < (1 << 32) // size else None


def _combine_in_rows(backend: Backend, meeting: Meeting) -> bool:
    """Reduce on a GPU schedule by sorting each row's destinations in local memory; return False if impossible.

    Each position of `s` has contributions of its own, few enough for local memory, and there is one index operand.
    """
    action, dst, src, c, s, through, _, describe, factor = meeting
    if factor or len(through) != 1 or any(c.strides[0]):
        return False
    shares = _shares(backend, dst.dtype, c.n, through[0].size)
    if shares is None:
        return False
    index = through[0].operand
    groups = min(-(-s.n // shares.rows), _GROUPS)
    with checking(backend, describe) as status:
        scalars = [status.offset, c.n, s.n, dst.offset, src.offset]
        run(
            backend,
            "index/row_runs",
            f"index_row_runs_{action}_{dst.dtype.code}_n{shares.size}_r{c.rank}{s.rank}",
            [x.buffer for x in (dst, src, index)] + [status.buffer],
            [*scalars, *_targets(through), *c.args(), *s.args()],
            (groups * shares.lanes, shares.lanes),
            c.n * s.n * (3 * dst.dtype.itemsize + index.dtype.itemsize),
            **_common(backend, meeting, False),
            dt=dst.dtype,
            action=action,
            L=shares.lanes,
            N=shares.size,
            B=shares.rows,
        )
    return True


def summed(dt: dtypes.dtype) -> dtypes.dtype:
    """Return the dtype that sums of `dt` are kept in, which is its type in registers."""
    if dt.cl == dt.reg:
        return dt
    return dtypes.complex64 if dt.is_complex else dtypes.float32


def _combine_sorted(backend: Backend, meeting: Meeting, hoist: bool) -> None:
    """Reduce on a GPU schedule: sort the destinations, then a lane reduces each run of equal ones, or part of a run."""
    from ..order.sort import sort_flat  # sort.py uses this module

    action, dst, src, c, s, through, _, describe, factor = meeting
    rows = 1 if hoist else s.n
    n, width = rows * c.n, s.n if hoist else 1
    none = rows * math.prod([t.size for t in through])
    keys = empty(backend, dtypes.uint32 if none < 1 << 32 else dtypes.uint64, (n,))
    common = _common(backend, meeting, hoist) | {"key": keys.dtype.cl}
    lists = [t.operand.buffer for t in through]
    walks = [*_targets(through), *c.args(), *s.args()]
    with checking(backend, describe) as status:
        name = f"index_keys_{keys.dtype.code}_r{c.rank}{s.rank}_k{len(through)}"
        buffers, scalars = [keys.buffer, *lists, status.buffer], [status.offset, n, c.n, *walks]
        run(backend, "index/keys", name, buffers, scalars, n, n * 16, [none], **common)
    ordered, order = sort_flat(backend, keys, none.bit_length())
    # Stretch of a lane, about the square root of n: neither its walk nor the second launch, which joins stretches, is
    # then long.
    span = 1 << max(6, min(12, n.bit_length() // 2))
    accumulator = summed(dst.dtype)
    partial = empty(backend, accumulator, (2 * -(-n // span) * width,))
    buffers = [dst.buffer, src.buffer, *([factor.buffer] if factor else [])]
    buffers += [ordered.buffer, order.buffer, partial.buffer, *lists]
    scalars = [n, c.n, s.n, span, dst.offset, src.offset, *walks]
    common |= {"dt": dst.dtype, "action": action, "scale": factor is not None}
    for joined, lanes in ((False, n * width), (True, n // span * width)):
        if lanes:
            name = f"index_{'joins' if joined else 'runs'}_{action}_{dst.dtype.code}_{keys.dtype.code}_r{c.rank}{s.rank}_k{len(through)}"
            run(backend, "index/runs", name, buffers, scalars, lanes, c.n * s.n * 16, [none], joined=joined, **common)  # fmt: skip
