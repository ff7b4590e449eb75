"""`vmap`: the same results and errors as torch's, for functions of many kinds of one or several mapped arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from parity.oracle import evaluate, numbers, th
from support import ct, data

R = np.random.RandomState(0)
X = R.randn(4, 5).astype("f")
X3 = R.randn(4, 5, 6).astype("f")
S = R.randn(4).astype("f")
I = R.randint(0, 5, (4, 3))  # noqa: E741
Z = R.randn(4, 3, 5, 6, 7).astype("f")
IMAGES = R.randn(4, 2, 3, 8, 8).astype("f")
FILTERS = R.randn(4, 2, 3, 3, 3).astype("f")
BIAS = R.randn(4, 2).astype("f")
HEADS = R.randn(4, 2, 3, 8, 16).astype("f")
LABELS = R.randint(0, 6, (4, 5))
THREE = R.randn(4, 3).astype("f")


def put(a: Any, index: Any, value: Any) -> Any:
    b = a.clone()
    b[index] = value
    return b


def added(a: Any, index: Any, value: Any) -> Any:
    b = a.clone()
    b[index] += value
    return b


def in_place(a: Any) -> Any:
    b = a.clone()
    b += 1
    b[0] *= 2
    b[..., 1] = 7
    return b.t_()


# name: (function, called with the library and a slice of each array; arrays)
VALUES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "masked_fill": (lambda t, a, v: a.masked_fill(a > 0, v), (X, S)),
    "fill_": (lambda t, a, v: a.clone().fill_(v), (X, S)),
    "set": (lambda t, a, j, v: put(a, j, v), (X, I, S)),
    "set after": (lambda t, a, j, v: put(a, (slice(None), j), v), (X3, I, S)),
    "set a part": (lambda t, a, v: put(a, (slice(1, 3), 0), v), (X3, S)),
    "set apart": (lambda t, a, j, v: added(a, (slice(None), j, slice(None), j), v), (Z, I, S)),
    "get after": (lambda t, a, j: a[:, j], (X3, I)),
    "get first": (lambda t, a, j: a[j, :, None], (X3, I)),
    "get two": (lambda t, a, j: a[j, j], (X3, I)),
    "get last": (lambda t, a, j: a[..., j], (X3, I)),
    "get mixed": (lambda t, a, j: a[0, :, j, None], (Z, I)),
    "get apart": (lambda t, a, j: a[j % 3, :, j], (Z, I)),
    "get lists": (lambda t, a: a[:, [0, 1], :, [1, 2]], (Z,)),
    "get lists apart": (lambda t, a: a[[0, 1], :, [1, 2]], (Z,)),
    "get one": (lambda t, a, j: a[j[0], j[1]], (X3, I)),
    "index_put": (lambda t, a, j, v: t.index_put(a, (j,), v, accumulate=True), (X, I, S)),
    "int and scalar": (lambda t, a, v: a + v, (X.astype("i4"), S)),
    "float and scalar": (lambda t, a, v: a + v, (X, S.astype("f8"))),
    "where": (lambda t, a, v: t.where(a > 0, a, v), (X, S)),
    "einsum": (lambda t, a, b: t.einsum("i,ij", a, b), (X, X3)),
    "tensordot": (lambda t, a, b: t.tensordot(a, b, 1), (X, X3)),
    "isin": (lambda t, a, b: t.isin(a, b), (I, I)),
    "linear": (lambda t, a, w, b: t.nn.functional.linear(a, w, b), (X3, R.randn(4, 7, 6).astype("f"), R.randn(4, 7).astype("f"))),
    "bias alone": (lambda t, a, b: t.nn.functional.linear(a, t.ones(7, 5), b), (X, R.randn(4, 7).astype("f"))),
    "conv": (lambda t, a, w, b: t.nn.functional.conv2d(a, w, b), (IMAGES, FILTERS, BIAS)),
    "conv filters": (lambda t, w: t.nn.functional.conv2d(t.ones(2, 3, 8, 8), w), (FILTERS,)),
    "conv bias": (lambda t, b: t.nn.functional.conv2d(t.ones(2, 3, 8, 8), t.ones(2, 3, 3, 3), b), (BIAS,)),
    "conv transposed": (lambda t, a, w: t.nn.functional.conv_transpose2d(a, w.movedim(0, 1), stride=2), (IMAGES, FILTERS)),
    "attention": (lambda t, q: t.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True), (HEADS,)),
    "attention masked": (lambda t, q: t.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=t.ones(8, 8).tril()), (HEADS,)),
    "embedding": (lambda t, w, j: t.nn.functional.embedding(j, w, padding_idx=1), (X3, I)),
    "batch_norm": (lambda t, a, w: t.nn.functional.batch_norm(a, None, None, w, None, True), (IMAGES, THREE)),
    "instance_norm": (lambda t, a, w: t.nn.functional.instance_norm(a, weight=w), (IMAGES, THREE)),
    "group_norm": (lambda t, a, w: t.nn.functional.group_norm(a, 3, w), (IMAGES, THREE)),
    "cross_entropy": (lambda t, a, j: t.nn.functional.cross_entropy(a, j, ignore_index=2, label_smoothing=0.1), (X3, LABELS)),
    "nll_loss": (lambda t, a, j: t.nn.functional.nll_loss(a, j, t.arange(1.0, 7.0)), (X3, LABELS)),
    "ctc_loss": (lambda t, a: t.nn.functional.ctc_loss(a.log_softmax(-1), t.ones(2, 3, dtype=t.long), [5, 5], [3, 3]), (R.randn(4, 5, 2, 6).astype("f"),)),
    "where one condition a slice": (lambda t, a: t.where(a.sum() > 0, a, 0.0), (X,)),
    "filled where one condition a slice holds": (lambda t, a: a.masked_fill(a.sum() > 0, 0.0), (X,)),
    "bool beside numbers": (lambda t, a: (a.sum() > 0) * 1.5 + a, (X,)),
    "gradient of steps": (lambda t, a: t.func.grad(lambda x: (x.floor() + x * x).sum())(a), (X,)),
    "searchsorted": (lambda t, a, v: t.searchsorted(a.sort()[0], v), (X, X3)),
    "solve": (lambda t, a, v: t.linalg.solve(a @ a.mT + t.eye(5), v), (X3, X)),
    "pad": (lambda t, a: t.nn.functional.pad(a, (1, 1), mode="reflect"), (X3,)),
    "index_add": (lambda t, a, j: a.index_add(1, j, t.ones(5, 3)), (X3, I)),
    "index_select": (lambda t, a, j: a.index_select(1, j), (X3, I)),
    "scatter_add": (lambda t, a, j: t.zeros(5).scatter_add(0, j, a[:3]), (X, I)),
    "split": (lambda t, a: t.cat([c * n for n, c in enumerate(a.split(2))]), (X,)),
    "block_diag": (lambda t, a: t.block_diag(t.ones(1, 2), a, t.ones(2)), (X3,)),
    "lstsq": (lambda t, a: sum(x.sum(-1) for x in t.linalg.lstsq(a[:, :3], a[:, 4:])[1:]), (X3,)),
    "rows": (lambda t, a: sum(r.sum() for r in a), (X3,)),
    "reflected": (lambda t, a: 1 - a + t.ones(5).mul(a) * (2**a), (X,)),
    "in place": (in_place, (X3,)),
    "cat empty": (lambda t, a: t.cat([t.ones(0, dtype=t.float64), a], 1), (X3,)),
    "as_strided": (lambda t, a: a[1:].as_strided((2,), (1,)) + a.as_strided((), ()), (X,)),
    "meshgrid": (lambda t, a, b: t.stack(t.meshgrid(a, b, indexing="xy")), (X, THREE)),
    "max": (lambda t, a: a.max(0)[1] + a.median(0).indices, (X3,)),
    "quantile": (lambda t, a: a.quantile(0.3), (X3,)),
    "stft": (lambda t, a: t.view_as_real(t.stft(a, 4, window=t.ones(4), return_complex=True)), (R.randn(4, 40).astype("f"),)),
}  # fmt: skip


def mapped(t: Any, f: Callable[..., Any], arrays: Any, **options: Any) -> Any:
    """Return `f` mapped over slices of the arrays."""
    given = [t.from_numpy(a.copy()) for a in arrays]
    with_t = f if f is in_place else lambda *xs: f(t, *xs)
    return t.func.vmap(with_t, **options)(*given)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("place", [0, 1])
def test_values(name: str, place: int) -> None:
    f, arrays = VALUES[name]
    dims = tuple([min(place, a.ndim - 1) for a in arrays])
    moved = [np.moveaxis(a, 0, d) for a, d in zip(arrays, dims, strict=True)]
    ours, theirs = (mapped(t, f, moved, in_dims=dims, out_dims=-1).numpy() for t in (ct, th))
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


ERRORS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "item": (lambda t, x: x.sum().item(), {}),
    "branch": (lambda t, x: x if x.sum() > 0 else 2 * x, {}),
    "float": (lambda t, x: float(x.sum()), {}),
    "numpy": (lambda t, x: x.numpy(), {}),
    "tolist": (lambda t, x: x.tolist(), {}),
    "data": (lambda t, x: x.data, {}),
    "backward": (lambda t, x: x.backward(), {}),
    "copy_": (lambda t, x: t.zeros(2).copy_(x), {}),
    "setitem": (lambda t, x: t.zeros(2).__setitem__(0, x[0]), {}),
    "nonzero": (lambda t, x: x.nonzero(), {}),
    "unique": (lambda t, x: x.unique(), {}),
    "mask": (lambda t, x: x[x > 0], {}),
    "masked_select": (lambda t, x: t.masked_select(x, x > 0), {}),
    "one_hot": (lambda t, x: t.nn.functional.one_hot(x.long()), {}),
    "equal": (lambda t, x: t.equal(x, x), {}),
    "allclose": (lambda t, x: t.allclose(x, x), {}),
    "out": (lambda t, x: t.sin(x, out=t.zeros(2)), {}),
    "random": (lambda t, x: t.randn(2), {}),
    "dropout": (lambda t, x: t.nn.functional.dropout(x), {}),
    "random out": (lambda t, x: t.rand(2, out=t.zeros(2)), {"randomness": "different"}),
    "bernoulli": (lambda t, x: t.bernoulli(x * 0), {"randomness": "same"}),
    "normal_": (lambda t, x: t.zeros(2).normal_(), {"randomness": "different"}),
    "randomness": (lambda t, x: x, {"randomness": "some"}),
    "batch_norm": (lambda t, x: t.nn.functional.batch_norm(x.expand(3, 2), t.zeros(2), t.ones(2), training=True), {}),
    "as_strided": (lambda t, x: x.as_strided((3,), (1,)), {}),
    "as_strided before": (lambda t, x: x[1:].as_strided((1,), (1,), 0), {}),
    "as_strided sizes": (lambda t, x: x.as_strided((1, 2), (1,)), {}),
    "is_contiguous": (lambda t, x: x.expand(1, 1, 1, 2).is_contiguous(memory_format=t.channels_last), {}),
    "returns none": (lambda t, x: None, {}),
    "in_dims": (lambda t, x: x, {"in_dims": 5}),
    "in_dims type": (lambda t, x: x, {"in_dims": "a"}),
    "no in_dims": (lambda t, x: x, {"in_dims": (None,)}),
    "out_dims": (lambda t, x: x, {"out_dims": 5}),
    "out_dims type": (lambda t, x: x, {"out_dims": "a"}),
    "no out_dims": (lambda t, x: x, {"out_dims": None}),
    "chunk_size": (lambda t, x: x, {"chunk_size": 0}),
}  # fmt: skip


def failing(t: Any, f: Callable[..., Any], options: dict[str, Any]) -> tuple[str, str]:
    """Return the class and text of the error that `f` raises under `vmap`."""

    def called(x: Any) -> Any:
        return f(t, x)

    with pytest.raises(Exception) as caught:
        t.func.vmap(called, **options)(t.arange(6.0).reshape(3, 2))
    return caught.type.__name__, str(caught.value).replace("cltensor", "torch")


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    f, options = ERRORS[name]
    assert failing(ct, f, options) == failing(th, f, options)


def test_joined_tensors_without_elements_have_gradients() -> None:
    def told(t: Any) -> list[Any]:
        shapes = ((2, 5), (3, 0), (2, 3)), ((3, 2), (3, 0)), ((0,), (3, 2), (3, 0))
        dims: tuple[Any, ...] = (None, 0, None), (0, 0), (None, 0, 0)
        found = []
        for sizes, where, dim in zip(shapes, dims, (1, 0, 0), strict=True):
            given = [t.ones(n).requires_grad_() for n in sizes]
            joined = t.func.vmap(lambda *xs, d=dim: t.cat(xs, d), in_dims=where)(*given)
            joined.sum().backward()
            found.append([tuple(joined.shape), *(x.grad.tolist() for x in given if x.ndim > 1)])
        return found

    assert told(ct) == told(th)


def test_slices_are_resized_in_place() -> None:
    """In the memory that they have together: the last elements are cut off."""

    def run(t: Any) -> Any:
        x = t.arange(12.0).reshape(3, 4)
        return t.func.vmap(lambda x: x.clone().resize_(2))(x).tolist()

    assert run(ct) == run(th)


@pytest.mark.parametrize(
    "call",
    [
        "x.clone().detach_()", "x.detach_()", "x.clone().requires_grad_()", "x.requires_grad_(False)",
        "torch.zeros(3).set_(x)", "torch.ones(4).resize_as_(x)", "x.clone().resize_as_(y)",
        "x.clone().resize_as_(y, memory_format=torch.preserve_format)",
    ],
)  # fmt: skip
def test_tensors_that_change_themselves(call: str) -> None:
    program = f"torch.vmap(lambda x, y: {call})(x, y)"
    found, expected = evaluate(program, {"x": data(2, 3), "y": data(2, 3) + 1})
    if expected.error is None:
        np.testing.assert_array_equal(numbers(found.value), numbers(expected.value))
    else:
        assert repr(found.error) == repr(expected.error)


@pytest.mark.ours  # torch leaves the tensor as it is
def test_slices_become_another_tensors() -> None:
    x = ct.arange(6.0).reshape(2, 3)
    assert ct.vmap(lambda x, y: x.clone().set_(y))(x, x + 1).tolist() == (x + 1).tolist()
    assert ct.vmap(lambda x: x.clone().resize_as_(ct.ones(2)))(x).tolist() == [[0, 1], [2, 3]]
