"""softmax, log_softmax and the losses on the device: values against numpy, schedules, launches and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import close, data, on_device

import cltensor as ct
from cltensor import dtypes
from cltensor.codegen.reduce import row_kinds, rowwise
from cltensor.codegen.reduce.prologue import of_operands
from cltensor.ops import core
from cltensor.ops.nn import losses
from cltensor.ops.nn import rowwise as rows
from cltensor.runtime import STATS, get_backend


def _softmax(a: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(a - a.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("shape", [(31,), (33, 32), (3, 33, 5), (5, 1, 40), (64, 10)], ids=str)
def test_values_match_numpy(shape: tuple[int, ...]) -> None:
    a = data(*shape) * 5
    x = ct.tensor(a.tolist())
    for d in range(a.ndim):
        close(x.softmax(d), _softmax(a, d))
        if a.ndim > 1:
            close(x.mT.softmax(d), _softmax(np.swapaxes(a, -1, -2), d))
        if a.ndim == 2:
            close(x.log_softmax(d), np.log(_softmax(a.astype(np.float64), d)), 1e-4)
            close((x * 2).softmax(d), _softmax(a * 2, d))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("float32", (70, 1100))] + [(dtype, (3, 40, 19)) for dtype in ("float32", "bfloat16")],
    ids=str,
)
def test_long_rows_that_memory_interleaves(
    shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows interleaved in memory are reduced with a running state for each row, elements in the order of memory. What
    is not finite affects its own row only.
    """
    a, g = data(*shape) * 5, data(*shape, seed=1)
    a[..., 0, 3], a[..., 9, 4], a[..., 5], a[..., 7, 6] = np.inf, np.nan, -np.inf, -np.inf
    tol = 2e-2 if dtype == "bfloat16" else 1e-4

    def results(name: str) -> list:
        x = on_device(a.copy()).to(getattr(ct, dtype)).requires_grad_()
        y = getattr(x, name)(-2)
        slope = ct.autograd.grad(y, x, on_device(g.copy()).to(y.dtype))[0]
        return [v.detach().float().cpu().numpy() for v in (y, slope)]

    for name in ("softmax", "log_softmax"):
        wanted = results(name)
        with monkeypatch.context() as patch:
            patch.setattr(rows, "LONG", 2)
            patch.setattr(rows, "COLUMNS", 1)
            found = results(name)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=tol, atol=tol)


@pytest.mark.elsewhere
@pytest.mark.parametrize(
    ("schedule", "dtype"),
    [*((s, "float32") for s in ("row", "col", "gpu-row", "gpu-col"))]
    + [(s, "float16") for s in ("row", "col")],
)
def test_every_schedule_agrees(schedule: str, dtype: str) -> None:
    a = data(7, 33, 18).astype(dtype)
    x = on_device(a.copy())
    backend = get_backend(x.device)
    compute = dtypes.float32 if dtype == "float16" else x.dtype
    source = of_operands(core.kernel_operand(x))
    both = of_operands(core.kernel_operand(x), core.kernel_operand(x))
    dims = (1, 2) if dtype == "float32" else (2,) if schedule == "row" else (1,)
    for d in dims:
        s = _softmax(a.astype(np.float64), d)
        tol = 2e-3 if dtype == "float16" else 1e-5

        def run(kind: Any, given: Any) -> Any:
            found = rowwise.run(backend, kind, given, (d,), compute, x.dtype, schedule=schedule)  # noqa: B023
            return core.result(found.all, x.device)

        close(run(row_kinds.SOFTMAX, source), s, tol)
        close(run(row_kinds.LOG_SOFTMAX, source), np.log(s), 2 * tol)
        v = a.astype(np.float64)
        close(
            run(row_kinds.SOFTMAX_BACK, both),
            v * (v - (v * v).sum(axis=d, keepdims=True)),
            20 * tol,
        )


