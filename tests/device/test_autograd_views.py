"""In-place operations and views: whose history changes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import SECOND_TIME, close, leaf
from support import ct as torch


def test_views_know_their_base() -> None:
    x = torch.ones(2, 3)
    v = x[0]
    w = v[1:]
    assert v._is_view()
    assert w._base is x
    assert x._base is None
    assert not x.detach()._is_view()
    assert not (x + 1)._is_view()


def test_a_new_size_is_a_new_version() -> None:
    x = torch.zeros(1)
    for size, version in (((1, 2), 1), ((1, 2), 1), ((3,), 2)):
        assert x.resize_(size)._version == version


def test_versions_are_shared() -> None:
    x = torch.ones(3)
    v, d, own = x[1:], x.detach(), x.data
    x.add_(1)
    v.mul_(2)
    d.zero_()
    own.add_(1)
    assert (x._version, v._version, d._version, own._version) == (3, 3, 3, 1)


def test_what_says_which_tensor_it_is() -> None:
    x, other = torch.ones(3), torch.ones(3)
    assert x._cdata == x.requires_grad_()._cdata
    assert x._cdata not in {other._cdata, x.detach()._cdata}


def test_in_place_chain() -> None:
    x = leaf(0.5, 2.0)
    y = x * 3
    y.mul_(2).add_(x).exp_()
    expected = (x.detach() * 7).exp() * 7
    assert y.grad_fn.name() == "ExpBackward0"
    y.sum().backward()
    close(x.grad, expected, 1e-4)


def test_write_into_a_slice_of_a_plain_tensor() -> None:
    x = leaf(1.0, 2.0)
    y = torch.zeros(3)
    y[1:] = x
    assert type(y.grad_fn).__name__ == "CopySlices"
    assert [n and type(n).__name__ for n, _ in y.grad_fn.next_functions] == [None, "AccumulateGrad"]
    (y * y).sum().backward()
    close(x.grad, [2, 4])


def test_write_into_a_slice_cuts_what_it_covers() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y[1] = 5.0
    (y * y).sum().backward()
    close(x.grad, [8, 0, 24])


def test_two_writes_through_views() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0)
    y = x * 1
    y[:1].mul_(w)
    y[1:].exp_()
    y.sum().backward()
    close(x.grad, [3, 7.3890561])
    close(w.grad, [1])


def test_a_view_follows_its_base() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    v = y[:1]
    assert v.grad_fn.name() == "SliceBackward0"
    y.mul_(3)
    assert v.grad_fn.name() == "AsStridedBackward0"
    v.sum().backward()
    close(x.grad, [3, 0])


def test_a_base_follows_its_view() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    v = y[:1]
    v.mul_(3)
    assert v.grad_fn.name() == "AsStridedBackward0"
    assert v.grad_fn.next_functions[0][0] is y.grad_fn
    (y.sum() + v.sum()).backward()
    close(x.grad, [6, 1])


def test_view_of_a_plain_base_becomes_differentiable() -> None:
    base = torch.ones(3)
    v = base[1:]
    w = leaf(2.0)
    base.mul_(w)
    assert v.requires_grad
    assert not v.is_leaf
    v.sum().backward()
    close(w.grad, [2])


def test_view_of_a_transposed_base() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = (x * 1).t()
    y[0].mul_(10)
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    (y * weights).sum().backward()
    close(x.grad, [[10, 3], [20, 4]])


def test_second_derivative_through_a_write() -> None:
    x = leaf(0.5, 2.0)
    y = x * 1
    y[:1].exp_()
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    close(g, [2 * 2.7182817, 4], 1e-4)
    (h,) = torch.autograd.grad(g.sum(), x)
    close(h, [4 * 2.7182817, 2], 1e-4)


LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."
MULTI = (
    "Output 0 of {} is a view and is being modified inplace. This view is the output of a function "
    "that returns multiple views. Such functions do not allow the output views to be modified "
    "inplace. You should replace the inplace operation by an out-of-place one."
)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda x: x.add_(1), LEAF),
        (lambda x: x[:1].add_(1), VIEW),
        (lambda x: x.view(2, 1).mul_(2), VIEW),
        (lambda x: (x * 1).unbind(0)[0].add_(1), MULTI.format("Unbind")),
        (lambda x: (x * 1).split(1)[0].add_(1), MULTI.format("Split")),
    ],
)
def test_refused_writes(act: Any, text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        act(leaf(1.0, 2.0))
    assert str(caught.value) == text


def test_leaf_may_be_written_without_grad() -> None:
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        x.add_(1)
        x[0] = 7
    close(x, [7, 3])
    assert x.is_leaf
    assert x.requires_grad
    assert x._version == 2


def test_view_made_without_grad() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    with torch.no_grad():
        v = y[:1]
        v.mul_(2)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being"):
        v.add_(1)
    y.add_(1)
    with pytest.raises(
        RuntimeError,
        match="A view was created in no_grad mode and its base or another view of its base has "
        "been modified inplace with grad mode enabled",
    ):
        _ = v.grad_fn
    assert repr(v).endswith("grad_fn=<Invalid>)")
    with torch.no_grad():
        v = torch.zeros(2).view(2)
    v.requires_grad_()
    with pytest.raises(
        RuntimeError, match="Output 0 of View is a view of a view which was created in no_grad mode"
    ):
        v.view(2).mul_(2)


def test_view_made_without_grad_requires_it_and_takes_none() -> None:
    class Alias(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:]

    x = leaf(1.0, 2.0)
    y = x * 1
    with torch.no_grad():
        views = x[:1], y[:1], Alias.apply(x)
    for v in views:
        assert (v.requires_grad, v.is_leaf) == (True, True)
        z = v * 2
        assert z.grad_fn.name() == "MulBackward0"
        z.sum().backward()
        assert v.grad is None
        with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
            torch.autograd.grad((v @ v).exp(), v)
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being"):
            v.zero_()
    assert x.grad is None


def test_view_made_by_a_function_that_was_not_recorded() -> None:
    class Alias(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

    v = Alias.apply(torch.zeros(2))
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        v += leaf(1.0, 2.0)


@pytest.mark.parametrize("make", ["unbind", "split", "chunk"])
def test_one_of_several_views_takes_no_history(make: str) -> None:
    first = {
        "unbind": lambda x: x.unbind(0)[0],
        "split": lambda x: x.split(1)[0],
        "chunk": lambda x: x.chunk(2)[0],
    }[make]
    v = first(torch.zeros(2, 3))
    with pytest.raises(
        RuntimeError, match="A view was created in no_grad mode and is being modified inplace with"
    ):
        v[..., :2].copy_(leaf(1.0, 2.0))
    v.add_(1)
    with torch.no_grad():
        v.copy_(leaf(1.0, 2.0, 3.0))


def test_overwritten_view_is_named_as_the_write_left_it() -> None:
    w, x = torch.ones(3, 4, requires_grad=True), leaf(1.0, 2.0, 3.0, 4.0)
    y = torch.nn.functional.linear(x, w).sum() + (x @ w.t()).sum()
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="which is output 0 of AsStrided, is at version 1"):
        y.backward()


def test_multi_output_view_after_its_base_changed() -> None:
    y = leaf(1.0, 2.0) * 1
    a, _ = y.unbind(0)
    y.add_(1)
    with pytest.raises(
        RuntimeError, match="Output 0 of Unbind is a view and its base or another view of its base"
    ):
        _ = a.grad_fn


def test_saved_result_overwritten() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y.sum()
    y.add_(1)
    kind = y.type()
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    assert str(caught.value) == (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{kind} [2]], which is output 0 of Exp, is at version 1; expected version 0 "
        "instead. Hint: enable anomaly detection to find the operation that failed to compute its "
        "gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def test_what_saves_its_operand_may_be_written_to() -> None:
    x = leaf(0.1, 0.5)
    y = x * 1
    y.erfinv_().mul_(2).add_(1)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([1.786503, 2.225170])


def test_saved_leaf_overwritten() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match=r" \[2\]\] is at version 1; expected version 0 instead"):
        y.backward()


def test_data_escapes_the_version_check() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    x.data.mul_(10)
    y.backward()
    close(x.grad, [20, 40])


def test_write_that_needs_the_old_value() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * 2
    y.mul_(w)
    y.sum().backward()
    close(x.grad, [6, 8])
    close(w.grad, [2, 4])


def test_hooks_and_retained_gradients_across_a_write() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 5).sum().backward()
    close(y.grad, [5, 5])
    assert seen == [[5, 5], [15, 15]]


def test_detach_in_place_of_a_view() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        x[:1].detach_()


def test_backward_twice_through_writes_in_a_loop() -> None:
    h = torch.zeros(4)
    w = leaf(2.0)
    for i in range(4):
        h[i] = w[0] ** (i + 1)
    h.sum().backward()
    close(w.grad, [1 + 4 + 12 + 32])


def test_what_is_written_with_itself_has_no_gradient() -> None:
    for write in (
        lambda z: z.mul_(z),
        lambda z: z.div_(z),
        lambda z: z.atan2_(z),
        lambda z: z.addcmul_(z, z),
    ):
        z = leaf(2.0, 3.0) * 1
        write(z)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_other_memory_is_another_version() -> None:
    x, w = leaf(1.0, 2.0), torch.ones(2)
    y = x * w
    for source in ((torch.zeros(2),), (torch.zeros(5).untyped_storage(), 1, (2,), (1,)), ()):
        before = w._version
        w.set_(*source)
        assert w._version == before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_graph_through_a_written_part_is_used_up() -> None:
    x, base = leaf(2.0, 3.0), torch.zeros(4)
    base[1:3] = x
    base[1:3].mul_(x)
    base.sum().backward()
    close(x.grad, [4, 6])
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        base.sum().backward()


ASSIGNED: dict[str, Any] = {
    "square_": ((), lambda z: 2 * z),
    "abs_": ((), lambda z: z.sign()),
    "pow_": ((3,), lambda z: 3 * z * z),
    "logit_": ((), lambda z: 1 / (z * (1 - z))),
    "nan_to_num_": ((), torch.ones_like),
}


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("name", ASSIGNED)
def test_forms_in_place_of_whole_functions_have_their_history(name: str, part: bool) -> None:
    args, slope = ASSIGNED[name]
    x = leaf(0.25, 0.5, 0.75)
    z = x * 1
    getattr(z[1:] if part else z, name)(*args)
    z.sum().backward()
    wanted = slope(x.detach())
    if part:
        wanted[0] = 1
    close(x.grad, wanted.tolist(), 1e-5)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(x, name)(*args)
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        z = forward.make_dual(x.detach().clone(), torch.full((3,), 2.0))
        getattr(z, name)(*args)
        close(forward.unpack_dual(z).tangent, (2 * slope(x.detach())).tolist(), 1e-5)
        with pytest.raises(NotImplementedError, match="does not support it because it is an out="):
            torch.exp(z, out=torch.zeros(3))


def test_a_storage_grows_to_what_is_set() -> None:
    w = torch.ones(2)
    w.set_(w.untyped_storage(), 0, (10,))
    assert w.shape == (10,)
    assert w.untyped_storage().nbytes() == 40
    assert w[:2].tolist() == [1, 1]


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.nn.functional.affine_grid(x[:, :2, :3], (2, 3, 4, 4), align_corners=False),
        lambda x: torch.nn.functional.fold(x.reshape(1, 8, 4), (3, 3), 2),
        lambda x: torch.nn.functional.unfold(x[None], 2),
        lambda x: torch.nn.functional.bilinear(x[0], x[1], torch.ones(3, 4, 4)),
    ],
    ids=["affine_grid", "fold", "unfold", "bilinear"],
)
def test_results_on_whose_way_there_were_views_are_written_like_others(
    make: Callable[[Any], Any], needs: bool
) -> None:
    x, factor = torch.rand(2, 4, 4, requires_grad=needs), torch.tensor(3.0, requires_grad=True)
    for part in (lambda y: y, lambda y: y[..., 0]):
        y = make(x)
        wanted = part(y).detach().sum()
        part(y).mul_(factor)
        (grad,) = torch.autograd.grad(y.sum(), factor)
        close(grad, wanted.item(), 1e-4)
