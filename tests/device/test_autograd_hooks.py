"""Hooks on tensors and nodes, and hooks on what is saved."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest
from support import close, leaf
from support import ct as torch


def test_tensor_hooks_replace_the_gradient_in_turn() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    y.retain_grad()
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    x.register_hook(lambda g: g * 2)
    y.sum().backward()
    close(y.grad, [11, 11])
    assert seen == [[33, 33]]
    close(x.grad, [66, 66])


def test_a_leafs_hook_sees_the_sum_once() -> None:
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5]]


def test_hooks_act_on_captured_gradients() -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    gy, gx = torch.autograd.grad(y.sum(), [y, x])
    close(gy, [1])  # as torch does: captured before its hooks, as backward goes on below y
    close(gx, [21])


def test_removing_a_hook() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 10)
    (x * 1).sum().backward()
    handle.remove()
    (x * 1).sum().backward()
    close(x.grad, [11])
    with x.register_hook(lambda g: g * 100):
        pass
    (x * 1).sum().backward()
    close(x.grad, [12])


@pytest.mark.parametrize(
    ("hook", "kind", "text"),
    [
        (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
        (lambda g: g[:1], RuntimeError, "hook '<lambda>' has changed the size of value"),
        (lambda g: g.double(), RuntimeError, "hook '<lambda>' has changed the type of value"),
    ],
)
def test_bad_hooks(hook: Any, kind: type[Exception], text: str) -> None:
    y = leaf(1.0, 2.0) * 2
    y.register_hook(hook)
    with pytest.raises(kind, match=text):
        y.sum().backward()


def test_hooks_need_a_gradient() -> None:
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        torch.ones(1).register_hook(print)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        torch.ones(1).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (leaf(1.0) * 1).register_post_accumulate_grad_hook(print)


def test_post_accumulate_hook() -> None:
    x = leaf(1.0, 2.0)

    def step(p: Any) -> None:
        with torch.no_grad():
            p.sub_(0.5 * p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 4).sum().backward()
    close(x, [-1, 0])
    assert x.grad is None


def test_node_hooks() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []

    def pre(grad_outputs: Any) -> Any:
        seen.append(("pre", grad_outputs[0].tolist()))
        return (grad_outputs[0] * 2,)

    def post(grad_inputs: Any, grad_outputs: Any) -> Any:
        seen.append(("post", grad_inputs[0].tolist(), grad_outputs[0].tolist()))
        return (grad_inputs[0] + 1, *grad_inputs[1:])

    y.grad_fn.register_prehook(pre)
    handle = y.grad_fn.register_hook(post)
    y.sum().backward(retain_graph=True)
    assert seen[0] == ("pre", [1, 1])
    assert seen[1][1] == [6, 6]
    close(x.grad, [7, 7])
    handle.remove()
    y.sum().backward()
    close(x.grad, [13, 13])


def test_hook_on_an_accumulator() -> None:
    x = leaf(1.0)
    acc = x.expand_as(x).grad_fn.next_functions[0][0]
    seen = []
    acc.register_hook(lambda gi, go: seen.append(x.grad.tolist()))
    (x * 2).sum().backward()
    assert seen == [[2]]


def test_multi_grad_hook() -> None:
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook((x, y, z), seen.append)
    (x * y).sum().backward()
    ((gx, gy, gz),) = seen
    assert (gx.tolist(), gy.tolist(), gz) == ([2], [1], None)
    handle.remove()
    (x * y).sum().backward()
    assert len(seen) == 1
    torch.autograd.graph.register_multi_grad_hook((x, y), seen.append, mode="any")
    (x * y).sum().backward()
    assert len(seen) == 2


def test_hooks_of_a_leaf_run_in_torchs_order() -> None:
    x = leaf(1.0, 2.0)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda g: g - 2)
    node.register_prehook(lambda grads: (grads[0] / 5,))
    x.register_post_accumulate_grad_hook(lambda t: [t.grad.add_(0.5)].clear())
    node.register_hook(lambda _, grads: setattr(x, "grad", grads[0] * 10))
    x.sum().backward()
    close(x.grad, [3, 3])


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_multi_grad_hook_keeps_no_gradient(mode: str) -> None:
    x, seen = leaf(1.0, 2.0), []

    def note(grads: Any) -> None:
        seen.append(weakref.ref(grads[0] if mode == "all" else grads))

    handle = torch.autograd.graph.register_multi_grad_hook((x,), note, mode=mode)
    torch.autograd.grad((x * x).sum(), x)
    gc.collect()
    assert [kept() for kept in seen] == [None]
    handle.remove()


def test_multi_grad_hook_counts_what_the_pass_comes_to() -> None:
    x, y = leaf(1.0), leaf(2.0)
    product, other = x * y, x + y
    seen = []
    torch.autograd.graph.register_multi_grad_hook((x, y, product, other), seen.append)
    product.sum().backward(inputs=(x,), retain_graph=True)
    assert [[g is not None for g in grads] for grads in seen] == [[True, False, True, False]]


def test_gradients_have_the_dtype_that_a_leaf_asks_for() -> None:
    x = leaf(1.0, 2.0)
    assert x.grad_dtype is torch.float32
    (x * 2).sum().backward()
    with pytest.raises(RuntimeError, match="already a gradient with dtype 'float'"):
        x.grad_dtype = torch.float16
    x.grad = None
    loss = (x * 2).sum()
    x.grad_dtype = torch.float16  # after the graph was made
    loss.backward()
    assert x.grad.dtype is torch.float16
    with pytest.raises(RuntimeError, match="to a tensor with grad_dtype 'Half'"):
        x.grad = torch.ones(2)
    x.grad = x.grad_dtype = None
    x.grad = torch.ones(2, dtype=torch.bfloat16)
    (x * 2).sum().backward()
    assert x.grad_dtype is None and x.grad.tolist() == [3, 3] and x.grad.dtype is torch.bfloat16
    with pytest.raises(RuntimeError, match="only be accessed on leaf"):
        _ = (x * 2).grad_dtype
    with pytest.raises(RuntimeError, match="only be set on leaf"):
        (x * 2).grad_dtype = None
    with pytest.raises(RuntimeError, match=r"must be a torch\.dtype or None, but got int"):
        x.grad_dtype = 3


def test_post_accumulate_hooks_return_none_or_the_leaf() -> None:
    x = leaf(1.0, 2.0)
    x.register_post_accumulate_grad_hook(lambda t: t.sub_(t.grad)).remove()
    handle = x.register_post_accumulate_grad_hook(lambda t: t.sub_(t.grad))
    x.sum().backward()
    close(x.detach(), [0, 1])
    handle.remove()
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        x.register_post_accumulate_grad_hook(lambda _: 3)
        x.sum().backward()
    x = leaf(1.0, 2.0)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(
        RuntimeError, match=r"Tensor post accumulate grad hooks should return None\."
    ):
        x.sum().backward()


def test_saved_tensor_hooks() -> None:
    x = leaf(1.0, 2.0)
    log = []

    def pack(t: Any) -> Any:
        log.append("pack")
        return t.tolist()

    def unpack(values: Any) -> Any:
        log.append("unpack")
        return torch.tensor(values)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
        z = y.exp()
    assert log == ["pack"] * 3
    z.sum().backward()
    assert sorted(log[3:]) == ["unpack"] * 3
    close(x.grad, [2 * 2.7182817, 4 * 54.59815], 1e-4)


def test_saved_tensor_hooks_keep_the_graph() -> None:
    x = leaf(1.0, 2.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        y = (x * x * x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
    close(h, [6, 12])


def test_saved_tensor_hooks_see_the_tensor_itself() -> None:
    w, x = torch.nn.Parameter(torch.ones(2)), torch.ones(2)
    seen: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append(t)
        return t

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.extend(ctx.saved_tensors)
            return g, None

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = Product.apply(w, x)
    y.sum().backward()
    assert seen[0] is w
    assert seen[1] is x is seen[3]
    assert seen[2].requires_grad


def test_saved_tensor_hooks_may_not_write() -> None:
    x = leaf(1.0, 2.0)
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t),
        pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input"),
    ):
        _ = x * x


def test_saved_tensor_hooks_can_be_forbidden() -> None:
    with (
        torch.autograd.graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass


def test_save_on_cpu() -> None:
    x = leaf(1.0, 2.0)
    with torch.autograd.graph.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    close(x.grad, [2, 4])


def test_hooks_survive_in_a_deep_copy_only_as_a_value() -> None:
    x = leaf(1.0)
    x.register_hook(lambda g: g * 10)
    y = copy.deepcopy(x)
    (y * 1).sum().backward()
    assert y.grad.tolist() == [1]


def test_saved_tensors_may_be_written_where_that_is_allowed() -> None:
    a = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        total = (b**2).sum()
        b.zero_()
        total.backward()
        kept = a.exp()
    assert a.grad.tolist() == [2, 2, 2]
    with pytest.raises(AssertionError, match="Trying to backward outside"):
        kept.sum().backward()


def test_hooks_answer_for_what_they_pack() -> None:
    a, w = torch.ones(3), torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        product = a * w
    a.add_(1)
    product.sum().backward()
    assert w.grad.tolist() == [1, 1, 1]


def test_hooks_of_one_saved_tensor() -> None:
    x = leaf(1.0, 2.0)
    y = x**2
    saved, log = y.grad_fn._raw_saved_self, []

    def pack(t: Any) -> Any:
        log.append("pack")
        return t.detach() * 3

    saved.register_hooks(pack, lambda t: t / 3)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        saved.register_hooks(pack, lambda t: t)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    close(g, [2, 4])
    close(torch.autograd.grad(g.sum(), x, retain_graph=True)[0], [2, 2])
    assert log == ["pack"]
    y.sum().backward()
    with pytest.raises(RuntimeError, match="on a saved tensor after it has been freed"):
        saved.register_hooks(pack, lambda t: t)


def test_packed_tensors_are_read_outside_of_a_pass() -> None:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        y = leaf(0.0, 1.0).exp()
    close(y.grad_fn._saved_result, [1, 2.7182817])


def test_a_gradient_kept_from_a_hook_has_no_history() -> None:
    given = leaf(1.0, 2.0) * 2
    x = leaf(1.0, 1.0)
    x.register_hook(lambda g: given)
    (x * 3).sum().backward()
    close(x.grad, [2, 4])
    assert not x.grad.requires_grad
    with pytest.raises(
        ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got some"
    ):
        torch.autograd.graph.register_multi_grad_hook([x], lambda g: None, mode="some")
