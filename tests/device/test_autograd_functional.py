"""Whole derivatives, and gradients against finite differences."""

from __future__ import annotations

from typing import Any

import pytest
from support import close
from support import ct as torch

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators

F: Any = torch.autograd.functional
gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck


def vec(*values: Any) -> Any:
    return torch.tensor(list(values))


def cubes(x: Any) -> Any:
    return (x * x * x).sum()


def pair(x: Any, y: Any) -> Any:
    return x * y, (x * x).sum()


def test_jacobian() -> None:
    close(F.jacobian(lambda x: x * x, vec(1.0, 2.0)), [[2, 0], [0, 4]])
    close(F.jacobian(cubes, vec(1.0, 2.0)), [3, 12])
    (a, b), (c, d) = F.jacobian(pair, (vec(1.0, 2.0), vec(3.0, 4.0)))
    close(a, [[3, 0], [0, 4]])
    close(b, [[1, 0], [0, 2]])
    close(c, [2, 4])
    close(d, [0, 0])
    close(F.jacobian(lambda x: x * x, vec(1.0, 2.0), vectorize=True), [[2, 0], [0, 4]])
    assert F.jacobian(lambda x: x.exp(), torch.ones(2, 3)).shape == (2, 3, 2, 3)


def test_jacobian_stays_differentiable() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    j = F.jacobian(lambda t: t * t * t, x, create_graph=True)
    assert j.requires_grad
    j.sum().backward()
    close(x.grad, [6, 12])
    assert not F.jacobian(lambda t: t * t, x).requires_grad


def test_hessian() -> None:
    close(F.hessian(cubes, vec(1.0, 2.0)), [[6, 0], [0, 12]])
    (a, b), (c, d) = F.hessian(lambda x, y: (x * x * y).sum(), (vec(1.0), vec(3.0)))
    close(a, [[6]])
    close(b, [[2]])
    close(c, [[2]])
    close(d, [[0]])


def test_products() -> None:
    x, v = vec(1.0, 2.0), vec(1.0, 10.0)
    out, g = F.vjp(lambda t: t * t, x, v)
    close(out, [1, 4])
    close(g, [2, 40])
    out, t = F.jvp(lambda t: t * t, x, v)
    close(t, [2, 40])
    value, h = F.vhp(cubes, x, v)
    close(value, 9)
    close(h, [6, 120])
    close(F.hvp(cubes, x, v)[1], [6, 120])
    close(F.vjp(cubes, x)[1], [3, 12])


