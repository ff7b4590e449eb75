"""Pooling over one to three dims of planes: which kernel, how many work-items, which columns are taken by vectors.

Owns the geometry of windows as the kernels see it (always three dims, leading ones of size 1). Knows operands and
backends, nothing of tensors, and checks no argument: every window starts inside the padded input.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ...layouts import numel
from ..memory import Memory
from ..move.copies import dense
from ..operand import Operand
from ..products.product import tile
from ..region import GPU_GROUP, LINE, empty, is_gpu, lanes_of_planes, past_cache, workers
from ..source import include, lane_macros, render

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend

Triple = tuple[int, int, int]
TAPS = (2, 3)  # widths of windows for whose largest elements there are specialised kernels
# A plane of up to ASIDE bytes is computed in a scratch buffer, which stays in the cache, and copied from there by
# non-temporal stores.
ASIDE = 1 << 16
# Bytes of a page. The scratch buffer has the same offset into a page as the plane in the result, because a load waits
# for earlier stores with the same offset into a page.
PAGE = 4096
RUN = 8  # width of windows side by side, at most, that is a compile-time constant
_BATCH = 8  # rows of windows whose sums are made before they are sent back
_ONES, _ZEROS = (1, 1, 1), (0, 0, 0)
_MASKS = {"float": "int", "int": "int", "double": "long", "long": "long"}
_LOWEST = {
    "char": "CHAR_MIN", "uchar": "0", "short": "SHRT_MIN", "int": "INT_MIN", "long": "LONG_MIN",
    "float": "-INFINITY", "double": "-INFINITY",
}  # fmt: skip


class Window(NamedTuple):
    """The windows of one pooling: input and output sizes, and how a window lies on the input."""

    kind: str  # "regular" uses all fields; "fractional", of those with defaults, `kernel`; "adaptive" none of those
    rank: int  # number of spatial dims
    size: Triple  # of the input
    out: Triple  # size of the output
    kernel: Triple = _ONES
    stride: Triple = _ONES
    padding: Triple = _ZEROS
    dilation: Triple = _ONES
    include_padding: bool = True  # an average counts elements of the padding, too
    divisor: int = 0  # of an average; 0: the number of the window's elements

    def sizes(self, best: bool) -> dict[str, int]:
        """Return the kernel's size arguments by name."""
        fields = {"i": self.size, "o": self.out}
        if self.kind != "adaptive":
            fields["k"] = self.kernel
        if self.kind == "regular":
            fields |= {"s": self.stride, "p": self.padding}
            if best:
                fields["w"] = self.dilation
            else:
                fields["q"] = self.padding if self.include_padding else _ZEROS
        return {f"{letter}{d}": v[d] for letter, v in fields.items() for d in range(3)}

    @property
    def apart(self) -> bool:
        """Whether windows do not overlap: an element's gradient then comes from one window."""
        return self.kind == "regular" and self.stride == self.kernel and self.padding == _ZEROS

    @property
    def one(self) -> bool:
        """Whether there is one window, which is the whole plane."""
        return self.apart and self.out == _ONES and self.kernel == self.size

    def whole(self) -> tuple[int, int]:
        """Return the range of output columns whose windows lie within the row."""
        if self.kind != "regular":
            return 0, 0
        k, s, p, w = self.kernel[2], self.stride[2], self.padding[2], self.dilation[2]
        last = self.size[2] - 1 - (k - 1) * w + p
        return -(-p // s), min(self.out[2], last // s + 1 if last >= 0 else 0)


def _lanes(backend: Backend, dt: dtype, window: Window, side_by_side: int) -> int:
    """Return the lanes of a vector if `side_by_side` elements can be taken together; 1 where vectors do not pay."""
    if dt.reg not in _MASKS or numel(window.size) >= 2**31:
        return 1
    lanes = backend.info.lanes if dt.itemsize <= 4 else backend.info.lanes // 2
    least = 8 if dt.itemsize == 2 else 4
    while lanes > 1 and lanes > side_by_side:
        lanes //= 2
    return lanes if lanes >= least else 1


class _Schedule(NamedTuple):
    """What a kernel is compiled for, beside its kind; pool.mako has variables of these names, and L and W for the first two."""

    lanes: int
    where: str = ""  # the C type of positions
    stride: int = 0  # of windows along a row, if vectors run over outputs; else 0
    apart: bool = False  # gradient of windows that do not overlap
    streamed: bool = False  # non-temporal stores
    one: bool = False  # a plane has a single window
    flat: bool = False  # the gradient of the result is one element for all
    run: int = 0  # width of windows side by side, if small
    strips: bool = (
        False  # windows of 3 x 3 with stride 2, of which each row of elements is read once
    )
    aside: bool = False  # planes are made in a work-item's scratch buffer, and copied from there with non-temporal stores
    rows: bool = (
        False  # windows over channels-last images, of which each row of elements is read once
    )


def _schedule(
    backend: Backend,
    action: str,
    window: Window,
    x: Operand,
    y: Operand,
    where: Operand | None,
    last: bool,
) -> _Schedule:
    """Choose vectors, and how results are stored; a GPU's kernels have no vectors.

    `action` is a kind of windows' values, or of gradients if it ends with "back"; x and y are what is read and written.
    """
    kind = "long" if where is None else where.dtype.cl
    back = action.endswith("back")
    flat = back and _is_flat(x)
    if is_gpu(backend):
        return _Schedule(1, kind, flat=flat)
    if back:
        return _schedule_back(backend, action, window, x, y)._replace(where=kind, flat=flat)
    return _schedule_forward(backend, action, window, x, where, last)._replace(where=kind)


def _schedule_forward(
    backend: Backend, action: str, window: Window, x: Operand, where: Operand | None, last: bool
) -> _Schedule:
    """Choose a CPU's vectors for the values of windows."""
    dt, best = x.dtype, action == "max"
    one = best and not last and window.one
    rows = best and last and _meet_in_rows(window, where)
    run = window.kernel[2] if window.apart and 2 <= window.kernel[2] <= RUN else 0
    if best:
        run = window.kernel[2] if window.kernel[2] in TAPS and window.dilation[2] == 1 else 0
        run *= window.kind == "regular"
    if last and not rows:
        run = 0
    low, high = window.whole()
    beside = numel(window.size) if one else x.shape[-1] if last else high - low
    lanes = _lanes(backend, dt, window, beside)
    if lanes == 1:
        return _Schedule(1)
    strips = run == 3 and best and not last and _by_strips(window)
    if strips:  # vectors kept from row to row have to stay in registers
        lanes = min(lanes, tile(backend, "double" if dt.reg in ("double", "long") else "float")[1])
    stride = 0 if last or one else min(window.stride[2], 3)
    return _Schedule(lanes, stride=stride, one=one, run=run, strips=strips, rows=rows)


def _schedule_back(
    backend: Backend, action: str, window: Window, x: Operand, y: Operand
) -> _Schedule:
    """Choose a CPU's vectors for gradients, from the results' x to the elements' y."""
    dt, best, apart = x.dtype, action[:3] == "max", window.apart
    run = window.kernel[2] if apart and 2 <= window.kernel[2] <= RUN else 0
    lanes = 1
    if best or (apart and run):
        low, high = window.whole()
        beside = high - low if apart else numel(window.size)
        lanes = _lanes(backend, dt, window, beside)
    row = window.size[2] * dt.itemsize
    large = dt.reg == dt.cl and past_cache(backend, numel(y.shape) * dt.itemsize)
    streamed = large and apart and lanes > 1 and not (row | y.buffer.address) % LINE
    streamed = streamed and run > 0 and not window.size[2] % run  # the last vector of a row, too
    aside = large and (apart or best) and not streamed
    aside = aside and numel(window.size) * dt.itemsize <= ASIDE
    apart = apart and (lanes > 1 or not best)
    run = run if lanes > 1 else 0
    return _Schedule(lanes, apart=apart, streamed=streamed, run=run, aside=aside)


def _by_strips(window: Window) -> bool:
    """Return whether windows are 3 x 3 with stride 2: a row of windows shares one row of elements with the next."""
    return (window.kernel, window.stride[1:], window.dilation) == ((1, 3, 3), (2, 2), _ONES)


def _meet_in_rows(window: Window, where: Operand | None) -> bool:
    """Return whether rows of windows share so many rows of elements that reading each once pays.

    That takes more common rows if positions are int64 or not wanted.
    """
    if window.kind != "regular" or window.dilation[1] != 1:
        return False
    high, step = window.kernel[1], window.stride[1]
    ours = where is not None and where.dtype is dtypes.int32
    return high > step if ours else high >= 2 * step


def _is_flat(x: Operand) -> bool:
    return not any(x.strides)


def _side_by_side(window: Window, where: Operand | None) -> bool:
    """Return whether gradients of largest elements are sent back by pairs of columns.

    That takes positions known to be in their windows: int32 ones, which only this module makes.
    """
    whole = all(o * k <= n for o, k, n in zip(window.out, window.kernel, window.size, strict=True))
    ours = where is not None and where.dtype is dtypes.int32
    return ours and window.apart and whole and window.kernel[2] == 2 and window.out[2] >= 4


def _headers(dt: dtype, lanes: int, streamed: bool) -> str:
    halves = include("half") if dt.reg != dt.cl else ""
    return lane_macros(lanes, dt.reg == "double") + halves + include("stream") * streamed


def _memories(dt: dtype, lanes: int) -> dict[str, Memory]:
    """Return loads and stores of elements and positions, by dtype code."""
    return {v.code: Memory(v, lanes) for v in (dt, dtypes.int64, dtypes.int32)}


@functools.cache
def _kernel(
    backend: Backend, action: str, kind: str, rank: int, dt: dtype, schedule: _Schedule, indices: bool, big: bool,
    last: bool, names: tuple[str, ...], longs: int,
) -> Any:  # fmt: skip
    """Build one kernel of pool.mako."""
    gpu = is_gpu(backend)
    backend.require(dt)
    chosen = schedule._asdict()
    lanes, where = chosen.pop("lanes"), chosen.pop("where")
    fn = f"pool_{action}_{kind}{rank or ''}_{dt.code}_{lanes}_{schedule.stride}{_suffix(schedule, indices, last, gpu)}"
    wide = schedule.run > 0
    head = _headers(dt, lanes, schedule.streamed or schedule.aside)
    head += include("all_lanes") * ((wide or schedule.rows) and action == "max")
    head += include("ahead") * wide
    memories = _memories(dt, lanes)
    text = render(
        "pool/pool", fn=fn, action=action, geometry=kind, rank=rank, dt=dt, T=dt.reg, M=_MASKS.get(dt.reg, ""), L=lanes, W=where,
        I="long" if big else "int", gpu=gpu, indices=indices, last=last, names=names, lowest=_LOWEST[dt.cl if dt.reg == dt.cl else dt.reg],
        memory=memories[dt.code], memories=memories, headers=head, page=PAGE, **chosen,
    )  # fmt: skip
    buffers = 2 + (indices or action == "max_back") + (kind == "fractional") + schedule.aside
    index = np.int64 if big else np.int32
    return backend.kernel(fn, text, [None] * buffers + [index] * len(names) + [np.int64] * longs)


def _suffix(schedule: _Schedule, indices: bool, last: bool, gpu: bool) -> str:
    """Return the part of a kernel's name that says what its schedule does."""
    said = {
        "_where": indices,
        "_last": last,
        "_apart": schedule.apart,
        "_streamed": schedule.streamed,
        "_one": schedule.one,
        "_int": schedule.where == "int",
        "_flat": schedule.flat,
        f"_run{schedule.run}": schedule.run,
        "_strips": schedule.strips,
        "_aside": schedule.aside,
        "_rows": schedule.rows,
        "_gpu": gpu,
    }
    return "".join([word for word, holds in said.items() if holds])


def _launch(
    backend: Backend,
    action: str,
    window: Window,
    x: Operand,
    y: Operand,
    where: Operand | None = None,
    samples: Operand | None = None,
    *,
    last: bool = False,
) -> None:
    """Run one kernel over dense operands, from x to y; `where`: positions of largest elements, read or written."""
    if not numel(y.shape):
        return
    gpu, back, best = is_gpu(backend), action.endswith("back"), action[:3] == "max"
    if action == "max_back" and not gpu and not _side_by_side(window, where):
        window = window._replace(kind="adaptive")  # adds by position: windows do not matter
    schedule = _schedule(backend, action, window, x, y, where, last)
    sizes = window.sizes(best)
    if last:
        sizes["channels"] = x.shape[-1]
    if schedule.lanes > 1 and not (back or schedule.one) and (not last or schedule.run):
        sizes["lo"], sizes["hi"] = window.whole()
    touched = numel(x.shape) + numel(y.shape)
    planes = numel(x.shape[: -window.rank - last])
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    if gpu:
        work, chunk = planes, 1
        global_size, local_size = lanes_of_planes(planes, numel(y.shape) // planes)
    else:
        work = planes if back else planes * window.out[0] * window.out[1]
        chunk = -(-work // min(work, workers(backend, touched)))
        global_size, local_size = (-(-work // chunk),), (1,)
    longs = [work, x.offset, chunk]
    longs += [where.offset] if back and where is not None else []
    longs += [samples.offset] if samples is not None else []
    longs += [] if best else [window.divisor]
    rank = window.rank if window.kind == "fractional" else 0
    indices = where is not None and not back
    big = _is_big(window, sizes, x.shape[-1] if last else 1, gpu)
    kernel = _kernel(
        backend, action, window.kind, rank, x.dtype, schedule, indices, big, last, tuple(sizes), len(longs)
    )  # fmt: skip
    buffers = [o.buffer for o in (x, y, where, samples) if o is not None]
    if schedule.aside:  # a page for alignment, and cache lines between the buffers of work-items
        plane = numel(window.size) * x.dtype.itemsize
        buffers.append(backend.alloc(global_size[0] * (plane + PAGE + 2 * LINE)))
    args = [*buffers, *sizes.values(), *longs]
    backend.launch(kernel, global_size, local_size, args, touched * x.dtype.itemsize)


def _is_big(window: Window, sizes: dict[str, int], channels: int, gpu: bool) -> bool:
    """Return whether a plane's indices need 64 bits.

    A GPU's lanes count the elements of a plane with all its channels, rounded up to a multiple of the group.
    """
    each, past = (channels, GPU_GROUP) if gpu else (1, 0)
    most = max(numel(window.size) * each, numel(window.out) * each, *sizes.values())
    return most >= 2**31 - past


def _pooled_shape(x: Operand, window: Window, last: bool) -> tuple[int, ...]:
    out = window.out[-window.rank :]
    if last:
        return (*x.shape[: -window.rank - 1], *out, x.shape[-1])
    return (*x.shape[: -window.rank], *out)


def largest(
    backend: Backend, x: Operand, window: Window, *, positions: dtype | None, samples: Operand | None = None, last: bool = False
) -> tuple[Operand, Operand | None]:  # fmt: skip
    """Return the largest element of every window of (planes…, sizes…), nan above all, and its position in its plane.

    `last`: of (images…, sizes…, channels) instead, as they lie; not for fractional windows. Positions are of the dtype `positions` (int64, or
    int32 if they are only for `largest_back`), and count elements of the last `rank` dims in row-major order. The first of equals is taken, the
    last nan. `samples` is (planes, rank) for fractional windows.
    """
    shape = _pooled_shape(x, window, last)
    y = empty(backend, x.dtype, shape)
    where = empty(backend, positions, shape) if positions else None
    drawn = None if samples is None else dense(backend, samples)
    _launch(backend, "max", window, dense(backend, x), y, where, drawn, last=last)
    return y, where


def average(backend: Backend, x: Operand, window: Window, *, last: bool = False) -> Operand:
    """Return the mean of every window; integers round towards zero. `last` as for `largest`."""
    y = empty(backend, x.dtype, _pooled_shape(x, window, last))
    _launch(backend, "avg", window, dense(backend, x), y, last=last)
    return y


def _back_last(
    backend: Backend, action: str, window: Window, g: Operand, where: Operand | None
) -> Operand:
    """Return the gradient by channels-last images (images, sizes…, channels), given that of the windows."""
    dt, channels, best = g.dtype, g.shape[-1], where is not None
    lanes = _lanes(backend, dt, window, channels)
    backend.require(dt)
    y = empty(backend, dt, (g.shape[0], *window.size[-window.rank :], channels))
    if not numel(y.shape):
        return y
    g, where = _sent(backend, g), where and dense(backend, where)
    flat, kind = _is_flat(g), "long" if where is None else where.dtype.cl
    streamed = not (channels % lanes or y.buffer.address % LINE) and dt.reg == dt.cl
    streamed = streamed and past_cache(backend, numel(y.shape) * dt.itemsize)
    streamed = streamed and (best or window.apart)  # each element is written once
    sizes = window.sizes(best) | {"channels": channels}
    kernel = _back_last_kernel(
        backend, action, window.kind, dt, lanes, kind, flat, streamed, tuple(sizes)
    )
    touched = numel(g.shape) + numel(y.shape)
    work = y.shape[0] * window.size[0] * window.size[1]
    chunk = -(-work // min(work, workers(backend, touched)))
    longs = work, g.offset, chunk, window.divisor if where is None else where.offset
    buffers = [o.buffer for o in (g, y, where) if o is not None]
    backend.launch(
        kernel,
        (-(-work // chunk),),
        (1,),
        [*buffers, *sizes.values(), *longs],
        touched * dt.itemsize,
    )
    return y


@functools.cache
def _back_last_kernel(
    backend: Backend, action: str, kind: str, dt: dtype, lanes: int, where: str, flat: bool, streamed: bool, names: tuple[str, ...],
) -> Any:  # fmt: skip
    """Build one kernel of pool/last.mako."""
    best = action == "max_back"
    fn = f"pool_{action}_{kind}_{dt.code}_{lanes}_last{'_int' * (where == 'int')}{'_flat' * flat}{'_streamed' * streamed}"
    text = render(
        "pool/last", fn=fn, geometry=kind, dt=dt, T=dt.reg, M=_MASKS[dt.reg], L=lanes, I="int", W=where, best=best, flat=flat, names=names,
        headers=_headers(dt, lanes, streamed), memory=Memory(dt, lanes), memories=_memories(dt, lanes), streamed=streamed,
    )  # fmt: skip
    types = [None] * (2 + best) + [np.int32] * len(names) + [np.int64] * 4
    return backend.kernel(fn, text, types)


def _shares(backend: Backend, window: Window, g: Operand, y: Operand) -> None:
    """Run pool/shares.mako: the gradient of averages of overlapping windows."""
    dt, sizes = g.dtype, window.sizes(best=False)
    beside = min(window.out[2], window.size[2] // min(window.stride[2], 2))
    lanes = _lanes(backend, dt, window, beside)
    regular = window.kind == "regular" and lanes > 1
    stride = window.stride[2] if regular and window.stride[2] <= 2 else 0
    touched = numel(g.shape) + numel(y.shape)
    rows = numel(y.shape) // window.size[2]
    chunk = -(-rows // min(rows, workers(backend, touched)))
    items = -(-rows // chunk)
    room = window.out[2] + 2 * max(window.kernel[2] - 1, 0) + lanes
    sums = items * (_BATCH * room + window.out[2] + 3 * window.size[2])
    big = max(numel(window.size), numel(window.out), *sizes.values()) >= 2**31
    kernel = _shares_kernel(backend, window.kind, dt, lanes, stride, _is_flat(g), big, tuple(sizes))
    backend.launch(
        kernel,
        (items,),
        (1,),
        [
            g.buffer,
            y.buffer,
            backend.alloc(sums * (8 if dt.reg == "double" else 4)),
            *sizes.values(),
            rows,
            g.offset,
            chunk,
            window.divisor,
        ],
        touched * dt.itemsize,
    )


@functools.cache
def _shares_kernel(
    backend: Backend, kind: str, dt: dtype, lanes: int, stride: int, flat: bool, big: bool, names: tuple[str, ...]
) -> Any:  # fmt: skip
    """Build one kernel of pool/shares.mako."""
    backend.require(dt)
    fn = f"pool_shares_{kind}_{dt.code}_{lanes}_{stride}{'_flat' * flat}"
    text = render(
        "pool/shares", fn=fn, geometry=kind, dt=dt, T=dt.reg, L=lanes, I="long" if big else "int", best=False, stride=stride, flat=flat,
        names=names, batch=_BATCH, headers=_headers(dt, lanes, False), memory=Memory(dt, lanes), memories=_memories(dt, lanes),
    )  # fmt: skip
    types = [None] * 3 + [np.int64 if big else np.int32] * len(names) + [np.int64] * 4
    return backend.kernel(fn, text, types)


def _input_shape(g: Operand, window: Window) -> tuple[int, ...]:
    return (*g.shape[: -window.rank], *window.size[-window.rank :])


def _sent(backend: Backend, g: Operand) -> Operand:
    """Return the gradient `g` as the kernels take it: dense, or one element for all."""
    return g if _is_flat(g) else dense(backend, g)


def along_channels(backend: Backend, dt: dtype, window: Window, channels: int) -> bool:
    """Return whether gradients are computed with vectors of channels, so that `last` can be used for them."""
    return not is_gpu(backend) and _lanes(backend, dt, window, channels) > 1


def largest_back(
    backend: Backend, g: Operand, where: Operand, window: Window, *, last: bool = False
) -> Operand:
    """Return the gradient of `largest`: each input element adds up those of the windows whose largest it was.

    `last` as for `largest`. Not for fractional windows on a GPU.
    """
    if last:
        return _back_last(backend, "max_back", window, g, where)
    y = empty(backend, g.dtype, _input_shape(g, window))
    _launch(backend, "max_back", window, _sent(backend, g), y, dense(backend, where))
    return y


def average_back(backend: Backend, g: Operand, window: Window, *, last: bool = False) -> Operand:
    """Return the gradient of `average`: each input element adds up its shares of the windows that it lies in.

    `last` as for `largest`.
    """
    if last:
        return _back_last(backend, "avg_back", window, g, None)
    y = empty(backend, g.dtype, _input_shape(g, window))
    if is_gpu(backend) or window.apart:
        _launch(backend, "avg_back", window, _sent(backend, g), y)
    elif numel(y.shape):
        _shares(backend, window, _sent(backend, g), y)
    return y
