"""The dtypes that normalisations accept: parameters of the input's dtype, or of float32 beside 16-bit input."""

from __future__ import annotations

from ...dtypes import dtype, float32
from ..core import Tensor


def check_parameters(input: Tensor, *parameters: Tensor | None) -> None:
    """Raise torch's RuntimeError for parameters whose dtype does not go with the input's; the first of them decides which
    of the two dtypes all must have.
    """
    for p in parameters:
        if p is not None and p.dtype is not input.dtype:
            _check_mixed(input.dtype, [p.dtype for p in parameters if p is not None])
            return


def _check_mixed(dt: dtype, given: list[dtype]) -> None:
    if given[0] is dt:
        wrong = next(other for other in given if other is not dt)
        raise RuntimeError(f"expected scalar type {dt.scalar_name} but found {wrong.scalar_name}")
    if any(other is not float32 for other in given):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if dt.itemsize != 2:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