@pytest.mark.parametrize(("dtype", "bits", "least"), [("bfloat16", 8, -133), ("float16", 11, -24)])
def test_16_bits_are_rounded_as_if_once(dtype: str, bits: int, least: int) -> None:
    """The exponential is a shorter approximation than that of float32. It may change a result only where the exact one
    lies close to the middle between two numbers.
    """
    wide = np.linspace(-60, 0, 601, dtype=np.float32)[None] * [[1.0], [0.2], [2.0]]
    for a in (data(33, 1030) * 4, wide, data(40, 17) * 20 + 700):
        x = on_device(a.astype(np.float32)).to(getattr(ct, dtype))
        exact = _softmax(x.float().cpu().numpy().astype(np.float64), 1)
        # A log_softmax near 0 is the logarithm of a sum near 1, which float32 rounds.
        for found, wanted, lost in (
            (x.softmax(1), exact, 0),
            (x.log_softmax(1), np.log(exact), 1e-6),
        ):
            place = np.floor(np.log2(np.maximum(np.abs(wanted), 1e-300))) - bits + 1
            unit = np.maximum(np.exp2(np.maximum(place, least)), lost)
            off = np.abs(found.float().cpu().numpy() - wanted) / unit
            assert off.max() <= 0.51, (off.max(), a.shape)
    bad = on_device(np.float32([[np.nan, 1, 2], [-np.inf, 0, 0], [np.inf, 0, 1], [-np.inf] * 3]))
    found = bad.to(getattr(ct, dtype)).softmax(1).float().cpu().numpy()
    assert np.isnan(found[[0, 2, 3]]).all()
    np.testing.assert_array_equal(found[1], [0, 0.5, 0.5])


def test_extreme_inputs() -> None:
    x = ct.tensor([[1000.0, 0.0, -1000.0], [-float("inf"), 0.0, 0.0]])
    close(x.softmax(1), [[1, 0, 0], [0, 0.5, 0.5]])
    assert np.isnan(ct.tensor([float("nan"), 1.0]).softmax(0).tolist()).all()
    assert ct.zeros(0, 3).softmax(1).shape == (0, 3)


def test_one_launch_and_no_new_kernel_for_another_shape() -> None:
    def step(n: int, m: int) -> tuple[int, int]:
        x = ct.ones(n, m) * 2
        x.data_ptr()
        before = STATS.launches, STATS.builds
        assert x.softmax(1)[0, 0].item() == pytest.approx(1 / m)
        return STATS.launches - before[0], STATS.builds - before[1]

    step(10, 70)  # GPU kernels are built for elements per lane: five, of 16 lanes, for 70 and 75
    assert step(12, 75) == (1, 0)


def _target() -> Any:
    return on_device(data(4, 3, seed=1, dtype="float64"))


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.softmax(1), lambda x: x.log_softmax(0), lambda x: losses.mse_loss(x, _target()), lambda x: losses.smooth_l1_loss(x, _target()),
        lambda x: losses.cross_entropy(x, ct.tensor([0, -100, 1, 1]), ct.tensor([0.5, 1.0, 2.0], dtype=ct.float64)),
        lambda x: losses.binary_cross_entropy_with_logits(x, _target().sigmoid()), lambda x: losses.huber_loss(x, _target(), reduction="sum"),
        lambda x: losses.cross_entropy(x, _target().softmax(1), label_smoothing=0.1), lambda x: losses.binary_cross_entropy(x.sigmoid(), _target().sigmoid()),
    ],
)  # fmt: skip
def test_gradients(fn: Any) -> None:
    x = on_device(data(4, 3, dtype="float64")).requires_grad_(True)
    assert ct.autograd.gradcheck(fn, (x,))
    assert ct.autograd.gradgradcheck(fn, (x,))


def test_cross_entropy_graph_and_errors() -> None:
    x = ct.tensor(data(4, 3).tolist(), requires_grad=True)
    loss = losses.cross_entropy(x, ct.tensor([0, 1, 2, 0]))
    assert loss.grad_fn.name() == "NllLossBackward0"
    assert loss.grad_fn.next_functions[0][0].name() == "LogSoftmaxBackward0"
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        losses.cross_entropy(x, ct.tensor([0, 1, 7, 0])).item()
    targets = ct.tensor([2, 2, 0, 1, 2, 0])
    found, expected = (losses.cross_entropy(x, v) for v in (targets[2:], targets[2:].clone()))
    assert found.item() == expected.item()
    for bad in (-1, 3):
        with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
            losses.cross_entropy(x, ct.tensor([0, 1, bad, 0])).item()
    with pytest.raises(
        ValueError, match=r"Expected input batch_size \(4\) to match target batch_size \(2\)."
    ):
        losses.cross_entropy(x, ct.tensor([0, 1]))
