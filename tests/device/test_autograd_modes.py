"""Grad modes: contexts, decorators, generators, inference mode, anomaly detection."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from support import close, leaf
from support import ct as torch


def test_contexts_nest() -> None:
    x = leaf(1.0)
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    assert torch.is_grad_enabled()


def test_a_mode_is_of_its_thread_alone() -> None:
    x = leaf(1.0)
    off, seen = threading.Event(), threading.Event()
    found: list[bool] = []

    def other() -> None:
        found.append((x * 2).requires_grad)
        with torch.no_grad():
            off.set()
            seen.wait(10)
            found.extend(((x * 2).requires_grad, x.view(1).grad_fn is not None))
        found.append((x * 2).requires_grad)
        torch.set_grad_enabled(False)  # a thread that ends so leaves the others as they are

    thread = threading.Thread(target=other)
    thread.start()
    off.wait(10)
    assert (x * 2).requires_grad
    assert x.view(1).grad_fn is not None
    seen.set()
    thread.join()
    assert found == [True, False, False, True]
    assert (x * 2).requires_grad
    later: list[bool] = []
    thread = threading.Thread(target=lambda: later.append((x * 2).requires_grad))
    thread.start()
    thread.join()
    assert later == [True]


def test_context_ends_on_an_error() -> None:
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        raise ZeroDivisionError
    assert torch.is_grad_enabled()


def test_decorators() -> None:
    @torch.no_grad()
    def called() -> bool:
        return torch.is_grad_enabled()

    @torch.no_grad
    def bare() -> bool:
        return torch.is_grad_enabled()

    @torch.set_grad_enabled(False)
    def switched() -> bool:
        """Say so."""
        return torch.is_grad_enabled()

    @torch.inference_mode
    def inferred() -> bool:
        return torch.is_inference_mode_enabled()

    assert torch.is_grad_enabled()
    assert not called()
    assert not bare()
    assert not switched()
    assert switched.__doc__ == "Say so."
    assert inferred()
    assert torch.is_grad_enabled()


def test_modes_take_bools() -> None:
    with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool, not int"):
        torch.set_grad_enabled(1)
    assert torch.is_grad_enabled()


def test_generator_leaves_its_consumer_alone() -> None:
    @torch.no_grad()
    def values() -> Iterator[Any]:
        got = yield torch.is_grad_enabled()
        while True:
            got = yield (torch.is_grad_enabled(), got)

    gen: Any = values()
    assert next(gen) is False
    assert torch.is_grad_enabled()
    assert gen.send(5) == (False, 5)
    assert torch.is_grad_enabled()
    gen.close()


def test_results_do_not_go_into_inference_tensors_outside() -> None:
    with torch.inference_mode():
        out = torch.zeros(2)
        torch.exp(torch.zeros(2), out=out)
    for write in (lambda: torch.exp(torch.zeros(2), out=out), lambda: torch.mm(*[torch.eye(2)] * 2, out=out)):  # fmt: skip
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
            write()


def test_inference_mode() -> None:
    x = leaf(1.0, 2.0)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()
        y = x * 2
        y.add_(1)
        v = x[:1]
    assert y.is_inference()
    assert not v.is_inference()
    assert not x.is_inference()
    assert not y.requires_grad
    close(y, [3, 5])
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        y.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = y._version
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        _ = x * y
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        y.requires_grad_()
    with torch.inference_mode(False):
        assert torch.is_grad_enabled()
    assert not (y + 1).is_inference()


def test_anomaly_names_the_forward_line() -> None:
    x = leaf(-1.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with (
            torch.autograd.detect_anomaly(),
            pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th out"),
        ):
            torch.sqrt(x).sum().backward()  # the line to blame
    texts = [str(w.message) for w in seen]
    assert any("Anomaly Detection has been enabled" in t for t in texts)
    (report,) = [t for t in texts if "Error detected in SqrtBackward0. Traceback of forward" in t]
    assert "# the line to blame" in report


def test_anomaly_reports_failing_backwards() -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ValueError("bad")

    x = leaf(1.0)
    y = Fails.apply(x)
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="No forward pass information available"),
        pytest.raises(ValueError, match="bad"),
    ):
        y.sum().backward()
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected in FailsBackward. Traceback of forward"),
        pytest.raises(ValueError, match="bad"),
    ):
        Fails.apply(x).sum().backward()


def test_anomaly_without_nan_check() -> None:
    x = leaf(-1.0)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        torch.sqrt(x).sum().backward()
    assert x.grad.isnan().all()
    assert not torch.is_anomaly_enabled() if hasattr(torch, "is_anomaly_enabled") else True


def test_numpy_of_a_leaf_needs_no_grad() -> None:
    x = torch.ones(2, requires_grad=True, device="cpu")
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with torch.no_grad():
        x.numpy()[0] = 5
    assert x.tolist() == [5, 1]


def test_data_of_a_leaf_stays_differentiable() -> None:
    x = torch.ones(2, requires_grad=True)
    x.data = torch.zeros(2)
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = torch.zeros(2, dtype=torch.int64)


def test_data_of_a_scalar_is_in_order() -> None:
    module = torch.nn.Module()
    module.scale = torch.nn.Parameter(torch.tensor(0.0))
    scale = module.scale
    for _ in range(2):  # the second call of a row is quicker
        torch.nn.functional.softplus(module.to("cpu").scale).backward()  # to() sets its data
    assert scale.grad is not None
    assert scale.grad.item() == 1
