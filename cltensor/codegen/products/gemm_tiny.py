"""Products that sum few numbers, on devices where a work-item is a lane: one for each number of the results, or for some (templates/gemm/tiny.mako).

Owns which they are: batches of tiny matrices, many rows with a few columns, outer products. Knows nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..source import render
from . import epilogue as epilogues
from .product import (  # fmt: skip
    LONG,
    SIDES,
    Product,
    access_variables,
    accumulator,
    built,
    ceil_div,
    ending_types,
    lane_group,
    side_args,
    spread_args,
    traffic,
)

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend

TINY = 16  # rows or columns, and summed numbers, of such a matrix, at most
SHORT = 4  # summed numbers for which any matrix is one: what is written is the work
EACH = 8  # numbers of a column that a lane makes, where they are many: an operand's are then read, and places found, once for all of them
APART = 64  # rows between those, at least
COUNTED = 1 << 30  # numbers that a launch counts in one dim


def takes(p: Product) -> bool:
    """Whether a product is of this kind."""
    few, many = min(p.m, p.n), max(p.m, p.n)
    if p.kstep or p.m * p.n > COUNTED or p.outer * p.inner > COUNTED:
        return False
    # Long columns of the result, of rows that lie along K, are better read by several lanes a row.
    return p.k <= SHORT or (p.k <= TINY and few <= TINY and (few > 1 or many <= TINY))


def run(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> bool:
    """Run it; False, with nothing done, where an epilogue does not fit."""
    if abs(p.out.row) < abs(p.out.col):  # neighbours store along rows
        p = p.transposed()
    program, fits = epilogues.fitted(backend, p.epilogue, 1)
    if not fits:
        return False
    acc, group, batches = accumulator(dt), lane_group(backend), p.outer * p.inner
    each = EACH if p.m >= EACH * APART else 1
    even = (p.a.offset | p.a.row | p.a.outer | p.a.inner) % 4 == 0
    quads = each > 1 and p.a.col == 1 and even and dt.itemsize == 4

    def make() -> tuple[str, str, list[Any], Any]:
        finish = epilogues.finish(program, 1) if program else None
        name = f"gemm_tiny{each}{'q' if quads else ''}_{dt.code}_{out_dt.code}{epilogues.suffix(program)}"
        text = render("gemm/tiny", fn=name, G=group, T=each, quads=quads, finish=finish, **access_variables(dt, out_dt, 8))  # fmt: skip
        counts = [np.uint32, np.uint32, np.int32, np.uint32, np.uint32, np.uint32]
        types = [*SIDES, *ending_types(acc), *counts, *[LONG] * 8]
        types += finish.types if finish else ()
        return name, text, types, epilogues.options(backend, finish)

    numbers = ceil_div(p.m, each) * p.n
    per = min(batches, max(COUNTED // numbers, 1))
    args = (*side_args(p, acc), p.m, p.n, p.k, batches, per, p.inner, *spread_args(p))
    if p.epilogue is not None:
        args += tuple(p.epilogue.arguments())
    backend.launch(
        built(backend, ("tiny", dt, out_dt, program, each, quads), make),
        (ceil_div(per * numbers, group) * group, ceil_div(batches, per)),
        (group, 1),
        args,
        *traffic(dt, out_dt, p),
    )
    return True
