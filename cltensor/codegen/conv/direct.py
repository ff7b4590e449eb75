"""Convolution on a GPU with few output channels per group, depthwise ones included: sums in registers, without tiles.

Owns which correlations and gradients take this schedule, how many places and channels a lane computes, and the launches
of templates/conv/direct.mako and conv/direct_weight.mako; correlation.py asks here first. The rows of an implicit
product's tile, 64 or more, are output channels: with a few of those it would be mostly empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...layouts import contiguous_strides, numel
from ..operand import Operand
from ..products.product import LONG, WIDE, access_variables, accumulator, built, ceil_div
from ..region import group_limit
from ..source import render
from .window import LONGS, counter, numbers, reach

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Kernel
    from .window import Window

FEW = 16  # output channels of a group, at most
# Pairs of an output and an input channel in a weight gradient, at most: each pair reads both images.
PAIRS = 1024
# Lanes per compute unit that hide memory latency, for short and for long sums. To have them, each computes fewer
# results.
LANES = 512, 128
LONG_SUM = 64  # terms from which on a sum is long: it reads more from caches than from memory
# Input channels from which on, where there are few places, several lanes share a place's channels.
SLICED = 16
SLICE = 32  # neighbouring places for which a slice of lanes sums its share of the channels
GROUPS = 4  # work-groups per compute unit among which a weight gradient's places are divided
TAPS = 7  # taps of a column kept in registers, at most; of a weight gradient 7 x 7 sums
CHUNK = 16  # taps whose sums a work-group reduces at a time
SIDE = 32, 16, 8  # neighbouring channels-last groups that a work-group takes, by preference


def correlate(
    backend: Backend, x: Operand, f: Operand, y: Operand, window: Window, bias: Operand | None
) -> bool:
    """Compute `correlation.correlate`; False, with nothing done, for more than a few output channels per group."""
    groups, batch = x.shape[:2]
    rows = f.shape[1]
    if rows > FEW:
        return False
    side = _side(x, y, f.shape) if numel(f.shape[3:]) <= TAPS**2 else 1
    column, lanes = _column(f.shape[4], window), _lanes(backend)
    many = min(rows, 4) if rows <= 4 or ceil_div(rows, 4) * 4 <= ceil_div(rows, 3) * 3 else 3
    places, height = 4, y.shape[4]
    length = numel(f.shape[2:])
    cores = backend.info.compute_units
    slices, few = 1, numel(y.shape) < LANES[0] * cores * places * many
    if few and side == 1 and x.shape[2] >= SLICED:
        lanes = _lanes(backend, 256)
        slices = lanes // SLICE
    wanted = LANES[length >= LONG_SUM and slices == 1] * cores // slices
    while places > 1 and (
        3 * ceil_div(height, places) * places > 4 * height
        or numel(y.shape) < wanted * places * many
    ):
        places //= 2
    while many > 1 and numel(y.shape) < wanted * many:
        many //= 2
    while slices > 1 and _room(x.dtype, slices, places * many) > backend.info.local_mem:
        slices, lanes = slices // 2, lanes // 2
    units = batch * numel((y.shape[3], ceil_div(height, places), y.shape[5]))
    blocks = ceil_div(groups, side) if side > 1 else groups * ceil_div(rows, many)
    count = counter(units + lanes, reach(x, window), reach(f, window))
    kernel = _kernel(backend, x.dtype, y.dtype, lanes, side, slices, places, many, column, count)
    args = (
        *(x.buffer, f.buffer, y.buffer, (bias or x).buffer, int(bias is not None)),
        *numbers(x, f, y, bias, window),
        blocks,
    )
    backend.launch(
        kernel,
        (ceil_div(units, lanes // side // slices) * lanes, min(blocks, 65535)),
        (lanes, 1),
        args,
        x.nbytes + f.nbytes + y.nbytes,
        2 * numel(y.shape) * length,
    )
    return True


def weigh(
    backend: Backend, x: Operand, y: Operand, shape: tuple[int, ...], window: Window
) -> Operand | None:
    """Compute `correlation.weigh` for a result [G, O, C, *taps]; None for more than a few channels."""
    groups, rows, channels, *taps = shape
    if rows > FEW or rows * channels > PAIRS or not numel(x.shape) * numel(y.shape) * numel(shape):
        return None
    side, lanes = _side(x, y, shape), _lanes(backend)
    column = _column(taps[1], window)
    # As many columns of taps as there are registers for; `places` divides the rows, so that no place is summed twice.
    widest = TAPS**2 // column[0] if column[0] > 1 else CHUNK
    parts = ceil_div(taps[2], widest)
    width = ceil_div(taps[2], parts)
    places = next(n for n in (4, 7, 5, 6, 3, 2, 1) if y.shape[4] % n == 0)
    units = x.shape[1] * numel(y.shape[3:]) // places
    blocks = ceil_div(groups, side) * rows * channels * parts * taps[0]
    blocks *= taps[1] if column[0] == 1 else 1
    wanted = ceil_div(GROUPS * backend.info.compute_units, blocks)
    pieces = max(min(wanted, units * side // (2 * lanes), 65535), 1)
    span = ceil_div(units, pieces)
    pieces = ceil_div(units, span)
    wide, whole = WIDE[accumulator(x.dtype)], (pieces, *shape)
    out = Operand(
        backend.alloc(numel(whole) * wide.itemsize), wide, whole, contiguous_strides(whole)
    )
    part = out._replace(shape=shape, strides=out.strides[1:])
    count = counter(units + lanes, reach(x, window), reach(y, window))
    backend.launch(
        _weight_kernel(backend, x.dtype, wide, lanes, side, places, column, width, count),
        (blocks * lanes, pieces),
        (lanes, 1),
        (x.buffer, y.buffer, out.buffer, *numbers(x, part, y, None, window), span, numel(shape)),
        x.nbytes + y.nbytes + out.nbytes,
        2 * numel(y.shape) * numel(shape[2:]),
    )
    return out


def _lanes(backend: Backend, most: int = 128) -> int:
    """Return the lanes of a work-group."""
    return max(min(most, group_limit(backend)), 64)


def _room(dt: dtype, slices: int, numbers: int) -> int:
    """Return the bytes of local memory through which slices pass their sums, `numbers` per lane, to the first slice."""
    return (slices - 1) * SLICE * numbers * WIDE[accumulator(dt)].itemsize


def _side(x: Operand, y: Operand, shape: tuple[int, ...]) -> int:
    """Return how many neighbouring groups a work-group takes.

    More than 1 for depthwise channels-last images, where neighbouring groups are neighbours in memory.
    """
    groups = shape[0]
    if x.strides[0] != 1 or y.strides[0] != 1 or groups < SIDE[-1] or shape[1:3] != (1, 1):
        return 1
    return min(SIDE, key=lambda n: ceil_div(groups, n) * n)


def _column(taps: int, window: Window) -> tuple[int, int, int]:
    """Return what a kernel is built for along a column: taps, stride and step; (1, 0, 0) where it loops over taps."""
    stride, step = window.stride[1], window.step[1]
    if not 1 < taps <= TAPS or stride > 2 or step > 2:
        return 1, 0, 0
    return taps, stride, step


def _kernel(
    backend: Backend, dt: dtype, out: dtype, lanes: int, side: int, slices: int, places: int,
    many: int, column: tuple[int, int, int], count: str,
) -> Kernel:  # fmt: skip
    longs = (*LONGS, "blocks")
    taps, stride, step = column

    def make() -> tuple[str, str, list[Any]]:
        name = f"conv_direct{taps}s{stride}_{many}x{places}{'_last' if side > 1 else ''}{'_sliced' if slices > 1 else ''}_{dt.code}"
        source = render(
            "conv/direct",
            fn=name,
            L=lanes,
            CL=side,
            SL=slices,
            P=places,
            R=many,
            K=taps,
            S=stride,
            D=step,
            ROOM=side * TAPS**2,
            I=count,
            longs=longs,
            **access_variables(dt, out, 8),
        )
        return name, source, [None] * 4 + [np.int32] + [LONG] * len(longs)

    key = "conv direct", dt, out, lanes, side, slices, places, many, column, count
    return built(backend, key, make)


def _weight_kernel(
    backend: Backend, dt: dtype, out: dtype, lanes: int, side: int, places: int,
    column: tuple[int, int, int], width: int, count: str,
) -> Kernel:  # fmt: skip
    longs = (*LONGS, "span", "piece")
    taps, stride, step = column

    def make() -> tuple[str, str, list[Any]]:
        name = f"conv_direct_weight{taps}x{width}s{stride}_{places}{'_last' if side > 1 else ''}_{dt.code}"
        source = render(
            "conv/direct_weight",
            fn=name,
            L=lanes,
            CL=side,
            P=places,
            K=taps,
            S=stride,
            D=step,
            J=width,
            CHUNK=min(CHUNK, taps * width),
            I=count,
            longs=longs,
            **access_variables(dt, out, 8),
        )
        return name, source, [None] * 3 + [LONG] * len(longs)

    key = "conv direct weight", dt, out, lanes, side, places, column, width, count
    return built(backend, key, make)
