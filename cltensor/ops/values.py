"""Numbers next to tensors: conjugation, whether a dtype can hold a number, and the dtypes of results and `out=` tensors."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import dtypes
from . import writes
from .core import NUMBERS, Tensor, is_tensor
from .refusals import EXPECTED, out_refusal


def conj(v: Any) -> Any:
    """Return the conjugate of a tensor or number; real values as they are."""
    if v.__class__ in NUMBERS:
        return v.conjugate() if v.__class__ is complex else v
    return v.conj() if v.dtype.is_complex else v


def number(function: str, argument: str, value: Any, position: int = 0) -> Any:
    """Return an argument as a Python number: numbers, NumPy's scalars, and 0-dim tensors that require no gradient are
    accepted.

    Raises torch's TypeError for anything else. position: the argument's position in the error text, 0 to leave it out.
    """
    if value.__class__ in NUMBERS:
        return value
    if is_tensor(value) and not value.ndim and not value.requires_grad:
        return value.item()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, NUMBERS):
        return complex(value) if isinstance(value, complex) else value.real
    place = f" (position {position})" if position else ""
    raise TypeError(
        f"{function}(): argument '{argument}'{place} must be Number, not {type(value).__name__}"
    )


def real(function: str, argument: str, value: Any) -> float:
    """Return an argument as a float: real numbers, NumPy's scalars, and 0-dim tensors that require no gradient are
    accepted.

    Raises torch's TypeError for anything else.
    """
    given = value
    if (is_tensor(value) and not value.ndim and not value.requires_grad) or isinstance(
        value, np.generic
    ):
        given = value.item()
    if not isinstance(given, int | float):
        raise TypeError(
            f"{function}(): argument '{argument}' must be float, not {type(value).__name__}"
        )
    return float(given)


C_NAMES = dtypes.C_NAMES | {
    "int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t",
    "uint64": "uint64_t",
}  # fmt: skip


def check_value(value: Any, dt: dtypes.dtype, name: str = "") -> Any:
    """Return a number as it can be written into a tensor of this dtype: the real part, if number is complex and dtype
    real.

    Raises torch's RuntimeError if the number is out of the dtype's range, or has an imaginary part that the dtype
    cannot hold. `name` replaces the dtype's C name in the error text.
    """
    fits = value.__class__ is not complex or dt.is_complex or dt.category == 0 or not value.imag
    if fits and dt.category == 1:
        if value != value or value in (math.inf, -math.inf):
            fits = False
        else:
            bits, signed = dt.itemsize * 8, dt.is_signed
            high = (1 << bits - signed) - 1
            low = -high - 1 if signed else 0
            if not signed and value.__class__ is int:
                low = -high  # negative integers wrap around, as in torch
            fits = low <= value.real <= high
    elif fits and dt.category > 1:
        limit = largest(dt)
        for part in (value.real, value.imag) if value.__class__ is complex else (value,):
            fits = fits and (abs(part) <= limit or not math.isfinite(part))
    if not fits:
        raise RuntimeError(
            f"value cannot be converted to type {name or C_NAMES[dt.name]} without overflow"
        )
    return value.real if value.__class__ is complex and dt.category in (1, 2) else value


@functools.cache
def largest(dt: dtypes.dtype) -> float:
    """Return the largest finite number of a float dtype."""
    return dtypes.finfo(dt).max


def refuse_complex(value: Tensor, dt: dtypes.dtype) -> None:
    """Raise torch's RuntimeError for a complex tensor whose value would be written as a real number."""
    if value.dtype.is_complex and not dt.is_complex and dt.category:
        raise RuntimeError(f"value cannot be converted to type {C_NAMES[dt.name]} without overflow")


def check_out_dtype(dt: dtypes.dtype, out: Any, text: str = "") -> None:
    """Raise torch's RuntimeError for an `out=` tensor of another dtype than the result's."""
    if is_tensor(out) and out.dtype is not dt:
        names = dtypes.C_NAMES
        raise RuntimeError(
            text
            or f"Expected out tensor to have dtype {names[dt.name]}, but got {names[out.dtype.name]} instead"
        )


def result_dtype(function: str, dtype: Any, out: Any, usual: dtypes.dtype) -> dtypes.dtype:
    """Return the dtype of `dtype=`, else of `out=`, else the usual one; RuntimeError where the first two differ."""
    if dtype is None and out is None:
        return usual
    dt = dtypes.asked(dtype, function)
    if dt is not None:
        check_out_dtype(dt, out)
    return dt or (out.dtype if is_tensor(out) else usual)


def into(value: Tensor, out: Tensor | None, function: str, inputs: tuple) -> Tensor:
    """Return a result, or write it into the `out=` tensor and return that; the two must have the same dtype."""
    if out is None:
        return value
    if is_tensor(out) and out.dtype is not value.dtype:
        if text := out_refusal(function, value.dtype, out.dtype, EXPECTED):
            raise RuntimeError(text)
    return writes.deliver(value, out, function, inputs)
