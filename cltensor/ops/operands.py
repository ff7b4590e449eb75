"""What ops ask of their operands, in torch's words: tensors, on one device, not of bool.

Must not know any op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..dtypes import dtype
from ..errors import class_name
from ..runtime import device
from . import core
from .core import Tensor


def check_tensor(function: str, name: str, position: int, x: Any) -> None:
    """Raise torch's TypeError for an operand that is not a tensor."""
    if not isinstance(x, core.Registry.tensor):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be Tensor, not {class_name(x)}"
        )


def check_tensors(function: str, names: Sequence[str], *operands: Any) -> None:
    """Raise torch's TypeError for the first of a function's operands that is not a tensor."""
    for position, x in enumerate(operands):
        if not isinstance(x, core.Registry.tensor):
            check_tensor(function, names[position], position + 1, x)


def same_device(*tensors: Tensor) -> device:
    """Return the device of all operands; RuntimeError in torch's words if they differ."""
    dev = tensors[0].device
    for x in tensors:
        if x.device is not dev and x.device != dev:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {dev} and {x.device}!"
            )
    return dev


def refuse_bool(dt: dtype, kernel: str) -> None:
    """Raise torch's NotImplementedError for products of bool."""
    if dt is dtypes.bool:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
