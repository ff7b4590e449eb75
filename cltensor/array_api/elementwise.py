"""Functions that accept more than torch's of the same name: numbers as operands, NaN."""

from __future__ import annotations

from typing import Any

from .. import creation
from ..ops.row import FUNCTIONS as F
from ..tensor import Tensor

__all__ = [
    "atan2", "hypot", "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "nextafter", "sign",
]  # fmt: skip


def _as(x: Any, other: Any) -> Tensor:
    if isinstance(x, Tensor):
        return x
    return creation.full((), x, dtype=other.dtype, device=other.device)


def _binary(name: str) -> Any:
    function = F[name]

    def call(x1: Any, x2: Any, /) -> Tensor:
        return function(_as(x1, x2), _as(x2, x1))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"torch's `{name}`; a number takes the other operand's dtype."
    return call


atan2, hypot, logaddexp, nextafter = map(_binary, ("atan2", "hypot", "logaddexp", "nextafter"))
maximum, minimum = _binary("maximum"), _binary("minimum")
logical_and, logical_or, logical_xor = map(_binary, ("logical_and", "logical_or", "logical_xor"))


def sign(x: Tensor, /) -> Tensor:
    """Return the sign of real numbers and the direction of complex ones; NaN's is NaN."""
    found = F["sgn"](x)
    return F["where"](x.isnan(), x, found) if x.is_floating_point() else found
