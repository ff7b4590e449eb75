"""torch's functions to check conditions, which libraries call: `_check` and its forms for other exceptions and for
tensors.

Only conditions and errors; all that is computed is whether a tensor's elements are true.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from . import dtypes
from .tensor import Tensor

__all__ = [
    "_assert",
    "_assert_async",
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_tensor_all_with",
    "_check_type",
    "_check_value",
    "_check_with",
]

Message = Callable[[], Any] | None


def _assert(condition: Any, message: Any) -> None:
    """Raise AssertionError with a message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def _check_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raise `error_type` with the text that `message` returns unless `cond` holds; TypeError unless it is a bool."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(
            "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)"
        )
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Message = None) -> None:
    """Raise RuntimeError unless `cond` holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """Raise IndexError unless `cond` holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """Raise ValueError unless `cond` holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """Raise TypeError unless `cond` holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """Raise NotImplementedError unless `cond` holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless `i` can be a size, of at most `max`; deprecated for `_check(i >= 0)`."""
    warnings.warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious.     Use _check(i >= 0) instead.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Message = None
) -> None:
    """Raise `error_type` unless all elements of a bool tensor are true; TypeError for anything but a bool tensor."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dtypes.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Message = None) -> None:
    """Raise RuntimeError unless all elements of a bool tensor are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(
    input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero"
) -> None:
    """Raise RuntimeError if the only element is zero; waits until the element is computed."""
    if not input.is_nonzero():
        raise RuntimeError(assert_msg)
