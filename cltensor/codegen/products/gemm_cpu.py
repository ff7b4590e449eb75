"""Matrix products on a CPU: a work-item is a thread's loop over wide vectors (templates/gemm/cpu.mako).

Owns which operands are packed, how the work is divided into blocks, and the launches. Knows nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ... import dtypes
from ...symbols import WORKING
from ..source import include, render
from . import epilogue as epilogues
from .product import (
    LONG,
    PACE,
    SIDES,
    Product,
    access_variables,
    accumulator,
    built,
    ceil_div,
    dots,
    ending_types,
    in_pieces,
    side_args,
    spread_args,
    tile,
    traffic,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...dtypes import dtype
    from ...runtime import Backend, Kernel
    from ..pointwise import Program

PACK_BYTES = 512 * 1024  # local memory for packed rows, at most; stays in a core's cache
K_ROOM = 512  # the longest block of K for which a packed panel stays in the first-level cache
DIRECT_A = 1 << 20  # elements from which on A is packed rather than read in place
DIRECT_B = 1 << 10  # the same for B, in rows of a register tile's width
SPAN_BYTES = 256  # bytes of each row of B that are packed at a time, if there is room
REUSED_B = 4  # tiles of rows beyond which B is packed
# Elements from which on a B that is read in place should be streamed only once: A is packed then.
ONCE_B = 1 << 18
TASK_WORK = 1 << 18  # multiply-adds that make a work-item worth its start
PIECE = 1024  # the shortest piece of K for which split-K is worth its second pass
# Split-K is taken where K is at least LONG_K, and LONGER times the rows and the columns: the result is small then, and
# each block of it would read a large part of the operands again.
LONG_K, LONGER = 8 * PIECE, 8


class _Plan(NamedTuple):
    """How one product runs on a CPU; depends on dtypes, sizes and strides only."""

    transposed: bool  # out^T = b^T a^T is computed; all other fields describe that product
    pack_a: bool  # copy blocks of A to local memory, in the order in which they are read; else read A in place
    pack_b: bool
    grid: tuple[int, int, int]  # blocks of columns, blocks of rows, groups of `per` matrices
    bm: int  # rows of a block, which a work-item computes
    bn: int  # columns of a block
    kc: int  # length of a block of K
    per: int  # matrices of a work-item
    piece: int  # not 0: split-K, over pieces of K of this length
    acc: str  # OpenCL type of the sums
    nbytes: int  # as `traffic` returns it
    flops: int


_plans: dict[tuple[Any, ...], tuple[_Plan, Kernel | None]] = {}
_MOST = 8192  # entries of _plans


def _size(acc: str) -> int:
    """Return the bytes of a packed number."""
    return 8 if acc in ("double", "ulong") else 4


def _pack_room(backend: Backend, acc: str) -> int:
    """Return how many packed numbers of a block fit in local memory beside a panel and the register tile's sums."""
    return min(PACK_BYTES, max(backend.info.local_mem // 2, 8192)) // _size(acc)


def _paired(backend: Backend, dt: dtype) -> bool:
    """Return whether two bfloat16 numbers adjacent in K are packed as one unit, for the dot-product instruction."""
    return dt is dtypes.bfloat16 and dots(backend)


def _k_room(backend: Backend, dt: dtype) -> int:
    """Return the longest block of K, in packed units, where rows of A are packed (and B by panels beside them).

    It is longer for 16-bit results: with more than one block of K those take a second pass, which costs more than
    reading columns from the second-level cache.
    """
    if backend.info.local_mem < 1 << 18:
        return 64
    return K_ROOM if dt.itemsize == 2 else 3 * K_ROOM // 4


def _group(backend: Backend, dt: dtype, panel: int) -> int:
    """Return how many panels of B, which have `panel` bytes a row, are packed at a time."""
    room = backend.info.local_mem // 4 // (_k_room(backend, dt) * panel)
    return max(min(SPAN_BYTES // panel, room), 1)


def _kernel(
    backend: Backend,
    dt: dtype,
    out: dtype,
    plan: _Plan,
    program: Program | None = None,
    span: int = 1,
) -> Kernel:
    pack_a, pack_b = plan.pack_a, plan.pack_b

    def make() -> tuple[str, str, list[Any], Sequence[str]]:
        acc = accumulator(dt)
        name = f"gemm_{dt.code}_{out.code}_{'p' if pack_a else 'd'}{'p' if pack_b else 'd'}"
        rows, lanes = tile(backend, acc)
        finish = epilogues.finish(program, span) if program else None
        name += epilogues.suffix(program)
        source = render(
            "gemm/cpu",
            fn=name,
            pack_a=pack_a,
            pack_b=pack_b,
            pairs=include("dot") if _paired(backend, dt) else "",
            MR=rows,
            NV=2,
            group=_group(backend, dt, 2 * lanes * _size(acc)),
            out_bytes=out.itemsize,
            ahead=include("ahead"),
            room=_pack_room(backend, acc),
            k_room=_k_room(backend, dt),
            finish=finish,
            **access_variables(dt, out, lanes),
        )
        types = [*SIDES, *ending_types(acc), *[LONG] * 18]
        return (
            name,
            source,
            types + list(finish.types if finish else ()),
            epilogues.options(backend, finish),
        )

    return built(backend, ("cpu", dt, out, pack_a, pack_b, program), make)


def _cost(p: Product, mr: int, lanes: int, narrow: bool, paired: bool) -> tuple[float, bool, bool]:
    """Estimate the vector instructions of a product in this orientation; return that, and whether to pack a and b."""
    nr = 2 * lanes
    rows, cols = ceil_div(p.m, mr), ceil_div(p.n, nr)
    work: float = rows * mr * cols * 2 * p.k
    store = p.m * p.n * (2 / lanes if p.out.col == 1 else 16)
    pack_b = narrow or p.b.col != 1 or p.n < nr or (rows > REUSED_B and p.k * p.n > DIRECT_B * nr)
    # Pairs that are adjacent in memory are read in place; others have to be built by packing, as do 16-bit
    # floats that are converted.
    ready = paired and p.a.col == 1 and p.k % 2 == p.kstep % 2 == 0
    pack_a = (
        (narrow and not ready)
        or p.m < mr
        or (cols >= 8 and p.m * p.k >= (DIRECT_A if p.a.col == 1 else DIRECT_A // 8))
        or (rows > 1 and not pack_b and p.k * p.n > ONCE_B)  # B is then read once, for all rows
    )
    if paired:
        copied = 0.6 * p.k * (cols * nr + (rows * mr if pack_a else 0))
        rounded = 0 if p.out.col == 1 else 8 * p.m * p.n  # strided results are stored one by one
        return work / 2 + copied + rounded, pack_a, pack_b
    if pack_b:
        work += p.k * cols * nr / (lanes if p.b.col == 1 else 1 if p.b.row == 1 else 0.7)
    return work + store, pack_a, pack_b


def _plan(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> _Plan:
    """Choose the product's orientation, what is packed, and how it is divided into work-items."""
    acc = accumulator(dt)
    mr, lanes = tile(backend, acc)
    nr = 2 * lanes
    narrow = dt.itemsize < 4  # converted once, while packing, rather than at every use
    paired = _paired(backend, dt)
    chosen, turned = _cost(p, mr, lanes, narrow, paired), p.transposed()
    other = _cost(turned, mr, lanes, narrow, paired)
    transposed = other[0] < 0.9 * chosen[0]
    if transposed:
        p, chosen = turned, other
    _, pack_a, pack_b = chosen
    rows, cols = ceil_div(p.m, mr), ceil_div(p.n, nr)
    batches = p.outer * p.inner
    kc = length = max(p.kstep or p.k, 1)
    each = 2 if paired else 1  # numbers of K in one packed unit
    room = _pack_room(backend, acc)
    if pack_a or pack_b:
        # Each block of K adds to the results once more. Where those are strided, that costs more than a longer block
        # which leaves the nearest cache.
        most = K_ROOM if p.out.col == 1 else 2 * K_ROOM
        most = _k_room(backend, dt) if pack_a else min(most, room // nr)
        kc = each * ceil_div(kc, each * ceil_div(kc, each * most))
    packed = ceil_div(kc, each)
    least = (
        ceil_div(rows, room // (mr * packed + lanes)) if pack_a else 1,
        ceil_div(cols, room // (nr * packed)) if pack_b and not pack_a else 1,
    )
    # Enough work-items to keep every core busy, none too small to be worth its start.
    units = backend.info.compute_units
    work = p.m * p.n * length * batches
    alone = work < PACE * backend.info.wake_us
    wanted = 1 if alone else min(max(work // TASK_WORK, 1), 4 * units)
    reread = _reread_cost(p, pack_a, pack_b)
    count = _cut(rows, cols, ceil_div(wanted, batches), least, reread, batches, units)
    bm, bn = ceil_div(rows, count[0]), ceil_div(cols, count[1])
    tasks = ceil_div(cols, bn) * ceil_div(rows, bm)
    per = max(1, batches // wanted) if tasks == 1 else 1
    grid = (ceil_div(cols, bn), ceil_div(rows, bm), ceil_div(batches, per))
    piece = _pieces(backend, out_dt, p, grid, kc)
    blocks = (bm * mr, bn * nr, kc, per)
    return _Plan(transposed, pack_a, pack_b, grid, *blocks, piece, acc, *traffic(dt, out_dt, p))


def _reread_cost(p: Product, pack_a: bool, pack_b: bool) -> tuple[float, float]:
    """Estimate what one more block costs, as fractions of the product's whole work.

    Returns the cost of reading a's rows again for one more block of columns, and of b's columns for one more of rows.
    """
    if pack_a:
        rows, columns = 8 if p.a.row == 1 else 12, 8 if p.b.col == 1 else 12
    else:
        rows = 4 if p.m * p.k > DIRECT_A // 4 else 1
        columns = (4 if p.b.col == 1 else 12) if pack_b else 1
    return rows / p.n, columns / p.m


def _cut(
    rows: int,
    cols: int,
    wanted: int,
    least: tuple[int, int],
    reread: tuple[float, float],
    batches: int,
    units: int,
) -> tuple[int, int]:
    """Choose into how many blocks rows and columns are divided: at least `least` each, their product about `wanted`.

    Prefers blocks of about equal size, in a number that threads can share evenly: a driver may hand out half of the
    work-groups at once.
    """
    if wanted == least[0] == least[1] == 1:
        return 1, 1
    best = (float("inf"), 1, 1)
    for blocks in range(least[0], max(min(rows, wanted), least[0]) + 1):
        panels = max(min(ceil_div(wanted, blocks), cols), least[1])
        largest = ceil_div(rows, blocks) * ceil_div(cols, panels)
        turns = ceil_div(blocks * panels * batches, units) * units
        cost = largest * turns / (rows * cols * batches)
        best = min(best, (cost + reread[0] * panels + reread[1] * blocks, blocks, panels))
    return best[1], best[2]


def _planned(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> tuple[_Plan, Kernel | None]:
    """Return the plan of a product and its kernel; the kernel is None where none without an epilogue was needed yet."""
    a, b, c = p.a, p.b, p.out
    sizes = (p.m, p.n, p.k, p.outer, p.inner, p.kstep)
    key = (backend, dt, out_dt, sizes, a.row, a.col, b.row, b.col, c.row, c.col)
    found = None if WORKING else _plans.get(key)
    if found is None:
        plan = _plan(backend, dt, out_dt, p)
        kernel = None
        if not plan.piece and p.epilogue is None:
            kernel = _kernel(backend, dt, out_dt, plan)
        found = plan, kernel
        if len(_plans) > _MOST:
            _plans.clear()
        if not WORKING:
            _plans[key] = found
    return found


def _pieces(
    backend: Backend, out_dt: dtype, p: Product, grid: tuple[int, int, int], kc: int
) -> int:
    """Return the length of the pieces of K for split-K; 0 where the product runs in one launch."""
    if p.kstep:
        return 0
    if p.inner == 1 and p.k >= 2 * PIECE:
        units, tasks = backend.info.compute_units, grid[0] * grid[1] * grid[2]
        missing = units // tasks
        if missing > 1:
            return ceil_div(p.k, min(missing * 2, p.k // PIECE))
        if p.outer == 1 and p.k >= LONG_K and p.k >= LONGER * max(p.m, p.n):
            # Partial sums are to be no more than half as many numbers as the operands.
            most = p.k * (p.m + p.n) // (2 * p.m * p.n)
            return ceil_div(p.k, min(4 * units, p.k // PIECE, most))
    # Partial sums must not be rounded to 16 bits between blocks of K: one piece, accumulated in a wider dtype.
    if kc < p.k and out_dt.itemsize == 2 and out_dt.is_floating_point:
        return p.k
    return 0


def _sizes(p: Product, plan: _Plan) -> tuple[int, ...]:
    """Return the kernel's arguments after operands and factors: sizes, blocks and batch strides."""
    return (
        p.m, p.n, p.k, plan.bm, plan.bn, plan.kc,
        p.outer * p.inner, plan.per, p.inner, p.kstep, *spread_args(p),
    )  # fmt: skip


def run(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> bool:
    """Run a product and store results of dtype `out_dt`; False, with nothing done, where its epilogue does not fit."""
    epilogue = p.epilogue
    if epilogue is not None and _paired(backend, dt):
        return False  # kernels with `clt_dot` are compiled for a newer target, the functions of a chain are not
    plan, kernel = _planned(backend, dt, out_dt, p)
    if plan.piece:
        if epilogue is None:
            in_pieces(backend, dt, out_dt, p, plan.piece, lambda wide, q: run(backend, dt, wide, q))
        return epilogue is None
    if plan.transposed:
        p = p.transposed()
    if epilogue is not None:
        epilogue = p.epilogue
        program, lanes = epilogues.fitted(backend, epilogue, 2 * tile(backend, accumulator(dt))[1])
        if not lanes:
            return False
        kernel = _kernel(backend, dt, out_dt, plan, program, lanes)
        if plan.kc < p.k:
            p = p._replace(out=p.out._replace(buffer=backend.alloc(p.m * p.n * out_dt.itemsize)))
    elif kernel is None:
        kernel = _kernel(backend, dt, out_dt, plan)
    args = (*side_args(p, plan.acc), *_sizes(p, plan))
    if epilogue is not None:
        args += tuple(epilogue.arguments())
    backend.launch(kernel, plan.grid, (1, 1, 1), args, plan.nbytes, plan.flops)
    return True
