"""Running products, and sums of complex numbers: long rows keep their digits, and products overflow and underflow where
numpy's do.
"""

import numpy as np
import pytest
from backends import another_device

import cltensor as torch

SHAPES = [(1 << 17,), (3, 20011), (9000, 3), (9000, 67), (70, 500), (40, 1000)]


def _factors(shape, kind=np.float32):
    """Return factors near one, the nearer the longer the longest dim is, and that dim."""
    rng, length = np.random.default_rng(0), max(shape)
    x = 1 + rng.standard_normal(shape) / length**0.5
    if kind is np.complex64:
        x = x + 1j * rng.standard_normal(shape) / length
    return x.astype(kind), shape.index(length)


def _near(found, x, dim):
    """Return whether products equal those computed with twice the digits, up to rounding."""
    expected = np.cumprod(x.astype(np.complex128 if np.iscomplexobj(x) else np.float64), dim)
    return bool((abs(found.cpu().numpy() - expected) <= 1.3e-7 * abs(expected)).all())


@pytest.mark.fp64
@pytest.mark.parametrize("kind", [np.float32, np.complex64])
@pytest.mark.parametrize("shape", SHAPES)
def test_long_products_keep_their_digits(kind, shape):
    x, dim = _factors(shape, kind)
    assert _near(torch.cumprod(torch.tensor(x), dim), x, dim)
    turned = torch.tensor(np.ascontiguousarray(x.T)).permute(*range(x.ndim)[::-1])
    assert _near(torch.cumprod(turned, dim), x, dim)


@pytest.mark.parametrize("shape", SHAPES)
def test_products_where_there_are_no_doubles(shape, monkeypatch):
    where = another_device(monkeypatch, fp64=False)
    x, dim = _factors(shape)
    assert _near(torch.cumprod(torch.tensor(x, device=where), dim).cpu(), x, dim)
    ends = torch.tensor([2.0, 3e38, 2.0, 0.0], device=where).cumprod(0)
    np.testing.assert_equal(ends.cpu().numpy(), np.array([2, np.inf, np.inf, np.nan], np.float32))


def test_complex_sums_keep_their_digits(monkeypatch):
    """Sums are accumulated in doubles or, where the device has none, in two floats each."""
    x = _factors((1 << 16,), np.complex64)[0]
    for where in ("cpu", another_device(monkeypatch, fp64=False)):
        found = torch.tensor(x, device=where).cumsum(0).cpu().numpy()
        assert (abs(found - np.cumsum(x.astype(np.complex128))) <= 1.3e-7 * abs(found)).all()


@pytest.mark.parametrize(("dtype", "big"), [("float32", 1e30), pytest.param("float64", 1e250, marks=pytest.mark.fp64)])  # fmt: skip
@pytest.mark.parametrize("repeats", [1, 20])
def test_products_leave_their_range_in_their_order(dtype, big, repeats):
    rows = [
        [big, big, 1 / big, 1 / big, 3], [1 / big, 1 / big, big, big, 3], [0, big, big, 2, 3],
        [big, 1 / big, big, 1 / big, 3], [2, 3, 4, 5, 6], [big, 0, 1, 2, 3],
    ]  # fmt: skip
    x = np.ones((83, 5 * repeats), dtype)
    x[:, :5] = np.array(rows, dtype)[np.random.default_rng(0).integers(len(rows), size=83)]
    given = torch.tensor(x)
    doubles = given._storage.backend.info.fp64  # then floats are multiplied in doubles
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.cumprod(x, 1, dtype=np.float64 if doubles else dtype).astype(dtype)
    np.testing.assert_allclose(given.cumprod(1).cpu().numpy(), expected, 1e-6)
