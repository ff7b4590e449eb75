"""Custom functions: forward, backward, context, errors."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
from support import SECOND_TIME, close, leaf
from support import ct as torch

Function = torch.autograd.Function


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: float = 1.0) -> Any:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x * x * ctx.scale, None


class Split(Function):
    @staticmethod
    def forward(x: Any, k: int) -> Any:
        return x * k, x + k

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.k = inputs
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        assert (a is None) != (b is None)
        return (a * ctx.k if a is not None else b), None


def test_forward_and_backward() -> None:
    x = leaf(1.0, 2.0)
    y = Cube.apply(x, 2.0)
    assert type(y.grad_fn).__name__ == "CubeBackward"
    assert y.grad_fn.name() == "CubeBackward"
    assert isinstance(y.grad_fn, torch.autograd.graph.Node)
    assert y.grad_fn.scale == 2.0
    assert len(y.grad_fn.next_functions) == 1
    y.sum().backward()
    close(x.grad, [6, 24])
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.sum().backward()


def test_second_derivative() -> None:
    x = leaf(1.0, 2.0)
    (g,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    close(h, [6, 12])


def test_setup_context_and_missing_gradients() -> None:
    x = leaf(1.0, 2.0)
    a, b = Split.apply(x, 3)
    a.sum().backward()
    close(x.grad, [3, 3])
    _, b = Split.apply(x, 3)
    b.sum().backward()
    close(x.grad, [4, 4])


def test_missing_gradients_are_zeros() -> None:
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append((a.tolist(), b.tolist()))
            return a + 2 * b

    Two.apply(leaf(1.0, 2.0))[1].sum().backward()
    assert seen == [([0, 0], [1, 1])]


def test_needs_input_grad_and_saved_outputs() -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            out = (x * y).exp()
            ctx.save_for_backward(x, y, out, None)
            return out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            _, y, out, nothing = ctx.saved_tensors
            assert nothing is None
            assert ctx.needs_input_grad == (True, False)
            return g * out * y, None

    x, y = leaf(0.5), torch.tensor([2.0])
    out = Product.apply(x, y)
    (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    close(g, [2 * 2.7182817])
    close(torch.autograd.grad(g.sum(), x)[0], [4 * 2.7182817])


def test_non_differentiable_output() -> None:
    class Sorted(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            where = x * 0 + 1
            ctx.mark_non_differentiable(where)
            return x * 1, where

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return g

    x = leaf(1.0, 2.0)
    y, where = Sorted.apply(x)
    assert y.requires_grad
    assert not where.requires_grad
    y.sum().backward()
    close(x.grad, [1, 1])


class Double(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_dirty_input() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y
    assert z.grad_fn.name() == "DoubleBackward"
    assert z._version == 2
    z.sum().backward()
    close(x.grad, [2, 2])


def test_dirty_view() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    Double.apply(y[:1])
    (y * y).sum().backward()
    close(x.grad, [8, 4])


def test_dirty_leaf() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used"):
        Double.apply(leaf(1.0, 2.0))
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        Double.apply(leaf(1.0, 2.0)[:1])


def test_dirty_view_of_several_results() -> None:
    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2), x.clone()

    with pytest.raises(RuntimeError, match="your Function cannot return more than one Tensor"):
        Two.apply((leaf(1.0, 2.0) * 1)[:1])


def test_gradients_by_some_inputs_pass_a_function_of_an_outdated_view() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    base = x * 1
    view = base[0]
    base.mul_(2)  # the view's node is made anew when Cube asks for it: it is younger than Cube's
    out = Cube.apply(view).sum()
    (g,) = torch.autograd.grad(out, x, retain_graph=True)
    assert g.tolist() == [[24.0] * 3, [0.0] * 3]
    out.backward(inputs=[x])
    assert x.grad.tolist() == g.tolist()


def test_input_returned_as_it_is() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 10

    x = leaf(1.0, 2.0)
    y = Same.apply(x)
    assert y is not x
    y.sum().backward()
    close(x.grad, [10, 10])
    assert x.is_leaf


def test_view_made_inside_may_not_be_written() -> None:
    class Part(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    y = Part.apply(leaf(1.0, 2.0) * 1)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        y.add_(1)


def test_once_differentiable() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(1.0, 2.0)
    y = Square.apply(x)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    close(g, [4, 32])
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was"):
        g.sum().backward()


def test_nothing_is_recorded_without_need() -> None:
    y = Cube.apply(torch.ones(2))
    assert y.grad_fn is None
    with torch.no_grad():
        assert Cube.apply(leaf(1.0)).grad_fn is None


def function(backward: Any) -> Any:
    return type(
        "F",
        (Function,),
        {
            "forward": staticmethod(lambda ctx, *xs: xs[0] * 1),
            "backward": staticmethod(backward),
        },
    )


@pytest.mark.parametrize(
    ("backward", "count", "text"),
    [
        (
            lambda ctx, g: g.new_ones(3),
            1,
            (
                r"Function FBackward returned an invalid gradient at index 0 - got \[3\] but "
                r"expected shape compatible with \[2\]"
            ),
        ),
        (
            lambda ctx, g: (g, g),
            1,
            r"function FBackward returned an incorrect number of gradients \(expected 1, got 2\)",
        ),
        (
            lambda ctx, g: g,
            2,
            r"function FBackward returned an incorrect number of gradients \(expected 2, got 1\)",
        ),
        (lambda ctx, g: 3, 1, r"expected Variable or None \(got int\)"),
    ],
)
def test_bad_backwards(backward: Any, count: int, text: str) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=text):
        function(backward).apply(*[x] * count).sum().backward()


def test_extra_nones_are_let_pass() -> None:
    x = leaf(1.0, 2.0)
    function(lambda ctx, g: (g, None, None)).apply(x).sum().backward()
    close(x.grad, [1, 1])


def test_missing_methods() -> None:
    class Empty(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp"):
        Empty.apply(leaf(1.0)).sum().backward()
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Function.apply(leaf(1.0))


def test_saving_what_is_no_tensor() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(3)
            return x * 1

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument"):
        Wrong.apply(leaf(1.0))


def test_nothing_may_be_saved_in_a_tensors_place() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(None, x)
            ctx.save_for_forward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            none, x = ctx.saved_tensors
            assert none is None
            return g * 2 * x

    x = leaf(1.0, 3.0)
    Twice.apply(x).sum().backward()
    close(x.grad, [2, 6])


def test_what_a_function_saved_is_freed() -> None:
    x = leaf(1.0, 2.0) * 1
    held = weakref.ref(x)
    y = Cube.apply(x).sum()
    del x
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()
    assert held() is None


def test_saved_variables_is_the_older_name_of_saved_tensors() -> None:
    class Older(Cube):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_variables
            return g * 3 * x * x, None

    x = leaf(3.0)
    with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
        Older.apply(x).sum().backward()
    assert x.grad.tolist() == [27]
