"""Matrix products where a work-item is a thread's loop over wide vectors (templates/gemm/cpu.mako).

Owns what is packed, how the work is cut into blocks, and the launches. Knows nothing of tensors.
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
K_ROOM = 512  # a block of K for which a panel stays in the nearest cache
DIRECT_A = 1 << 20  # numbers of an A that are read where they lie, at most
DIRECT_B = 1 << 10  # rows of a register tile's width in such a B
ONCE_B = 1 << 18  # numbers of a B, read where it lies, that is to be gone through once
TASK_WORK = 1 << 18  # multiply-adds that make a work-item worth its start
PIECE = 1024  # the shortest piece of K worth a second pass
# From how many on, and how many times as many as rows or columns, K is what is cut: blocks of a small result would each read much again.
LONG_K, LONGER = 8 * PIECE, 8


class _Plan(NamedTuple):
    """How one product runs on a CPU; a function of sizes and strides only."""

    transposed: bool
    pack_a: bool
    pack_b: bool
    grid: tuple[int, int, int]
    bm: int
    bn: int
    kc: int
    per: int
    piece: int  # not 0: the product has to run over pieces of K of this length
    acc: str
    nbytes: int
    flops: int


_plans: dict[tuple[Any, ...], tuple[_Plan, Kernel | None]] = {}
_MOST = 8192  # entries


def _pack_room(backend: Backend, acc: str) -> int:
    """Return how many packed numbers of a block local memory takes beside a panel and the tile."""
    size = 8 if acc in ("double", "ulong") else 4
    return min(PACK_BYTES, max(backend.info.local_mem // 2, 8192)) // size


def _paired(backend: Backend, dt: dtype) -> bool:
    """Say whether two numbers adjacent in K are packed as one."""
    return dt is dtypes.bfloat16 and dots(backend)


def _k_room(backend: Backend, dt: dtype) -> int:
    """Return the longest block of K, in packed numbers, of which a panel is packed beside packed rows.

    16-bit results of more than one block take a second pass, which costs more than columns from the second nearest cache.
    """
    if backend.info.local_mem < 1 << 18:
        return 64
    return K_ROOM if dt.itemsize == 2 else 3 * K_ROOM // 4


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
    """Estimate the vector instructions of a product as written, and whether to pack a and b."""
    nr = 2 * lanes
    rows, cols = ceil_div(p.m, mr), ceil_div(p.n, nr)
    work: float = rows * mr * cols * 2 * p.k
    store = p.m * p.n * (2 / lanes if p.out.col == 1 else 16)
    pack_b = narrow or p.b.col != 1 or p.n < nr or (rows > 8 and p.k * p.n > DIRECT_B * nr)
    # Pairs that lie side by side are read there; others are made, as converted numbers are.
    ready = paired and p.a.col == 1 and p.k % 2 == p.kstep % 2 == 0
    pack_a = (
        (narrow and not ready)
        or p.m < mr
        or (cols >= 8 and p.m * p.k >= (DIRECT_A if p.a.col == 1 else DIRECT_A // 8))
        or (rows > 1 and not pack_b and p.k * p.n > ONCE_B)  # its columns then meet all rows
    )
    if paired:
        copied = 0.6 * p.k * (cols * nr + (rows * mr if pack_a else 0))
        rounded = 0 if p.out.col == 1 else 8 * p.m * p.n  # one by one
        return work / 2 + copied + rounded, pack_a, pack_b
    if pack_b:
        work += p.k * cols * nr / (lanes if p.b.col == 1 else 1 if p.b.row == 1 else 0.7)
    return work + store, pack_a, pack_b


def _plan(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> _Plan:
    """Choose how the product is written, what is packed and how it is cut into work-items."""
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
    each = 2 if paired else 1  # numbers of K that are packed as one
    room = _pack_room(backend, acc)
    if pack_a or pack_b:
        # Results that are not adjacent cost more to add to than longer rows to read.
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
    """Estimate the cost of reading a's rows for one more block of columns, b's columns for one of rows.

    In parts of the whole work.
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
    """Choose the numbers of blocks of rows and columns, `least` at least, together about `wanted`.

    Blocks come out about equal in size, and a number that threads can share evenly: a driver may
    hand out half of them at once.
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
    """Return the plan of a product and its kernel, None where only pieces or epilogues run."""
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
    """Return the length of the pieces of K that the product has to run in; 0 for one launch."""
    if p.kstep:
        return 0
    if p.inner == 1 and p.k >= 2 * PIECE:
        units, tasks = backend.info.compute_units, grid[0] * grid[1] * grid[2]
        missing = units // tasks
        if missing > 1:
            return ceil_div(p.k, min(missing * 2, p.k // PIECE))
        if p.outer == 1 and p.k >= LONG_K and p.k >= LONGER * max(p.m, p.n):
            # Sums of pieces are no more than half of what is read.
            most = p.k * (p.m + p.n) // (2 * p.m * p.n)
            return ceil_div(p.k, min(4 * units, p.k // PIECE, most))
    # Sums between blocks of K must not be rounded to 16 bits.
    if kc < p.k and out_dt.itemsize == 2 and out_dt.is_floating_point:
        return p.k
    return 0


def _sizes(p: Product, plan: _Plan) -> tuple[int, ...]:
    """What the kernel takes after operands and factors."""
    return (
        p.m, p.n, p.k, plan.bm, plan.bn, plan.kc,
        p.outer * p.inner, plan.per, p.inner, p.kstep, *spread_args(p),
    )  # fmt: skip


def run(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> bool:
    """Run a product, whose results are of `out_dt`; False, with nothing done, if its epilogue does not fit."""
    epilogue = p.epilogue
    if epilogue is not None and _paired(backend, dt):
        return False  # a chain's functions are not compiled for the processor that the instruction asks for
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
