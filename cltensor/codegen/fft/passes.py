"""Fourier transforms of lines of smooth length along one dim, in one pass or as a four-step transform.

Owns the schedule: which kernel does a pass, and how a long line is divided into passes. Lengths with a prime factor
above 31 are left to ops/fft.py. Knows nothing of tensors and gradients.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...layouts import contiguous_strides
from ..operand import Operand
from ..region import Dims, empty, is_gpu, past_cache
from . import block, kernels, lengths, tables

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Buffer

CPU_LONGEST = 4096  # of a pass: a block of such lines is 1 MiB, in the second-level cache
# Length from which on a line is split into two passes, where there are too few lines to fill half of a vector.
WORTH_SPLITTING = 2048
COLUMNS = (16, 8)  # columns that a contiguous line is viewed as, by preference
NARROWEST = 8  # lanes of a CPU's vectors, at least
GPU_BYTES = 32768


class Side(NamedTuple):
    """The source or destination of a pass: memory, strides of the batch dims, and the stride along the line."""

    buffer: Buffer
    offset: int
    strides: tuple[int, ...]
    step: int


class Walk(NamedTuple):
    """Where element i of column c is in a row: at index `c * column + i * element`."""

    column: int
    element: int


class Order(NamedTuple):
    """What is done besides the transform: signs of imaginary parts in and out, scaling, truncation to `nout`.

    `herm`: the source is a half spectrum. `halved`: a line is 2 n real numbers, computed as n complex ones.
    """

    herm: bool
    sign_in: float
    sign_out: float
    scale: float
    nout: int
    halved: bool = False


WHOLE = Walk(0, 1)
NO_BUFFER_BYTES = 16


class Schedule(NamedTuple):
    """How a device runs passes over values of one dtype.

    A CPU's lines are lanes of vectors of a register's width: butterflies of eight numbers then stay in registers.
    """

    gpu: bool
    lanes: int  # lines in a vector
    longest: int  # length of the longest line of a single pass
    words: int  # real numbers of local memory that a work-group may use; 0 on a CPU
    abreast: int  # lines in a vector if they are neighbours in memory: more, as longer runs are read faster


def schedule(backend: Backend, dt: dtype) -> Schedule:
    """Return the lanes and the longest line of a single pass, for a complex dtype."""
    part, info = dt.itemsize // 2, backend.info
    if not is_gpu(backend):
        abreast = max(2, info.lanes * 4 // part)
        lanes = min(max(NARROWEST, info.native_lanes * 4 // part), abreast)
        return Schedule(False, lanes, CPU_LONGEST, 0, abreast)
    words = min(info.local_mem, GPU_BYTES) // part
    return Schedule(True, 1, words // 4, words, 1)


def reach(backend: Backend, dt: dtype) -> int:
    """Return the length up to which two passes always suffice, as truncation to `nout` needs.

    Neighbouring divisors of a smooth length are less than a factor of 32 apart: one and its quotient fit a pass each.
    """
    return schedule(backend, dt).longest ** 2 // 32


def transform(
    backend: Backend,
    src: Operand,
    dim: int,
    n: int,
    out: dtype,
    *,
    forward: bool,
    scale: float,
    nout: int | None = None,
    herm: bool = False,
    window: Operand | None = None,
    into: Operand | None = None,
) -> Operand:
    """Return the transforms, of smooth length n, of all lines of `src` along `dim`, of dtype `out`: `into`, or dense.

    A real source counts as complex; a real result is the real part. `herm` reads a half spectrum of n // 2 + 1
    numbers; `nout` keeps only the first indices. A `window`, where `windows` allows it, multiplies the source. From
    or to n real numbers, n even, this is a complex transform of length n / 2, where one pass does that. Source and
    result must not share memory.
    """
    value = out.to_complex()
    backend.require(value)
    nout = n if nout is None else nout
    shape = (*src.shape[:dim], nout, *src.shape[dim + 1 :])
    result = empty(backend, out, shape) if into is None else into
    if math.prod(shape):
        rest = [d for d in range(len(shape)) if d != dim]
        sign = 1.0 if forward else -1.0
        batch = tuple(shape[d] for d in rest)
        real = not out.is_complex and nout == n if herm else forward and not src.dtype.is_complex
        adjacent = src.strides[dim] == result.strides[dim] == 1
        plan = schedule(backend, value)
        halved = real and n % 2 == 0 and not _splits(plan, batch, n // 2, adjacent)
        _run(
            _Job(backend, value, src.dtype.is_complex, out.is_complex, window),
            batch,
            Side(src.buffer, src.offset, tuple(src.strides[d] for d in rest), src.strides[dim]),
            Side(
                result.buffer,
                result.offset,
                tuple(result.strides[d] for d in rest),
                result.strides[dim],
            ),
            n // 2 if halved else n,
            Order(herm, sign, sign, scale, nout, halved),
        )
    return result


def windows(backend: Backend, src: Operand, n: int, window: Operand) -> bool:
    """Return whether `transform` can multiply lines of n real numbers along the last dim by a window of their dtype."""
    value, batch = src.dtype.to_complex(), tuple(src.shape[:-1])
    plan = schedule(backend, value)
    return (
        src.strides[-1] == 1
        and (tuple(window.shape), window.strides, window.offset) == ((n,), (1,), 0)
        and n % 2 == 0
        and lengths.is_smooth(n)
        and not _splits(plan, batch, n // 2, True)
        and (not plan.gpu or _shape(backend, value, n // 2, False, False, whole=True) is not None)
    )


class _Job(NamedTuple):
    """What all passes of a transform have in common, except for whether their source and destination are complex."""

    backend: Backend
    dtype: dtype  # the complex dtype that is computed in
    complex_in: bool  # whether the source is complex
    complex_out: bool  # whether the destination is complex
    window: Operand | None = None  # multiplies the source


class _Pass(NamedTuple):
    """One launch: transforms of length n over `cols` columns of every row of the batch."""

    batch: tuple[int, ...]
    src: Side
    dst: Side
    n: int
    full: int  # length of the whole transform, of which this is a step
    cols: int
    read: Walk
    write: Walk
    order: Order
    turned: bool  # results are multiplied by the twiddle factors between two passes of a four-step transform

    @property
    def across(self) -> bool:
        """Whether a GPU's neighbouring lanes read across lines rather than along them."""
        return (self.cols > 1 and self.read.column == 1) or abs(self.src.step) > 1

    @property
    def out_across(self) -> bool:
        """Whether a GPU's neighbouring lanes write across lines rather than along them."""
        return (self.cols > 1 and self.write.column == 1) or abs(self.dst.step) > 1

    def turns(self, job: _Job, unused: Buffer) -> Buffer:
        """Return the factors by which results, or the halves of real lines, are turned; `unused` if there are none."""
        if self.turned:
            return tables.turns(job.backend, job.dtype, self.full)
        if self.order.halved:
            return tables.roots(job.backend, job.dtype, 2 * self.n)
        return unused


