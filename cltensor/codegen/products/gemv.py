"""Matrix-vector and dot products on a CPU, bound by the memory bandwidth at which the matrix is read.

Owns the schedules of templates/gemm/gemv.mako, for products with one row or column whose matrix has a dim of unit
stride; gemm.py runs the others elsewhere. Knows nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...layouts import contiguous_strides
from ..move import copies
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

X_ROOM = 2048  # elements of the vector staged in local memory at a time
M_ROOM = 2048  # sums kept in local memory (body "cols")
NARROW = 16  # vectors of sums that fit in registers (body "narrow")
TASK_BYTES = 1 << 16  # bytes read that make a work-item worth its start
PACE_BYTES = 20_000  # bytes that one CPU thread reads per microsecond
COPIED = 1 << 11  # length from which on a dot product first makes strided vectors contiguous
PIECE = 1 << 15  # elements in the shortest piece of K for which split-K is worth its second pass


def chosen(p: Product) -> Product | None:
    """Return the product in the orientation that this schedule takes, perhaps transposed; None if it takes neither."""
    if min(p.m, p.n) > 1:
        return None
    q = p if p.n == 1 else p.transposed()
    fits = q.a.col == 1 or q.k <= 1 or (q.a.row == 1 and q.m >= 8)
    return q if fits else None


def dense_vectors(backend: Backend, dt: dtype, p: Product) -> Product:
    """Return a dot product whose vectors are contiguous: those that were not are copied."""
    a, b = _dense(backend, dt, p, p.a), _dense(backend, dt, p, p.b.transposed())
    return p._replace(a=a, b=b.transposed())


def _dense(backend: Backend, dt: dtype, p: Product, side: Side) -> Side:
    if side.col == 1:
        return side
    steps = side.outer, side.inner, side.col
    sizes = [size if st else 1 for size, st in zip((p.outer, p.inner, p.k), steps, strict=True)]
    shape = tuple(sizes)
    found = copies.dense(backend, Operand(side.buffer, dt, shape, steps, side.offset))
    outer, inner, col = [st and own for st, own in zip(steps, contiguous_strides(shape), strict=True)]  # fmt: skip
    return Side(found.buffer, found.offset, 0, col, outer, inner)


def _kernel(
    backend: Backend,
    dt: dtype,
    out: dtype,
    body: str,
    rows: int,
    stage: bool,
    ahead: bool,
) -> Kernel:
    def make() -> tuple[str, str, list[Any]]:
        acc = accumulator(dt)
        lanes = tile(backend, acc)[1]
        name = f"gemv_{body}{rows}_{dt.code}_{out.code}{'_staged' if stage else '_ahead' if ahead else ''}"
        variables = access_variables(dt, out, lanes)
        if ahead:
            variables["headers"] = [*variables["headers"], include("ahead")]
        source = render(
            "gemm/gemv",
            fn=name,
            body=body,
            R=rows,
            U=2 if rows > 1 else 4,
            stage=stage,
            ahead=ahead,
            X_ROOM=X_ROOM,
            M_ROOM=M_ROOM,
            **variables,
        )
        return name, source, [*SIDES, *ending_types(acc), *[LONG] * 15]

    return built(backend, ("gemv", dt, out, body, rows, stage, ahead), make)


class _Schedule(NamedTuple):
    """How matrices are divided among work-items."""

    body: str  # of the template
    rows: int  # that are computed at a time
    tasks: int  # work-items per matrix
    step: int  # a work-item's number of rows is a multiple of it


def _schedule(backend: Backend, dt: dtype, p: Product, wanted: int) -> _Schedule:
    units, lanes, batches = backend.info.compute_units, tile(backend, accumulator(dt))[1], p.outer * p.inner  # fmt: skip
    share = ceil_div(wanted, batches)
    if p.a.col == 1 or p.k <= 1:
        rows = 1 if p.m < 4 else 4
        return _Schedule("rows", rows, min(share, ceil_div(p.m, rows)), rows)
    if lanes <= p.m <= NARROW * lanes:
        return _Schedule("narrow", int(ceil_div(p.m, lanes)), 1, 1)
    # Each work-item reads a part of every row of memory; short parts far apart are slow: use no more than needed.
    least = max(ceil_div(units, batches), ceil_div(p.m, M_ROOM))
    return _Schedule("cols", 1, min(share, ceil_div(p.m, 8 * lanes), least), 8 * lanes)


def run(backend: Backend, dt: dtype, p: Product, out_dt: dtype | None = None) -> None:
    """Run a product that `chosen` returned."""
    out, batches, length = out_dt or dt, p.outer * p.inner, p.kstep or p.k
    units = backend.info.compute_units
    nbytes = p.m * length * batches * dt.itemsize
    alone = nbytes < PACE_BYTES * backend.info.wake_us
    wanted = 1 if alone else min(max(nbytes // TASK_BYTES, 1), 4 * units)
    how = _schedule(backend, dt, p, wanted)
    stage = how.body == "rows" and p.k > 1 and (p.b.row != 1 or (dt.itemsize < 4 and how.rows > 1))

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
    kernel = _kernel(backend, dt, out, how.body, how.rows, stage, ahead)
    args = (
        *side_args(p, accumulator(dt)),
        *(p.m, p.n, p.k, block, batches, p.inner, p.kstep),
        *spread_args(p),
    )
    size = ceil_div(p.m, block), batches
    backend.launch(kernel, size, (1, 1), args, *traffic(dt, out, p))
