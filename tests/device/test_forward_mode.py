"""Dual tensors, custom Functions with a jvp, and tangents against finite differences. What torch gives is in tests/parity."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from support import close
from support import ct as torch

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators

fw: Any = torch.autograd.forward_ad
gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck


def double(*shape: int) -> Any:
    return torch.rand(*shape, dtype=torch.float64, requires_grad=True)


def test_dual() -> None:
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    with fw.dual_level() as level:
        assert level == 0
        d = fw.make_dual(x, t)
        primal, tangent = fw.unpack_dual(d)
        assert tangent is t
        assert primal.data_ptr() == x.data_ptr()
        close(fw.unpack_dual(d * d).tangent, [6, 16])
        assert fw.unpack_dual(x).tangent is None
    assert fw.unpack_dual(d).tangent is None


def test_tangents_die_with_their_tensors_and_with_their_level() -> None:
    with fw.dual_level():
        tangent = torch.ones(2)
        seen = weakref.ref(tangent)
        d = fw.make_dual(torch.ones(2), tangent)
        del tangent, d
        gc.collect()
        assert seen() is None
        tangent = torch.ones(2)
        seen = weakref.ref(tangent)
        d = fw.make_dual(torch.ones(2), tangent)
        del tangent
    gc.collect()
    assert seen() is None
    assert d.shape == (2,)


def test_nothing_is_recorded_for_tangents_alone() -> None:
    with fw.dual_level():
        d = fw.make_dual(torch.ones(2, 2), torch.ones(2, 2))
        out = (d @ d).softmax(-1).sum()
        assert not out.requires_grad
        assert not fw.unpack_dual(out).tangent.requires_grad


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.scale = scale
        return scale * x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * ctx.scale * x * x * g, None

    @staticmethod
    def jvp(ctx: Any, t: Any, scale: Any) -> Any:
        assert scale is None
        (x,) = ctx.saved_tensors
        return 3 * ctx.scale * x * x * t


def test_function_with_jvp() -> None:
    x = double(3)
    assert gradcheck(lambda t: Cube.apply(t, 2.0), x, check_forward_ad=True)
    assert gradgradcheck(lambda t: Cube.apply(t, 2.0), x, check_fwd_over_rev=True)
    second = torch.func.jvp(
        lambda a: torch.func.jvp(lambda b: Cube.apply(b, 1.0), (a,), (a * 0 + 1,))[1],
        (x.detach(),),
        (torch.ones_like(x),),
    )
    close(second[1], 6 * x.detach())


def test_function_in_place() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, how: str) -> Any:
            ctx.mark_dirty(x)
            ctx.how = how
            return x.mul_(2)

        @staticmethod
        def jvp(ctx: Any, t: Any, how: Any) -> Any:
            if ctx.how == "apart":
                return 2 * t
            if ctx.how == "copied":
                return t.mul_(2).clone()
            return t.mul_(2)

    with fw.dual_level():
        t = torch.ones(2)
        d = fw.make_dual(torch.ones(2), t)
        assert Twice.apply(d, "right") is d
        assert fw.unpack_dual(d).tangent is t
        close(t, [2, 2])
        with pytest.raises(
            RuntimeError, match="is not modifying the forward mode gradients inplace"
        ):
            Twice.apply(d, "apart")
        with pytest.raises(RuntimeError, match="is not returning the forward mode gradients as-is"):
            Twice.apply(d, "copied")


def test_function_returning_a_view() -> None:
    class Part(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, how: str) -> Any:
            ctx.how = how
            return x.narrow(0, 0, 1)

        @staticmethod
        def jvp(ctx: Any, t: Any, how: Any) -> Any:
            part = t.narrow(0, 0, 1)
            if ctx.how == "view":
                return part
            return part.clone() if ctx.how == "copy" else part.clone().view_as(part)

    with fw.dual_level():
        d = fw.make_dual(torch.ones(2), torch.ones(2))
        close(fw.unpack_dual(Part.apply(d, "view")).tangent, [1])
        with pytest.raises(RuntimeError, match="but the jvp is not returning a view\\."):
            Part.apply(d, "copy")
        with pytest.raises(RuntimeError, match="is not returning a view of the given grad input"):
            Part.apply(d, "other")


def test_function_errors() -> None:
    class Plain(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

    class Two(Plain):
        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t, t

    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = x * 1
            ctx.mark_non_differentiable(out)
            return out

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t

    with fw.dual_level():
        d = fw.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
            Plain.apply(d)
        with pytest.raises(RuntimeError, match=r"\(expected 1 but got 2\)"):
            Two.apply(d)
        with pytest.raises(RuntimeError, match="You should return None at that position instead"):
            Marked.apply(d)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_finds_a_wrong_jvp(fast: bool) -> None:
    class Wrong(Cube):
        @staticmethod
        def jvp(ctx: Any, t: Any, scale: Any) -> Any:
            return 1.1 * Cube.jvp(ctx, t, scale)

    x = double(3)
    with pytest.raises(
        RuntimeError, match="Jacobian computed with forward mode mismatch for output 0"
    ):
        gradcheck(lambda t: Wrong.apply(t, 2.0), x, check_forward_ad=True, fast_mode=fast)
    assert gradcheck(lambda t: Wrong.apply(t, 2.0), x, fast_mode=fast)


def _written(x: Any, y: Any) -> Any:
    z = x.clone()
    z[0] = y[1] * x[1]
    z[1:].mul_(y[:1])
    return z.t().exp_()


FUNCTIONS = {
    "products": lambda x, y: (x @ y.t()).sin(),
    "written in place": _written,
    "normalised": lambda x, y: torch.nn.functional.layer_norm(x * y, (3,)),
    "attention": lambda x, y: torch.nn.functional.scaled_dot_product_attention(x[None], y[None], x[None]),
    "sorted": lambda x, y: (x.sort().values * y.cumsum(0)).logsumexp(-1),
    "complex": lambda x, y: (torch.complex(x, y).exp() * x).abs(),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_differences(name: str) -> None:
    inputs = double(2, 3), double(2, 3)
    assert gradcheck(FUNCTIONS[name], inputs, check_forward_ad=True)
    assert gradgradcheck(FUNCTIONS[name], inputs, check_fwd_over_rev=True)


def test_complex_inputs() -> None:
    z = torch.rand(3, dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda z: z.conj() * z.exp() / z.abs(), z, check_forward_ad=True)


def test_a_weight_of_a_loss_may_have_a_tangent() -> None:
    x, weight = double(2, 3).detach().sigmoid(), double(2, 3).detach()

    def loss(x: Any, weight: Any) -> Any:
        return torch.nn.functional.binary_cross_entropy(x, torch.full_like(x, 0.3), weight)

    both, by_x, by_weight = (
        torch.func.jvp(loss, (x, weight), (x * a, weight * b))[1].item()
        for a, b in ((1, 1), (1, 0), (0, 1))
    )
    assert both == pytest.approx(by_x + by_weight)
    assert by_weight == pytest.approx(loss(x, weight).item())  # it is linear in its weight


def test_second_derivative_of_a_norm() -> None:
    """The JVP of layer_norm's JVP equals finite differences. (torch cannot be compared with: it has no such JVP.)"""
    x = torch.arange(12, dtype=torch.float64).reshape(3, 4).sin()
    t = x.cos()

    def first(a: Any) -> Any:
        return torch.func.jvp(lambda b: torch.nn.functional.layer_norm(b, (4,)), (a,), (t,))[1]

    step = 1e-5
    differences = (first(x + step * t) - first(x - step * t)) / (2 * step)
    close(torch.func.jvp(first, (x,), (t,))[1], differences, 1e-6)
