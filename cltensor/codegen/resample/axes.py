"""Resampling kernels: enlarging and shrinking images along up to three axes, and the transposes (gradients) of these.

An `Axis` says how positions of one axis read those of another (the interpolation's kind, sizes and scale). Its tables (first
position, weights) are made on the device once, and are cached. Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ..operand import Operand
from ..region import empty, index_type, is_gpu, lanes_of_planes, past_cache, run, workers
from ..source import include

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Buffer

# Positions that an output reads, for kinds where their number is fixed; the radius within which weights are not 0, for
# others.
TAPS = {"nearest": 1, "exact": 1, "linear": 2, "cubic": 4}
RADIUS = {"antialias_linear": 1, "antialias_cubic": 2, "antialias_lanczos": 3}
_KEPT = 128  # cached tables
_FEW = 8  # taps, at most, that are worth a vector each
_BATCH = 8  # rows that are added up before they are resampled along the width
_LISTED = 16  # input rows of an output row, at most, for which the kernel keeps a list
_LANES = 64  # of a GPU's work-group that makes a table of fixed-point weights
_PIXEL = 4  # bytes that are summed at once
_BEYOND = 32  # elements beyond a row that may be read, for which there is room


class Axis(NamedTuple):
    """How the output positions along one dim read the input positions."""

    kind: str  # of TAPS or RADIUS
    ni: int  # input positions
    no: int  # output positions
    scale: float  # input positions per output position
    # The first and last positions of input and output coincide (torch's align_corners).
    aligned: bool = False

    @property
    def same(self) -> bool:
        """Whether every position reads just the one with its own index."""
        return self.ni == self.no and (self.kind == "linear" or self.scale == 1)

    @property
    def taps(self) -> int:
        """Positions that one output reads, at most; the size of tables."""
        if self.kind in TAPS:
            return TAPS[self.kind]
        return math.ceil(RADIUS[self.kind] * max(self.scale, 1.0)) * 2 + 1

    @property
    def reads(self) -> int:
        """A tighter bound than `taps` of the positions that one output reads: the filter's reach, and rounding's leeway."""
        if self.kind in TAPS:
            return TAPS[self.kind]
        return min(self.taps, math.ceil(2 * RADIUS[self.kind] * max(self.scale, 1.0) + 1e-3))

    @property
    def readers(self) -> int:
        """An upper bound of how many outputs read one input: those nearby, or at an edge those that read beyond it."""
        if self.scale <= 0:
            return self.no
        reach = self.taps + 0.5  # places before the first count as the first
        spread = max(reach / self.scale, self.no - (self.ni - reach) / self.scale)
        most = max(1, min(self.no, int(spread + 0.5) + 1))
        return min(most, self._counted()) if self.kind in TAPS else most

    def _counted(self) -> int:
        """Count how many outputs read one input, at most, for kinds with a fixed number of taps.

        First positions are computed as on the device, or more exactly and with some leeway.
        """
        o = np.arange(self.no)
        if self.kind == "nearest":  # a single product, rounded as on the device
            product = np.float32(self.scale) * o.astype(np.float32)
            places = [product, (self.scale * o).astype(np.float32)]
        else:
            place = self.scale * o if self.aligned else self.scale * (o + 0.5) - 0.5
            if self.kind != "cubic":
                place = np.maximum(place, 0)
            place = place + 0.5 * (self.kind == "exact")
            leeway = 1e-3 + 1e-6 * self.ni
            places = [place - leeway, place + leeway]
        low, high = (
            np.minimum(np.floor(f(*places)), self.ni - 1) for f in (np.minimum, np.maximum)
        )
        before = self.kind == "cubic"
        first, last = (
            np.clip(at - before + more, 0, self.ni - 1).astype(np.int64)
            for at, more in ((low, 0), (high, self.taps - 1))
        )
        steps = np.bincount(first, minlength=self.ni + 1)
        steps -= np.bincount(last + 1, minlength=self.ni + 1)
        return int(np.cumsum(steps).max())


class _Table(NamedTuple):
    """An axis as resample/resample.mako takes it."""

    kind: str  # the template's
    ni: int  # input positions
    no: int  # output positions
    buffers: tuple[Buffer, ...] = ()  # tables, in the order of the template's parameters
    taps: int = 0  # positions that an output reads, at most, if these are few; else 0


_tables: OrderedDict[tuple, _Table] = OrderedDict()


def _kept(key: tuple, make: Callable[[], _Table]) -> _Table:
    """Return the table of a key. Each step is atomic: threads may look tables up at the same time."""
    found = _tables.pop(key, None)
    if found is None:
        found = make()
        if len(_tables) >= _KEPT:
            _tables.popitem(last=False)
    _tables[key] = found  # behind those used less recently
    return found


def _scale_bits(scale: float, dt: dtype) -> int:
    if dt is dtypes.float64:
        return int(np.float64(scale).view(np.int64))
    return int(np.float32(scale).view(np.int32))


def _work(backend: Backend, n: int) -> int:
    return n if is_gpu(backend) else workers(backend, n)


def _axis_tables(
    backend: Backend, axis: Axis, dt: dtype
) -> tuple[Buffer, Buffer | None, Buffer | None]:
    """Make the tables of an axis: start, size and weights; the latter two are None if an output copies one position."""
    weighted = axis.taps > 1
    start = empty(backend, dtypes.int32, (axis.no,)).buffer
    size = empty(backend, dtypes.int32, (axis.no,)).buffer if weighted else None
    weight = empty(backend, dt, (axis.taps * axis.no,)).buffer if weighted else None
    run(
        backend,
        "resample/axis",
        f"resample_{axis.kind}_{dt.code}",
        [b for b in (start, size, weight) if b is not None],
        [axis.ni, axis.no, int(axis.aligned), axis.taps],
        _work(backend, axis.no),
        longs=[_scale_bits(axis.scale, dt)],
        kind=axis.kind,
        T=dt.reg,
        I=index_type(backend),
        fixed=TAPS.get(axis.kind, 0),
        radius=RADIUS.get(axis.kind, 0),
        gpu=is_gpu(backend),
    )
    return start, size, weight


def _forward(backend: Backend, axis: Axis, dt: dtype) -> _Table:
    if axis.same:
        return _Table("same", axis.ni, axis.no)

    def make() -> _Table:
        start, size, weight = _axis_tables(backend, axis, dt)
        if size is None or weight is None:
            return _Table("one", axis.ni, axis.no, (start,))
        return _Table("many", axis.ni, axis.no, (start, size, weight), TAPS.get(axis.kind, 0))

    return _kept((backend, axis, dt, "forward"), make)


def _turned(backend: Backend, axis: Axis, dt: dtype) -> _Table:
    """Return the table of an axis' transpose: which outputs read each input."""
    if axis.same:
        return _Table("same", axis.no, axis.ni)

    def make() -> _Table:
        first, count, weight = _axis_tables(backend, axis, dt)
        start, size = (empty(backend, dtypes.int32, (axis.ni,)).buffer for _ in range(2))
        taps = axis.readers
        turned = None if weight is None else empty(backend, dt, (taps * axis.ni,)).buffer
        run(
            backend,
            "resample/turn",
            f"resample_turn{'' if weight is None else f'_{dt.code}'}",
            [b for b in (first, count, start, size, weight, turned) if b is not None],
            [axis.ni, axis.no, taps],
            _work(backend, axis.ni),
            I=index_type(backend),
            T=dt.reg,
            sized=weight is not None,
            gpu=is_gpu(backend),
        )
        few = taps if taps <= _FEW else 0
        if turned is None:
            return _Table("sum", axis.no, axis.ni, (start, size), few)
        return _Table("many", axis.no, axis.ni, (start, size, turned), few)

    return _kept((backend, axis, dt, "turned"), make)


