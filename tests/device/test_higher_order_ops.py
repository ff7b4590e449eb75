"""Branches, loops, maps and scans with a program's own functions."""

from __future__ import annotations

import re
from typing import Any

import pytest

import cltensor as torch
from cltensor._higher_order_ops import associative_scan, scan, while_loop
from cltensor._higher_order_ops import map as map_slices
from cltensor.testing import assert_close

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8])
def test_sums_and_products_from_either_end(n: int, dev: Any) -> None:
    x = torch.arange(1.0, 2 * n + 1, device=dev).view(2, n) / 4
    assert_close(associative_scan(lambda a, b: a + b, x, 1), x.cumsum(1))
    assert_close(associative_scan(torch.mul, x, -1, reverse=True), x.flip(1).cumprod(1).flip(1))


def test_a_linear_recurrence_is_a_scan_of_pairs(dev: Any) -> None:
    torch.manual_seed(0)
    a, b = (torch.rand(5, 3, device=dev, requires_grad=True) for _ in range(2))

    def step(left: Any, right: Any) -> Any:
        return left[0] * right[0], left[1] * right[0] + right[1]

    _, found = associative_scan(step, (a, b), 0)
    state, states = torch.zeros(3, device=dev), []
    for i in range(5):
        state = a[i] * state + b[i]
        states.append(state)
    expected = torch.stack(states)
    assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad(found.square().sum(), (a, b)),
        torch.autograd.grad(expected.square().sum(), (a, b)),
        strict=True,
    ):
        assert_close(one, other)


def test_what_cannot_be_scanned() -> None:
    for call in (
        lambda: associative_scan(3, torch.ones(2), 0),
        lambda: associative_scan(torch.add, [1, 2], 0),
        lambda: associative_scan(torch.add, torch.ones(2), 0, combine_mode="other"),
        lambda: associative_scan(torch.add, torch.ones(0), 0),
    ):
        with pytest.raises(ValueError):
            call()


def test_a_branch_is_chosen_by_data_and_has_a_gradient(dev: Any) -> None:
    x = torch.tensor([1.0, 2.0], device=dev, requires_grad=True)
    for bound, expected in ((0, [2.0, 4.0]), (9, [3.0, 3.0])):
        y = torch.cond(x.sum() > bound, lambda t: t * t, lambda t: t * 3, (x,))
        (grad,) = torch.autograd.grad(y.sum(), x)
        assert grad.tolist() == expected
    for call, text in (
        (lambda: torch.cond("a", abs, abs, (x,)), "Expected pred to be bool or tensor, but got a."),
        (
            lambda: torch.cond(x > 0, abs, abs, (x,)),
            "Expected pred to be bool or single-element tensor",
        ),
        (lambda: torch.cond(x.sum() > 0, 3, abs, (x,)), "Expect both branches to be callable."),
        (
            lambda: torch.cond(x.sum() > 0, abs, abs, x),
            "Expect operands to be a tuple of possibly nested",
        ),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_a_loop_runs_while_its_condition_holds(dev: Any) -> None:
    x = torch.tensor([1.0, 2.0], device=dev)
    start = (torch.tensor(0, device=dev), {"x": x})

    def body(i: Any, state: Any) -> Any:
        return i + 1, {"x": state["x"] * 2}

    i, state = while_loop(lambda i, _: i < 3, body, start)
    assert (i.item(), state["x"].tolist()) == (3, [8.0, 16.0])
    i, state = while_loop(lambda i, _: i > 3, body, start)
    assert i.item() == 0 and state["x"] is not x and state["x"].tolist() == [1.0, 2.0]
    for call, text in (
        (
            lambda: while_loop(lambda i, _: i < 3, 3, start),
            "Expect cond_fn and body_fn to be callable.",
        ),
        (
            lambda: while_loop(lambda i, _: i, body, start),
            "cond_fn must return a boolean scalar tensor",
        ),
        (lambda: while_loop(lambda i, _: i < 3, lambda i, _: (i,), start), "tuple of 2 elements"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    with pytest.raises(AssertionError, match="can only be of"):
        while_loop(lambda *_: True, body, ("a",))


def test_a_map_stacks_what_a_function_makes_of_slices(dev: Any) -> None:
    x = torch.arange(6.0, device=dev).view(3, 2)
    found = map_slices(lambda t, k: {"a": t[0] * k, "b": t[1].sum()}, (x, x + 1), 2)
    assert_close(found["a"], x * 2)
    assert_close(found["b"], (x + 1).sum(1))
    for xs, text in (
        ([x, 2], "Mapped xs can only consist of tensors."),
        (x[:0], "Leading dimensions of mapped xs cannot be 0."),
        ([x, x.t()], "Leading dimensions of mapped xs must be consistent."),
    ):
        with pytest.raises(RuntimeError, match=text):
            map_slices(abs, xs)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_with_a_carry(dim: int, reverse: bool, dev: Any) -> None:
    x = torch.arange(6.0, device=dev).view(3, 2).requires_grad_()
    init = x.detach().sum(dim) * 0

    def combine(carry: Any, t: Any) -> Any:
        return carry + t, {"y": (carry + t) * 2}

    carry, results = scan(combine, init, x, dim=dim, reverse=reverse)
    sums = (x.flip(dim) if reverse else x).cumsum(dim)
    assert_close(carry, x.sum(dim))
    assert_close(results["y"], (sums.flip(dim) if reverse else sums) * 2)
    (found,) = torch.autograd.grad(results["y"].square().sum(), x)
    (expected,) = torch.autograd.grad((sums * 2).square().sum(), x)
    assert_close(found, expected)


def test_what_cannot_be_scanned_with_a_carry() -> None:
    x, zero = torch.ones(2, 2), torch.zeros(2)
    assert scan(torch.add, zero, []) == (zero, [])
    for call, text in (
        (lambda: scan(3, zero, x), "Combine_fn must be a callable, but got 3"),
        (lambda: scan(torch.add, (), x), "scan() operator requires init leaves."),
        (lambda: scan(torch.add, 3, x), "All init leaves must be a Tensor but got 3"),
        (lambda: scan(torch.add, zero, [x, 3]), "All xs leaves must be a Tensor but got 3"),
        (lambda: scan(torch.add, zero, x[:0]), "scan dimension > 0"),
        (
            lambda: scan(torch.add, zero, x, reverse=3),
            "Reverse must be a bool, but got <class 'int'>",
        ),
    ):
        with pytest.raises(RuntimeError, match=re.escape(text)):
            call()
