"""Orthogonal polynomials against numpy.polynomial, and their edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre
from support import close

import cltensor as ct

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators

X = [-1.5, -1.0, -0.6, 0.0, 0.3, 0.95, 1.0, 1.2]
DEGREES = (0, 1, 2, 5, 6, 7, 11)
SERIES = {
    "chebyshev_polynomial_t": chebyshev.chebval,
    "hermite_polynomial_h": hermite.hermval,
    "hermite_polynomial_he": hermite_e.hermeval,
    "laguerre_polynomial_l": laguerre.lagval,
    "legendre_polynomial_p": legendre.legval,
}


def _chebyshev(kind: str, n: int, x: np.ndarray) -> np.ndarray:
    """Return a Chebyshev polynomial of the second ("u"), third or fourth kind, as a sum of those of the first kind."""
    t = [chebyshev.chebval(x, [0] * k + [1]) for k in range(n + 1)]
    even = sum((2 * t[k] for k in range(n, 0, -2)), np.zeros_like(x)) + (n % 2 == 0)
    odd = sum((2 * t[k] for k in range(n - 1, 0, -2)), np.zeros_like(x)) + (n % 2 == 1 and n > 0)
    return {"u": even, "v": even - odd, "w": even + odd}[kind]


@pytest.mark.parametrize("name", SERIES)
def test_series(name: str) -> None:
    fn = getattr(ct.special, name)
    for n in DEGREES:
        expected = SERIES[name](np.array(X), [0] * n + [1])
        close(fn(ct.tensor(X, dtype=ct.float64), n), expected, 1e-10)
    close(fn(ct.tensor(X), ct.tensor(4.0)), SERIES[name](np.array(X), [0] * 4 + [1]), 1e-4)


@pytest.mark.parametrize("kind", ["t", "u", "v", "w"])
def test_chebyshev_kinds_and_shifted_ones(kind: str) -> None:
    plain, shifted = (
        getattr(ct.special, f"{word}chebyshev_polynomial_{kind}") for word in ("", "shifted_")
    )
    x = ct.tensor(X, dtype=ct.float64)
    for n in DEGREES:
        if kind != "t":
            close(plain(x, n), _chebyshev(kind, n, np.array(X)), 1e-10)
        close(shifted(x / 2 + 0.5, n), plain(x, n).tolist(), 1e-9)


def test_degrees_are_tensors_or_numbers_and_their_whole_part_counts() -> None:
    fn: Any = ct.special.legendre_polynomial_p
    assert fn(0.5, ct.tensor([0.0, 1.0, 2.7])).tolist() == pytest.approx([1, 0.5, -0.125])
    assert fn(ct.tensor([0.5]), -1).item() == 0
    assert fn(ct.tensor([2]), 2).item() == 5.5 and fn(ct.tensor([2]), 2).dtype is ct.float32
    assert math.isnan(ct.special.hermite_polynomial_h(ct.tensor([0.3]), 1000).item())
    assert fn(ct.tensor([0.3], requires_grad=True), 2).grad_fn is None
