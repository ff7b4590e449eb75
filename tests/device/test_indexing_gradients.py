"""Gradients of subscripts, gathering and scattering, read and written, beside numerical ones; the nodes that writes leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import ct, data, on_device

from cltensor.runtime import STATS

M = np.array([[True, False, True, False], [False, False, True, True], [True, True, False, False]])
GRADIENTS: dict[str, Callable[..., Any]] = {
    "view": lambda x, s: x[1:, ::2][0],
    "rows": lambda x, s: x[[0, 2, 0]],
    "pairs": lambda x, s: x[[0, 2, 0], [1, 1, 1]],
    "mask": lambda x, s: x[ct.tensor(M)],
    "column mask": lambda x, s: x[:, [True, False, True, True]],
    "gather": lambda x, s: x.gather(1, ct.tensor([[0, 0], [1, 2], [3, 3]])),
    "scatter": lambda x, s: x.scatter(1, ct.tensor([[0, 1], [1, 2], [3, 0]]), s),
    "scatter number": lambda x, s: x.scatter(1, ct.tensor([[0, 1], [1, 2], [3, 0]]), 2.0),
    "scatter_add": lambda x, s: x.scatter_add(1, ct.tensor([[0, 0], [1, 2], [3, 3]]), s),
    "prod": lambda x, s: x.scatter_reduce(1, ct.tensor([[0, 0, 1, 1]] * 3), s, "prod"),
    "mean": lambda x, s: x.scatter_reduce(
        1, ct.tensor([[0, 0, 1, 1]] * 3), s, "mean", include_self=False
    ),
    "amax": lambda x, s: x.scatter_reduce(1, ct.tensor([[0, 0, 1, 1]] * 3), s, "amax"),
    "take": lambda x, s: x.take(ct.tensor([0, 5, 5, -1])),
    "put": lambda x, s: x.put(ct.tensor([0, 5]), s[0, :2]),
    "index_add": lambda x, s: x.index_add(0, ct.tensor([0, 0]), s[:2], alpha=3),
    "index_copy": lambda x, s: x.index_copy(0, ct.tensor([2, 0]), s[:2]),
    "index_fill": lambda x, s: x.index_fill(1, ct.tensor([0, 3]), s[0, 0]),
    "index_put": lambda x, s: x.index_put(
        (ct.tensor([0, 0]), ct.tensor([1, 1])), s[0, :2], accumulate=True
    ),
    "masked_select": lambda x, s: x.masked_select(ct.tensor([True, False, True, True])),
    "masked_scatter": lambda x, s: x.masked_scatter(ct.tensor(M), s),
    "slice_scatter": lambda x, s: x.slice_scatter(s[:, :2], 1, 0, 4, 2),
    "as_strided_scatter": lambda x, s: x.as_strided_scatter(s[:2, :2], (2, 2), (1, 4), 1),
    "as_strided_scatter of columns": lambda x, s: (
        x.t().as_strided_scatter(s[:2, :2], (2, 2), (1, 4), 1).t() * s
    ),
}


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    x = ct.tensor(data(3, 4, dtype="float64"), requires_grad=True)
    s = ct.tensor(data(3, 4, seed=1, dtype="float64"), requires_grad=True)
    fn = GRADIENTS[name]
    out = fn(x, s)
    used = [
        v
        for v, g in zip((x, s), ct.autograd.grad(out.sum(), (x, s), allow_unused=True), strict=True)
        if g is not None
    ]
    call = fn if len(used) == 2 else lambda v: fn(v, s)
    assert ct.autograd.gradcheck(call, tuple(used))


def written(code: str, x: Any, s: Any) -> Any:
    w = x * 1
    exec(code, {"w": w, "s": s, "ct": ct, "M": M})
    return w


@pytest.mark.parametrize(
    "code",
    [
        "w[0] = s[1]",
        "w[1:, ::2] = s[0, :2]",
        "w[[0, 2]] = s[:2]",
        "w[ct.tensor(M)] = s[0, 0]",
        "w[ct.tensor(M)] = s[ct.tensor(M)]",
        "w[:, 1] = 2.0",
        "w[0, [1, 2]] = s[0, :2]",
        "w.t()[1] = s[:, 0]",
        "w[1:].index_add_(0, ct.tensor([0, 0]), s[:2])",
        "w.scatter_reduce_(1, ct.tensor([[0, 0, 1, 1]] * 3), s, 'prod')",
        "w.masked_scatter_(ct.tensor(M), s)",
    ],
)
def test_gradients_of_writes(code: str) -> None:
    x = ct.tensor(data(3, 4, dtype="float64"), requires_grad=True)
    s = ct.tensor(data(3, 4, seed=1, dtype="float64"), requires_grad=True)
    inputs = (x, s) if "s[" in code or ", s" in code else (x,)
    assert ct.autograd.gradcheck(lambda x, s=s: written(code, x, s), inputs)


def test_history_of_writes() -> None:
    x = ct.tensor(data(3, 4), requires_grad=True)
    for code, name in (
        ("w[0] = 1", "CopySlices"), ("w[[0, 1]] = 1", "IndexPutBackward0"), ("w[w > 0] = 1", "IndexPutBackward0"),
        ("w[...] = 1", "FillBackward3"), ("w[:] = 1", "FillBackward3"), ("w[0, [1]] = 1", "CopySlices"),
    ):  # fmt: skip
        assert type(written(code, x, None).grad_fn).__name__ == name
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0] = 1
    with pytest.raises(RuntimeError, match=r"^a leaf Variable that requires grad"):
        x[[0]] = 1


def parts_program(x: Any, m: Any) -> Any:
    """Return a number that meets `x` in overlapping parts, among them one of another dtype and the whole."""
    total = (x[1] * x[2]).sum() + (x[1:3, ::2] ** 2).sum() + x.diagonal().sin().sum()
    for i in range(3):
        total = total + (x[i] * (i + 1)).exp().sum() + x[:, i].double().prod()
    return total + (x * 3).cos().sum()


@pytest.mark.parametrize("double", [False, True])
def test_gradients_of_parts_add_up(double: bool) -> None:
    x = on_device(data(3, 3)).float().requires_grad_()
    y = x * 1 if double else x
    seen: list[Any] = []
    if double:
        y.retain_grad()
        y.register_hook(lambda g: seen.append(g.clone()))
    parts_program(y, ct).backward()
    eager = x.detach().clone().requires_grad_()
    (wanted,) = ct.autograd.grad(parts_program(eager, ct), eager, create_graph=True)
    ct.testing.assert_close(x.grad, wanted.detach())
    if double:
        ct.testing.assert_close(y.grad, wanted.detach())
        ct.testing.assert_close(seen, [wanted.detach()])


def test_a_gradient_that_another_tensor_shares_is_not_added_to() -> None:
    x = on_device(data(3, 4)).requires_grad_()
    y = x * 1
    kept: list[Any] = []
    first = y.view(12)
    first.register_hook(kept.append)
    (y[0].sum() + (first * 2).sum() + y[1].sum()).backward()
    assert kept[0].tolist() == [2.0] * 12
    assert x.grad.sum(1).tolist() == [12.0, 12.0, 8.0]


def test_parts_after_the_first_are_one_launch_each() -> None:
    x = on_device(data(8, 16)).requires_grad_()
    counts = []
    for n in (2, 8):
        total = sum((x[i] * float(i + 1)).sum() for i in range(n))
        ct.opencl.synchronize()
        x.grad, before = None, STATS.launches
        total.backward()
        x.grad.data_ptr()
        counts.append(STATS.launches - before)
    assert counts[1] - counts[0] <= 6, counts
