"""Depthwise convolution on a CPU: a filter for each plane, forward and both gradients.

Owns which convolutions take this schedule, how planes are divided among work-items, and the launches of
templates/conv/depthwise.mako and conv/depthwise_weight.mako; correlation.py asks here first. The taps stay in registers
while several rows of a plane are computed at a time; a transposed convolution of stride 2 needs no pass per remainder.
Channels-last images are depthwise_last.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import dtypes
from ...layouts import contiguous_strides, numel
from ..operand import Operand
from ..products.product import LONG, PACE, access_variables, built, ceil_div, tile
from ..source import render
from . import depthwise_last
from .window import LONGS, numbers

if TYPE_CHECKING:
    from ...runtime import Backend, Kernel
    from .window import Window

ROOM = 1 << 14  # numbers of a band (some rows of a plane) in local memory, at most
SLACK = 128  # numbers that vectors may access past the band
BAND = 6144  # numbers of a band that stay in the first-level cache
TASK_WORK = 1 << 16  # multiply-adds that make a work-item worth its start
# Filters per core, at least, for weight gradients: only filters are divided among work-items there.
PLANES = 2
ROWS = 4  # output rows computed at a time


def correlate(
    backend: Backend, x: Operand, f: Operand, y: Operand, window: Window, bias: Operand | None
) -> bool:
    """Compute `correlation.correlate`; False, with nothing done, where this schedule does not take it.

    It takes one filter per plane of a size known here, and rows, or else channels, of unit stride.
    """
    if not _fits(x, f.shape, y, window):
        return False
    if depthwise_last.lies_so(x, y):
        depthwise_last.correlate(backend, x, f, y, window, bias, _wanted(backend, _work(x, f, y)))
        return True
    if not (_in_rows(backend, x, y) and _dense(y)):
        return False
    stride, taps = window.stride[2], f.shape[5]
    lanes = _lanes(backend, y.shape[5])
    columns = (y.shape[5] - 1) * stride + taps
    band = _band(columns, lanes, y.shape[4], stride, taps - stride)
    if not band:
        return False
    kernel = _kernel(backend, taps, stride, lanes, False, False)
    _run(backend, kernel, x, f, y, window, bias, band, _pitch(columns, lanes))
    return True


def spread(
    backend: Backend, y: Operand, f: Operand, x: Operand, window: Window, bias: Operand | None
) -> bool:
    """Compute `correlation.spread` for stride 2; False, with nothing done, for other strides and as `correlate`."""
    if not _fits(x, f.shape, y, window) or window.stride[2] != 2:
        return False
    if depthwise_last.lies_so(x, y):
        items = _wanted(backend, _work(x, f, y))
        depthwise_last.correlate(backend, y, f, x, window, bias, items, spread=True)
        return True
    if not (_in_rows(backend, x, y) and _dense(x)):
        return False
    taps, pairs = f.shape[5], ceil_div(x.shape[4], 2)
    even = window.pad[2] % 2 == 0
    if window.pad[1] % 2 != window.pad[2] % 2:
        return False
    lanes = _lanes(backend, ceil_div(x.shape[5], 2))
    columns = ceil_div(x.shape[5], 2) + taps // 2
    band = _band(columns, lanes, pairs, 1, taps // 2 + 1)
    if not band:
        return False
    kernel = _kernel(backend, taps, 1, lanes, True, even)
    _run(backend, kernel, y, f, x, window, bias, band, _pitch(columns, lanes))
    return True


def weigh(
    backend: Backend, x: Operand, y: Operand, shape: tuple[int, ...], window: Window
) -> Operand | None:
    """Compute `correlation.weigh` for a result [G, O, C, *taps]; None where this schedule does not take it."""
    if not _fits(x, shape, y, window):
        return None
    stride, taps = window.stride[2], shape[5]
    work = numel(y.shape) * taps * taps
    if depthwise_last.lies_so(x, y):
        return depthwise_last.weigh(backend, x, y, shape, window, _wanted(backend, work))
    if shape[0] < PLANES * backend.info.compute_units or not _in_rows(backend, x, y):
        return None
    lanes = _lanes(backend, y.shape[5])
    columns = (y.shape[5] - 1) * stride + taps
    band = _band(columns, lanes, y.shape[4], stride, taps - stride)
    if not band:
        return None
    out = Operand(
        backend.alloc(numel(shape) * 4), x.dtype, (1, *shape), contiguous_strides((1, *shape))
    )
    values = numbers(x, out._replace(shape=shape, strides=out.strides[1:]), y, None, window)
    each = ceil_div(shape[0], _wanted(backend, work))
    pitches = _pitch(columns, lanes), _pitch(y.shape[5], lanes)
    backend.launch(
        _weight_kernel(backend, taps, stride, lanes),
        (ceil_div(shape[0], each),),
        (1,),
        (x.buffer, y.buffer, out.buffer, *values, each, band, *pitches),
        x.nbytes + y.nbytes + out.nbytes,
        2 * work,
    )
    return out


def _fits(x: Operand, shape: tuple[int, ...], y: Operand, window: Window) -> bool:
    """Return whether there is one filter per plane, of a supported size and stride, with less padding than taps."""
    taps = shape[5]
    return (
        x.dtype is dtypes.float32
        and tuple(shape[1:5]) == (1, 1, 1, taps)
        and taps in (3, 5, 7)
        and window.stride in ((1, 1, 1), (1, 2, 2))
        and window.step == (1, 1, 1)
        and window.pad[0] == 0
        and all(0 <= pad < taps for pad in window.pad)
        and x.shape[3] == y.shape[3] == 1
        and bool(numel(x.shape) and numel(y.shape))
    )


def _in_rows(backend: Backend, x: Operand, y: Operand) -> bool:
    """Return whether rows have unit stride, and there is enough local memory to copy bands of planes to."""
    return x.strides[5] == y.strides[5] == 1 and backend.info.local_mem >= 8 * ROOM + 8192


def _work(x: Operand, f: Operand, y: Operand) -> int:
    """Return the multiply-adds."""
    return max(numel(x.shape), numel(y.shape)) * f.shape[5] ** 2


def _dense(v: Operand) -> bool:
    """Return whether planes are contiguous and follow each other in memory, image by image."""
    groups, images, _, _, rows, columns = v.shape
    g, b, _, _, by, _ = v.strides
    plane = rows * columns
    return (
        (rows == 1 or by == columns)
        and (groups == 1 or g == plane)
        and (images == 1 or b == groups * plane)
    )


def _lanes(backend: Backend, columns: int) -> int:
    """Return the lanes of the vectors to use: 8 where a row is no longer than that, else a register's."""
    lanes = tile(backend, "float")[1]
    return 8 if columns <= 8 else lanes


