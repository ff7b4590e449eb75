"""Checks of ops' operands, with torch's errors: that they are tensors, on one device, not of dtype bool.

Must not know any op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import dtype
from ..errors import class_name
from ..runtime import device
from . import arguments, core
from .core import NUMBERS, Tensor


def check_tensor(function: str, name: str, position: int, x: Any) -> None:
    """Raise torch's TypeError, which names the position unless it is 0, for an operand that is not a tensor."""
    if not isinstance(x, core.Registry.tensor):
        raise _no_tensor(function, name, position, x)


def check_tensors(function: str, names: Sequence[str], *operands: Any) -> None:
    """Raise torch's TypeError for the first of a function's operands that is not a tensor."""
    for position, x in enumerate(operands):
        if not isinstance(x, core.Registry.tensor):
            check_tensor(function, names[position], position + 1, x)


def check_sized(*operands: Any) -> None:
    """Raise torch's AttributeError, as of a function written in Python, for the first operand that is not a tensor."""
    for x in operands:
        if not isinstance(x, core.Registry.tensor):
            raise AttributeError(f"'{class_name(x)}' object has no attribute 'size'")


def same_dtype(x: Tensor, y: Tensor) -> None:
    """Raise torch's RuntimeError where the second of two operands has another dtype than the first."""
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"expected scalar type {x.dtype.scalar_name} but found {y.dtype.scalar_name}"
        )


def same_device(*tensors: Tensor) -> device:
    """Return the device of all operands; RuntimeError in torch's words if they differ."""
    dev = tensors[0].device
    for x in tensors:
        if x.device is not dev:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {dev} and {x.device}!"
            )
    return dev


def refuse_bool(dt: dtype, kernel: str) -> None:
    """Raise torch's NotImplementedError, which names `kernel`, if the dtype is bool."""
    if dt is dtypes.bool:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def plain(xs: Sequence[Any], numbers: Sequence[bool], some: bool = False) -> bool:
    """Return whether every operand is a tensor, or a Python number where allowed, so that none has to be converted.

    At least one operand has to be a tensor, unless `some` says that there is a tensor besides `xs` (the `self` of an
    in-place form).
    """
    tensor = core.Registry.tensor
    for x, number in zip(xs, numbers, strict=True):
        if x.__class__ is tensor or isinstance(x, tensor):
            some = True
        elif not number or x.__class__ not in NUMBERS:
            return False
    return some


def refuse_numbers(
    function: str, names: Sequence[str], values: Sequence[Any], allowed: Sequence[bool]
) -> None:
    """Raise torch's TypeError for a number where only a tensor is accepted."""
    for position, (name, value, number) in enumerate(zip(names, values, allowed, strict=True)):
        if not number and not core.is_tensor(value):
            if any(allowed):
                raise arguments.invalid_combination(function, values)
            raise _no_tensor(function, name, _counted(function, position), value)


def _counted(function: str, index: int) -> int:
    """Return the position that torch names. It does not count `self` of in-place forms, which are methods."""
    return index if function.endswith("_") else index + 1


def _no_tensor(function: str, name: str, position: int, value: Any) -> TypeError:
    place = f" (position {position})" if position else ""
    return TypeError(
        f"{function}(): argument '{name}'{place} must be Tensor, not {class_name(value)}"
    )


# Functions that torch also accepts numbers alone for, without a tensor among them.
_OF_NUMBERS = {
    "add",
    "sub",
    "subtract",
    "mul",
    "multiply",
    "div",
    "divide",
    "true_divide",
    "floor_divide",
}


def normal(function: str, names: Sequence[str], values: Sequence[Any]) -> tuple:
    """Return the operands with all numbers, NumPy's among them, as plain Python numbers.

    Torch's TypeError for anything else, and for numbers alone unless the function accepts them.
    """
    tensor, some = core.Registry.tensor, False
    for v in values:
        if v.__class__ is tensor:
            some = True
        elif v.__class__ not in NUMBERS:
            break
    else:
        if some:
            return tuple(values)
    out, some = [], False
    for position, (arg, v) in enumerate(zip(names, values, strict=True)):
        if isinstance(v, tensor):
            some = True
            out.append(v)
        elif v.__class__ in NUMBERS:
            out.append(v)
        elif isinstance(v, np.generic | np.bool_):
            out.append(v.item())
        elif isinstance(v, NUMBERS):
            out.append(_plain_number(v))
        else:
            raise _no_tensor(function, arg, _counted(function, position), v)
    if not some:
        if function not in _OF_NUMBERS:
            raise arguments.invalid_combination(function, values)
        out[0] = core.Registry.tensor._scalar(out[0])
    return tuple(out)


def promoted(a: Any, b: Any) -> dtype:
    """Return the dtype to which two operands as `normal` returns them promote; one of them is a tensor."""
    if a.__class__ is b.__class__:
        if a.dtype is b.dtype:
            return a.dtype
    elif (b.__class__ is int and a.dtype.category) or (
        b.__class__ is float and a.dtype.category > 1
    ):
        return a.dtype
    return core.result_type((a, b))


def _plain_number(v: Any) -> Any:
    return next(kind for kind in (bool, int, float, complex) if isinstance(v, kind))(v)
