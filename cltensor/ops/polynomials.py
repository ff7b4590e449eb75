"""Orthogonal polynomials of `special`: rows over the argument and the degree, either of which may be a number.

As in torch, they have no gradient, and the degree is a tensor of the argument's kind whose whole part counts.
"""

from __future__ import annotations

from .row import FLOAT, FUNCTIONS, METHODS, Row
from .special import SPECIAL

_NAMES = {
    "hermite_polynomial_h": "hermite_h",
    "hermite_polynomial_he": "hermite_he",
    "laguerre_polynomial_l": "laguerre_l",
    "legendre_polynomial_p": "legendre_p",
}
for _letter in "tuvw":
    _NAMES[f"chebyshev_polynomial_{_letter}"] = f"chebyshev_{_letter}"
    _NAMES[f"shifted_chebyshev_polynomial_{_letter}"] = f"shifted_{_letter}"

for _name, _function in _NAMES.items():
    Row(
        f"special_{_name}",
        {"f": f"{_function}(x, y)"},
        promote=FLOAT,
        args=("input", "n"),
        numbers="xy",
        inplace=False,
        doc="Evaluate the polynomial of degree `n` (its whole part) at `input`, elementwise; 0 for negative degrees.",
    )
    METHODS.pop(f"special_{_name}")
    SPECIAL[_name] = FUNCTIONS.pop(f"special_{_name}")
