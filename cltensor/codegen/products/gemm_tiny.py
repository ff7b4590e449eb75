"""Products with a short K where a work-item is a lane, which computes one or a few results (templates/gemm/tiny.mako).

Owns which products take this schedule: batches of tiny matrices, many rows with a few columns, outer products. Knows
nothing of tensors.
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

TINY = 16  # K, and rows or columns, at most
SHORT = 4  # K up to which a product of any size takes this schedule: the time goes into writing the result
# Results in one column that a lane computes, where there are many rows: it then reads B, and works out addresses, once
# for all of them.
EACH = 8
APART = 64  # rows between the results of one lane, at least
COUNTED = 1 << 30  # the most results, and matrices, that a launch counts in one dim with 32 bits


def takes(p: Product) -> bool:
    """Return whether a product takes this schedule."""
    few, many = min(p.m, p.n), max(p.m, p.n)
    if p.kstep or p.m * p.n > COUNTED or p.outer * p.inner > COUNTED:
        return False
    # A long single column (or row) is left to gemv_lanes.py unless K is very short: there several lanes read each row.
    return p.k <= SHORT or (p.k <= TINY and few <= TINY and (few > 1 or many <= TINY))


def run(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> bool:
    """Run a product that `takes` accepted; False, with nothing done, where its epilogue does not fit."""
    if abs(p.out.row) < abs(p.out.col):  # neighbouring lanes store along rows
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
