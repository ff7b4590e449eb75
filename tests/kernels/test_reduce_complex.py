"""Reductions of complex numbers, by vectors of their real and imaginary parts: along rows, along columns, in parts,
with gaps."""

from __future__ import annotations

import numpy as np
import pytest
from support import close, data

import cltensor as ct

pytestmark = pytest.mark.usefixtures("divided")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_columns_and_products_are_made_of_vectors_of_parts(dtype: str) -> None:
    """Sums and products along rows and columns, of few and many columns, narrow rows several at a time, at any offset
    and with gaps."""
    rounding = 1e-4 if dtype == "complex64" else 1e-11
    shapes = ((7,), (129,), (70_001,), (300, 3), (70_001, 3), (70_000, 7), (33, 1000), (40, 5, 9))
    for shape in shapes if dtype == "complex64" else shapes[2:6]:
        a = data(*shape, dtype=dtype)
        a = np.exp(a * (1j / 16 + 1e-3)).astype(dtype)  # products stay near 1
        x = ct.tensor(a)
        for part in ((), (slice(1, None),), (Ellipsis, slice(1, None)), (slice(None, None, 2),)):
            wide = a[part].astype("complex128")
            for dim in (None, *range(a.ndim)):
                many = wide.size**0.5
                close(x[part].sum(dim), wide.sum(dim), rounding * many)
                found = x[part].prod() if dim is None else x[part].prod(dim)
                expected = wide.prod(dim)
                close(
                    found,
                    expected,
                    rounding * max(1.0, float(np.abs(expected).max())) * (1 + many / 50),
                )
    a = data(21, 40, dtype=dtype)
    a[3, 5], a[7, 9], a[11, 11] = complex(np.inf, 1), complex(0, np.nan), 0
    for dim in (0, 1):
        found = np.isfinite(ct.tensor(a).prod(dim).cpu().numpy())
        np.testing.assert_array_equal(found, np.isfinite(a).all(dim))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_added_as_pairs_of_real_ones(dtype: str) -> None:
    """Sums of rows and of all elements, in parts, at any offset, with gaps between rows or between elements."""
    single = dtype == "complex64"  # complex128 takes the same code paths
    for n in (1, 7, 8, 63, 129, 70_001)[: 6 if single else 5]:
        a = data(n + 3, dtype=dtype)
        x = ct.tensor(a)
        close(x[3:].sum(), a[3:].sum(), 1e-5 * n**0.5)
        close(x[1:].mean(), a[1:].mean(), 1e-5)
        close(x[::2].sum(), a[::2].sum(), 1e-5 * n**0.5)
    a = data(5, 4, 67, dtype=dtype)
    x = ct.tensor(a)
    parts = ((), slice(1, 4), (slice(None), slice(1, 3)), (Ellipsis, slice(2, 63)))
    for part in parts if single else parts[:2]:
        for dim in (None, 2, (0, 2), (1, 2)):
            close(x[part].sum(dim), a[part].sum(dim), 1e-4)
    a[0, 0, 5], a[1, 2, 3] = complex(np.inf, 1), complex(0, np.nan)
    found, expected = ct.tensor(a).sum(2).cpu().numpy(), a.sum(2)
    for of in (np.real, np.imag):
        np.testing.assert_allclose(of(found), of(expected), rtol=1e-3, atol=1e-3)
