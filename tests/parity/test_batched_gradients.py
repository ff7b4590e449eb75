"""Gradients for several weights in one pass (`is_grads_batched`), and Jacobians: values and errors as in torch."""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import assert_same_error, assert_same_value, evaluate
from support import ct, data

LINES = [
    "torch.autograd.grad(y(x, w), x, v, is_grads_batched=True)",
    "torch.autograd.grad(y(x, w), (x, w), v, is_grads_batched=True, create_graph=True)",
    "torch.autograd.grad(y(x, w), (x, z), v, is_grads_batched=True, allow_unused=True)",
    "torch.autograd.grad(y(x, w), (x, z), v, is_grads_batched=True, materialize_grads=True)",
    "torch.autograd.grad(torch.autograd.grad(y(x, w), x, v, is_grads_batched=True, create_graph=True)[0].pow(2).sum(), (x, w))",
    "torch.autograd.grad((y(x, w), x.exp()), x, (v, u), is_grads_batched=True)",
    "torch.autograd.functional.jacobian(y, (x, w), vectorize=True)",
    "torch.autograd.functional.jacobian(lambda a: (a.exp(), a.sum(0)), x, vectorize=True, create_graph=True)",
    "torch.autograd.functional.jacobian(lambda a: torch.ones(2), x, vectorize=True)",
    "torch.autograd.functional.hessian(lambda a, b: y(a, b).pow(2).sum(), (x, w), vectorize=True)",
    "torch.autograd.functional.hessian(lambda a, b: y(a, b).pow(2).sum(), (x, w), vectorize=True, outer_jacobian_strategy='forward-mode')",
]  # fmt: skip
ERRORS = [
    "torch.autograd.grad(y(x, w), (x, z), v, is_grads_batched=True)",
    "torch.autograd.grad(y(x, w), x, v[:, 0], is_grads_batched=True)",
]


def _both(line: str) -> Any:
    head = "(lambda x, w, z, y: {})(x.requires_grad_(), w.requires_grad_(), z.requires_grad_(), lambda a, b: torch.tanh(a @ b))"
    arrays = {"x": data(3, 4), "w": data(4, 2, seed=1), "z": data(2, seed=2), "v": data(6, 3, 2, seed=3), "u": data(6, 3, 4, seed=4)}  # fmt: skip
    return evaluate(head.format(line), arrays)


@pytest.mark.parametrize("line", LINES)
def test_values(line: str) -> None:
    ours, theirs = _both(line)
    assert ours.error is None, ours.error
    assert_same_value(ours.value, theirs.value)


@pytest.mark.parametrize("line", ERRORS)
def test_errors(line: str) -> None:
    assert_same_error(*_both(line))


def test_the_graph_is_walked_once() -> None:
    walks = []

    class Noted(ct.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = ct.ones(3, requires_grad=True)
    y = (x * 3).sin()
    y.grad_fn.register_hook(lambda *grads: walks.append(1))
    (g,) = ct.autograd.grad(y, x, ct.eye(3), is_grads_batched=True)
    assert (len(walks), g.shape) == (1, (3, 3))
    (g,) = ct.autograd.grad(Noted.apply(x), x, ct.eye(3), is_grads_batched=True)
    assert g.cpu().tolist() == (ct.eye(3) * 2).cpu().tolist()
