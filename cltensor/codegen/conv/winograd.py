"""3 x 3 convolution on a CPU with 2.25 times fewer multiplications: Winograd's F(2 x 2, 3 x 3).

After Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015, arXiv:1509.09308). Owns which
correlations (`fits`) and which weight gradients (`fits_weight`) take this schedule, how they are divided into
work-items, and their launches. A GPU keeps the schedule of correlation.py. Rounding errors are about as large as the
plain schedule's, as sums are shorter. Where an output, or an intermediate result, is not finite, the output is
computed again by the plain sum. A weight gradient may be nan where the plain one would be infinite, or where an input
is beyond a quarter of the largest finite number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ...layouts import contiguous_strides, numel
from ...symbols import remembered
from ..operand import Operand
from ..products.product import LONG, built, ceil_div, tile
from ..source import include, render
from .window import LONGS, numbers

if TYPE_CHECKING:
    from ...runtime import Backend, Buffer, Kernel
    from .window import Window

# Channels in and out, at least (WEIGHT_CHANNELS: for weight gradients), and pairs of them: with fewer, the transforms
# cost more than is saved.
CHANNELS, WEIGHT_CHANNELS, PAIRS = 8, 16, 256
# Tiles of 2 x 2 outputs: with fewer the transform of the filters costs more than is saved.
TILES = 8
WORK = 1 << 22  # multiply-adds of the plain schedule from which on this one is tried
LOCAL_BYTES = 1 << 19  # bytes of local memory, at least
VECTORS = 2  # width of a register tile, in vectors
ASIDE = 2  # register tiles side by side that a work-item computes, at most
FEW = 4  # channels gathered at a time
# Relative costs, in the time of multiplying one tile by one filter: reading the filter, transforming the input,
# transforming the output, adding the sums of another part of the channels.
READ, GATHER, SCATTER, ADD = 2, 16, 12, 3

SUMMED = 48  # tiles that a weight gradient sums in registers before it adds to memory
PIECES = 1 << 20  # floats of partial sums that a last launch adds up, about

_LONGS = (*LONGS, "T", "part", "span", "block")
_WEIGHT_LONGS = (*LONGS, "each", "part", "span", "block")


class Sizes(NamedTuple):
    """Sizes that depend on the device."""

    rows: int  # of a register tile
    lanes: int  # of a register tile's vectors
    room: int  # floats of local memory for transformed input; the products get as many
    cores: int


class Plan(NamedTuple):
    """How a correlation is divided among work-items. A panel is `Sizes.rows` output channels."""

    tiles: int  # of a work-item
    part: int  # input channels that are transformed and summed at a time
    span: int  # panels of a work-item
    block: int  # panels at a time
    grid: tuple[int, int]  # work-items along tiles and along panels


def fits(backend: Backend, x: Operand, shape: tuple[int, ...], y: Operand, window: Window) -> bool:
    """Return whether this schedule can compute a correlation with filters of a shape, and faster than the plain one.

    That takes float32, two spatial dims, 3 x 3 taps without dilation, stride 1, and enough channels, tiles and work.
    """
    return (
        x.dtype is dtypes.float32
        and shape[3:] == (1, 3, 3)
        and x.shape[3] == y.shape[3] == window.pad[0] + 1 == 1
        and window.stride == (1, 1, 1)
        and window.step[1:] == (1, 1)
        and min(shape[1:3]) >= CHANNELS
        and shape[1] * shape[2] >= PAIRS
        and _tiles(y) >= TILES
        and 9 * numel(y.shape) * shape[2] >= WORK
        and backend.info.local_mem >= LOCAL_BYTES
    )


def fits_weight(
    backend: Backend, x: Operand, shape: tuple[int, ...], y: Operand, window: Window
) -> bool:
    """Return the same as `fits` for the weight gradient."""
    return min(shape[1:3]) >= WEIGHT_CHANNELS and fits(backend, x, shape, y, window)


def correlate(
    backend: Backend, x: Operand, f: Operand, y: Operand, window: Window, bias: Operand | None
) -> None:
    """Compute `correlation.correlate` for a correlation that `fits`."""
    groups, rows, channels = f.shape[:3]
    sizes = _sizes(backend)
    plan = _plan(sizes, _tiles(y), channels, rows, groups)
    values = numbers(x, f, y, bias, window)
    filters = _filters(backend, sizes, f, plan.part, values)
    cut = plan.tiles, plan.part, plan.span, plan.block
    args = (
        x.buffer,
        filters,
        f.buffer,
        y.buffer,
        (bias or x).buffer,
        int(bias is not None),
        *values,
        *cut,
    )
    nbytes, flops = x.nbytes + f.nbytes + y.nbytes, 18 * numel(y.shape) * channels
    kernel = _kernel(backend, sizes)
    backend.launch(kernel, (*plan.grid, groups), (1, 1, 1), args, nbytes, flops)


def _tiles(y: Operand) -> int:
    return y.shape[1] * ceil_div(y.shape[4], 2) * ceil_div(y.shape[5], 2)


def _sizes(backend: Backend) -> Sizes:
    # Transformed input and products together take a little more than half of local memory, and of a core's cache.
    room = min(backend.info.local_mem, 1 << 20) * 9 // 128
    return Sizes(*tile(backend, "float"), room, backend.info.compute_units)


@remembered(4096)
def _plan(sizes: Sizes, tiles: int, channels: int, rows: int, groups: int) -> Plan:
    """Choose the division into work-items whose estimated time is least."""
    mr, lanes, room, cores = sizes
    panels, place = ceil_div(rows, mr), room // 16 - 16

    def plan(size: int, span: int) -> tuple[int, Plan]:
        parts = ceil_div(channels, place // (size + lanes))
        blocks = ceil_div(span, place // (mr * size))
        grid = ceil_div(tiles, size), ceil_div(panels, span)
        made, gathered = span * mr, channels * (blocks if parts > 1 else 1)
        each = channels * made * (size + READ)
        each += size * (GATHER * gathered + (SCATTER + ADD * (parts - 1)) * made)
        cut = Plan(size, ceil_div(channels, parts), span, ceil_div(span, blocks), grid)
        return ceil_div(grid[0] * grid[1] * groups, cores) * each, cut

    widths = [VECTORS * lanes * n for n in range(1, ASIDE + 1) if VECTORS * lanes * n * mr <= place]
    spans = {ceil_div(panels, n) for n in range(1, panels + 1)}
    return min(plan(size, span) for size in widths for span in spans)[1]


def _kernel(backend: Backend, sizes: Sizes) -> Kernel:
    mr, lanes, room, _ = sizes

    def make() -> tuple[str, str, list[Any]]:
        source = render(
            "conv/winograd",
            fn="conv_winograd",
            MR=mr,
            NV=VECTORS,
            V=lanes,
            room=room,
            tiles=ASIDE * VECTORS * lanes,
            few=FEW,
            longs=_LONGS,
            limits=include("limits"),
        )
        return "conv_winograd", source, [None] * 5 + [np.int32] + [LONG] * len(_LONGS)

    return built(backend, ("conv winograd", mr, lanes, room), make)


def _filters(
    backend: Backend, sizes: Sizes, f: Operand, part: int, values: tuple[int, ...]
) -> Buffer:
    """Return the transformed filters, laid out as the kernel reads them: see templates/conv/winograd_filters.mako."""
    mr = sizes.rows

    def make() -> tuple[str, str, list[Any]]:
        longs = (*LONGS, "part")
        source = render("conv/winograd_filters", fn="conv_winograd_filters", MR=mr, longs=longs, limits=include("limits"), ahead=include("ahead"))  # fmt: skip
        return "conv_winograd_filters", source, [None] * 2 + [LONG] * len(longs)

    groups, rows, channels = f.shape[:3]
    grid = ceil_div(rows, mr), ceil_div(channels, part), groups
    filters = backend.alloc(groups * grid[1] * 16 * (grid[0] * part * mr + 16) * 4)
    kernel = built(backend, ("conv winograd filters", mr), make)
    args = f.buffer, filters, *values, part
    backend.launch(kernel, grid, (1, 1, 1), args, f.nbytes + filters.nbytes)
    return filters


# ---- f from x and y


class WeightPlan(NamedTuple):
    """How a weight gradient is divided among work-items. A panel is `Sizes.rows` output channels."""

    each: int  # tiles of a work-item
    part: int  # vectors of input channels at a time
    span: int  # panels of a work-item
    block: int  # panels at a time
    grid: tuple[int, int]  # work-items along tiles (each makes a partial sum) and along panels
    rows: int  # of a partial sum: output channels, padded to whole panels
    columns: int  # of a partial sum: input channels, padded to whole register tiles


@remembered(4096)
def _weight_plan(sizes: Sizes, tiles: int, channels: int, rows: int, groups: int) -> WeightPlan:
    """Divide the work among as many work-items as keep the cores busy.

    Tiles are divided while the partial sums stay small, else output channels.
    """
    mr, lanes, room, cores = sizes
    abreast = _abreast(sizes, channels)
    panels, vectors = ceil_div(rows, mr), ceil_div(channels, abreast * lanes) * abreast
    piece = 16 * panels * mr * vectors * lanes
    wanted = ceil_div(2 * cores, groups)
    pieces = max(min(wanted, ceil_div(tiles, SUMMED), PIECES // (piece * groups)), 1)
    each = ceil_div(ceil_div(tiles, SUMMED), pieces) * SUMMED
    pieces = ceil_div(tiles, each)
    span = ceil_div(panels, min(panels, ceil_div(wanted, pieces)))
    most = (room // 16 - 16) // (SUMMED * lanes * abreast) * abreast
    part = ceil_div(vectors, abreast * ceil_div(vectors, most)) * abreast
    pitch = (_weight_room(room) // 16 - 16) // SUMMED // lanes * lanes
    block = ceil_div(span, ceil_div(span, (pitch - lanes) // mr))
    grid = pieces, ceil_div(panels, span)
    return WeightPlan(each, part, span, block, grid, panels * mr, vectors * lanes)


def _abreast(sizes: Sizes, channels: int) -> int:
    """Return the width of a register tile in vectors: no more than there are channels for."""
    return min(VECTORS, ceil_div(channels, sizes.lanes))


def _weight_room(room: int) -> int:
    return room * 9 // 8


def weigh(
    backend: Backend, x: Operand, y: Operand, shape: tuple[int, ...], window: Window
) -> Operand:
    """Compute `correlation.weigh` for a result [G, O, C, 1, 3, 3] that `fits_weight`: one piece."""
    groups, rows, channels = shape[:3]
    sizes = _sizes(backend)
    plan = _weight_plan(sizes, _tiles(y), channels, rows, groups)
    strides = contiguous_strides((1, *shape))
    out = Operand(backend.alloc(numel(shape) * 4), dtypes.float32, (1, *shape), strides)
    sums = backend.alloc(plan.grid[0] * groups * 16 * plan.rows * plan.columns * 4)
    values = numbers(x, out._replace(shape=shape, strides=strides[1:]), y, None, window)
    args = (x.buffer, y.buffer, sums, *values, plan.each, plan.part, plan.span, plan.block)
    nbytes, flops = x.nbytes + y.nbytes + out.nbytes, 18 * numel(y.shape) * channels
    abreast = _abreast(sizes, channels)
    kernel = _weight_kernel(backend, sizes, abreast)
    backend.launch(kernel, (*plan.grid, groups), (1, 1, 1), args, nbytes, flops)
    each = 8
    grid = ceil_div(channels, each * sizes.lanes), rows, groups
    args = (sums, out.buffer, channels, plan.grid[0], each)
    taps = _taps_kernel(backend, sizes, abreast)
    backend.launch(taps, grid, (1, 1, 1), args, sums.nbytes + out.nbytes)
    return out


def _weight_kernel(backend: Backend, sizes: Sizes, abreast: int) -> Kernel:
    mr, lanes, room, _ = sizes

    def make() -> tuple[str, str, list[Any]]:
        name = f"conv_winograd_weight_{mr}x{abreast}"
        source = render(
            "conv/winograd_weight",
            fn=name,
            MR=mr,
            NV=abreast,
            V=lanes,
            T=SUMMED,
            v_room=room,
            m_room=_weight_room(room),
            longs=_WEIGHT_LONGS,
            limits=include("limits"),
        )
        return name, source, [None] * 3 + [LONG] * len(_WEIGHT_LONGS)

    return built(backend, ("conv winograd weight", mr, abreast, lanes, room, SUMMED), make)


def _taps_kernel(backend: Backend, sizes: Sizes, abreast: int) -> Kernel:
    mr, lanes = sizes[:2]

    def make() -> tuple[str, str, list[Any]]:
        name, longs = f"conv_winograd_taps_{mr}x{abreast}", ("channels", "pieces", "each")
        source = render(
            "conv/winograd_taps",
            fn=name,
            MR=mr,
            NV=abreast,
            V=lanes,
            longs=longs,
            limits=include("limits"),
        )
        return name, source, [None, None, LONG, LONG, LONG]

    return built(backend, ("conv winograd taps", mr, abreast, lanes), make)