def _splits(plan: Schedule, batch: tuple[int, ...], n: int, adjacent: bool) -> bool:
    """Return whether lines of length n are transformed in several passes; `adjacent`: they have unit stride."""
    lines = math.prod(batch)
    if n > plan.longest or plan.gpu or 2 * lines > plan.lanes:
        return n > plan.longest
    return n >= WORTH_SPLITTING and not (adjacent and _columns(plan, lines, n))


def _run(job: _Job, batch: tuple[int, ...], src: Side, dst: Side, n: int, order: Order) -> None:
    """Transform lines of length n in one pass, or as n1 * n2 in two (Bailey's four-step transform).

    The first pass transforms columns of n1 numbers, n2 apart, and turns the results; the second transforms rows of n2,
    which are split in turn if they are too long for a pass.
    """
    plan = schedule(job.backend, job.dtype)
    if not _splits(plan, batch, n, src.step == dst.step == 1):
        _launch(job, plan, _Pass(batch, src, dst, n, n, 1, WHOLE, WHOLE, order, False))
        return
    n1 = lengths.divisor(n, plan.longest)
    n2 = n // n1
    memory = job.backend.alloc(math.prod(batch) * n * job.dtype.itemsize)
    strides = tuple(s * n for s in contiguous_strides(batch))
    between = Side(memory, 0, strides, 1)
    into = job._replace(complex_out=True)
    first = Order(order.herm, order.sign_in, 1.0, 1.0, n)
    walk = Walk(1, n2)
    _launch(into, plan, _Pass(batch, src, between, n1, n, n2, walk, walk, first, True))
    onward = job._replace(complex_in=True)
    then = Order(False, 1.0, order.sign_out, order.scale, order.nout)
    if n2 <= plan.longest:
        columns = Walk(1, n1)
        _launch(
            onward,
            plan,
            _Pass(batch, between, dst, n2, n, n1, Walk(n2, 1), columns, then, False),
        )
        return
    rows = Side(memory, 0, (*strides, n2), 1)
    spread = Side(dst.buffer, dst.offset, (*dst.strides, dst.step), dst.step * n1)
    _run(onward, (*batch, n1), rows, spread, n2, then._replace(nout=n2))


