"""Learning rates over 200 steps are equal to torch's to the last bit, and so are momenta, saved state, warnings and errors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from parity.oracle import Ran, assert_same_error, first_line, lines, th
from support import ct

# L is optim.lr_scheduler, S optim.swa_utils, o an SGD of two groups with momentum (lr 0.5 and 0.05).
SCHEDULES = """
L.LambdaLR(o, lambda e: 0.95 ** e)
L.LambdaLR(o, [lambda e: 0.95 ** e, lambda e: 1 / (e + 1)])
L.MultiplicativeLR(o, lambda e: 0.97)
L.StepLR(o, 7, 0.3)
L.MultiStepLR(o, [3, 8, 8, 60], 0.5)
L.ConstantLR(o, 0.3, 11)
L.LinearLR(o, 0.2, 0.9, 50)
L.ExponentialLR(o, 0.98)
L.PolynomialLR(o, 90, 0.7)
L.CosineAnnealingLR(o, 23, 0.01)
L.CosineAnnealingWarmRestarts(o, 5, 2, 0.01)
L.CosineAnnealingWarmRestarts(o, 9)
L.CyclicLR(o, 0.01, 0.3, 13, 5)
L.CyclicLR(o, [0.01, 0.02], [0.3, 0.4], 13, mode='triangular2', base_momentum=0.7)
L.CyclicLR(o, 0.01, 0.3, 8, mode='exp_range', gamma=0.99, cycle_momentum=False)
L.CyclicLR(o, 0.01, 0.3, 8, scale_fn=lambda x: 0.5 ** x, scale_mode='cycle')
L.OneCycleLR(o, 0.8, total_steps=210)
L.OneCycleLR(o, [0.8, 0.2], epochs=21, steps_per_epoch=10, three_phase=True, anneal_strategy='linear', pct_start=0.2)
L.SequentialLR(o, [L.LinearLR(o, 0.1, 1.0, 10), L.StepLR(o, 20, 0.5), L.CosineAnnealingLR(o, 30)], [10, 90])
L.SequentialLR(o, [L.ChainedScheduler([L.ConstantLR(o), L.ExponentialLR(o, 0.9)]), L.ExponentialLR(o, 0.99)], [4])
L.ChainedScheduler([L.ConstantLR(o, 0.1, 5), L.ExponentialLR(o, 0.97)])
S.SWALR(o, 0.01)
S.SWALR(o, [0.01, 0.2], 4, 'linear')
"""

# Schedulers with a closed form, which `step(epoch)` uses.
CLOSED = """
L.StepLR(o, 7, 0.3)
L.MultiStepLR(o, [3, 8, 8, 60], 0.5)
L.ConstantLR(o, 0.3, 11)
L.LinearLR(o, 0.2, 0.9, 50)
L.ExponentialLR(o, 0.98)
L.PolynomialLR(o, 90, 0.7)
L.CosineAnnealingLR(o, 23, 0.01)
L.CosineAnnealingWarmRestarts(o, 5, 2, 0.01)
L.LambdaLR(o, lambda e: 0.95 ** e)
"""

PLATEAUS = """
L.ReduceLROnPlateau(o, patience=3)
L.ReduceLROnPlateau(o, 'max', 0.5, 2, 0.1, 'abs', cooldown=4, min_lr=0.001)
L.ReduceLROnPlateau(o, 'max', 0.7, 1, threshold=0.2, min_lr=[0.1, 0.01], eps=1e-3)
L.ReduceLROnPlateau(o, 'min', 0.9, 0, 0.05, 'abs')
"""

ERRORS = """
S.SWALR(o, 0.01, -1)
S.SWALR(o, [0.01])
S.SWALR(o, 0.01, anneal_strategy='x')
L.StepLR(3, 7)
L.LambdaLR(o, [lambda e: 1.0])
L.MultiplicativeLR(o, 3)
L.StepLR(o, 7, last_epoch=4)
L.ConstantLR(o, 1.5)
L.LinearLR(o, 0.0)
L.LinearLR(o, 0.5, -0.1)
L.SequentialLR(o, [], [])
L.SequentialLR(o, [L.StepLR(o, 2)], [1])
L.SequentialLR(o, [L.ReduceLROnPlateau(o)], [])
L.SequentialLR(o, [3], [])
L.ChainedScheduler([])
L.ChainedScheduler([L.ReduceLROnPlateau(o)])
L.ReduceLROnPlateau(o, 'up')
L.ReduceLROnPlateau(o, factor=1.0)
L.ReduceLROnPlateau(o, threshold_mode='x')
L.ReduceLROnPlateau(o, min_lr=[0.1])
L.CyclicLR(o, 0.1, [0.2], 5)
L.CyclicLR(o, 0.1, 0.2, 5, mode='x')
L.CosineAnnealingWarmRestarts(o, 0)
L.CosineAnnealingWarmRestarts(o, 3, 0)
L.CosineAnnealingWarmRestarts(o, 3, 1, '0')
L.CosineAnnealingWarmRestarts(o, 3).step(-1)
L.OneCycleLR(o, 0.1)
L.OneCycleLR(o, 0.1, 0)
L.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3)
L.OneCycleLR(o, 0.1, 10, pct_start=2.0)
L.OneCycleLR(o, 0.1, 10, anneal_strategy='x')
[s.step() for s in [L.OneCycleLR(o, 0.1, 3)] for _ in range(6)]
"""


def optimizer(module: Any, kind: str = "SGD") -> Any:
    a, b = (module.zeros(2, requires_grad=True) for _ in range(2))
    return getattr(module.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.05}], lr=0.5)


def names(module: Any, o: Any) -> dict[str, Any]:
    return {"L": module.optim.lr_scheduler, "S": module.optim.swa_utils, "o": o}


def build(module: Any, line: str, kind: str = "SGD") -> tuple[Any, Any]:
    o = optimizer(module, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return o, eval(line, names(module, o))


def rates(o: Any) -> list[tuple]:
    return [(g["lr"], g.get("momentum"), g.get("betas")) for g in o.param_groups]


def plain(state: Any) -> Any:
    """Return a saved state without the bound methods in it, which differ between objects."""
    if isinstance(state, dict):
        return {k: plain(v) for k, v in state.items() if not callable(v)}
    return [plain(v) for v in state] if isinstance(state, list) else state


@pytest.mark.parametrize("line", lines(SCHEDULES))
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_rates(line: str, kind: str) -> None:
    (o, s), (to, ts) = build(ct, line, kind), build(th, line, kind)
    assert rates(o) == rates(to)
    o.step(), to.step()
    for step in range(200):
        if step == 77:  # loading one's own state changes nothing
            s.load_state_dict(s.state_dict())
        s.step(), ts.step()
        assert rates(o) == rates(to), f"step {step}"
        assert s.get_last_lr() == ts.get_last_lr()
    mine, theirs = plain(s.state_dict()), plain(ts.state_dict())
    assert list(mine.items()) == list(theirs.items())


@pytest.mark.parametrize("line", lines(CLOSED))
def test_closed_forms(line: str) -> None:
    (o, s), (to, ts) = build(ct, line), build(th, line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for epoch in (3, 1, 12, 40, 88, 7):
            s.step(epoch), ts.step(epoch)
            assert rates(o) == rates(to), f"epoch {epoch}"


@pytest.mark.parametrize("line", lines(PLATEAUS))
def test_plateaus(line: str) -> None:
    (o, s), (to, ts) = build(ct, line), build(th, line)
    for step in range(60):
        metric = (step * 37 % 11) / 3 + (step < 9) * 2
        s.step(metric), ts.step(metric)
        assert rates(o) == rates(to)
    assert list(s.state_dict().items()) == list(ts.state_dict().items())


def test_a_tensor_rate_is_filled_in_place() -> None:
    found = []
    for module in (ct, th):
        rate = module.tensor(0.5)
        o = module.optim.Adam([module.zeros(2, requires_grad=True)], lr=rate)
        s = module.optim.lr_scheduler.ExponentialLR(o, 0.5)
        o.step(), s.step(), s.step()
        assert o.param_groups[0]["lr"] is rate
        found.append((rate.item(), [v.item() for v in s.get_last_lr()]))
    assert found[0] == found[1]


@pytest.mark.parametrize("line", lines(ERRORS))
def test_errors(line: str) -> None:
    def program(module: Any) -> Any:
        return eval(line, names(module, optimizer(module)))

    found, expected = Ran(ct, program), Ran(th, program)
    assert_same_error(found, expected)
    if " has SGD" not in str(expected.error):
        assert first_line(found.error) == first_line(expected.error)


def test_warnings() -> None:
    def wrong_order(module: Any) -> None:
        s = module.optim.lr_scheduler.StepLR(optimizer(module), 3)
        s.step(), s.step()

    def overridden(module: Any) -> None:
        o = optimizer(module)
        s = module.optim.lr_scheduler.StepLR(o, 3)
        o.step = lambda: None
        s.step()

    def direct(module: Any) -> None:
        o = optimizer(module)
        s = module.optim.lr_scheduler.StepLR(o, 3)
        o.step(), s.get_lr(), s.step(4)

    for program in (wrong_order, overridden, direct):
        found, expected = Ran(ct, program), Ran(th, program)
        assert found.error is None
        assert found.warnings == expected.warnings