@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (lambda x: F.vjp(lambda t: t, x), RuntimeError, "The vector v can only be None if the"),
        (lambda x: F.vjp(cubes, [x]), TypeError, "The inputs given to vjp must be either a Tensor"),
        (lambda x: F.jvp(cubes, x, vec(1.0)), RuntimeError, "v has invalid size: should be"),
        (lambda x: F.hessian(lambda t: t, x), RuntimeError, "should contain a single element"),
        (
            lambda x: F.vjp(lambda t: vec(1.0), x, vec(1.0), strict=True),
            RuntimeError,
            "Output 0 of the user-provided function does not require gradients.",
        ),
        (
            lambda x: F.jacobian(lambda a, b: a * a, (x, x), strict=True),
            RuntimeError,
            "Output 0 of the user-provided function is independent of input 1.",
        ),
    ],
)
def test_errors(act: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        act(vec(1.0, 2.0))


def double(*values: Any, kind: Any = None) -> Any:
    return torch.tensor(list(values), dtype=kind or torch.float64, requires_grad=True)


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck(fast_mode: bool) -> None:
    x, y = double(0.3, 0.7), torch.tensor([[0.2], [0.4]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda a, b: (a * b).exp() + a, (x, y), fast_mode=fast_mode)
    assert gradgradcheck(lambda a, b: (a * b).exp() + a, (x, y), fast_mode=fast_mode)
    nothing = torch.ones(0, 3, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(lambda a: a.exp(), (nothing,), fast_mode=fast_mode)
    assert gradcheck(lambda a: a.unbind(0), (x,), fast_mode=fast_mode)
    assert gradcheck(lambda a: a * 2, x, check_batched_grad=True, fast_mode=fast_mode)
    assert not gradcheck(Wrong.apply, (x,), raise_exception=False, fast_mode=fast_mode)
    with pytest.raises(
        torch.autograd.gradcheck.GradcheckError
        if hasattr(torch.autograd.gradcheck, "GradcheckError")
        else RuntimeError,
        match="Jacobian mismatch for output 0 with respect to input 0,\nnumerical:",
    ):
        gradcheck(Wrong.apply, (x,), fast_mode=fast_mode)
    close(x, [0.3, 0.7])


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_of_outputs_that_change_with_values(fast_mode: bool) -> None:
    x = double(1.0, 1.0)
    where = "" if fast_mode else r" on index \(0,\)"
    text = f"outputs with the same {{}} when inputs are perturbed{where} by 1e-06, but got: {{}}s "
    with pytest.raises(AssertionError, match=text.format("shape", "shape") + r".*\[4\]"):
        gradcheck(lambda a: torch.cat([a, a]) if (a >= 1).all() else a, x, fast_mode=fast_mode)
    with pytest.raises(AssertionError, match=text.format("dtype", "dtype") + ".*float32"):
        gradcheck(lambda a: a.float() if (a >= 1).all() else a, x, fast_mode=fast_mode)
    close(x, [1.0, 1.0])


class Batched(torch.autograd.Function):
    """A function whose JVP is right unbatched; `wrong` names what is wrong with it under vmap."""

    wrong = ""
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        if Batched.wrong == "random":
            torch.randn_like(t)
        together = "Batched" in repr(t)
        return t * 3 if together and Batched.wrong == "value" else t * 2


def test_gradcheck_of_tangents_together(monkeypatch: pytest.MonkeyPatch) -> None:
    x = double(0.3, 0.7)
    how = {"check_forward_ad": True, "check_backward_ad": False}
    both = {**how, "check_batched_forward_grad": True}
    assert gradcheck(lambda a, b: (a * b, a.sin(), b), (x, double(0.1, 0.2)), **both)
    assert gradcheck(Batched.apply, x, **both)
    for wrong, text in (
        ("random", "While computing batched gradients, got: vmap: "),
        ("value", "For output 0 and input 0:\n\ngradcheck failed while testing batched gradient"),
    ):
        monkeypatch.setattr(Batched, "wrong", wrong)
        assert gradcheck(Batched.apply, x, **how)
        with pytest.raises(RuntimeError, match=text):
            gradcheck(Batched.apply, x, **both)
        assert not gradcheck(Batched.apply, x, raise_exception=False, **both)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_of_complex_functions(fast_mode: bool) -> None:
    z = double(0.3 + 0.2j, 0.7 - 0.4j, kind=torch.complex128)
    x = double(0.3, 0.7)
    assert gradcheck(lambda a: a * a, (z,), fast_mode=fast_mode)
    assert gradcheck(lambda a: (a * a.conj()).real, (z,), fast_mode=fast_mode)
    assert gradcheck(lambda a, b: a * b, (x, z), fast_mode=fast_mode)


def test_gradcheck_of_writes() -> None:
    def write(a: Any) -> Any:
        b = a * 1
        b.mul_(a)
        b[:1].exp_()
        return b

    assert gradcheck(write, (double(0.3, 0.7),))
    assert gradgradcheck(write, (double(0.3, 0.7),))


def test_gradcheck_refuses() -> None:
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require"):
        gradcheck(lambda a: a, (torch.ones(1),))
    with pytest.raises(RuntimeError, match="has a dimension with stride 0"):
        gradcheck(lambda a: a * 1, (double(1.0).expand(3),))
    with pytest.warns(UserWarning, match="is not a double precision floating point or complex"):
        gradcheck(
            lambda a: a * 1, (torch.ones(1, requires_grad=True),), atol=1, raise_exception=False
        )
