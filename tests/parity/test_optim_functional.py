"""Functional forms of the optimisers: signatures, parameters, state and errors are torch's."""

from __future__ import annotations

import copy
import importlib
import inspect
from typing import Any

import pytest
from parity.oracle import numbers, th
from support import ct, data

FORMS = {
    "adadelta": "lr=0.5, rho=0.9, eps=1e-6, weight_decay=0.1, maximize=False",
    "adagrad": "lr=0.1, weight_decay=0.1, lr_decay=0.1, eps=1e-8, maximize=True",
    "adam": "amsgrad=True, beta1=0.9, beta2=0.99, lr=0.1, weight_decay=0.1, eps=1e-8, maximize=False",
    "adamax": "eps=1e-8, beta1=0.9, beta2=0.99, lr=0.1, weight_decay=0.1",
    "adamw": "amsgrad=False, beta1=0.3, beta2=0.99, lr=0.1, weight_decay=0.1, eps=1e-8, maximize=True",
    "asgd": "lambd=0.01, lr=0.1, t0=1.0, alpha=0.75, weight_decay=0.1",
    "nadam": "beta1=0.9, beta2=0.99, lr=0.1, weight_decay=0.1, momentum_decay=4e-3, eps=1e-8",
    "radam": "beta1=0.8, beta2=0.95, lr=0.1, weight_decay=0.1, eps=1e-8",
    "rmsprop": "lr=0.1, alpha=0.99, eps=1e-8, weight_decay=0.1, momentum=0.9, centered=True",
    "rprop": "step_size_min=1e-6, step_size_max=50, etaminus=0.5, etaplus=1.2",
    "sgd": "weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.2, nesterov=False, maximize=False",
}
SINGLE = {"state_steps": 0.0, "mus": 1.0, "etas": 0.1, "mu_products": 1.0}


def _form(torch: Any, name: str) -> Any:
    """Return the functional form of an optimiser: `torch.optim.adam.adam` for "adam"."""
    return getattr(importlib.import_module(f"{torch.__name__}.optim.{name}"), name)


def _lists(torch: Any, name: str) -> list[list[Any]]:
    """Return the lists of tensors that a functional form takes by position: parameters, gradients, state."""
    made = []
    for i, p in enumerate(inspect.signature(_form(torch, name)).parameters.values()):
        if p.default is not p.empty or p.kind is p.KEYWORD_ONLY:
            continue
        if p.name in SINGLE:
            made.append([torch.tensor(SINGLE[p.name]) for _ in range(2)])
        elif p.name == "momentum_buffer_list" and name == "sgd":
            made.append([None, None])
        else:
            full = 0.0 if i > 1 else None
            rows = [data(2, 3, seed=i), data(3, seed=i + 9)]
            made.append(
                [torch.tensor(r) if full is None else torch.full(r.shape, 0.5) for r in rows]
            )
    return made


@pytest.mark.parametrize("name", FORMS)
def test_form(name: str) -> None:
    results = []
    for torch in (th, ct):
        lists = _lists(torch, name)
        for _ in range(3):
            eval(f"form(*lists, {FORMS[name]})", {"form": _form(torch, name), "lists": lists})
        results.append([[numbers(t) for t in some] for some in lists])
    for expected, got in zip(*results, strict=True):
        for e, g in zip(expected, got, strict=True):
            assert g == pytest.approx(e, rel=2e-5, abs=1e-6)
    ours, theirs = (inspect.signature(_form(torch, name)).parameters for torch in (ct, th))
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]


def test_scaled_gradients_of_fused_steps() -> None:
    def run(torch: Any, infinite: float) -> list[Any]:
        lists = _lists(torch, "adam")
        eval(f"form(*lists, fused=True, grad_scale=scale, found_inf=inf, {FORMS['adam']})", {
            "form": _form(torch, "adam"), "lists": lists, "scale": torch.tensor(4.0), "inf": torch.tensor(infinite)})  # fmt: skip
        return [numbers(t) for some in lists for t in some]

    for infinite in (0.0, 1.0):
        for e, g in zip(run(th, infinite), run(ct, infinite), strict=True):
            assert g == pytest.approx(e, rel=2e-5, abs=1e-6)


def test_gradients_pass_through_a_differentiable_step() -> None:
    def run(torch: Any) -> Any:
        w = torch.tensor(data(3, seed=1)).requires_grad_()
        g = torch.tensor(data(3, seed=2)).requires_grad_()
        p = w.clone()
        _form(torch, "sgd")([p], [g], [None], weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.0, nesterov=True, maximize=False)  # fmt: skip
        (p * p).sum().backward()
        return [numbers(w.grad), numbers(g.grad)]

    for e, got in zip(run(th), run(ct), strict=True):
        assert got == pytest.approx(e, rel=2e-5, abs=1e-6)


def test_counters_are_tensors() -> None:
    def call(torch: Any) -> Any:
        lists = _lists(torch, "adam")
        lists[-1] = [1, 1]
        return eval(
            f"form(*lists, {FORMS['adam']})", {"form": _form(torch, "adam"), "lists": lists}
        )

    with pytest.raises(RuntimeError) as theirs:
        call(th)
    with pytest.raises(RuntimeError) as ours:
        call(ct)
    assert str(ours.value) == str(theirs.value)


def test_parameters_and_state_are_swapped_in() -> None:
    """A step on other parameters, with other settings and state, which leaves the optimiser's own as they were."""

    def program(torch: Any) -> Any:
        own, other = (torch.full((2,), v, requires_grad=True) for v in (1.0, 3.0))
        adam = torch.optim.Adam([own], lr=0.5)
        for p in (own, other):
            p.grad = torch.ones(2)
        adam.step()
        given = copy.deepcopy(adam.state_dict())
        given["param_groups"][0]["lr"] = 0.25
        swapped = torch.optim.swap_in_optimizer_params_and_state
        with swapped(adam, {"w": other}, given):
            inside = (
                [p is other for p in adam.param_groups[0]["params"]],
                adam.param_groups[0]["lr"],
            )
            adam.step()
        outside = (
            adam.param_groups[0]["params"][0] is own,
            adam.param_groups[0]["lr"],
            next(iter(adam.state)) is own,
        )
        values = [
            t.tolist() for t in (own, other, adam.state[own]["step"], given["state"][0]["step"])
        ]
        told = []
        fresh = torch.optim.Adam([own])
        none = {"state": {}, "param_groups": []}
        group = given["param_groups"]
        for optimizer, names, bad in (
            (fresh, {}, given),
            (adam, {}, given),
            (adam, {}, []),
            (adam, {}, none),
            (adam, {}, {"state": [], "param_groups": group}),
            (adam, {}, {"state": {own: {}}, "param_groups": group}),
            (adam, {}, {"state": {0: 1}, "param_groups": group}),
            (adam, {}, {"state": {}, "param_groups": {}}),
            (adam, {}, {"state": {}, "param_groups": [1]}),
            (adam, {}, {"state": {}, "param_groups": [{"params": ["a"]}]}),
            (adam, {}, {"state": {}, "param_groups": [{"params": [0, 1]}]}),
            (adam, {}, {"state": {}, "param_groups": [{"params": [0], "x": 1}]}),
            (adam, {"w": other}, {"state": {5: {}}, "param_groups": group}),
        ):
            with pytest.raises(RuntimeError) as caught, swapped(optimizer, names, bad):
                pass
            told.append(str(caught.value))
        return inside, outside, values, told

    assert program(ct) == program(th)
