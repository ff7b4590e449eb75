"""What introductions to automatic differentiation show: tracking, backward, stopping."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support import close, ct, data

Variable = ct.autograd.Variable


def leaf(*shape: int, seed: int = 0) -> Any:
    return ct.tensor(data(*shape, seed=seed), requires_grad=True)


def kind(t: Any) -> str:
    return type(t.grad_fn).__name__


# ---------------------------------------------------------------- tracking and how it prints
def test_a_tracked_leaf_prints_its_flag_and_results_their_function() -> None:
    x = ct.ones(2, 2, requires_grad=True)
    y = x + 2
    z = y * y * 3
    assert repr(x) == "tensor([[1., 1.],\n        [1., 1.]], requires_grad=True)"
    assert repr(y) == "tensor([[3., 3.],\n        [3., 3.]], grad_fn=<AddBackward0>)"
    assert str(z) == "tensor([[27., 27.],\n        [27., 27.]], grad_fn=<MulBackward0>)"
    assert f"{z.mean()!r}" == "tensor(27., grad_fn=<MeanBackward0>)"
    assert repr(y.sum()) == "tensor(12., grad_fn=<SumBackward0>)"
    assert repr((2 * x).view(4)) == "tensor([2., 2., 2., 2.], grad_fn=<ViewBackward0>)"


def test_leaves_have_no_function_and_results_have_one_with_torchs_name() -> None:
    x = ct.ones(2, 2, requires_grad=True)
    assert x.grad_fn is None
    assert x.is_leaf
    assert str((x + 1).grad_fn).startswith("<AddBackward0 object at 0x")
    assert (x * 2).grad_fn.name() == "MulBackward0"
    expected = {
        "Sub": x - 1,
        "Div": x / 2,
        "Pow": x**2,
        "Exp": x.exp(),
        "Mm": x.mm(x),
        "T": x.t(),
        "Neg": -x,
        "Select": x[0],
        "Unsqueeze": x.unsqueeze(0),
        "Expand": x.expand(3, 2, 2),
        "Clone": x.clone(),
    }
    assert {kind(t) for t in expected.values()} == {f"{n}Backward0" for n in expected}


def test_flag_defaults_to_false_spreads_and_can_be_set_in_place() -> None:
    a, x = ct.randn(2, 2), ct.ones(2, 2, requires_grad=True)
    assert a.requires_grad is False
    assert (a * x).requires_grad
    a = (a * 3) / (a - 1)
    assert not a.requires_grad
    assert a.requires_grad_(True) is a
    assert a.is_leaf
    assert kind((a * a).sum()) == "SumBackward0"
    a.requires_grad = False
    assert not a.requires_grad


def test_only_floating_tensors_can_be_tracked() -> None:
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        ct.ones(2, dtype=ct.int64, requires_grad=True)


# ---------------------------------------------------------------- backward
def test_gradient_starts_as_none_and_is_filled_by_backward() -> None:
    x = ct.ones(3, 3, requires_grad=True)
    assert x.grad is None
    y = 2 * x + 1
    (y * y * 3).mean().backward()
    assert x.grad.tolist() == [[4.0] * 3] * 3
    assert repr(x.grad) == "tensor([[4., 4., 4.],\n        [4., 4., 4.],\n        [4., 4., 4.]])"
    assert x.grad.dtype is x.dtype
    assert not x.grad.requires_grad


def test_mean_of_a_square_by_hand() -> None:
    values = data(2, 2)
    x = ct.tensor(values, requires_grad=True)
    ct.mean((x + 2) ** 2).backward()
    close(x.grad, (values + 2) / 2)


def test_gradients_add_up_until_cleared() -> None:
    x = ct.ones(2, 2, requires_grad=True)
    total = x.sum()
    total.backward()
    total.backward()  # a sum saves no tensor, so its graph may be used again
    held = x.grad
    assert held.tolist() == [[2.0, 2.0]] * 2
    x.grad.data.zero_()
    x.sum().backward()
    assert held.tolist() == [[1.0, 1.0]] * 2
    x.grad = None
    (3 * x).sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0]] * 2


def test_a_vector_needs_a_weight() -> None:
    x = ct.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        y.backward()
    y.backward(ct.tensor([0.1, 1.0, 0.0001]))
    close(x.grad, [0.2, 4.0, 0.0006])
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * x).backward(ct.ones(2))


def test_a_weight_is_a_weighted_sum() -> None:
    x = ct.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    z = (2 * x).view(2, 2)
    weight = ct.tensor([[1.0, 0.1], [0.01, 0.001]], dtype=ct.float)
    z.backward(weight, retain_graph=True)
    close(x.grad, [2.0, 0.2, 0.02, 0.002])
    assert repr(x.grad) == "tensor([2.0000, 0.2000, 0.0200, 0.0020])"
    x.grad = None
    (z * weight).sum().backward()
    close(x.grad, [2.0, 0.2, 0.02, 0.002])


def test_doubling_until_a_norm_is_passed() -> None:
    x = ct.randn(3, requires_grad=True)
    y = x * 2
    doublings = 1
    while y.data.norm() < 50:  # reading the norm runs the pending doubling each round
        y, doublings = y * 2, doublings + 1
    y.backward(ct.tensor([0.1, 1.0, 0.0001], dtype=ct.float))
    close(x.grad, np.array([0.1, 1.0, 0.0001]) * 2.0**doublings, 1e-4)


def test_saved_tensors_are_freed_by_backward() -> None:
    x = ct.ones(2, requires_grad=True)
    z = (x * x).sum()
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward()


def test_ten_products_with_one_matrix() -> None:
    first = s = Variable(ct.FloatTensor([[0.01, 0.02]]), requires_grad=True)
    x = Variable(ct.ones(2, 2), requires_grad=True)
    for _ in range(10):
        s = s.mm(x)
    ct.mean(s).backward()
    assert repr(x.grad) == "tensor([[37.1200, 37.1200],\n        [39.6800, 39.6800]])"
    close(first.grad, [[512.0, 512.0]])


def test_higher_derivatives() -> None:
    x = ct.tensor(2.0, requires_grad=True)
    y = x**4
    for expected in (32.0, 48.0, 48.0, 24.0):
        (y,) = ct.autograd.grad(y, x, create_graph=True)
        close(y, expected)
    v = 0.7
    for f, second in (
        (lambda t: t.sin(), -math.sin(v)),
        (lambda t: t.log(), -1 / v**2),
        (lambda t: t.exp(), math.exp(v)),
    ):
        x = ct.tensor(v, requires_grad=True)
        (g,) = ct.autograd.grad(f(x), x, create_graph=True)
        close(ct.autograd.grad(g, x)[0], second)


def test_grad_of_several_and_unused_inputs() -> None:
    x, y = leaf(2), leaf(2, seed=1)
    got = ct.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)
    assert isinstance(got, tuple)
    assert got[0].tolist() == [2.0, 2.0]
    assert got[1] is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        ct.autograd.grad((x * 2).sum(), [x, y])
    ct.autograd.backward([x * 2, x * 3], [ct.ones(2), ct.tensor([1.0, 10.0])])
    assert x.grad.tolist() == [5.0, 32.0]


# ---------------------------------------------------------------- non-leaves
def test_reading_the_gradient_of_a_result_warns() -> None:
    x = ct.ones(2, requires_grad=True)
    y = x * 2
    y.sum().backward()
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


@pytest.mark.filterwarnings("error")
def test_retain_grad_keeps_it_without_a_warning() -> None:
    x = ct.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]


# ---------------------------------------------------------------- stopping
def test_no_grad_makes_constants() -> None:
    x = ct.tensor(1.0, requires_grad=True)
    y1 = x**2
    with ct.no_grad():
        y2 = x**3
    y3 = y1 + y2
    assert (y1.requires_grad, y2.requires_grad, y3.requires_grad) == (True, False, True)
    y3.backward()
    assert repr(x.grad) == "tensor(2.)"


def test_no_grad_nests_decorates_and_ends_with_an_error() -> None:
    x = ct.ones(2, requires_grad=True)

    @ct.no_grad()
    def untracked(t: Any) -> Any:
        return t * 2

    assert not untracked(x).requires_grad
    with ct.no_grad(), ct.enable_grad():
        assert (x * 2).requires_grad
    with ct.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with pytest.raises(ValueError, match="out"), ct.no_grad():
        raise ValueError("out")
    assert ct.is_grad_enabled()
    with ct.no_grad():
        assert ct.rand(1, requires_grad=True).requires_grad


def test_detach_shares_memory_and_has_no_history() -> None:
    x = ct.ones(2, requires_grad=True)
    d = x.detach()
    assert not d.requires_grad
    assert x.eq(d).all().item() is True
    assert repr(x.eq(d).all()) == "tensor(True)"
    d[0] = 7.0
    assert x.tolist() == [7.0, 1.0]
    y = x * 2
    assert y.detach_() is y
    assert y.grad_fn is None


def test_data_is_the_same_memory_untracked() -> None:
    x = ct.ones(2, requires_grad=True)
    y = x + 2
    assert repr(y.data) == "tensor([3., 3.])"
    y.data[0] = 9.0
    assert y.tolist() == [9.0, 3.0]


# ---------------------------------------------------------------- in place
def test_a_tracked_leaf_refuses_in_place_changes_except_untracked() -> None:
    x = ct.ones(2, requires_grad=True)
    for change in (lambda: x.add_(1), x.zero_, lambda: x.__iadd__(1)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used"):
            change()
    with ct.no_grad():
        x.add_(1)
    x.data.mul_(2)
    assert x.tolist() == [4.0, 4.0]


def test_a_changed_saved_tensor_is_found() -> None:
    x = ct.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()
    z = x * 2
    z.add_(1).mul_(3)
    z.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


# ---------------------------------------------------------------- Variable and the graph
def test_a_variable_is_a_tensor() -> None:
    t = ct.ones(2, 2)
    v = Variable(t, requires_grad=True)
    assert type(v) is ct.Tensor
    assert isinstance(v, Variable)
    assert repr(v) == "tensor([[1., 1.],\n        [1., 1.]], requires_grad=True)"
    v.data[0, 0] = 5.0
    assert t[0, 0].item() == 5.0
    assert v.grad is None
    with pytest.warns(UserWarning, match="volatile was removed"):
        Variable(ct.ones(1), volatile=True)


def test_the_graph_can_be_walked() -> None:
    x = Variable(ct.ones(1))
    b, w = (Variable(ct.rand(1), requires_grad=True) for _ in range(2))
    y = w.mul(x)
    z = y.add(b)
    assert [t.is_leaf for t in (x, w, b, y, z)] == [True, True, True, False, False]
    assert [t.requires_grad for t in (x, b, w, y)] == [False, True, True, True]
    (to_y, to_b) = z.grad_fn.next_functions
    assert to_y == (y.grad_fn, 0)
    assert to_y[0] is y.grad_fn
    assert type(to_b[0]).__name__ == "AccumulateGrad"
    assert to_b[0].variable is b
    assert y.grad_fn.next_functions[1] == (None, 0)
    z.backward(retain_graph=True)
    assert w.grad.tolist() == [1.0]
    z.backward()
    assert w.grad.tolist() == [2.0]
    assert x.grad is None


def test_a_leaf_used_twice_has_one_accumulator() -> None:
    w = ct.ones(1, requires_grad=True)
    (first, second) = (w * w).grad_fn.next_functions
    assert first[0] is second[0]


def test_gradients_flow_through_dtype_broadcast_and_indices() -> None:
    x = ct.ones(2, requires_grad=True)
    (x.to(ct.double) * 3).sum().backward()
    assert x.grad.dtype is ct.float32
    assert x.grad.tolist() == [3.0, 3.0]
    a, b = leaf(3, 1), leaf(2, 1, 4, seed=1)
    (a * b).sum().backward()
    close(a.grad, np.full((3, 1), data(2, 1, 4, seed=1).sum()), 1e-4)
    m = leaf(3, 4)
    (m[0] * 2).sum().backward()
    m[ct.tensor([2, 2])].sum().backward()
    close(m.grad, [[2.0] * 4, [0.0] * 4, [2.0] * 4])