def _bytes(backend: Backend, axis: Axis) -> _Table:
    """Return the table of an axis with fixed-point weights, for 8-bit images."""
    if axis.same or axis.kind in ("nearest", "exact"):
        return _forward(backend, axis, dtypes.float32)

    def make() -> _Table:
        dt = dtypes.float64 if backend.info.fp64 else dtypes.float32
        start, size, weight = _axis_tables(backend, axis, dt)
        assert size is not None
        assert weight is not None
        fixed = empty(backend, dtypes.int32, (axis.taps * axis.no,)).buffer
        bits = empty(backend, dtypes.int32, (1,)).buffer
        lanes = _LANES if is_gpu(backend) else 1
        run(
            backend,
            "resample/bytes",
            f"resample_bytes_{dt.code}",
            [weight, size, fixed, bits],
            [axis.no, axis.taps],
            (lanes, lanes),
            I=index_type(backend),
            T=dt.reg,
            half="0.5" if dt is dtypes.float64 else "0.5f",
            lanes=lanes,
        )
        return _Table("many", axis.ni, axis.no, (start, size, fixed, bits))

    return _kept((backend, axis, "bytes"), make)


def _by_channels(
    backend: Backend, src: Operand, axes: Sequence[Axis], tables: Sequence[_Table], strides: Sequence[int], turned: bool
) -> bool:  # fmt: skip
    """Return whether channels-last images are resampled along the height first, row by row, then along the width.

    That takes two axes with weights, and enough channels for a vector. Not for large images that shrink, which are bound by
    reading: to read the runs of each output place one after the other takes the least time.
    """
    dt, (height, width, channels) = src.dtype, tables
    if is_gpu(backend) or dt.itemsize < 4 or len(axes) < 3 or src.shape[1] != 1:
        return False
    if (height.kind, width.kind, channels.kind) != ("many", "many", "same"):
        return False
    dense = strides[-1] == 1 and strides[-2] == channels.ni
    if not dense or channels.ni < (16 if dt.itemsize == 4 else 8):
        return False
    if width.no < width.ni and past_cache(backend, math.prod(src.shape) * dt.itemsize):
        return False
    high, wide = (a.readers if turned else a.taps for a in axes[:2])
    return width.ni * high + width.no * wide < width.no * high * wide


