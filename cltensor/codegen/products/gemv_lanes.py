"""Matrix-vector and dot products on devices where a work-item is a lane (templates/gemm/gemv_lanes.mako).

Owns how a work-group's lanes are divided among rows and K, and when K is split among work-groups. Knows nothing of
tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..source import render
from .product import (  # fmt: skip
    LONG,
    SIDES,
    Product,
    access_variables,
    accumulator,
    built,
    ceil_div,
    ending_types,
    in_pieces,
    lane_group,
    side_args,
    spread_args,
    traffic,
)

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend

AHEAD = 8  # elements of the matrix that a lane loads before it uses the first
SHARES = (8, 32)  # lanes that share a row where they go along rows; else all of a work-group
DOWN = (4, 16)  # rows that neighbouring lanes take where the matrix has unit stride along columns
FULL = 1024  # lanes that keep a compute unit busy
# Work-groups per compute unit: below FEW, groups that go down columns get twice as many lanes; from MANY on, groups
# that sum one row each get half as many.
FEW, MANY = 4, 8
# Work-groups per compute unit that split-K aims at: where lanes go down columns, and where they go along rows.
PIECES = (8, 4)
STEPS = 4  # rounds of loads that make a piece of K worth a second pass


def run(backend: Backend, dt: dtype, p: Product, out_dt: dtype | None = None) -> None:
    """Run a product with one row or one column."""
    p = p if p.n == 1 else p.transposed()
    out, batches, length, units = out_dt or dt, p.outer * p.inner, p.kstep or p.k, backend.info.compute_units  # fmt: skip
    group = lane_group(backend)
    along = p.m == 1 or p.a.row == 0 or abs(p.a.col) <= abs(p.a.row)
    unit = p.b.row == 1 and (p.a.col == 1 or not along)
    ahead = 2 * AHEAD if not along else AHEAD if unit else AHEAD // 2
    if along:
        lanes = next((n for n in SHARES if n * ahead * 2 >= length and 4 * p.m > group // n), SHARES[-1])  # fmt: skip
        if lanes * p.m * batches < FULL * units and lanes * ahead < length:
            lanes = group = group // 2 if p.m >= MANY * units else group
        rows = max(group // lanes, 1)
    else:
        rows = min(next((n for n in DOWN if p.m <= n), DOWN[-1]), group)
    groups = ceil_div(p.m, rows)
    most = p.k // (STEPS * ahead * (group // rows))  # pieces
    if p.kstep == 0 and p.inner == 1 and most > 1 and 2 * groups * batches < 3 * units:
        pieces = min(ceil_div(PIECES[along] * units, groups * batches), most)
        in_pieces(backend, dt, out, p, ceil_div(p.k, pieces), lambda wide, q: run(backend, dt, q, wide), True)  # fmt: skip
        return
    few = groups * batches < FEW * units and length >= STEPS * ahead * (group // rows)
    if not along and few and 2 * group <= backend.info.max_group:
        group *= 2
    acc = accumulator(dt)

    def make() -> tuple[str, str, list[Any]]:
        name = f"gemv_{'along' if along else 'down'}{rows}x{group // rows}_{dt.code}_{out.code}{'' if unit else '_apart'}"
        variables = access_variables(dt, out, 8)
        text = render("gemm/gemv_lanes", fn=name, G=group, R=rows, U=ahead, along=along, unit=unit, **variables)  # fmt: skip
        return name, text, [*SIDES, *ending_types(acc), *[LONG] * 13]

    backend.launch(
        built(backend, ("gemv lanes", dt, out, along, unit, rows, group), make),
        (groups * group, min(batches, 65535)),
        (group, 1),
        (*side_args(p, acc), p.m, p.k, batches, p.inner, p.kstep, *spread_args(p)),
        *traffic(dt, out, p),
    )
