"""Rows whose last elements are no whole vector, processed as an overlapping vector or as a partial one, against
numpy."""

from __future__ import annotations

import dataclasses
from typing import Any

import kernel_tools as kt
import numpy as np
import pytest
from backends import backend_for
from support import poison

from cltensor import dtypes
from cltensor.codegen.reduce import row_kinds, rowwise
from cltensor.codegen.reduce.prologue import of_operands

torch = pytest.importorskip("torch")
LENGTHS = (5, 15, 16, 17, 31, 33, 63, 100, 331)


@pytest.fixture(params=[8, 16], ids=["overlapping", "parts"])
def be(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a CPU backend whose record says that registers hold `request.param` floats."""
    backend = backend_for("cpu")
    monkeypatch.setattr(
        backend, "info", dataclasses.replace(backend.info, native_lanes=request.param)
    )
    monkeypatch.setattr(rowwise, "_plan", rowwise._plan.__wrapped__)
    poison(backend, monkeypatch)
    return backend


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _run(be: Any, kind: Any, operands: list[Any], dims: tuple[int, ...], compute: Any, **more: Any) -> Any:  # fmt: skip
    source = of_operands(*[kt.put(be, x) for x in operands])
    found = rowwise.run(be, kind, source, dims, compute, source.leaves[0][1], schedule="row", **more)  # fmt: skip
    return found, None if found.all is None else kt.get(be, found.all).double().numpy()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_values(be: Any, dtype: str) -> None:
    compute = dtypes.float64 if dtype == "float64" else dtypes.float32
    tol = {"float32": 2e-5, "bfloat16": 2e-2, "float64": 1e-12}[dtype]
    for n in LENGTHS:
        x, g, w = (kt.sample((11, n), getattr(torch, dtype), seed, 2.0) for seed in range(3))
        a, b, c = (t.double().numpy() for t in (x, g, w[:1].expand(11, n)))
        s = _softmax(a)
        mean, var = a.mean(1, keepdims=True), a.var(1, keepdims=True)
        for kind, operands, expected in (
            (row_kinds.SOFTMAX, [x], s),
            (row_kinds.LOG_SOFTMAX, [x], np.log(s)),
            (row_kinds.SOFTMAX_BACK, [x, g], a * (b - (a * b).sum(1, keepdims=True))),
            (row_kinds.norm(True, False), [x, w[:1].expand(11, n)], (a - mean) / np.sqrt(var + 0.1) * c),
            (row_kinds.rms(False), [x], a / np.sqrt((a * a).mean(1, keepdims=True) + 0.1)),
        ):  # fmt: skip
            _, found = _run(be, kind, operands, (1,), compute, eps=0.1)
            np.testing.assert_allclose(found, expected, rtol=tol, atol=tol * 20, err_msg=f"{n}")


def test_runs_and_columns(be: Any) -> None:
    """Reductions of each run along the innermost dim, and sums over rows, in which overlapping elements count once."""
    for n in LENGTHS:
        whole = kt.sample((6, 4, n + 3), torch.float32, n)
        x = whole[:, :, 1 : n + 1]
        _, found = _run(be, row_kinds.SOFTMAX, [x], (1, 2), dtypes.float32)
        flat = x.double().numpy().reshape(6, -1)
        np.testing.assert_allclose(found.reshape(6, -1), _softmax(flat), rtol=2e-5, atol=1e-9)
        x, g = whole[:, 0, :n].contiguous(), whole[:, 1, :n].contiguous()
        rows = torch.rand(6, 1, 2, generator=torch.Generator().manual_seed(n))
        mean, rstd = rows[..., 0].expand(6, n), rows[..., 1].expand(6, n)
        sums, _ = _run(
            be, row_kinds.norm_back(False, True), [x, g, mean, rstd], (1,), dtypes.float32
        )
        hat = ((x - mean) * rstd).double()
        for part, expected in zip(sums.numbers, ((g * hat).sum(0), g.double().sum(0)), strict=True):
            total = kt.get(be, part).double()[:, :n].sum(0)
            np.testing.assert_allclose(total.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


def test_what_is_not_finite_counts_once_and_in_its_place(be: Any) -> None:
    for n in (17, 33):
        x = torch.zeros(4, n)
        x[0, -1], x[1, n - 16], x[2, 0], x[3] = float("nan"), float("inf"), -float("inf"), -1e30
        expected = x.softmax(1)
        _, found = _run(be, row_kinds.SOFTMAX, [x], (1,), dtypes.float32)
        np.testing.assert_allclose(found, expected.double().numpy(), rtol=1e-6)
        _, found = _run(be, row_kinds.LOG_SOFTMAX, [x], (1,), dtypes.float32)
        np.testing.assert_allclose(found, x.log_softmax(1).double().numpy(), rtol=1e-6)
