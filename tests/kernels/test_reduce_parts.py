"""Reductions: extremes with NaNs nearby, joining of parts, and the order in which memory is read."""

from __future__ import annotations

import numpy as np
import pytest
from support import close, data, on_device

import cltensor as ct
from cltensor.codegen.reduce import reduction as family
from cltensor.codegen.reduce.prologue import of_operands
from cltensor.ops import core
from cltensor.runtime import STATS, get_backend


def test_a_nan_is_found_wherever_it_is() -> None:
    """In each vector of an unrolled step, in the remainder after the steps, and before another NaN."""
    places = [*range(0, 144, 7), 1023, 1024, 1100, 2047, 2048, 2300, 2498, 2499]
    a = data(len(places), 2500)
    a[:, 1500] = 9
    a[np.arange(len(places)), places] = np.nan
    x = ct.tensor(a)
    assert x.argmax(1).tolist() == x.argmin(1).tolist() == places
    a[:, 2499] = np.nan
    assert ct.tensor(a).argmax(1).tolist() == places


def test_parts_are_joined_a_line_of_outputs_at_a_time(on_a_cpu: None) -> None:
    """An output has the same bits in a whole cache line of outputs and in a partial one."""
    a = data(640, 1000) * 3
    wide = a.astype(np.float64)
    top, total, value = (("top", ct.float32),), (("value", ct.float32),), (("var", ct.float32),)
    for kind, outputs, want in (
        ("sum", total, wide.sum(0)),
        ("logsumexp", total, np.log(np.exp(wide).sum(0))),
        ("logsumexp", top, a.max(0)),
        ("var", value, wide.var(0) * 640),
    ):
        found = []
        for x in (ct.tensor(a), ct.tensor(a[:, 3:-5].copy())):
            backend, source = get_backend(x.device), of_operands(core.kernel_operand(x))
            scale = 1.0 if kind == "var" else None
            (op,) = family.reduce(
                backend, kind, source, (0,), ct.float32, outputs, schedule="col", parts=5, scale=scale
            )  # fmt: skip
            found.append(core.result(op, x.device))
        close(found[0], want, 2e-5)
        close(found[1], want[3:-5], 2e-5)
        # Columns past the last whole vector are summed one by one, and relative to other maxima.
        end = 992 if kind == "logsumexp" and outputs is total else 995
        assert ct.equal(found[0][3:end], found[1][: end - 3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [9, 600])
def test_logsumexp_across_memory_of_values_that_rise(rows: int, dtype: str) -> None:
    """Sums are relative to a reference that only much larger values replace: here at each step, now and then, never,
    and starting from -inf."""
    n = np.arange(rows, dtype=np.float64)[:, None] * np.ones(37)
    a = np.random.default_rng(rows).standard_normal(n.shape)
    a += n * np.linspace(-3, 3, 37)
    a[: rows // 2, ::5] = -np.inf
    a[:, 1] *= 1e-3
    x = on_device(a.astype(dtype))
    want = np.logaddexp.reduce(x.cpu().numpy().astype(np.float64), 0)
    eps = np.finfo(dtype).eps
    close(x.logsumexp(0), want, 4 * eps)
    whole = x.log_softmax(0).cpu().numpy().astype(np.float64)
    np.testing.assert_allclose(np.exp(whole).sum(0), 1, rtol=1e3 * eps)


def test_of_steps_along_and_across_the_smaller_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    chosen = family.along_reduced
    monkeypatch.setattr(
        family, "along_reduced", lambda *given: taken.append(chosen(*given)) or taken[-1]
    )
    a = data(130, 140)
    x, a = on_device(a)[::2, ::2], a[::2, ::2]
    for dim, row in ((0, False), (1, True)):
        for v, w in ((x, a), (x.t(), a.T)):
            taken.clear()
            close(v.sum(dim), w.sum(dim), 1e-4)
            close(v.argmax(dim), w.argmax(dim))
            assert set(taken) == {row if v is x else not row}


def test_what_runs_across_memory_beside_what_does_not_is_turned_first() -> None:
    a = data(2, 300, 260)
    x = on_device(a)
    other = x[1, :260].t()[:, :260]
    close((x[0, :260] - other).sum(0), (a[0, :260] - a[1, :260].T).sum(0), 1e-3)
    before = STATS.launches
    found = (x[0, :260] - other).abs().amax(1)
    assert 2 <= STATS.launches - before <= 3
    close(found, np.abs(a[0, :260] - a[1, :260].T).max(1))
    before = STATS.launches
    found = (x[0, :260].t() - other).amax(0)  # both operands have the same layout
    assert STATS.launches - before <= 2
    close(found, (a[0, :260].T - a[1, :260].T).max(0))
