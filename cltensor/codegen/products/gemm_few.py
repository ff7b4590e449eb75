"""Long rows times a few vectors on a CPU (templates/gemm/few.mako).

For instance the last layer of a classifier, or a small batch through a large layer. The rows are read once, in place,
and all register lanes hold sums, where most of gemm_cpu.py's register tile would be empty. Owns which products take
this schedule, the copy of vectors that are not contiguous, and how rows are divided among work-items. Knows nothing
of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..move.copies import dense
from ..operand import Operand
from ..source import include, render
from . import epilogue as epilogues
from .gemv import PACE_BYTES, PIECE, TASK_BYTES
from .product import (
    LONG,
    SIDES,
    Product,
    Side,
    access_variables,
    accumulator,
    built,
    ceil_div,
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

FEW = 8  # vectors (the narrower dim of the result), at most, of any dtype
# MOST: vectors of float32, at most (half as many of float64), if rows are at least DOTS times as long as there are
# vectors.
MOST = 24
DOTS = 16
# With FULL to 16 vectors of float32, a register tile of gemm_cpu.py or a vector of gemm_tall.py is almost full: those
# schedules are as fast, unless the rows come from beyond the caches (FAR_BYTES).
FULL = 12
ROWS = 32  # rows, at least
LARGE = 1 << 16  # elements of the matrix of rows, at least
SPAN = 2  # vectors that are multiplied by a row at a time
BLOCK = 512  # numbers of K for which the vectors stay in the first-level cache
FAR_BYTES = 1 << 22  # bytes of rows that do not stay in a cache, and are prefetched
FAR = 1 << 13  # how many bytes ahead rows are prefetched, at least
AHEAD = 3  # rows prefetched during each of the tiles that a set of rows goes through
ALONE = 6  # rows prefetched during a tile if a set of rows goes through a single one


def chosen(dt: dtype, p: Product) -> Product | None:
    """Return the product in the orientation that this schedule takes, perhaps transposed; None if it takes neither."""
    q = p if p.n <= p.m else p.transposed()
    if q.n < 2 or q.n > MOST or q.a.col != 1 or q.m < ROWS or q.k < 2 or q.m * q.k < LARGE:
        return None
    if q.n <= FEW:
        return q
    width = q.n * dt.itemsize // 4
    if dt.name not in ("float32", "float64") or width > MOST or q.k < DOTS * q.n:
        return None
    return None if FULL < width <= 16 and q.m * q.k * dt.itemsize <= FAR_BYTES else q


def _kernel(
    backend: Backend, dt: dtype, out: dtype, ahead: int, program: Program | None, lanes: int
) -> Kernel:
    def make() -> tuple[str, str, list[Any], Sequence[str]]:
        acc = accumulator(dt)
        rows, width = tile(backend, acc)
        finish = epilogues.finish(program, lanes) if program else None
        name = f"gemm_few_{dt.code}_{out.code}{f'_ahead{ahead}' if ahead else ''}{epilogues.suffix(program)}"
        variables = access_variables(dt, out, width)
        variables["headers"] = [*variables["headers"], include("ahead")]
        source = render(
            "gemm/few", fn=name, R=rows, S=SPAN, P=ahead, columns=MOST, finish=finish, **variables
        )
        types = [*SIDES, *ending_types(acc), *[LONG] * 17, *(finish.types if finish else ())]
        return name, source, types, epilogues.options(backend, finish)

    return built(backend, ("few", dt, out, ahead, program), make)


def _adjacent(backend: Backend, dt: dtype, p: Product) -> Side:
    """Return a copy of a product's vectors in which each is contiguous."""
    shape = p.outer if p.b.outer else 1, p.inner if p.b.inner else 1, p.n, p.k
    steps = p.b.outer, p.b.inner, p.b.col, p.b.row
    made = dense(backend, Operand(p.b.buffer, dt, shape, steps, p.b.offset))
    outer, inner, col, row = made.strides
    return Side(made.buffer, made.offset, row, col, outer if p.b.outer else 0, inner if p.b.inner else 0)  # fmt: skip


def run(backend: Backend, dt: dtype, p: Product, out_dt: dtype | None = None) -> bool:
    """Run a product that `chosen` returned; False, with nothing done, where its epilogue cannot run or does not pay.

    An epilogue cannot run with split-K, and does not pay where rows of the result are short.
    """
    if p.epilogue is not None and p.n <= FEW:  # few lanes of the chain's vectors would hold results
        return False
    out, batches, length = out_dt or dt, p.outer * p.inner, p.kstep or p.k
    program, lanes = epilogues.fitted(backend, p.epilogue, 16)
    if not lanes:
        return False
    units, rows = backend.info.compute_units, tile(backend, accumulator(dt))[0]
    nbytes = p.m * length * batches * dt.itemsize
    alone = nbytes * ceil_div(p.n, SPAN) < PACE_BYTES * backend.info.wake_us
    wanted = 1 if alone else min(max(nbytes // TASK_BYTES, 1), 4 * units)
    share = min(ceil_div(wanted, batches), ceil_div(p.m, rows))
    least = PIECE // FEW
    pieces = not p.kstep and p.inner == 1 and share * batches < units and p.k >= 2 * least
    if pieces and p.epilogue is not None:
        return False
    if p.b.row != 1:
        p = p._replace(b=_adjacent(backend, dt, p))
    if pieces:
        piece = ceil_div(p.k, min(ceil_div(2 * units, share * batches), p.k // least))
        in_pieces(backend, dt, out, p, piece, lambda wide, q: run(backend, dt, q, wide))
        return True
    block = rows * ceil_div(ceil_div(p.m, share), rows)
    far = rows * ceil_div(FAR, rows * length * dt.itemsize)
    ahead = 0 if nbytes <= FAR_BYTES else AHEAD if p.n > SPAN else ALONE
    args = (
        *side_args(p, accumulator(dt)),
        *(p.m, p.n, p.k, block, BLOCK, far, batches, p.inner, p.kstep),
        *spread_args(p),
    )
    if p.epilogue is not None:
        args += tuple(p.epilogue.arguments())
    backend.launch(
        _kernel(backend, dt, out, ahead, program, lanes),
        (ceil_div(p.m, block), batches),
        (1, 1),
        args,
        *traffic(dt, out, p),
    )
    return True