def _pitch(columns: int, lanes: int) -> int:
    return ceil_div(columns, lanes) * lanes


def _band(columns: int, lanes: int, rows: int, stride: int, more: int) -> int:
    """Return how many output rows are computed from one copy to local memory; 0 where even ROWS of them do not fit.

    `more` is how many input rows are read beyond `stride` per output row.
    """
    pitch = _pitch(columns, lanes)
    least = ROWS * stride + more
    if least * pitch + SLACK > ROOM:
        return 0
    most = max((BAND // pitch - more) // stride // ROWS * ROWS, ROWS)
    return min(ceil_div(ceil_div(rows, ceil_div(rows, most)), ROWS) * ROWS, most)


def _wanted(backend: Backend, work: int) -> int:
    """Return the number of work-items that keep every core busy."""
    alone = work < PACE // 2 * backend.info.wake_us
    return 1 if alone else min(max(work // TASK_WORK, 1), 4 * backend.info.compute_units)


def _run(
    backend: Backend,
    kernel: Kernel,
    x: Operand,
    f: Operand,
    y: Operand,
    window: Window,
    bias: Operand | None,
    band: int,
    pitch: int,
) -> None:
    planes, work = x.shape[0] * x.shape[1], _work(x, f, y)
    each = ceil_div(planes, _wanted(backend, work))
    args = (
        *(x.buffer, f.buffer, y.buffer, (bias or x).buffer, int(bias is not None)),
        *numbers(x, f, y, bias, window),
        *(each, band, pitch),
    )
    nbytes = x.nbytes + f.nbytes + y.nbytes
    backend.launch(kernel, (ceil_div(planes, each),), (1,), args, nbytes, 2 * work)


def _kernel(
    backend: Backend, taps: int, stride: int, lanes: int, spread: bool, even: bool
) -> Kernel:
    longs = (*LONGS, "each", "band", "pitch")

    def make() -> tuple[str, str, list[Any]]:
        name = f"conv_depthwise_{'spread' if spread else 'plain'}{taps}x{taps}s{stride}"
        source = render(
            "conv/depthwise",
            fn=name,
            K=taps,
            S=stride,
            R=ROWS // 2 if spread else ROWS,
            spread=spread,
            EVEN=even,
            room=ROOM,
            slack=SLACK,
            longs=longs,
            **access_variables(dtypes.float32, dtypes.float32, lanes),
        )
        return name, source, [None] * 4 + [np.int32] + [LONG] * len(longs)

    return built(backend, ("conv depthwise", taps, stride, lanes, spread, even), make)


def _weight_kernel(backend: Backend, taps: int, stride: int, lanes: int) -> Kernel:
    longs = (*LONGS, "each", "band", "pitch", "y_pitch")

    def make() -> tuple[str, str, list[Any]]:
        name = f"conv_depthwise_weight{taps}x{taps}s{stride}"
        # All taps at once if there are registers for their sums, else one row of taps.
        block = taps if taps**2 < 2 * tile(backend, "float")[1] else 1
        source = render(
            "conv/depthwise_weight",
            fn=name,
            K=taps,
            S=stride,
            R=ROWS if block == 3 else 2,
            BLOCK=block,
            room=ROOM,
            slack=SLACK,
            longs=longs,
            **access_variables(dtypes.float32, dtypes.float32, lanes),
        )
        return name, source, [None] * 3 + [LONG] * len(longs)

    return built(backend, ("conv depthwise weight", taps, stride, lanes), make)
