"""Products of many rows with a few columns on a CPU (templates/gemm/tall.mako).

For instance points, pixels, the last layer of a classifier. A register tile of gemm_cpu.py is two vectors wide, and
most of it would be padding. Owns which products take this schedule and how rows are divided among work-items. Knows
nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..memory import Memory
from ..source import include, render
from . import epilogue as epilogues
from . import gemm_few
from .product import (
    LONG,
    PACE,
    SIDE,
    Product,
    built,
    ceil_div,
    ending_args,
    ending_types,
    tile,
    traffic,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...dtypes import dtype
    from ...runtime import Backend

COLUMNS = 16  # columns of float32, at most; of float64 half as many
# K in one launch, at most: this many rows of B stay in the first-level cache, and gemm_cpu.py's blocks of K are as
# long.
DEPTH = 384
PARTS = 16  # launches for a longer K, at most, each of which adds to the results so far
LARGE = 1 << 18  # elements of A, at least, that are worth a launch per part of K
FAR = 160  # length of a row from which on the next rows are prefetched
ROWS = 64  # rows, at least
TASK_WORK = 1 << 18  # multiply-adds that make a work-item worth its start


def takes(dt: dtype, p: Product) -> bool:
    """Return whether a product takes this schedule."""
    return (
        dt.name in ("float32", "float64")
        and p.outer * p.inner == 1
        and 1 < p.n <= 4 * COLUMNS // dt.itemsize
        and p.m >= ROWS
        and (0 < p.k <= DEPTH or (p.k <= PARTS * DEPTH and p.m * p.k >= LARGE))
        and p.out.col == 1
        and not p.kstep
        and (gemm_few.chosen(dt, p) is None or _is_worth_more(dt, p))
    )


def _is_worth_more(dt: dtype, p: Product) -> bool:
    """Return whether vectors along columns are faster than gemm_few.py's vectors along K.

    They are where K is short, or where the columns almost fill a vector.
    """
    full = p.n * dt.itemsize > 4 * gemm_few.FULL
    return p.k < gemm_few.DOTS * p.n or (full and p.k <= DEPTH)


def run(backend: Backend, dt: dtype, p: Product) -> bool:
    """Run a product that `takes` accepted; False, with nothing done, where its epilogue does not fit.

    None does where K takes several launches.
    """
    if p.k > DEPTH:
        return p.epilogue is None and _in_parts(backend, dt, p)
    # An epilogue works on vectors of a width of its own, which a row of results has to hold.
    lanes = 8 if p.n <= 8 and (p.epilogue is None or dt.itemsize == 8) else 16
    # Vectors of more lanes than a register spill with 8 rows of sums, and are no faster.
    rows = 8 if lanes <= tile(backend, dt.reg)[1] else 4
    ahead = p.a.col == 1 and p.k >= FAR
    program, span = epilogues.fitted(backend, p.epilogue, lanes)
    if not span:
        return False
    work = p.m * p.k * lanes
    alone = work < PACE * backend.info.wake_us
    items = 1 if alone else min(max(1, work // TASK_WORK), 4 * backend.info.compute_units)
    per = rows * ceil_div(ceil_div(p.m, rows), items)

    def make() -> tuple[str, str, list[Any], Sequence[str]]:
        finish = epilogues.finish(program, span) if program else None
        name = f"gemm_tall_{dt.code}_{lanes}x{rows}{'_ahead' * ahead}{epilogues.suffix(program)}"
        text = render(
            "gemm/tall", fn=name, memory=Memory(dt, lanes), V=lanes, R=rows, depth=DEPTH, finish=finish, ahead=ahead, headers=include("ahead") * ahead
        )  # fmt: skip
        types = [*SIDE, *SIDE, *SIDE[:3], *SIDE, *ending_types(dt.reg), *[LONG] * 4]
        return (
            name,
            text,
            types + list(finish.types if finish else ()),
            epilogues.options(backend, finish),
        )

    kernel = built(backend, ("tall", dt, lanes, rows, program, ahead), make)
    bias = p.bias or p.out
    args = (
        *p.a.args,
        *p.b.args,
        *p.out.args[:3],
        *bias.args,
        *ending_args(p, dt.reg),
        p.m,
        p.n,
        p.k,
        per,
    )
    if p.epilogue is not None:
        args += tuple(p.epilogue.arguments())
    backend.launch(kernel, (ceil_div(p.m, per),), (1,), args, *traffic(dt, dt, p))
    return True


def _in_parts(backend: Backend, dt: dtype, p: Product) -> bool:
    """Run a product with a longer K in several launches; the results so far are each next launch's bias."""
    part = 16 * ceil_div(ceil_div(p.k, ceil_div(p.k, DEPTH)), 16)
    for k in range(0, p.k, part):
        a = p.a._replace(offset=p.a.offset + k * p.a.col)
        b = p.b._replace(offset=p.b.offset + k * p.b.row)
        q = p._replace(a=a, b=b, k=min(part, p.k - k))
        run(backend, dt, q._replace(bias=p.out, beta=1.0) if k else q)
    return True
