"""Learning-rate schedulers against closed forms; what they save and refuse. tests/parity compares them with torch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cltensor as torch
from cltensor.optim import lr_scheduler as schedules

STEPS = 40


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def optimizer(lr: Any = 0.5) -> Any:
    return torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr)


def rates(make: Callable[[Any], Any], steps: int = STEPS) -> list[float]:
    o = optimizer()
    s = make(o)
    found = []
    for _ in range(steps):
        found.append(o.param_groups[0]["lr"])
        assert s.get_last_lr() == [found[-1]]
        s.step()
    return found


CASES: list[tuple[Callable, Callable]] = [
    (lambda o: schedules.StepLR(o, 7, 0.3), lambda t: 0.3 ** (t // 7)),
    (lambda o: schedules.MultiStepLR(o, [3, 20], 0.1), lambda t: 0.1 ** ((t >= 3) + (t >= 20))),
    (lambda o: schedules.ConstantLR(o, 0.25, 9), lambda t: 0.25 if t < 9 else 1),
    (lambda o: schedules.LinearLR(o, 0.2, 0.8, 10), lambda t: 0.2 + 0.06 * min(t, 10)),
    (lambda o: schedules.ExponentialLR(o, 0.9), lambda t: 0.9**t),
    (lambda o: schedules.PolynomialLR(o, 30, 2.0), lambda t: max(0.0, 1 - t / 30) ** 2),
    (lambda o: schedules.LambdaLR(o, lambda t: 1 / (t + 1)), lambda t: 1 / (t + 1)),
    (lambda o: schedules.MultiplicativeLR(o, lambda t: 0.5), lambda t: 0.5**t),
    (lambda o: schedules.CosineAnnealingLR(o, 13), lambda t: (1 + math.cos(math.pi * t / 13)) / 2),
    (
        lambda o: schedules.CosineAnnealingWarmRestarts(o, 8),
        lambda t: (1 + math.cos(math.pi * (t % 8) / 8)) / 2,
    ),
    (
        lambda o: schedules.SequentialLR(
            o, [schedules.ConstantLR(o, 0.1, 99), schedules.ExponentialLR(o, 0.9)], [5]
        ),
        lambda t: 0.1 if t < 5 else 0.9 ** (t - 5),
    ),
    (
        lambda o: schedules.ChainedScheduler(
            [schedules.StepLR(o, 4, 0.5), schedules.ExponentialLR(o, 0.9)]
        ),
        lambda t: 0.5 ** (t // 4) * 0.9**t,
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_closed_forms(case: tuple[Callable, Callable]) -> None:
    make, factor = case
    for t, found in enumerate(rates(make)):
        assert found == pytest.approx(0.5 * factor(t), rel=1e-9, abs=1e-12), t


def test_cycles() -> None:
    found = rates(lambda o: schedules.CyclicLR(o, 0.1, 0.5, 4, 2, cycle_momentum=False), 13)
    assert found == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.3] * 2 + [0.1])
    o = torch.optim.SGD([torch.zeros(2, requires_grad=True)], 0.5, momentum=0.9)
    s = schedules.OneCycleLR(o, 1.0, total_steps=11, pct_start=0.5)
    peak, low = 0.0, 1.0
    for _ in range(10):
        s.step()
        peak = max(peak, o.param_groups[0]["lr"])
        low = min(low, o.param_groups[0]["momentum"])
    assert (peak, low) == pytest.approx((1.0, 0.85), abs=0.03)
    assert o.param_groups[0]["lr"] == pytest.approx(1 / 25 / 1e4)
    s.step()
    with pytest.raises(ValueError, match="Tried to step 12 times"):
        s.step()


def test_plateau() -> None:
    o = optimizer(1.0)
    s = schedules.ReduceLROnPlateau(o, patience=1, factor=0.5, cooldown=1, min_lr=0.2)
    found = []
    for metric in [3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]:
        s.step(torch.tensor(float(metric)))
        found.append(o.param_groups[0]["lr"])
    assert found == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2]


def test_saving_and_loading() -> None:
    class Half:
        def __init__(self) -> None:
            self.base = 0.5

        def __call__(self, epoch: int) -> float:
            return self.base**epoch

    for make in (lambda o: schedules.LambdaLR(o, Half()), lambda o: schedules.StepLR(o, 3)):
        o, other = optimizer(), optimizer()
        s, fresh = make(o), make(other)
        for _ in range(4):
            s.step()
        saved = s.state_dict()
        assert "optimizer" not in saved
        fresh.load_state_dict(saved)
        other.load_state_dict(o.state_dict())
        for _ in range(3):
            s.step(), fresh.step()
            assert o.param_groups[0]["lr"] == other.param_groups[0]["lr"]


def test_warnings_about_the_order_of_steps() -> None:
    o = optimizer()
    s = schedules.StepLR(o, 3)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        s.step()
    with pytest.warns(UserWarning, match="use `get_last_lr"):
        s.get_lr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        o = optimizer()
        s = schedules.StepLR(o, 3)
        o.step()
        s.step()


def test_refusals() -> None:
    with pytest.raises(TypeError, match="is not an Optimizer"):
        schedules.StepLR(3, 1)
    with pytest.raises(KeyError, match="initial_lr"):
        schedules.StepLR(optimizer(), 1, last_epoch=3)
    with pytest.raises(ValueError, match="Expected 1 lr_lambdas"):
        schedules.LambdaLR(optimizer(), [abs, abs])
