"""The backward pass: accumulation, limits, errors, second derivatives, threads."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest
from support import SECOND_TIME, close, leaf
from support import ct as torch


def test_gradients_of_a_small_expression() -> None:
    x = leaf(1.0, 2.0)
    (x * x + 3 * x).sum().backward()
    close(x.grad, [5, 7])
    assert x.grad.grad_fn is None
    assert not x.grad.requires_grad
    assert x.grad.is_leaf


def test_gradients_accumulate_into_the_same_tensor() -> None:
    x = leaf(1.0, 2.0)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    close(x.grad, [5, 5])


def test_broadcast_operands_get_summed_gradients() -> None:
    x, w, s = leaf(1.0, 2.0), torch.tensor([[1.0], [2.0], [3.0]], requires_grad=True), leaf(2.0)
    (x * w * s).sum().backward()
    close(x.grad, [12, 12])
    close(w.grad, [[6], [6], [6]])
    close(s.grad, [18])


def test_gradient_takes_the_dtype_of_its_leaf() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0, dtype=torch.float64)
    (x * y).sum().backward()
    assert x.grad.dtype is torch.float32
    assert y.grad.dtype is torch.float64
    close(x.grad, [3, 4])
    close(y.grad, [1, 2])


def test_two_leaves_do_not_share_their_gradient() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    g = torch.tensor([1.0, 1.0])
    (x + y).backward(g)
    x.grad.mul_(5)
    g.mul_(7)
    close(x.grad, [5, 5])
    close(y.grad, [1, 1])


def test_gradient_through_a_view_is_the_leafs_own() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x.view(2, 2)
    z = y * 1
    z.retain_grad()
    (z * z).sum().backward()
    x.grad.zero_()
    close(z.grad, [[2, 4], [6, 8]])
    assert not x.grad._is_view()


def test_retain_graph() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    close(x.grad, [4, 8])
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


def test_what_saves_nothing_runs_twice() -> None:
    x = leaf(1.0, 2.0)
    y = x.sum()
    y.backward()
    y.backward()
    close(x.grad, [2, 2])


def test_reading_a_freed_saved_tensor() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    close(y.grad_fn._saved_result, [2.7182817, 7.3890561])
    y.sum().backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        _ = y.grad_fn._saved_result


def test_second_derivative() -> None:
    x = leaf(1.0, 2.0)
    (g,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    close(g, [3, 12])
    (h,) = torch.autograd.grad(g.sum(), x)
    close(h, [6, 12])


def test_third_derivative_through_a_saved_result() -> None:
    x = leaf(0.5)
    y = x.exp()
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    close(y, [1.6487213])


def test_create_graph_in_backward_warns() -> None:
    x = leaf(1.0, 2.0)
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        (x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    x.grad = None


def test_grad_leaves_grad_attributes_alone() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    z = x * y
    gz, gx = torch.autograd.grad((z * z).sum(), [z, x])
    close(gz, [6, 16])
    close(gx, [18, 64])
    assert x.grad is None
    assert y.grad is None


def test_backward_limited_to_inputs() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    z = x * y
    z.sum().backward(inputs=[x])
    close(x.grad, [3, 4])
    assert y.grad is None
    z = x * 2
    z.sum().backward(inputs=[z])
    close(z.grad, [1, 1])


def test_unused_inputs() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0)
    with pytest.raises(
        RuntimeError,
        match=r"The differentiated Tensor at index 1 appears to not have been used in the graph\. "
        r"Set allow_unused=True if this is the desired behavior\.",
    ):
        torch.autograd.grad(x.sum(), [x, y])
    assert torch.autograd.grad(x.sum(), [y], allow_unused=True) == (None,)
    close(torch.autograd.grad(x.sum(), [y], materialize_grads=True)[0], [0])
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed"):
        torch.autograd.grad(x.sum(), [y], allow_unused=False, materialize_grads=True)


def test_several_roots() -> None:
    x = leaf(1.0, 2.0)
    a, b = x * 2, x * 3
    torch.autograd.backward([a.sum(), b], [None, torch.tensor([1.0, 10.0])])
    close(x.grad, [5, 32])
    x.grad = None
    c = (x * x).sum()
    torch.autograd.backward([c, c])
    close(x.grad, [4, 8])


def test_a_root_that_feeds_another_root() -> None:
    x = leaf(2.0)
    a = x * x
    b = a * a
    torch.autograd.backward([a, b], [torch.ones(1), torch.ones(1)])
    close(x.grad, [4 + 32])


def test_backward_of_a_leaf() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    x.backward()
    close(x.grad, 1)
    close(torch.autograd.grad(x, x)[0], 1)


def test_some_outputs_of_a_node_unused() -> None:
    x = leaf(1.0, 2.0, 3.0)
    a, _, c = x.unbind(0)
    (a * 2 + c * 3).backward()
    close(x.grad, [2, 0, 3])


def test_integer_outputs_have_no_gradient() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]], requires_grad=True)
    values, indices = x.max(1)
    assert values.requires_grad
    assert not indices.requires_grad
    values.sum().backward()
    close(x.grad, [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (lambda x: x.backward(), RuntimeError, "grad can be implicitly created only for scalar"),
        (
            lambda x: x.detach().backward(),
            RuntimeError,
            "element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        (
            lambda x: (x * 1).backward(torch.ones(3)),
            RuntimeError,
            (
                r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\) and "
                r"output\[0\] has a shape of torch.Size\(\[2\]\)\."
            ),
        ),
        (
            lambda x: (x * 1j).sum().backward(),
            RuntimeError,
            "grad can be implicitly created only for real scalar outputs but got torch.complex64",
        ),
        (
            lambda x: torch.autograd.grad(x * 1, x, [3.0]),
            TypeError,
            "gradients can be either Tensors or None, but got float",
        ),
        (
            lambda x: torch.autograd.grad(x.sum(), torch.ones(2)),
            RuntimeError,
            "One of the differentiated Tensors does not require grad",
        ),
        (
            lambda x: x.sum().backward(inputs=[]),
            RuntimeError,
            r"`inputs` argument to `backward\(\)` cannot be empty.",
        ),
        (
            lambda x: torch.autograd.grad(x * 1, x, torch.ones(1, 3), is_grads_batched=True),
            RuntimeError,
            r"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as",
        ),
        (
            lambda x: torch.autograd.grad(
                x.sum(),
                torch.autograd.graph.get_gradient_edge(leaf(1.0)),
                allow_unused=True,
                materialize_grads=True,
            ),
            RuntimeError,
            "materialize_grads cannot be used when the given input is a GradientEdge",
        ),
        (lambda x: (x * 1).grad_fn(x, x), TypeError, "expected 1 arguments, got 2 instead"),
        (lambda x: (x * 1).grad_fn(1), TypeError, "argument 0 is not a Variable"),
    ],
)
def test_errors(act: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        act(leaf(1.0, 2.0))


def test_complex_power_of_a_negative_number() -> None:
    y = torch.tensor([0.5 + 1j], requires_grad=True)
    grads = []
    for base in (torch.tensor([-2.0]), torch.tensor([-2.0 + 0j]), -2):
        (base**y).real.sum().backward()
        grads.append(y.grad)
        y.grad = None
    assert grads[0].isfinite().all()
    close(grads[0], grads[1].tolist(), 1e-6)
    close(grads[2], grads[1].tolist(), 1e-6)


def test_made_up_zeros_are_differentiable() -> None:
    x, a = leaf(0.5), leaf(1.0)
    (g,) = torch.autograd.grad(x * a, x, create_graph=True)
    for _ in range(2):
        (g,) = torch.autograd.grad(g, x, create_graph=True, materialize_grads=True)
        close(g, [0])


def test_a_batch_of_gradients() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * x
    (j,) = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    close(j, [[2, 0, 0], [0, 4, 0], [0, 0, 6]])


def test_threads() -> None:
    x = torch.ones(4, requires_grad=True)
    modes = []

    def work() -> None:
        modes.append(torch.is_grad_enabled())
        for _ in range(5):
            (x * 2).sum().backward()

    with torch.no_grad():
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert modes == [True] * 4
    close(x.grad, [40] * 4)


def test_backward_inside_backward() -> None:
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            ctx.save_for_backward(t)
            return t * t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (t,) = ctx.saved_tensors
            with torch.enable_grad():
                u = t.detach().requires_grad_()
                (u * u).sum().backward()
            return g * u.grad

    x = leaf(1.0, 3.0)
    Inner.apply(x * 2).sum().backward()
    close(x.grad, [8, 24])


@pytest.mark.parametrize("fails", [False, True])
def test_backward_inside_backward_to_any_depth(fails: bool) -> None:
    modes = []

    class Nest(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any, depth: int) -> Any:
            ctx.depth = depth
            return t.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            modes.append(torch.is_grad_enabled())
            if ctx.depth == 150:
                if fails:
                    raise ValueError("the innermost pass")
                return g, None
            inner = leaf(1.0)
            with torch.enable_grad():
                Nest.apply(inner, ctx.depth + 1).sum().backward()
            return g + inner.grad, None

    x = leaf(1.0)
    if fails:
        with pytest.raises(ValueError, match="the innermost pass"):
            Nest.apply(x, 1).sum().backward()
    else:
        Nest.apply(x, 1).sum().backward()
        close(x.grad, [150])
    assert modes == [False] * 150


def test_requires_grad_flag() -> None:
    x = torch.ones(2)
    assert x.is_leaf
    assert not x.requires_grad
    assert x.requires_grad_() is x
    y = x * 2
    assert y.requires_grad
    assert not y.is_leaf
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require"):
        torch.tensor([1]).requires_grad_()
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require"):
        torch.tensor([1]).requires_grad = True
    assert y.detach().requires_grad is False
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad


def test_grad_attribute() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got"):
        x.grad = 3
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    with pytest.raises(
        RuntimeError, match=r"a gradient of size '\[1\]' to a tensor of size '\[2\]'"
    ):
        x.grad = torch.ones(1)
    with pytest.raises(RuntimeError, match="a gradient with dtype 'double' to a tensor with"):
        x.grad = torch.ones(2, dtype=torch.float64)
    x.grad = torch.ones(2)
    x.sum().backward()
    close(x.grad, [2, 2])
    del x.grad
    assert x.grad is None
    y = x * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf"):
        assert y.grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y.retain_grad()
        assert y.grad is None
    assert y.retains_grad
    assert not x.retains_grad
    y.sum().backward()
    close(y.grad, [1, 1])
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad"):
        torch.ones(1).retain_grad()


def test_zeros_that_nobody_computed_arrive_as_zeros() -> None:
    """The second derivative of relu is never computed, yet zeros arrive at a leaf, at a retained result and its hook,
    and at a custom function.
    """
    arrived: list[Any] = []

    class Noting(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            arrived.append(g)
            return g

    def slope(x: Any) -> Any:
        weight = leaf(1.0, 1.0)
        return torch.autograd.grad((x.relu() * weight).sum(), x, create_graph=True)[0].sum()

    x = leaf(-1.0, 2.0)
    slope(x).backward()
    close(x.grad, [0, 0])
    x, seen = leaf(-1.0, 2.0), []
    z = x * 3
    z.retain_grad()
    z.register_hook(seen.append)
    slope(z).backward()
    close(z.grad, [0, 1])  # the sum of both passes' gradients
    close(seen[-1], [0, 0])
    slope(Noting.apply(x)).backward()
    close(arrived[-1], [0, 0])


def test_a_complex_gradient_of_a_real_input_is_its_real_part() -> None:
    x = leaf(1.0, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x * torch.tensor([1 + 2j, 3j])).abs().sum().backward()
    close(x.grad, [5**0.5, 3])


def test_complex_gradients() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    close(z.grad, [2 + 4j, 6 - 2j])
    x = leaf(1.0, 2.0)
    (x * (1 + 1j)).real.sum().backward()
    assert x.grad.dtype is torch.float32
    close(x.grad, [1, 1])


def test_variable() -> None:
    x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    assert isinstance(x, torch.autograd.Variable)
    assert x.requires_grad
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        torch.autograd.Variable(torch.ones(1), volatile=True)


@pytest.mark.parametrize("freeze", [lambda x: x.requires_grad_(False), lambda x: x.detach_()])
def test_a_leaf_frozen_after_its_graph_was_made_gets_no_gradient(freeze: Any) -> None:
    x, y, seen = leaf(1.0, 2.0), leaf(3.0, 4.0), []
    x.register_post_accumulate_grad_hook(seen.append)
    out = (x * y).sum()
    freeze(x)
    out.backward()
    assert x.grad is None
    assert not seen
    close(y.grad, [1, 2])


def test_saved_tensor_that_was_detached_in_place() -> None:
    a = leaf(1.0).clone()
    b = a.sin()
    a.detach_()
    with pytest.raises(RuntimeError, match=r"a saved tensor that has been detached in-place"):
        b.backward()
    a = leaf(1.0).clone()
    b = a.exp()  # saves its result, not a
    a.detach_()
    b.sum().backward()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_is_printed_where_warnings_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(RuntimeError, match="modified by an inplace operation"),
        warnings.catch_warnings(),
        torch.autograd.detect_anomaly(),
    ):
        warnings.simplefilter("error")
        a = leaf(1.0, 2.0) + 1
        b = a**2
        a += 1
        b.sum().backward()
    assert "Error detected in PowBackward0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "source"), [("scatter_reduce", "src"), ("index_reduce", "source")]
)
def test_products_with_several_zeros_have_no_second_derivative(name: str, source: str) -> None:
    x, many, one = leaf(1.0), leaf(0.0, 0.0), leaf(0.0, 2.0)
    for src, fails in ((many, True), (one, False)):
        y = getattr(torch, name)(x, 0, torch.tensor([0, 0]), src, "prod")
        g = torch.autograd.grad(y.sum(), src, create_graph=True)[0].sum()
        if fails:
            with pytest.raises(RuntimeError, match=f"Double backward is unsupported for {source}"):
                g.backward()
        else:
            close(torch.autograd.grad(g, src)[0], [1, 1])


def test_a_gradient_has_the_strides_of_its_leaf() -> None:
    x = torch.ones(1, 4).as_strided((1, 4), (7, 1)).requires_grad_()
    (x[:, :2] * 2).sum().backward(create_graph=True)
    assert x.grad.stride() == (7, 1)
    assert x.grad.tolist() == [[2, 2, 0, 0]]


def test_what_has_the_common_shape_is_broadcast_as_it_is() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    same, wide = torch.broadcast_tensors(x, torch.ones(3, requires_grad=True))
    assert same is x
    assert wide.grad_fn.name() == "ExpandBackward0"
