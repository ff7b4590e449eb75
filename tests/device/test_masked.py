"""cltensor.masked: values against numpy's masked arrays, gradients that leave masked elements alone, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as ct

pytestmark = pytest.mark.usefixtures("one_by_one")

X = data(3, 4)
MASK = np.array([[1, 0, 1, 1], [0, 1, 0, 0], [1, 1, 0, 1]], bool)
KEPT = np.ma.masked_array(X, ~MASK)


def tensors() -> tuple[Any, Any]:
    return ct.tensor(X), ct.tensor(MASK)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "argmax", "argmin"])
@pytest.mark.parametrize("dim", [0, 1])
def test_reductions(name: str, dim: int) -> None:
    x, mask = tensors()
    options = {"unbiased": False} if name in ("var", "std") else {}
    expected = getattr(KEPT, name)(axis=dim)
    close(getattr(ct.masked, name)(x, dim, mask=mask, **options), np.asarray(expected, X.dtype))


def test_extremes_and_norms_over_everything() -> None:
    x, mask = tensors()
    close(ct.masked.amax(x, mask=mask), KEPT.max())
    close(ct.masked.amin(x, (0, 1), keepdim=True, mask=mask), np.array([[KEPT.min()]]))
    close(ct.masked.norm(x, 2.0, mask=mask), np.sqrt((KEPT**2).sum()))
    close(ct.masked.norm(x, -np.inf, mask=mask), abs(KEPT).min())
    close(ct.masked.logsumexp(x, mask=mask), np.log(np.exp(KEPT).sum()))
    close(ct.masked.median(x, 1, mask=mask)[1], X[1, 1])


def test_norms_inside_vmap() -> None:
    x, mask = tensors()
    found = ct.func.vmap(lambda row: ct.masked.norm(row, 2.0, 0, mask=mask[0]))(x)
    close(found, np.linalg.norm(X * MASK[0], axis=1))


def test_where_nothing_counts() -> None:
    x, none = ct.tensor(X), ct.zeros(4, dtype=ct.bool)
    assert ct.masked.sum(x, mask=none).item() == 0
    assert ct.masked.prod(x, mask=none).item() == 1
    assert ct.masked.amax(x, mask=none).item() == -np.inf
    assert ct.masked.mean(x, mask=none).isnan().item()
    whole = ct.arange(3)
    assert ct.masked.amin(whole, mask=whole > 5).item() == ct.iinfo(ct.int64).max


def test_an_empty_list_of_dims_is_no_dim_to_the_product_and_an_error_to_softmax() -> None:
    x, mask = tensors()
    close(ct.masked.prod(x, [], mask=mask), np.where(MASK, X, 1))
    close(ct.masked.sum(x, [], mask=mask), KEPT.sum())
    with pytest.raises(IndexError, match="tuple index out of range"):
        ct.masked.softmax(x, [], mask=mask)


def test_of_the_same_shape() -> None:
    x, mask = tensors()
    powers = np.where(MASK, np.exp(X), 0)
    close(ct.masked.softmax(x, 1, mask=mask), powers / powers.sum(1, keepdims=True))
    close(ct.masked.cumsum(x, 1, mask=mask), np.where(MASK, X, 0).cumsum(1))
    close(ct.masked.cumprod(x, 0, mask=mask), np.where(MASK, X, 1).cumprod(0))
    kept = np.where(MASK, X, 0)
    close(
        ct.masked.normalize(x, 2.0, 0, mask=mask), kept / np.sqrt((kept**2).sum(0, keepdims=True))
    )
    y = ct.tensor(data(3, 4, seed=1))
    both = ct.masked.logaddexp(x, y, input_mask=mask, other_mask=~mask)
    close(both, np.where(MASK, X, data(3, 4, seed=1)))


@pytest.mark.parametrize("name", ["sum", "mean", "var", "amax", "logsumexp", "softmax"])
def test_masked_elements_get_no_gradient(name: str) -> None:
    x, mask = tensors()
    x.requires_grad_()
    (getattr(ct.masked, name)(x, 1, mask=mask) * 2).square().sum().backward()
    assert not x.grad.masked_select(~mask).any()
    double = ct.tensor(X.astype(np.float64)).requires_grad_()
    assert ct.autograd.gradcheck(lambda t: getattr(ct.masked, name)(t, 1, mask=mask[:1]), (double,))


def test_errors() -> None:
    x, mask = tensors()
    with pytest.raises(IndexError, match="broadcastable mask"):
        ct.masked.sum(x, mask=mask[None])
    with pytest.raises(RuntimeError, match="dim=1 appears multiple times"):
        ct.masked.sum(x, (1, 1), mask=mask)
    with pytest.raises(IndexError, match="Dimension out of range"):
        ct.masked.sum(x, 2)
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        ct.masked.mean(ct.arange(3))
    with pytest.raises(AssertionError, match="unbiased and correction"):
        ct.masked.var(x, 1, True, correction=1)


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_sparse_masks(layout: str) -> None:
    a = ct.arange(6.0).reshape(2, 3)
    plain = ct.tensor([[True, False, True], [False, False, True]])
    mask = getattr(plain, layout)()
    for name in ("sum", "amax", "mean", "norm", "softmax", "cumsum"):
        f, first = getattr(ct.masked, name), (2.0,) if name == "norm" else ()
        expected = f(a, *first, 1, mask=plain)
        assert np.array_equal(f(a, *first, 1, mask=mask).cpu().numpy(), expected.cpu().numpy())
    assert np.array_equal(ct.masked._input_mask(a, mask=mask).cpu().numpy(), plain.cpu().numpy())
