"""Products with few rows or columns, or too small for gemm_lanes.py's tiles, where a work-item is a lane.

Kernels are templates/gemm/sliced.mako: small tiles, and slices of a work-group that share K. Owns the tile each product
takes, and when K is split among work-groups as well. Knows nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..source import render
from . import epilogue as epilogues
from .product import (  # fmt: skip
    LONG,
    SCALARS,
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

# Tile (rows, columns): how much of K a work-group of 256 lanes keeps in local memory. A lane copies about 16 numbers.
SLABS = {(64, 8): 64, (64, 16): 64, (16, 8): 128, (16, 16): 128, (8, 8): 256}
STEPS = 8  # slabs that make a piece of K worth a second pass
FULL = 4  # work-groups that keep a compute unit busy
REGISTERS = 80  # of a work-item with the tile of 64 rows, as NVIDIA's compiler is told: three groups then run at once


class Plan(NamedTuple):
    """A product, and how it is divided among work-groups."""

    product: Product  # as it is run, perhaps transposed
    rows: int  # of a work-group's tile
    columns: int  # of a work-group's tile
    slices: int  # sets of work-items that share each slab of K
    slab: int  # how much of K lies in local memory at a time
    pieces: int  # of K, each for work-groups of its own (split-K)

    @property
    def groups(self) -> tuple[int, int]:
        return ceil_div(self.product.m, self.rows), ceil_div(self.product.n, self.columns)


def chosen(backend: Backend, dt: dtype, p: Product) -> Plan | None:
    """Return a product's plan for this schedule; None if it should not take it. Does not depend on its epilogue."""
    q = p if p.m >= p.n else p.transposed()
    units, batches = backend.info.compute_units, p.outer * p.inner
    lanes, size = lane_group(backend), SCALARS[accumulator(dt)]().itemsize
    while lanes * 16 * size > backend.info.local_mem // 2:  # sums; a slab takes half as much again
        lanes //= 2
    if lanes < 64:
        return None

    def plan(rows: int, columns: int) -> Plan:
        slab = SLABS[rows, columns] * lanes // 256
        found = Plan(q, rows, columns, lanes * 16 // (rows * columns), slab, 1)
        groups = found.groups[0] * found.groups[1] * batches
        most = q.k // (STEPS * slab)
        if p.kstep or p.inner > 1 or most < 2 or 2 * groups > units:
            return found
        return found._replace(pieces=min(ceil_div(FULL * units, groups), most))

    if q.m <= 8:
        return plan(8, 8)
    large = plan(64, 16 if q.n > 8 else 8)
    if q.n <= 16 and 4 * large.groups[0] * large.groups[1] * batches * large.pieces >= 3 * units:
        return large
    return plan(16, 16 if q.n > 8 else 8)


def run(backend: Backend, dt: dtype, out_dt: dtype, plan: Plan) -> bool:
    """Run a plan of `chosen`; False, with nothing done, where the product's epilogue does not fit."""
    p = plan.product
    if plan.pieces > 1:
        if p.epilogue is not None:
            return False
        length = ceil_div(p.k, plan.pieces)

        def part(wide: dtype, q: Product) -> None:
            _launch(backend, dt, wide, plan._replace(product=q))

        in_pieces(backend, dt, out_dt, p, length, part, True)
        return True
    return _launch(backend, dt, out_dt, plan)


def _launch(backend: Backend, dt: dtype, out_dt: dtype, plan: Plan) -> bool:
    p, acc = plan.product, accumulator(dt)
    along = p.a.col == 1, p.b.row == 1
    program, fits = epilogues.fitted(backend, p.epilogue, 1)
    if not fits:
        return False

    def make() -> tuple[str, str, list[Any], Any]:
        finish = epilogues.finish(program, 1) if program else None
        ways = "".join("k" if adjacent else "x" for adjacent in along)
        name = f"gemm_sliced{plan.rows}x{plan.columns}{ways}_{dt.code}_{out_dt.code}{epilogues.suffix(program)}"
        text = render(
            "gemm/sliced", fn=name, R=plan.rows, C=plan.columns, P=plan.slices, KS=plan.slab, along=along, finish=finish,
            **access_variables(dt, out_dt, 8),
        )  # fmt: skip
        types = [*SIDES, *ending_types(acc), *[LONG] * 14, *(finish.types if finish else ())]
        few = plan.rows > 16 and acc in ("float", "uint") and not finish
        told = backend.info.with_registers(REGISTERS) if few else ()
        return name, text, types, (*epilogues.options(backend, finish), *told)

    batches = p.outer * p.inner
    lanes = plan.rows * plan.columns // 16 * plan.slices
    args = (*side_args(p, acc), p.m, p.n, p.k, batches, p.inner, p.kstep, *spread_args(p))
    if p.epilogue is not None:
        args += tuple(p.epilogue.arguments())
    rows, columns = plan.groups
    backend.launch(
        built(
            backend,
            ("sliced", dt, out_dt, program, plan.rows, plan.columns, plan.slices, along),
            make,
        ),
        (rows * lanes, columns, min(batches, 65535)),
        (lanes, 1, 1),
        args,
        *traffic(dt, out_dt, p),
    )
    return True
