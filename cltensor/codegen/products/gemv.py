"""Matrix times one vector or a few, and dot products, bound by the memory the matrix is read from.

Owns a CPU's schedules (templates/gemm/gemv.mako), for products with one column whose matrix has an adjacent dim, and with a few
columns where the matrix is adjacent along K; the others are left to gemm.py. Knows nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..move.copies import dense
from ..operand import Operand
from ..source import include, render
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
    from ...dtypes import dtype
    from ...runtime import Backend, Kernel

X_ROOM = 2048  # elements of the vector staged at a time
M_ROOM = 2048  # sums of a column kept in local memory
NARROW = 16  # vectors of sums that are registers
NEAR = 4096  # numbers of several vectors that stay in the nearest cache
FAR_BYTES = 1 << 22  # of a matrix that does not
FEW = 8  # columns for which a large matrix is multiplied row by row
LARGE = 1 << 16  # numbers of such a matrix, at least
TASK_BYTES = 1 << 16  # memory that makes a work-item worth its start
PACE_BYTES = 20_000  # memory that a CPU's thread reads in a microsecond
PIECE = 1 << 15  # the shortest piece of K worth a second pass


def chosen(p: Product) -> Product | None:
    """Return a product as it has a schedule here, itself or transposed; None if it has none."""
    if min(p.m, p.n) > FEW:
        return None
    q = p if p.n <= p.m else p.transposed()
    if q.n > 1:
        few = q.m >= 4 * FEW and q.m * q.k >= LARGE and q.k > 1
        return q if few and q.a.col == 1 else None
    fits = q.a.col == 1 or q.k <= 1 or (q.a.row == 1 and q.m >= 8)
    return q if fits else None


def _kernel(
    backend: Backend,
    dt: dtype,
    out: dtype,
    body: str,
    rows: int,
    span: int,
    stage: bool,
    ahead: bool,
) -> Kernel:
    def make() -> tuple[str, str, list[Any]]:
        acc = accumulator(dt)
        lanes = tile(backend, acc)[1]
        name = f"gemv_{body}{rows}x{span}_{dt.code}_{out.code}{'_staged' if stage else '_ahead' if ahead else ''}"
        variables = access_variables(dt, out, lanes)
        if ahead:
            variables["headers"] = [*variables["headers"], include("ahead")]
        source = render(
            "gemm/gemv",
            fn=name,
            body=body,
            R=rows,
            S=span,
            U=1 if span > 1 else 2 if rows > 1 else 4,
            stage=stage,
            ahead=ahead,
            X_ROOM=X_ROOM,
            M_ROOM=M_ROOM,
            **variables,
        )
        return name, source, [*SIDES, *ending_types(acc), *[LONG] * 15]

    return built(backend, ("gemv", dt, out, body, rows, span, stage, ahead), make)


def _adjacent(backend: Backend, dt: dtype, p: Product) -> Side:
    """Copy the vectors of a product, so that each lies side by side."""
    shape = p.outer if p.b.outer else 1, p.inner if p.b.inner else 1, p.n, p.k
    steps = p.b.outer, p.b.inner, p.b.col, p.b.row
    made = dense(backend, Operand(p.b.buffer, dt, shape, steps, p.b.offset))
    outer, inner, col, row = made.strides
    return Side(made.buffer, made.offset, row, col, outer if p.b.outer else 0, inner if p.b.inner else 0)  # fmt: skip


class _Schedule(NamedTuple):
    """A body of the template, rows and vectors it takes at a time, work-items for a matrix, and what a work-item has a multiple of."""

    body: str
    rows: int
    span: int
    tasks: int
    step: int


def _schedule(backend: Backend, dt: dtype, p: Product, nbytes: int, wanted: int) -> _Schedule:
    units, lanes, batches = backend.info.compute_units, tile(backend, accumulator(dt))[1], p.outer * p.inner  # fmt: skip
    share = ceil_div(wanted, batches)
    if p.a.col == 1 or p.k <= 1:
        rows, span = 1 if p.m < 4 else 4 if p.n == 1 else 6, min(p.n, 2)
        if span > 1 and p.n * (p.kstep or p.k) <= NEAR and nbytes >= FAR_BYTES:
            rows, span = 1, 8 if p.n == 8 else 4 if p.n >= 4 else 2  # one by one, as they lie
        return _Schedule("rows", rows, span, min(share, ceil_div(p.m, rows)), rows)
    if lanes <= p.m <= NARROW * lanes:
        return _Schedule("narrow", int(ceil_div(p.m, lanes)), 1, 1, 1)
    # A row's parts far apart are slow to read: no more of them than it takes.
    least = max(ceil_div(units, batches), ceil_div(p.m, M_ROOM))
    return _Schedule("cols", 1, 1, min(share, ceil_div(p.m, 8 * lanes), least), 8 * lanes)


def run(backend: Backend, dt: dtype, p: Product, out_dt: dtype | None = None) -> None:
    """Run a product that `chosen` returned."""
    if p.n > 1 and p.b.row != 1:
        p = p._replace(b=_adjacent(backend, dt, p))
    out, batches, length = out_dt or dt, p.outer * p.inner, p.kstep or p.k
    units = backend.info.compute_units
    nbytes = p.m * length * batches * dt.itemsize
    alone = nbytes * ceil_div(p.n, 2) < PACE_BYTES * backend.info.wake_us
    wanted = 1 if alone else min(max(nbytes // TASK_BYTES, 1), 4 * units)
    how = _schedule(backend, dt, p, nbytes, wanted)
    stage = how.body == "rows" and p.n == 1 < p.k and (p.b.row != 1 or dt.itemsize < 4)

    piece, tasks = 0, how.tasks * batches
    least = 4 * PIECE // p.m if how.body == "narrow" else PIECE // min(p.m, 8)  # of K
    if p.kstep == 0 and p.inner == 1 and tasks < units and p.k >= 2 * least:
        missing = ceil_div(2 * units, tasks)
        piece = ceil_div(p.k, max(min(missing, p.k // least), 1))
    elif stage and length > X_ROOM and out.itemsize == 2 and out.is_floating_point:
        piece = p.k
    if piece:
        in_pieces(backend, dt, out, p, piece, lambda wide, q: run(backend, dt, q, wide))
        return
    block = ceil_div(ceil_div(p.m, how.tasks), how.step) * how.step
    ahead = how.body == "cols" and min(block, M_ROOM) < p.m
    kernel = _kernel(backend, dt, out, how.body, how.rows, how.span, stage, ahead)
    args = (
        *side_args(p, accumulator(dt)),
        *(p.m, p.n, p.k, block, batches, p.inner, p.kstep),
        *spread_args(p),
    )
    size = ceil_div(p.m, block), batches
    backend.launch(kernel, size, (1, 1), args, *traffic(dt, out, p))
