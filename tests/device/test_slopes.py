"""Gradients that are one op (ops/slopes.py) equal those made of steps that are recorded, and give way to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import data

import cltensor as torch
from cltensor.runtime import STATS

F = torch.nn.functional
# name -> function of two tensors
WITH_SLOPES: dict[str, Callable[[Any, Any], Any]] = {
    "tanh": lambda x, y: x.tanh(),
    "sigmoid": lambda x, y: x.sigmoid(),
    "silu": lambda x, y: F.silu(x),
    "mish": lambda x, y: F.mish(x),
    "gelu": lambda x, y: F.gelu(x),
    "gelu by tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "logsigmoid": lambda x, y: F.logsigmoid(x),
    "erf": lambda x, y: x.erf(),
    "rsqrt": lambda x, y: x.rsqrt(),
    "reciprocal": lambda x, y: x.reciprocal(),
    "square": lambda x, y: x.square(),
    "second power": lambda x, y: x**2,
    "sqrt": lambda x, y: x.sqrt(),
    "sin": lambda x, y: x.sin(),
    "cos": lambda x, y: x.cos(),
    "cube": lambda x, y: x**3,
    "clamp": lambda x, y: x.clamp(-1, 3),
    "quotient": lambda x, y: x / y,
    "quotient of a number": lambda x, y: 2 / y,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "variances": lambda x, y: x[9:19].reshape(2, 5).var(1),
    "deviations": lambda x, y: torch.stack([x[9:14], x[:1].nan_to_num().expand(5)]).std(1),
    "logarithms of sums": lambda x, y: x[9:19].reshape(2, 5).logsumexp(1),
}
TOLERANCE = {"float64": 1e-13, "float32": 2e-6, "bfloat16": 2e-2, "float16": 4e-3}


def operands(dtype: str) -> list[Any]:
    """Ordinary numbers, some of them equal, and those at which formulas overflow, cancel or meet nan."""
    x, y = data(67, seed=1) * 3, data(67, seed=2)
    far = 30 if dtype == "float16" else 1e4  # steps in float16 overflow beyond
    x[:9] = [0, -0.0, 1, -1, 25, -25, far, -far, np.nan]
    y[20:40] = x[20:40]
    y[40:43] = np.nan
    return [torch.tensor(v).to(getattr(torch, dtype)).requires_grad_() for v in (x, y)]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float32") for name in WITH_SLOPES),
        *(("mish", "bfloat16"), ("gelu by tanh", "float16"), ("silu", "float64")),
    ],
)
def test_a_gradient_that_is_recorded_has_the_same_values(
    name: str, dtype: str, one_by_one: None
) -> None:
    xs = operands(dtype)
    result = WITH_SLOPES[name](*xs)
    g = torch.tensor(data(*result.shape, seed=3)).to(result.dtype)
    plain, recorded = (
        torch.autograd.grad(result, xs, g, create_graph=graph, retain_graph=True, allow_unused=True)
        for graph in (False, True)
    )
    for found, wanted in zip(plain, recorded, strict=True):
        if wanted is None:
            assert found is None
            continue
        assert found.dtype is wanted.dtype and not found.requires_grad
        a, b = (v.detach().double().cpu().numpy() for v in (found, wanted))
        np.testing.assert_allclose(a, b, TOLERANCE[dtype], TOLERANCE[dtype])


# They read parts of their operands, or multiply a reciprocal.
OF_SEVERAL = ("variances", "deviations", "logarithms of sums", "quotient of a number")


@pytest.mark.parametrize("name", [name for name in WITH_SLOPES if name not in OF_SEVERAL])
def test_a_gradient_is_one_launch_where_every_op_is(name: str, one_by_one: None) -> None:
    xs, g = operands("float32"), torch.tensor(data(67, seed=3))
    result = WITH_SLOPES[name](*xs)
    torch.opencl.synchronize()
    before = STATS.launches
    found = torch.autograd.grad(result, xs, g, allow_unused=True)
    torch.opencl.synchronize()
    assert STATS.launches - before == sum(slope is not None for slope in found)


@pytest.mark.parametrize("name", ["tanh", "silu", "gelu by tanh", "quotient", "maximum", "clamp"])
def test_tangents_of_a_gradient(name: str, one_by_one: None) -> None:
    """Forward over reverse gives the second derivative, though nothing is recorded while the gradient is computed."""
    x, y, t = (torch.tensor(data(7, seed=i)).double() + 3 for i in (1, 2, 3))

    def total(x: Any) -> Any:
        return (WITH_SLOPES[name](x, y + x) * x).sum()

    _, found = torch.func.jvp(torch.func.grad(total), (x,), (t,))
    leaf = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(total(leaf), leaf, create_graph=True)
    (wanted,) = torch.autograd.grad(slope, leaf, t)
    assert wanted.any().item()
    np.testing.assert_allclose(found.tolist(), wanted.tolist(), 1e-10, 1e-12)


def test_complex_gradients_are_made_of_steps() -> None:
    x = torch.tensor([0.3 + 0.4j, -1.0 + 0.5j], dtype=torch.complex128, requires_grad=True)
    for fn in (
        torch.tanh,
        torch.sigmoid,
        F.silu,
        torch.rsqrt,
        torch.reciprocal,
        torch.sqrt,
        torch.sin,
        torch.square,
    ):
        (found,) = torch.autograd.grad(fn(x), x, torch.ones_like(x))
        with torch.no_grad():
            change = (fn(x + 1e-7) - fn(x - 1e-7)) / 2e-7  # of a function of complex numbers
        np.testing.assert_allclose(found.numpy(force=True), change.conj().numpy(force=True), 1e-6)
