"""Reductions whose last work-group joins the results of all groups, on any device: the test has no other launch run at
the same time."""

from __future__ import annotations

import numpy as np
import pytest
from support import close, data

import cltensor as ct
from cltensor.codegen.reduce import kernels
from cltensor.codegen.reduce import reduction as family
from cltensor.codegen.reduce.prologue import of_operands
from cltensor.ops import core
from cltensor.runtime import STATS, get_backend


@pytest.mark.parametrize(
    ("schedule", "shape"),
    [("gpu-row", (5000, 1)), ("gpu-row", (700, 3)), ("gpu-col", (700, 3)), ("gpu-col", (900, 30))],
    ids=str,
)
def test_the_last_group_joins_the_parts(schedule: str, shape: tuple[int, int]) -> None:
    """Parts are joined in the same launch, any number of times: the kernel resets the counter of groups."""
    a = data(*shape)
    a[3, 0] = np.nan
    x = ct.tensor(a)
    backend, source = get_backend(x.device), of_operands(core.kernel_operand(x))
    f32, scale = ct.float32, float(shape[0])
    cases = {
        "sum": ([("value", f32)], None, a.sum(0)),
        "mean": ([("value", ct.float16)], scale, a.mean(0).astype(np.float16)),
        "max": ([("value", f32)], None, a.max(0)),
        "argmax": ([("index", ct.int64)], None, a.argmax(0)),
        "var": ([("mean", f32), ("var", f32)], scale, a.mean(0)),
    }
    for kind, (outputs, divisor, expected) in cases.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "_kernels", {})
            patch.setattr(family, "announces", lambda _backend: True)
            family._plan.cache_clear()  # type: ignore[attr-defined]
            for _ in range(3):
                before = STATS.launches
                found = family.reduce(
                    backend, kind, source, (0,), f32, outputs, scale=divisor, schedule=schedule, parts=9
                )  # fmt: skip
                assert STATS.launches == before + 1
                close(core.result(found[0], x.device), expected, 2e-3 if kind == "mean" else 1e-4)
            family._plan.cache_clear()  # type: ignore[attr-defined]