def _along_channels(
    backend: Backend, src: Operand, out: Operand, tables: Sequence[_Table], strides: Sequence[int]
) -> None:
    """Run resample/last.mako."""
    dt, (height, width, last) = src.dtype, tables
    nbytes = math.prod(out.shape) * dt.itemsize
    moved = max(math.prod(out.shape), math.prod(src.shape))
    images, channels = src.shape[0], last.ni
    items = min(workers(backend, moved), images * height.no)
    lanes = 16 if dt.itemsize == 4 else 8
    streamed = not channels % lanes and past_cache(backend, nbytes)
    run(
        backend,
        "resample/last",
        f"resample_last_{dt.code}{'_streamed' * streamed}",
        [
            src.buffer,
            out.buffer,
            backend.alloc(items * width.ni * channels * dt.itemsize),
            *height.buffers,
            *width.buffers,
        ],
        [images, src.offset, strides[0], height.no, strides[2], width.ni, width.no, channels],
        items,
        nbytes + math.prod(src.shape) * dt.itemsize,
        dt=dt,
        I=index_type(backend, src, out),
        headers=include("stream") * streamed + include("ahead"),
        streamed=streamed,
    )


def packs(backend: Backend, dt: dtype, axes: Sequence[Axis], channels: int) -> bool:
    """Return whether channels-last images are resampled as they lie, by the pixel: few channels, on a CPU."""
    integral = dt is dtypes.uint8 and any(a.taps > 1 for a in axes)
    return integral and channels <= _PIXEL and not is_gpu(backend)


