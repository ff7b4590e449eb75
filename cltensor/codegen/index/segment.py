"""Reductions of consecutive runs of a dim, and runs filled with a value each.

Knows operands and backends, not tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..operand import Operand
from ..region import empty, index_type, is_gpu, run, workers
from ..source import include, lane_macros
from .rows import memory_of

if TYPE_CHECKING:
    from ...runtime import Backend


def reduce(backend: Backend, x: Operand, bounds: Operand, kind: str) -> Operand:
    """Reduce runs of a dense operand (…, n, …) along the dim that is the last one of `bounds` (…, runs + 1).

    `bounds` is dense, int64. `kind`: "sum", "prod", "max" or "min"; an empty run gives its identity. NaN wins.
    """
    return _launched(backend, x, bounds, kind, x.shape[len(bounds.shape) - 1])


def spread(backend: Backend, v: Operand, bounds: Operand, n: int) -> Operand:
    """Return (…, n, …): the value of each element's run, from a dense, nonempty (…, runs, …); 0 outside of all runs."""
    return _launched(backend, v, bounds, "spread", n)


def _launched(backend: Backend, x: Operand, bounds: Operand, kind: str, n: int) -> Operand:
    axis = len(bounds.shape) - 1
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    segments = bounds.shape[-1] - 1
    out = empty(backend, x.dtype, (*before, n if kind == "spread" else segments, *after))
    runs, width, dt, gpu = math.prod(before) * segments, math.prod(after), x.dtype, is_gpu(backend)
    if not runs or not width:
        return out
    lanes = 8 if dt.itemsize > 4 else 16
    more: dict[str, Any] = {"L": 1, "memory": None, "headers": ""}
    if not gpu:
        headers = lane_macros(lanes) + (include("half") if dt.code in ("f16", "bf16") else "")
        more = {"L": lanes, "memory": memory_of(dt, lanes), "headers": headers}
    work = math.prod(before) * n * width
    run(
        backend,
        "index/segment",
        f"segment_{kind}_{dt.code}",
        [x.buffer, bounds.buffer, out.buffer],
        [runs, segments, n, width, x.offset, bounds.offset],
        runs * width if gpu else min(workers(backend, work), runs),
        (work + runs * width) * dt.itemsize,
        dt=dt,
        kind=kind,
        I=index_type(backend, x, out),
        gpu=gpu,
        **more,
    )
    return out
