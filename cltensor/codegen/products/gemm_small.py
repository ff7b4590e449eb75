"""Batches of products of small matrices on a CPU (templates/gemm/small.mako): a row of a result fits in one vector.

Owns which products take this schedule and how matrices are divided among work-items. Knows nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..memory import Memory
from ..source import include, lane_macros, render
from .product import LONG, PACE, Product, built, ceil_div, tile, traffic

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend

DEEP = 64  # M and K, at most
VECTOR = 64  # elements of a matrix, at most, where N == 1: that case is scalar code
ROWS = (1, 4, 8)  # rows of a result computed at a time
TASK_WORK = 1 << 16  # multiply-adds that make a work-item worth its start


def takes(backend: Backend, dt: dtype, p: Product) -> bool:
    """Return whether a product takes this schedule."""
    return (
        dt.category == 2
        and p.outer * p.inner > 1
        and p.n <= tile(backend, dt.reg)[1]
        and (p.n > 1 or p.m * p.k <= VECTOR)
        and p.m <= DEEP
        and 0 < p.k <= DEEP
        and (p.out.col == 1 or p.n == 1)
        and p.bias is None
        and p.alpha == 1
        and not p.kstep
        and p.epilogue is None
    )


def run(backend: Backend, dt: dtype, p: Product) -> None:
    """Run a product that `takes` accepted."""
    lanes = 1 if p.n == 1 else 8 if dt.itemsize == 2 else 4
    while lanes < p.n:
        lanes *= 2
    rows = next((r for r in ROWS if r >= p.m), ROWS[-1])
    whole, apart = p.n == lanes, p.b.col != 1 < p.n
    batches = p.outer * p.inner
    work = batches * p.m * p.k * lanes
    alone = work < PACE * backend.info.wake_us
    items = 1 if alone else max(1, min(4 * backend.info.compute_units, work // TASK_WORK, batches))
    per = ceil_div(batches, items)

    def make() -> tuple[str, str, list[Any]]:
        memory = Memory(dt, lanes)
        name = f"gemm_small_{dt.code}_{lanes}x{rows}{'_part' * (not whole)}{'_apart' * apart}"
        head = lane_macros(lanes, dt.reg == "double")
        head += include("half") if dt.reg != dt.cl else ""
        text = render(
            "gemm/small", fn=name, headers=head, memory=memory, V=lanes, R=rows, whole=whole, apart=apart
        )  # fmt: skip
        return name, text, [None, *[LONG] * 3] * 2 + [None, *[LONG] * 14]

    kernel = built(backend, ("small", dt, lanes, rows, whole, apart), make)
    args = (
        *p.a.args, *p.b.args, p.out.buffer, p.out.offset, p.out.row, p.m, p.n, p.k, batches, per, p.inner,
        p.a.outer, p.a.inner, p.b.outer, p.b.inner, p.out.outer, p.out.inner,
    )  # fmt: skip
    backend.launch(kernel, (ceil_div(batches, per),), (1,), args, *traffic(dt, dt, p))