def _bytes_by_rows(backend: Backend, src: Operand, out: Operand, axes: Sequence[Axis]) -> None:
    """Run resample/byte_rows.mako on images (N, C, H, W), or with a third axis on (N, 1, H, W, C) as `packs` allows."""
    packed = len(axes) == 3
    high, wide = (_bytes(backend, a) for a in axes[:2])
    images, channels = out.shape[0], out.shape[4 if packed else 1]
    planes = images if packed else images * channels
    groups = planes if packed else -(-planes // _PIXEL)
    taps = max(1, axes[1].taps)
    slots = axes[0].taps if high.kind == "many" else 1
    pitch = (wide.no * (channels if packed else 1) // 16 + 2) * 16
    room = (wide.ni + taps + wide.no + 16) * _PIXEL + slots * pitch * (1 if packed else _PIXEL)
    room = -(-room // 64) * 64
    n = math.prod(out.shape)
    items = min(workers(backend, max(n, math.prod(src.shape))), groups * high.no)
    reads = axes[1].reads
    few = reads if wide.kind == "many" and reads <= _LISTED else 0
    by_n, by_c, *steps = src.strides[:4]
    lines = [high.ni, high.no, steps[0]]
    columns = [wide.ni, wide.no, steps[1], room, pitch, slots]
    run(
        backend,
        "resample/byte_rows",
        f"resample_u8_{high.kind}_{wide.kind}_{few}{f'_by_{channels}' * packed}",
        [src.buffer, out.buffer, backend.alloc(items * room), *high.buffers, *wide.buffers],
        [planes, channels, src.offset, by_n, by_c, *lines, *columns],
        items,
        n + math.prod(src.shape),
        I=index_type(backend, src, out),
        high=high.kind,
        wide=wide.kind,
        packed=channels if packed else 0,
        taps=few,
        spare=taps,
    )


def resample(backend: Backend, src: Operand, axes: Sequence[Axis], turned: bool = False) -> Operand:
    """Return `src` (N, C, up to three axes) resampled along each axis, or the gradient of that, dense.

    `turned`: `src` is the result's gradient, and the input's is returned. 8-bit integers are rounded after each axis, width
    first, as torch does.
    """
    dt = src.dtype
    table_dt = dtypes.float64 if dt is dtypes.float64 else dtypes.float32
    integral = dt is dtypes.uint8 and any(a.taps > 1 for a in axes)
    if integral and not is_gpu(backend):
        out = empty(backend, dt, (*src.shape[:2], *(a.no for a in axes)))
        if math.prod(out.shape):
            _bytes_by_rows(backend, src, out, axes)
        return out
    if integral:
        tables = [_bytes(backend, a) for a in axes]
    else:
        tables = [(_turned if turned else _forward)(backend, a, table_dt) for a in axes]
    tables = [_Table("same", 1, 1)] * (3 - len(tables)) + tables
    strides = (*src.strides[:2], *(0,) * (3 - len(axes)), *src.strides[2:])
    shape = (*src.shape[:2], *(t.no for t in tables[3 - len(axes) :]))
    out = empty(backend, dt, shape)
    if not math.prod(shape):
        return out
    if not integral and _by_channels(backend, src, axes, tables, strides, turned):
        _along_channels(backend, src, out, tables, strides)
    else:
        _by_tables(backend, src, out, tables, strides, integral)
    return out


def _by_tables(
    backend: Backend, src: Operand, out: Operand, tables: Sequence[_Table], strides: Sequence[int], integral: bool
) -> None:  # fmt: skip
    """Resample along three axes in one launch; `strides` are those of `src`, with 0 for axes that it lacks.

    `integral`: tables have fixed-point weights.
    """
    dt, gpu, last = src.dtype, is_gpu(backend), tables[2]
    n, planes = math.prod(out.shape), out.shape[0] * out.shape[1]
    flags = _flags(dt, tables, strides[-1], gpu)
    buffers = [src.buffer, out.buffer]
    sizes = [v for t, s in zip(tables, strides[2:], strict=True) for v in (t.ni, t.no, s)]
    items = min(workers(backend, max(n, math.prod(src.shape))), planes * tables[0].no * tables[1].no)  # fmt: skip
    work: int | tuple[int, int] = items
    if gpu:
        (columns, high), (across, each) = lanes_of_planes(planes, n // planes)
        work = columns * high, across * each
        sizes.append(across)
    elif not (flags["plain"] or flags["direct"] or flags["level"]):
        room = items * _BATCH * (last.ni + last.taps) + _BEYOND
        buffers.append(backend.alloc(room * (8 if dt is dtypes.float64 else 4)))
    for t in tables:
        buffers += t.buffers
    lanes = 16 if dt.itemsize <= 4 else 8
    streamed = (flags["wide"] or flags["direct"]) and last.no % lanes == 0
    streamed = streamed and past_cache(backend, n * dt.itemsize)
    kinds = tuple(t.kind for t in tables)
    layout = "_unit" * flags["unit"] + "_flat" * flags["flat"]
    name = f"resample_{dt.code}_{'_'.join(kinds)}{layout}{f'_{last.taps}' * flags['wide']}"
    headers = include("stream") * streamed + include("ahead") * flags["rows"]
    headers += include("pick") * flags["picks"]
    run(
        backend,
        "resample/resample",
        name + "_streamed" * streamed,
        buffers,
        [planes, src.shape[1], src.offset, strides[0], strides[1], *sizes],
        work,
        (n + math.prod(src.shape)) * dt.itemsize,
        dt=dt,
        I=index_type(backend, src, out),
        axis_kinds=kinds,
        streamed=streamed,
        headers=headers,
        bytes=integral,
        gpu=gpu,
        taps=last.taps,
        spare=last.taps,
        batch=_BATCH,
        **flags,
    )


def _flags(dt: dtype, tables: Sequence[_Table], step: int, gpu: bool) -> dict[str, Any]:
    """Return how resample/resample.mako makes rows, as its variables; its text says what they mean.

    step: from an element of the source's rows to the next.
    """
    last, rows = tables[2], not gpu
    vectors = rows and dt.itemsize != 2
    direct = vectors and last.kind == "same"
    single = all(t.kind in ("same", "one") for t in tables[:2])
    plain = vectors and not direct and single and not last.taps
    wide = vectors and (last.kind == "one" or last.taps > 0)
    unit, flat = step == 1, step == 0
    several = [t.taps if t.kind in ("many", "sum") else 1 for t in tables[:2]]
    listed = math.prod(several) if rows else 0
    return {
        "rows": rows,
        "unit": unit,
        "flat": flat,
        "direct": direct,
        "plain": plain,
        "wide": wide,
        "level": rows and flat and not (plain or direct),
        "listed": listed if listed <= _LISTED else 0,
        "picks": wide and dt is dtypes.float32 and not flat and (unit or not plain),
    }
