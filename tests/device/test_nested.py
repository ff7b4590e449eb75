"""Nested tensors: against each tensor alone, gradients by differences, launches, and dense tensors' unchanged functions."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, data
from support import one_by_one as unfused

import cltensor as ct
from cltensor.autograd import gradcheck
from cltensor.nn import functional as F
from cltensor.runtime import STATS

nested = ct.nested
LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any)


def jagged(lengths: list[int], *rest: int, seed: int = 0, like: Any = None) -> tuple[Any, Any]:
    """Return a jagged tensor (B, *, ...) and its values, a leaf; with `like` of the same offsets."""
    values = ct.tensor(data(sum(lengths), *rest, seed=seed), requires_grad=True)
    offsets = ct.tensor([0, *np.cumsum(lengths)]) if like is None else like.offsets()
    return nested.nested_tensor_from_jagged(values, offsets), values


def one_by_one(values: Any, lengths: list[int], fn: Callable[[Any], Any]) -> Any:
    return [fn(x) for x in values.split(lengths)]


# name -> function of a tensor (*, 3) alone or of a batch of them; `d` is the ragged dim
EACH: dict[str, Callable[[Any, int], Any]] = {
    "chain": lambda x, d: (x * 2 + 1).sin() / 3,
    "softmax along it": lambda x, d: x.softmax(d),
    "log_softmax along it": lambda x, d: x.log_softmax(d),
    "softmax of rows": lambda x, d: x.softmax(-1),
    "sum": lambda x, d: x.sum(d),
    "sum, kept": lambda x, d: x.sum(d, keepdim=True),
    "amax": lambda x, d: x.amax(d),
    "amin": lambda x, d: x.amin(d),
    "mean of rows": lambda x, d: x.mean(-1),
    "max of rows": lambda x, d: x.max(-1)[0],
    "linear": lambda x, d: F.linear(x, ct.ones(2, 3) / 3, ct.ones(2)),
    "product": lambda x, d: x @ (ct.ones(3, 2) / 2),
    "layer_norm": lambda x, d: F.layer_norm(x, (3,)),
    "rms_norm": lambda x, d: F.rms_norm(x, (3,)),
    "transpose": lambda x, d: x.transpose(d, d + 1) * 2,
    "unsqueeze": lambda x, d: x.unsqueeze(d) + 1,
    "parts": lambda x, d: x.chunk(3, -1)[1],
    "slice": lambda x, d: x[..., 1:] * x[..., :1],
    "split": lambda x, d: x.unflatten(-1, (3, 1)).squeeze(-1).exp(),
    "gelu": lambda x, d: F.gelu(x),
    "squares over it": lambda x, d: x.transpose(-1, -2) @ x,
}


@pytest.mark.parametrize("name", EACH)
@given(lengths=LENGTHS, seed=st.integers(0, 99))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_like_each_alone(name: str, lengths: list[int], seed: int) -> None:
    if name in ("amax", "amin"):  # of no element: alone an error
        lengths = [n + 1 for n in lengths]
    x, values = jagged(lengths, 3, seed=seed)
    made = EACH[name](x, 1)
    own = values.detach().requires_grad_()
    with unfused():
        expected = one_by_one(own, lengths, lambda v: EACH[name](v, 0))
    parts = made.unbind()
    assert len(parts) == len(expected)
    for a, b in zip(parts, expected, strict=True):
        close(a, b.detach().numpy(), 2e-5)

    def total(rows: Any) -> Any:
        return sum((r * (i + 1) * ct.arange(r.numel()).reshape(r.shape)).sum() for i, r in enumerate(rows))  # fmt: skip

    (slope,) = ct.autograd.grad(total(parts), values)
    with unfused():
        (wanted,) = ct.autograd.grad(total(expected), own)
    close(slope, wanted.numpy(), 1e-4)


@given(lengths=LENGTHS, causal=st.booleans(), width=st.integers(1, 9), heads=st.integers(1, 3))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_attention(lengths: list[int], causal: bool, width: int, heads: int) -> None:
    made = [jagged(lengths, heads, width, seed=i) for i in range(3)]
    offsets = made[0][0].offsets()
    q, k, v = (nested.nested_tensor_from_jagged(x, offsets).transpose(1, 2) for _, x in made)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    assert out.shape[:2] == (len(lengths), heads)
    assert out.size(2) == q.size(2)
    rows = [x.detach().requires_grad_() for _, x in made]
    expected = []
    for parts in zip(*(x.split(lengths) for x in rows), strict=True):
        alone = (p.transpose(0, 1) for p in parts)
        expected.append(F.scaled_dot_product_attention(*alone, is_causal=causal).transpose(0, 1))
    close(out.transpose(1, 2).values(), ct.cat(expected).detach().numpy(), 1e-5)
    g = ct.tensor(data(*made[0][1].shape, seed=9))
    found = ct.autograd.grad(out.transpose(1, 2).values(), [x for _, x in made], g)
    for a, b in zip(found, ct.autograd.grad(ct.cat(expected), rows, g), strict=True):
        close(a, b.numpy(), 5e-5)


def test_attention_of_other_keys_and_with_dropout() -> None:
    """Causal attention begins with the first key for the first query, as of dense tensors."""
    q = jagged([3, 1], 2, 4)[0].transpose(1, 2)
    k, _ = jagged([2, 4], 2, 4, seed=1)
    k = k.transpose(1, 2)
    for settings_ in ({}, {"is_causal": True}, {"dropout_p": 1.0}):
        out = F.scaled_dot_product_attention(q, k, k, **settings_)
        for a, b, c in zip(out.unbind(), q.unbind(), k.unbind(), strict=True):
            close(a, F.scaled_dot_product_attention(b, c, c, **settings_).detach().numpy(), 1e-5)
    assert not out.values().any()


@pytest.mark.usefixtures("one_by_one")
def test_gradients_by_differences() -> None:
    values = ct.tensor(data(5, 2), dtype=ct.float64, requires_grad=True)
    offsets = ct.tensor([0, 2, 2, 5])
    beside = ct.tensor(data(3, 1, 2), dtype=ct.float64, requires_grad=True)

    def run(values: Any, beside: Any) -> Any:
        x = nested.nested_tensor_from_jagged(values, offsets)
        x = (x * beside).softmax(1) + x
        return F.layer_norm(x, (2,)).to_padded_tensor(0.0), x.mean(-1).values(), x.sum(1)

    assert gradcheck(run, (values, beside))


def test_gradients_reach_the_tensors() -> None:
    parts = [ct.tensor(data(n, 2, seed=n), requires_grad=True) for n in (2, 3)]
    for layout in (ct.jagged, ct.strided):
        x = nested.as_nested_tensor(parts, layout=layout)
        assert x.requires_grad
        assert not x.is_leaf
        found = ct.autograd.grad((x * x).unbind()[1].sum() + x.unbind()[0].sum(), parts)
        close(found[0], np.ones((2, 2)))
        close(found[1], 2 * parts[1].detach().numpy())
        leaf = nested.nested_tensor(parts, layout=layout, requires_grad=True)
        assert leaf.is_leaf
        assert leaf.grad is None
        (leaf * 2).backward(ct.ones_like(leaf))
        (leaf * 1).backward(ct.ones_like(leaf))
        assert leaf.grad.layout is layout
        assert all((g == 3).all() for g in leaf.grad.unbind())
        seen: list[Any] = []
        again = leaf.detach().requires_grad_()
        again.register_hook(lambda g, seen=seen: seen.append(g) or g * 2)
        (again * 1).backward(ct.ones_like(leaf))
        assert seen[0].is_nested
        assert all((g == 2).all() for g in again.grad.unbind())


def test_gradients_of_dense_tensors_once_there_is_a_nested_one() -> None:
    jagged([1, 2])
    w, x = (ct.tensor([n, 2.0], requires_grad=True) for n in (1.0, 3.0))
    y = w * 3
    edge = ct.autograd.graph.get_gradient_edge(y)
    named = {"w": w, "x": x}
    z = (y * x).sum()
    for inputs in (named.values(), iter([w, x]), [w, x]):
        found = ct.autograd.grad(z, inputs, retain_graph=True)
        close(found[0], [9, 6])
        close(found[1], [3, 6])
    close(ct.autograd.grad(z, edge, retain_graph=True)[0], [3, 2])
    (g,) = ct.autograd.grad(iter([z]), inputs=edge, retain_graph=True)
    close(g, [3, 2])
    ct.autograd.backward(iter([z]), inputs=named.values())
    close(x.grad, [3, 6])


def test_padding_and_gaps() -> None:
    x, values = jagged([2, 0, 3], 2)
    padded = x.to_padded_tensor(-1.0)
    assert padded.shape == (3, 3, 2)
    assert (padded[1] == -1).all()
    close(padded[2], values[2:].detach().numpy())
    assert ct.nested.to_padded_tensor(x, 0.0, (3, 5, 2)).shape == (3, 5, 2)
    (slope,) = ct.autograd.grad((padded * 2).sum(), values)
    assert (slope == 2).all()
    whole = ct.tensor(data(3, 4, 2), requires_grad=True)
    part = nested.narrow(whole, 1, ct.tensor([0, 1, 2]), ct.tensor([2, 3, 1]), layout=ct.jagged)
    assert not part.is_contiguous()
    assert part.numel() == 12
    assert part._get_max_seqlen() == 3
    rows = [whole[0, :2], whole[1, 1:], whole[2, 2:3]]
    for a, b in zip((part * 2).unbind(), rows, strict=True):
        close(a, (b * 2).detach().numpy())
    close(part.sum(1), np.stack([r.sum(0).detach().numpy() for r in rows]))
    (slope,) = ct.autograd.grad(part.sum(), whole)
    assert slope.sum() == 12
    assert slope[0, 2:].sum() == 0


def test_what_it_is() -> None:
    x, values = jagged([2, 3], 4)
    j = x.size(1)
    assert x.shape == (2, j, 4)
    assert j == (x * 2).shape[1] != jagged([2, 3], 4)[0].size(1)
    assert (x.dim(), x.ndim, x.numel(), len(x), x.size(-1)) == (3, 3, 20, 2, 4)
    assert (x.is_nested, values.is_nested, x.layout) == (True, False, ct.jagged)
    assert x.transpose(1, 2).shape == (2, 4, j)
    assert (j >= 2, j > 1, j < 2, str(2 * j)) == (True, True, False, f"2*{j}")
    with pytest.raises(ValueError, match="indeterminate"):
        assert j > 5
    assert (
        repr(x.detach())
        == f"NestedTensor(size=(2, {j}, 4), offsets=tensor([0, 2, 5]), contiguous=True)"
    )
    text = repr(nested.nested_tensor([ct.ones(1, 2), ct.zeros(2, 1)]))
    assert text == "nested_tensor([\n  tensor([[1., 1.]]),\n  tensor([[0.],\n          [0.]])\n])"
    assert nested.nested_tensor([ct.ones(2)]).add_(1).unbind()[0].tolist() == [2, 2]
    y = x.detach().clone()
    y += 1
    y.mul_(2)
    close(y.values(), (values.detach().numpy() + 1) * 2)


def test_copies_and_files() -> None:
    x, _ = jagged([2, 0, 1], 2)
    for own in (
        x,
        x.detach().transpose(1, 2),
        nested.as_nested_tensor([ct.ones(2, 1), ct.ones(1, 3)]),
    ):
        file = io.BytesIO()
        ct.save(own, file)
        file.seek(0)
        for made in (
            pickle.loads(pickle.dumps(own)),
            copy.deepcopy(own.detach()),
            ct.load(file),
            copy.copy(own),
        ):
            assert made.layout is own.layout
            for a, b in zip(made.unbind(), own.unbind(), strict=True):
                assert a.tolist() == b.tolist()


def test_a_file_with_offsets_outside_is_refused() -> None:
    values = ct.ones(3)
    bad = nested.nested_tensor_from_jagged(values, ct.tensor([0, 2, 9]))
    file = io.BytesIO()
    ct.save(bad, file)
    file.seek(0)
    with pytest.raises(Exception, match="offsets are outside its values"):
        ct.load(file)


def test_a_layer_takes_as_many_launches_as_for_a_dense_tensor() -> None:
    x, values = jagged([20, 1, 43], 8)
    net = ct.nn.Sequential(
        ct.nn.Linear(8, 16), ct.nn.GELU(), ct.nn.LayerNorm(16), ct.nn.Linear(16, 8)
    )
    counts = []
    for given_ in (values, x, values, x):
        ct.opencl.synchronize()
        before = STATS.launches
        out = net(given_)
        (out if out is not None and not out.is_nested else out.values()).tolist()
        counts.append(STATS.launches - before)
    assert counts[2] == counts[3]


def test_modules_keep_it_nested() -> None:
    words = nested.nested_tensor([ct.tensor([1, 2]), ct.tensor([3])], layout=ct.jagged)
    net = ct.nn.Sequential(
        ct.nn.Embedding(5, 4),
        ct.nn.LayerNorm(4),
        ct.nn.ReLU(),
        ct.nn.Dropout(0.5),
        ct.nn.Linear(4, 2),
    )
    out = net(words)
    assert out.is_nested
    assert out.size(1) == words.size(1)
    out.sum().backward()
    assert all(p.grad is not None for p in net.parameters())


@pytest.mark.parametrize(
    "call",
    [lambda x: x.cumsum(1), lambda x: x.sort(), ct.linalg.svd, lambda x: F.conv1d(x, ct.ones(1, 3, 1)), lambda x: x.std()],
)  # fmt: skip
def test_other_functions_say_that_they_do_not_take_it(call: Callable[[Any], Any]) -> None:
    with pytest.raises(NotImplementedError, match=r"\w+\(\): not supported for NestedTensor"):
        call(jagged([1, 2], 3)[0])


def test_dense_functions_are_as_they_were_until_there_is_a_nested_tensor() -> None:
    """Importing torch.nested changes no function; the first nested tensor does."""
    program = """
import cltensor as torch
code = torch.add.__code__, torch.Tensor.sum.__code__, torch.autograd.grad.__code__
torch.nested
assert code == (torch.add.__code__, torch.Tensor.sum.__code__, torch.autograd.grad.__code__)
torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged)
assert torch.add.__code__ is not code[0]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
