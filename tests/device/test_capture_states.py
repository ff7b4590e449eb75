"""State that recorded functions share with code outside: gradients, versions, step counts of optimisers, replaced
memory, threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import cltensor as torch
from cltensor.runtime import get_backend


def gradients(optimizer: Any, p: Any, kind: str) -> Callable[[Any], Any]:
    """Return a training step that is captured in part: the update, which finds gradients, or the backward pass, which
    leaves gradients to the rest of the step.
    """

    def backward(x: Any) -> Any:
        loss = (p * x).square().sum() + (p * x).sum()
        loss.backward()
        return loss

    if kind == "update":
        update = torch.capture(optimizer.step)

        def run(x: Any) -> Any:
            optimizer.zero_grad()
            loss = backward(x)
            update()
            return loss

        return run
    captured = torch.capture(backward)

    def rest(x: Any) -> Any:
        optimizer.zero_grad(set_to_none=kind != "zeros")
        loss = captured(x)
        if kind != "once":
            captured(x * 2)
        optimizer.step()
        return loss

    return rest


@pytest.mark.parametrize("kind", ["once", "twice", "zeros", "update"])
def test_gradients_are_those_of_the_call(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for captured in (False, True):
        p = torch.linspace(-1, 1, 5).requires_grad_()
        optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.5)
        with monkeypatch.context() as patch:
            if not captured:
                patch.setattr(torch, "capture", lambda fn: fn)
            run = gradients(optimizer, p, kind)
        kept = []
        for k in range(7):
            kept.append((run(torch.full((5,), 0.5 + k)), p.grad, p.detach().clone()))
            if k == 4:
                p.data = torch.linspace(0, 1, 5)
        found.append([[t.tolist() for t in row] for row in kept])
    assert found[0] == found[1]


def test_gradients_that_are_returned_or_given() -> None:
    p = torch.zeros(3, requires_grad=True)

    @torch.capture
    def returned(x: Any) -> Any:
        p.grad = None
        (p * x).sum().backward()
        return p.grad

    @torch.capture
    def given(x: Any) -> None:
        p.grad = x

    for k in range(4):
        g = returned(torch.full((3,), float(k)))
        assert g.tolist() == p.grad.tolist() == [k] * 3
    for k in range(4):
        x = torch.full((3,), float(k))
        given(x)
        x += 1
        assert p.grad.tolist() == [k + 1] * 3


def test_a_play_makes_saved_tensors_stale() -> None:
    p = torch.ones(3, requires_grad=True)

    @torch.capture
    def step(x: Any) -> None:
        with torch.no_grad():
            p.sub_(x)

    q = torch.ones(3, requires_grad=True)
    for _ in range(4):
        y, version = (p * q).sum(), p._version
        step(torch.ones(3))
        assert p._version == version + 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_two_recordings_count_the_steps_of_one_optimiser() -> None:
    found = []
    for captured in (False, True):
        a, b = (torch.zeros(3, requires_grad=True) for _ in range(2))
        optimizer = torch.optim.Adam([a, b], lr=0.1, capturable=True)

        def step(x: Any, a: Any = a, b: Any = b, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            ((a * x[0]).sum() if x.shape[0] < 3 else (a * x[1] + b).sum()).backward()
            optimizer.step()

        run = torch.capture(step) if captured else step
        for n in (2, 2, 2, 3, 2, 3, 3, 2, 3):
            run(torch.ones(n))
        found.append((a.tolist(), b.tolist()))
    assert found[0] == found[1]


def test_what_took_the_place_of_something_recorded_is_used() -> None:
    found = []
    for captured in (False, True):
        model = torch.nn.Linear(3, 2)
        model.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})
        model.bias.requires_grad_(False)
        optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1), capturable=True)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        run, losses, seen = torch.capture(step) if captured else step, [], []
        for k in range(9):
            if k == 3:
                model.bias.data = torch.ones(2)
            elif k == 4:  # the call adds to a gradient that is there before
                model.weight.grad = torch.ones(2, 3)
            elif k == 5:
                optimizer.load_state_dict(optimizer.state_dict())
            elif k == 6:
                optimizer.param_groups[0]["lr"].mul_(0.5)
            elif k == 7:
                model.weight.data.mul_(0.5)
                seen.append(model.weight.detach().cpu().numpy())
            losses.append(run(torch.ones(1, 3)).item())
        same_memory = model.weight.device.type == "cpu"
        found.append((losses, seen[0].tolist() if same_memory else None))
    assert found[0] == found[1]


def test_another_thread_uses_another_device_while_a_function_is_recorded() -> None:
    here = torch.ones(1).device.type
    x = torch.ones(64, device="opencl:0" if here == "cpu" else "cpu")
    found: list[Any] = []

    def work() -> None:
        table = torch.arange(4, device=x.device)
        found.append((x * 2).cumsum(0)[-1].item())
        found.append(torch.take(table, torch.tensor([3], device=x.device)).item())

    def f(y: Any) -> Any:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return y + 1

    work()
    g = torch.capture(f)
    assert [g(torch.ones(2)).tolist() for _ in range(3)] == [[2, 2]] * 3
    assert found == [128, 3] * 3
    rows = torch.capture(lambda i: torch.ones(4)[i])
    results: list[Any] = [rows(torch.tensor([1])), rows(torch.tensor([2]))]
    thread = threading.Thread(target=lambda: results.append(rows(torch.tensor([3]))))
    thread.start()
    thread.join()
    assert [t.tolist() for t in results] == [[1]] * 3


@pytest.mark.parametrize("returns", [True, False])
def test_a_function_without_arguments_is_recorded_where_it_computes(returns: bool) -> None:
    here = torch.ones(1).device.type
    p = torch.ones(3, device="opencl:0" if here == "cpu" else "cpu", requires_grad=True)
    step = torch.optim.SGD([p], lr=0.25)

    @torch.capture
    def train() -> Any:
        step.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        step.step()
        return loss.detach() if returns else None

    for k in range(1, 5):
        train()
        assert p.tolist() == [0.5**k] * 3


def test_what_has_its_place_alone_is_not_copied(dev: Any) -> None:
    """Gradients and results of the call that records are not copied out of the recording's arena, if nothing else was
    put into their memory during the recording.
    """
    n = 1 << 18
    p = torch.ones(n, device=dev, requires_grad=True)

    @torch.capture
    def step(x: Any) -> Any:
        p.grad = None
        (p * x).sum().backward()
        return x * 3

    pool = get_backend(dev).pool
    x = torch.full((n,), 2.0, device=dev)
    step(x)
    torch.opencl.synchronize()
    before = pool.held
    first = step(x)
    assert pool.held - before <= 3 * 4 * n  # a copy of x, the gradient, the result
    kept = p.grad
    later = step(x * 2)
    assert [float(t[5].item()) for t in (first, later, kept, p.grad)] == [6, 12, 2, 4]