def _launch(job: _Job, plan: Schedule, step: _Pass) -> None:
    """Launch a pass by the kernel for it: by lines, by blocks in registers, or the general one."""
    src, dst = step.src, step.dst
    dims = Dims(step.batch, [src.strides, dst.strides])
    if step.cols == 1 and src.step == dst.step == 1 and _by_line(job, plan, dims, step):
        return
    if plan.gpu and _by_block(job, dims, step):
        return
    _by_lanes(job, plan, dims, step)


def _by_lanes(job: _Job, plan: Schedule, dims: Dims, step: _Pass) -> None:
    """Launch a pass in which lines are lanes of vectors, or on a GPU lanes share lines (fft/fft.mako)."""
    backend, dt = job.backend, job.dtype
    src, dst, n, full, cols, order = step.src, step.dst, step.n, step.full, step.cols, step.order
    lines = dims.n * cols
    walk, rank = _padded(dims)
    side_by_side = cols > 1 or abs(src.step) > 1 or abs(dst.step) > 1
    lanes = plan.abreast if side_by_side and lines > plan.lanes else plan.lanes
    kernel = kernels.pass_kernel(backend, dt, plan, lanes, rank)
    width = lanes  # lines that are transformed together
    if plan.gpu:
        width = 1
        while width < 16 and 8 * width * n <= plan.words and width < lines:
            width *= 2
        groups = min(-(-lines // width), backend.info.compute_units * 64)
        size, local = groups * kernels.GPU_GROUP, kernels.GPU_GROUP
        scratch = NO_BUFFER_BYTES
    else:
        size, local = max(1, min(-(-lines // width), backend.info.compute_units * 4)), 1
        scratch = size * n * 4 * width * (dt.itemsize // 2)
    # The number of lines that are neighbours in memory.
    run = cols if cols > 1 else walk[rank - 1] if 1 in (walk[2 * rank - 1], walk[-1]) else lines
    if run < width:
        run = lines
    roots = tables.roots(backend, dt, n)
    args: list[Any] = [
        src.buffer,
        dst.buffer,
        roots,
        step.turns(job, roots),
        tables.steps(backend, dt, full, n, lanes) if step.turned else roots,
        job.window.buffer if job.window else roots,
        backend.alloc(scratch),
        int(job.window is not None),
        *(n, lengths.radices(n), lines, cols, run, width, full, order.nout),
        *(int(order.herm), int(order.halved)),
        *(int(not job.complex_in), int(not job.complex_out), int(step.turned)),
        *(int(step.across), int(step.out_across)),
        *(src.offset, dst.offset, *step.read, src.step, *step.write, dst.step),
        *(order.sign_in, order.sign_out, order.scale),
        *walk,
    ]
    backend.launch(kernel, (size,), (local,), args, 2 * lines * n * dt.itemsize)


def _by_line(job: _Job, plan: Schedule, dims: Dims, step: _Pass) -> bool:
    """Launch the transform of lines of unit stride (fft/line.mako); False, with nothing done, where that is no gain."""
    if plan.gpu:
        return False
    src, dst, n, order = step.src, step.dst, step.n, step.order
    if order.halved:
        kind = "back" if order.herm else "real"
        whole = order.herm or (order.nout == n + 1 and order.sign_in == order.sign_out == 1)
    else:
        kind = "complex"
        whole = not order.herm and job.complex_in and job.complex_out and order.nout == n
    columns = _columns(plan, dims.n, n)
    if not whole or not columns:
        return False
    backend, dt = job.backend, job.dtype
    together = plan.lanes // columns
    walk, rank = _padded(dims)
    blocks = -(-dims.n // together)
    size = max(1, min(blocks, backend.info.compute_units * 4))
    roots = tables.roots(backend, dt, n // columns)
    args = [
        src.buffer,
        dst.buffer,
        roots,
        tables.twists(backend, dt, n, columns, plan.lanes),
        tables.roots(backend, dt, 2 * n) if order.halved else roots,
        job.window.buffer if job.window else roots,
        backend.alloc(size * (n // columns) * 6 * plan.lanes * (dt.itemsize // 2)),
        int(job.window is not None),
        *(n // columns, lengths.radices(n // columns), dims.n, src.offset, dst.offset),
        *(order.sign_in, order.sign_out, order.scale),
        *walk,
    ]
    unit = dt.itemsize if job.complex_out else dt.itemsize // 2
    streamed = (
        kind != "real"
        and past_cache(backend, dims.n * n * dt.itemsize)
        and all(place * unit % 64 == 0 for place in (dst.offset, *dst.strides))
        and n // columns % plan.lanes == 0
    )
    kernel = kernels.line_kernel(backend, dt, plan.lanes, columns, kind, rank, streamed)
    backend.launch(kernel, (size,), (1,), args, 2 * dims.n * n * dt.itemsize)
    return True


@functools.lru_cache(maxsize=64)
def _twiddles(backend: Backend, dt: dtype, n: int, shape: block.Shape) -> Buffer:
    """Return the twiddle factors of every stage but the last, in the order in which lanes read them."""
    parts = [
        np.arange(m, dtype=np.int64) * (power * s) % n for m, power, s in block.twiddles(shape, n)
    ]
    return tables.upload(backend, dt, tables.unit_roots(np.concatenate(parts), n))


def _shape(
    backend: Backend,
    dt: dtype,
    n: int,
    across: bool,
    out_across: bool,
    pairs: bool = False,
    whole: bool = False,
) -> block.Shape | None:
    info, radices = backend.info, tuple(lengths.factors(n) or ())
    limits = (dt.itemsize // 2, info.max_group, info.local_mem)
    return block.shape(n, radices, across, out_across, pairs, whole, *limits)


def _by_block(job: _Job, dims: Dims, step: _Pass) -> bool:
    """Launch a pass that keeps numbers in registers (fft/block.mako); False, with nothing done, where n is unfit."""
    backend, dt = job.backend, job.dtype
    src, dst, n, full, cols, order = step.src, step.dst, step.n, step.full, step.cols, step.order
    # A half spectrum is split before the first stage, or joined after the last (see `block.shape`).
    pairs, whole = order.halved and order.herm, order.halved and not order.herm
    shape = _shape(backend, dt, n, step.across, step.out_across, pairs, whole)
    if shape is None:
        return False
    lines = dims.n * cols
    walk, rank = _padded(dims)
    reach = max(
        abs(side.offset)
        + sum(abs(s) * (m - 1) for s, m in zip(strides, dims.sizes, strict=True))
        + 2 * (full + 1) * max(abs(side.step), 1)
        for side, strides in zip((src, dst), dims.strides, strict=True)
    )
    index = "int" if max(reach, lines + shape.width) < 2**31 - 2**24 else "long"
    real_side, strides = (src, dims.strides[0]) if whole else (dst, dims.strides[1])
    even = real_side.step == 1 and not any(s % 2 for s in (real_side.offset, *strides))
    kinds = (not job.complex_in, not job.complex_out, order.herm, order.halved, step.turned)
    moves = (step.across, step.out_across, cols > 1)
    flags = (*moves, *kinds, order.halved and even, job.window is not None)
    kernel = kernels.block_kernel(backend, dt, n, shape, flags, index, rank)
    twiddles = _twiddles(backend, dt, n, shape)
    args: list[Any] = [
        *(src.buffer, dst.buffer, twiddles, step.turns(job, twiddles)),
        *((job.window.buffer,) if job.window else ()),
        *(lines, cols, full, order.nout, src.offset, dst.offset),
        *(*step.read, src.step, *step.write, dst.step),
        *(order.sign_in, order.sign_out, order.scale),
        *walk,
    ]
    group = shape.lanes * shape.width
    size = -(-lines // shape.width) * group
    backend.launch(kernel, (size,), (group,), args, 2 * lines * n * dt.itemsize)
    return True


def _columns(plan: Schedule, lines: int, n: int) -> int:
    """Return as how many columns fft/line.mako should view contiguous lines of length n; 0 where it should not run."""
    few = 2 * lines <= plan.lanes  # a line per lane, as in fft.mako, would leave vectors half empty
    for columns in COLUMNS:
        numbers, rest = divmod(n, columns)
        whole = numbers % plan.lanes == 0 or few
        if columns <= plan.lanes and rest == 0 and numbers >= plan.lanes and whole:
            return columns
    return 0


def _padded(dims: Dims) -> tuple[list[int], int]:
    """Return the kernel arguments for the batch dims, and their rank; 1 is padded to 2, so that most share a kernel."""
    walk, rank = dims.args(), dims.rank
    if rank == 1:
        n0, s0, d0 = walk
        return [1, n0, 0, s0, 0, d0], 2
    return walk, rank
