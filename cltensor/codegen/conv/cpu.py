"""The CPU schedules for any convolution: how the input is divided into boxes, and the launches.

A work-item copies a box of the input to local memory and computes all outputs of that box (see
templates/conv/patch.mako). All entries tell the caller where a convolution fits no box; correlation.py then takes the
GPU's schedule. Plans depend on sizes only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...layouts import contiguous_strides, numel
from ...symbols import remembered
from ..operand import Operand
from ..products.product import (
    LONG,
    PACE,
    WIDE,
    access_variables,
    accumulator,
    built,
    ceil_div,
    tile,
)
from ..source import render
from .window import LONGS, numbers

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Kernel
    from .window import Window

ROOM_BYTES = 512 * 1024  # local memory for boxes, at most; stays in a core's cache
TASK_WORK = 1 << 18  # multiply-adds that make a work-item worth its start
POSITIONS = 4096  # output positions of a box, about
WEIGHT_BYTES = 128 * 1024  # bytes of weights that stay in cache while a box is computed
ROWS = 48  # output channels from which on the copy of a box is cheap
STEPS = 256  # multiply-adds per number of a register tile, at least, before it is stored

# Arguments of the transposed correlation: its result's sizes, and the outputs per position along each dim.
_SPREAD = ("z0", "z1", "z2", "u0", "u1", "u2")
# Arguments for its filters: the distance between two taps of one remainder of the stride, and the first place read.
_REMAINDERS = ("m0", "m1", "m2", "low0", "low1", "low2")
_BOX = ("n", "b0", "b1", "b2", "h0", "h1", "h2", "e0", "e1", "e2", "tail", "part", "span", "block")
_LONGS = (*LONGS, *_BOX)


class Shape(NamedTuple):
    """The sizes of a correlation, all that a plan depends on. Tuples have a number for each of three spatial dims."""

    groups: int
    batch: int
    channels: int  # input channels of a group
    rows: int  # output channels of a group
    taps: tuple[int, ...]  # of the filter
    places: tuple[int, ...]  # of the output
    sizes: tuple[int, ...]  # of the input
    stride: tuple[int, ...]
    step: tuple[int, ...]  # dilation
    pad: tuple[int, ...]
    reach: tuple[int, ...]  # how far beyond its outputs a box reads along a dim

    @property
    def work(self) -> int:
        """The number of multiply-adds."""
        rows = self.groups * self.batch * self.channels * self.rows
        return rows * max(numel(self.taps), 1) * numel(self.places)


class Plan(NamedTuple):
    """How a correlation is divided among work-items."""

    box: tuple[int, ...]  # images, and outputs along each dim
    phases: tuple[int, ...]  # remainders of the stride along each dim, by which the copy is sorted
    extents: tuple[int, ...]  # as in `_Taken`
    tail: int  # as in `_Taken`
    part: int  # input channels that are copied and summed at a time
    span: int  # panels (`correlate`) or output channels (`weigh`) of a work-item
    grid: tuple[int, int, int]
    block: int = 0  # panels at a time
    each: int = 0  # boxes of a work-item (`weigh`)

    def args(self) -> tuple[int, ...]:
        """Return the values of _BOX."""
        return (*self.box, *self.phases, *self.extents, self.tail, self.part, self.span, self.block)


def _shape(
    x: Operand, f_shape: tuple[int, ...], y: Operand, window: Window, reach: Sequence[int] = ()
) -> Shape:
    taps = f_shape[3:]
    dims = zip(taps, window.stride, window.step, strict=True)
    return Shape(
        *(x.shape[0], x.shape[1], x.shape[2], f_shape[1]),
        *(tuple(taps), tuple(y.shape[3:]), tuple(x.shape[3:])),
        *window,
        tuple(reach or [max(k - 1, 0) * step // stride for k, stride, step in dims]),
    )


class _Taken(NamedTuple):
    """What a box takes in local memory, in numbers."""

    extents: tuple[int, int, int]  # of one phase along each dim
    tail: int  # zeros after the last channel, which its tiles read
    plane: int  # of one channel
    positions: int  # that register tiles go over, junk between rows included


class _Cutting:
    """How a correlation can be divided into boxes of (images, outputs along each of three dims)."""

    def __init__(self, s: Shape, lanes: int) -> None:
        self.full = (s.batch, *s.places)
        self.phases = tuple(
            [
                max(min(k, stride // gcd(stride, step)), 1)
                for k, stride, step in zip(s.taps, s.stride, s.step, strict=True)
            ]
        )
        self._lanes = lanes
        self._reach = s.reach
        # In a box that spans a whole dim, padding zeros at the end of one row can also serve as those at the start of
        # the row that follows in memory: how many, for each dim.
        self._shared = [
            max(min(pad, n + reach - size - pad, reach), 0) if stride == 1 else 0
            for pad, n, reach, size, stride in zip(
                s.pad, s.places, self._reach, s.sizes, s.stride, strict=True
            )
        ]

    def taken(self, box: tuple[int, ...]) -> _Taken:
        """Return the sizes of a box in local memory."""
        n, b0, b1, b2 = box
        z0, z1, z2 = [
            zeros if size == whole else 0
            for zeros, size, whole in zip(self._shared, box[1:], self.full[1:], strict=True)
        ]
        r0, r1, r2 = self._reach
        e0, e1, e2 = b0 + r0 - z0, b1 + r1 - z1, b2 + r2 - z2
        return _Taken(
            (e0, e1, e2),
            (z0 * e1 + z1) * e2 + z2 + self._lanes,
            numel(self.phases) * n * e0 * e1 * e2,
            (((n - 1) * e0 + b0 - 1) * e1 + b1 - 1) * e2 + b2,
        )

    def grown(self, fits: Callable[[_Taken], bool]) -> tuple[int, ...]:
        """Return the largest box that fits, grown from the innermost dim out, such that all boxes are about equal."""
        box = [1, 1, 1, 1]
        for d in (3, 2, 1, 0):
            whole = box[d] = self.full[d]
            if fits(self.taken(tuple(box))):
                continue
            low, high = 1, whole - 1
            while low < high:
                box[d] = middle = (low + high + 1) // 2
                low, high = (middle, high) if fits(self.taken(tuple(box))) else (low, middle - 1)
            box[d] = ceil_div(whole, ceil_div(whole, low))
            break
        return tuple(box)

    def count(self, box: tuple[int, ...]) -> int:
        """Return how many boxes cover the output."""
        return numel(tuple([ceil_div(n, b) for n, b in zip(self.full, box, strict=True)]))


def _room(backend: Backend, acc: str) -> int:
    size = 8 if acc in ("double", "ulong") else 4
    return min(ROOM_BYTES, max(backend.info.local_mem // 2, 8192)) // size


def _wanted(backend: Backend, work: int) -> int:
    """Return how many work-items keep every core busy without being too small to be worth their start."""
    alone = work < PACE * backend.info.wake_us
    return 1 if alone else min(max(work // TASK_WORK, 1), 4 * backend.info.compute_units)


# ---- y from x and f


def _tile(rows: int, most: int) -> tuple[int, int]:
    """Return the register tile (output channels, vectors of positions) for `rows` output channels.

    `most` is the rows of the device's own tile (`tile` in products/product.py).
    """
    wide = most >= 8
    if rows == 1:
        return 1, 8 if wide else 6
    if rows == 3:
        return 3, 6 if wide else 4
    return (4, 4 if wide else 2) if rows <= 4 else (most, 2)


@remembered(4096)
def _correlate_plan(backend: Backend, acc: str, s: Shape) -> Plan | None:
    """Choose the box, and how many input channels are summed at a time; None where no box fits."""
    room = _room(backend, acc)
    most, lanes = tile(backend, acc)
    mr, _ = _tile(s.rows, most)
    taps = max(numel(s.taps), 1)
    few = 16 * lanes
    cutting = _Cutting(s, lanes)

    def grown(part: int, positions: int) -> tuple[tuple[int, ...], _Taken]:
        box = cutting.grown(lambda t: part * t.plane + t.tail <= room and t.positions <= positions)
        return box, cutting.taken(box)

    # A box with few positions reads all weights for little work: a larger box with fewer channels at a time is better.
    part = max(s.channels, 1)
    while True:
        box, taken = grown(part, POSITIONS)
        if part == 1 or taken.positions >= min(s.batch * numel(s.places), few):
            break
        if part * taps <= 2 * STEPS and part * taken.plane <= room // 2:
            break
        part = ceil_div(part, 2)
    positions, panels = taken.positions, ceil_div(s.rows, mr)
    wanted = _wanted(backend, s.work)
    # To get enough work-items, split output channels as long as enough of them share a copied box; then shrink boxes.
    splits = max(panels * mr // ROWS, 1)
    while cutting.count(box) * s.groups * splits < wanted and positions > few:
        positions //= 2
        box, taken = grown(part, positions)
    if part * taken.plane + taken.tail > room:
        return None
    boxes = cutting.count(box)
    pieces = min(ceil_div(wanted, boxes * s.groups), panels)
    span = ceil_div(panels, pieces)
    grid = (boxes, ceil_div(panels, span), s.groups)
    weights = part * taps * mr * WIDE[acc].itemsize
    block = min(max(WEIGHT_BYTES // weights, 1), span)
    return Plan(box, cutting.phases, taken.extents, taken.tail, part, span, grid, block)


def correlate(
    backend: Backend, x: Operand, f: Operand, y: Operand, window: Window, bias: Operand | None
) -> bool:
    """Compute `correlation.correlate`; False, with nothing done, where the box of a single output does not fit."""
    acc = accumulator(x.dtype)
    s = _shape(x, f.shape, y, window)
    plan = _correlate_plan(backend, acc, s)
    if plan is None:
        return False
    mr, nv = _tile(s.rows, tile(backend, acc)[0])
    values = (*numbers(x, f, y, bias, window), *plan.args())
    filters, shift = _filters(backend, f, s, mr, values)
    kernel = _correlate_kernel(backend, x.dtype, mr, nv)
    args = (x.buffer, filters, shift, y.buffer, (bias or x).buffer, int(bias is not None), *values)
    backend.launch(kernel, plan.grid, (1, 1, 1), args, x.nbytes + f.nbytes + y.nbytes, 2 * s.work)
    return True


def spread(
    backend: Backend, y: Operand, f: Operand, x: Operand, window: Window, bias: Operand | None
) -> bool:
    """Compute `correlation.spread`; False, with nothing done, where the box of a single place does not fit.

    Also False for a stride of 1, where the adjoint is a plain correlation.
    """
    if window.stride == (1, 1, 1) or not (numel(f.shape) and numel(x.shape)):
        return False
    acc = accumulator(x.dtype)
    dims = list(zip(f.shape[3:], *window, strict=True))
    # Tap k contributes to results of remainder r from place (r + pad - k * step) / stride on, for the r that makes this
    # an integer.
    low = [-(((k - 1) * step - pad) // stride) for k, stride, step, pad in dims]
    high = [-(-pad // stride) for _, stride, _, pad in dims]
    reach = [last - first for first, last in zip(low, high, strict=True)]
    turned = f._replace(
        shape=(f.shape[0], f.shape[2], f.shape[1], *f.shape[3:]),
        strides=(f.strides[0], f.strides[2], f.strides[1], *f.strides[3:]),
    )
    cells = tuple([ceil_div(n, by) for n, by in zip(x.shape[3:], window.stride, strict=True)])
    made = x._replace(shape=(*x.shape[:3], *cells))
    box = window._replace(stride=(1, 1, 1), pad=(-low[0], -low[1], -low[2]))
    s = _shape(y, turned.shape, made, box, reach)._replace(step=(1, 1, 1))
    plan = _correlate_plan(backend, acc, s)
    if plan is None:
        return False
    mr, nv = _tile(s.rows, tile(backend, acc)[0])
    period = [stride // gcd(stride, step) for _, stride, step, _ in dims]
    whole = (*numbers(y, turned, made, None, window), *plan.args(), *period, *low)
    filters, shift = _filters(backend, turned, s, mr, whole, numel(window.stride) + 1)
    kernel = _correlate_kernel(backend, x.dtype, mr, nv, spread=True)
    values = *numbers(y, turned, made, bias, box), *plan.args(), *x.shape[3:], *window.stride
    args = (y.buffer, filters, shift, x.buffer, (bias or x).buffer, int(bias is not None), *values)
    backend.launch(kernel, plan.grid, (1, 1, 1), args, x.nbytes + f.nbytes + y.nbytes, 2 * s.work)
    return True


def _correlate_kernel(
    backend: Backend, dt: dtype, mr: int, nv: int, *, spread: bool = False
) -> Kernel:
    longs = _LONGS + _SPREAD * spread

    def make() -> tuple[str, str, list[Any]]:
        acc = accumulator(dt)
        name = f"conv{'_spread' * spread}_{dt.code}_{mr}x{nv}"
        source = render(
            "conv/cpu",
            fn=name,
            MR=mr,
            NV=nv,
            room=_room(backend, acc),
            longs=longs,
            spread=spread,
            **access_variables(dt, dt, tile(backend, acc)[1]),
        )
        return name, source, [None] * 5 + [np.int32] + [LONG] * len(longs)

    return built(backend, ("conv cpu", dt, mr, nv, spread), make)


def _filters(
    backend: Backend,
    f: Operand,
    s: Shape,
    mr: int,
    values: tuple[int, ...],
    more: int = 0,
) -> tuple[Any, Any]:
    """Return buffers with the weights packed in panels (nothing for mr = 0) and the shift of every tap within a box.

    For a transposed correlation, `more` numbers about the stride's remainders follow the shifts (conv/filters.mako).
    """
    dt = f.dtype
    acc = accumulator(dt)
    longs = _LONGS + _REMAINDERS * bool(more)

    def make() -> tuple[str, str, list[Any]]:
        name = f"conv_filters{'_spread' * bool(more)}_{dt.code}_{mr}"
        variables = access_variables(dt, dt, 8)
        source = render("conv/filters", fn=name, MR=mr, longs=longs, spread=bool(more), **variables)
        return name, source, [None] * 3 + [LONG] * len(longs)

    taps = numel(s.taps)
    panels = ceil_div(s.rows, mr) if mr else 1
    groups = s.groups if mr else 1
    count = groups * panels * s.channels * taps * mr
    filters = backend.alloc(max(count, 1) * WIDE[acc].itemsize)
    shift = backend.alloc(max(taps + more, 1) * 4)
    kernel = built(backend, ("conv filters", dt, mr, bool(more)), make)
    backend.launch(kernel, (panels, groups), (1, 1), (f.buffer, filters, shift, *values))
    return filters, shift


# ---- f from x and y


def _weigh_tile(s: Shape, wide: bool) -> tuple[int, int]:
    """Return (output channels, pairs of channel and tap) of the register tile."""
    if s.rows == 1:
        return 1, 8
    return (4, 4) if wide else (4, 3)


@remembered(4096)
def _weigh_plan(backend: Backend, acc: str, s: Shape) -> Plan | None:
    room = _room(backend, acc)
    _, lanes = tile(backend, acc)
    taps = max(numel(s.taps), 1)
    cutting = _Cutting(s, lanes)

    def fits(taken: _Taken, part: int, span: int) -> bool:
        full = ceil_div(taken.positions, lanes) * lanes
        need = part * taken.plane + taken.tail + span * full
        return need <= room and taken.positions <= POSITIONS

    # Every number copied is used once per channel of the other operand's block, so both blocks should be large. But
    # they leave room for fewer positions, and a sum over few positions spends more time in its final reduction than
    # in its loop.
    part, span = min(s.channels, max(128 // taps, 16)), min(s.rows, 64)
    while True:
        box = cutting.grown(partial(fits, part=part, span=span))
        taken = cutting.taken(box)
        if part == span == 1 or box == cutting.full or taken.positions >= 16 * lanes:
            break
        if part > 1 and (span == 1 or part * numel(cutting.phases) > span):
            part = ceil_div(part, 2)
        else:
            span = ceil_div(span, 2)
    if not fits(taken, part, span):
        return None
    wanted = _wanted(backend, s.work)
    blocks = ceil_div(s.channels, part) * ceil_div(s.rows, span)
    boxes = cutting.count(box)
    each = ceil_div(boxes, ceil_div(wanted, blocks * s.groups))
    grid = (ceil_div(boxes, each), blocks, s.groups)
    return Plan(box, cutting.phases, taken.extents, taken.tail, part, span, grid, each=each)


def weigh(
    backend: Backend, x: Operand, y: Operand, shape: tuple[int, ...], window: Window
) -> Operand | None:
    """Compute `correlation.weigh` for a result [G, O, C, *taps]; None where the box of a single output does not fit."""
    if not numel(shape) or not numel(x.shape) or not numel(y.shape):
        return None
    acc = accumulator(x.dtype)
    s = _shape(x, shape, y, window)
    plan = _weigh_plan(backend, acc, s)
    if plan is None:
        return None
    out_shape = (plan.grid[0], *shape)
    wide = WIDE[acc]
    strides = contiguous_strides(out_shape)
    out = Operand(backend.alloc(numel(out_shape) * wide.itemsize), wide, out_shape, strides)
    # `f` stands for the result's strides and sizes: `_filters` reads no weights for mr = 0.
    f = out._replace(dtype=x.dtype, shape=shape, strides=strides[1:])
    values = (*numbers(x, f, y, None, window), *plan.args())
    _, shift = _filters(backend, f, s, 0, values)
    wide_tile = tile(backend, acc)[0] >= 8
    kernel = _weigh_kernel(backend, x.dtype, *_weigh_tile(s, wide_tile))
    args = (x.buffer, y.buffer, shift, out.buffer, *values, plan.each)
    backend.launch(kernel, plan.grid, (1, 1, 1), args, x.nbytes + y.nbytes + out.nbytes, 2 * s.work)
    return out


def _weigh_kernel(backend: Backend, dt: dtype, ro: int, rc: int) -> Kernel:
    longs = (*_LONGS, "each")

    def make() -> tuple[str, str, list[Any]]:
        acc = accumulator(dt)
        name = f"conv_weight_{dt.code}_{ro}x{rc}"
        source = render(
            "conv/weight",
            fn=name,
            RO=ro,
            RC=rc,
            room=_room(backend, acc),
            longs=longs,
            **access_variables(dt, dt, tile(backend, acc)[1]),
        )
        return name, source, [None] * 4 + [LONG] * len(longs)

    return built(backend, ("conv weight", dt, ro, rc), make)
