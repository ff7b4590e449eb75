"""Matrix of many short rows times a vector on a CPU (templates/gemm/short.mako): points by weights, keys by a query.

gemv.py sums a row in all lanes of a vector and then reduces the lanes, row by row; here the lanes of a whole vector of
rows are reduced together. Owns which products take this schedule and how rows are divided among work-items. Knows
nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..memory import Memory
from ..source import include, lane_macros, render
from .gemv import PACE_BYTES, TASK_BYTES
from .product import (  # fmt: skip
    LONG,
    SIDES,
    Product,
    accumulator,
    built,
    ceil_div,
    ending_types,
    side_args,
    spread_args,
    tile,
    traffic,
)

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend

DEPTH = 63  # length of a row, at most: in longer ones reducing the lanes takes little of the time


def chosen(backend: Backend, dt: dtype, p: Product) -> Product | None:
    """Return the product in the orientation that this schedule takes, perhaps transposed; None if it takes neither."""
    if min(p.m, p.n) != 1 or dt.category != 2 or p.kstep or p.epilogue is not None:
        return None
    q = p if p.n == 1 else p.transposed()
    several = q.m >= 4 * tile(backend, accumulator(dt))[1]
    return q if several and q.a.col == 1 and 1 < q.k <= DEPTH else None


def run(backend: Backend, dt: dtype, p: Product) -> None:
    """Run a product that `chosen` returned."""
    acc, lanes, batches = accumulator(dt), tile(backend, accumulator(dt))[1], p.outer * p.inner
    nbytes = p.m * p.k * batches * dt.itemsize
    alone = nbytes < PACE_BYTES * backend.info.wake_us
    wanted = 1 if alone else min(max(nbytes // TASK_BYTES, 1), 4 * backend.info.compute_units)
    block = lanes * ceil_div(ceil_div(p.m, lanes), ceil_div(wanted, batches))

    def make() -> tuple[str, str, list[Any]]:
        memory = Memory(dt, lanes)
        head = lane_macros(lanes, dt.reg == "double")
        head += include("half") if dt.reg != dt.cl else ""
        name = f"gemv_short_{dt.code}_{lanes}"
        text = render(
            "gemm/short", fn=name, headers=head, memory=memory, V=lanes, depth=DEPTH + 1 + lanes
        )
        return name, text, [*SIDES, *ending_types(acc), *[LONG] * 13]

    kernel = built(backend, ("gemv short", dt, lanes), make)
    args = *side_args(p, acc), p.m, p.k, block, batches, p.inner, *spread_args(p)
    size = ceil_div(p.m, block), batches
    backend.launch(kernel, size, (1, 1), args, *traffic(dt, dt, p))
