"""The arguments of `to`: its three forms, told apart as torch's parser does. Must not know how anything is moved."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..runtime import device as device_class
from .core import is_tensor

_FORMS = """to() received an invalid combination of arguments - got ({}), but expected one of:
 * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
"""
_FLAGS = (bool, type(None))
_TYPES = (dtypes.dtype, type)
_NAMES = {dtypes.dtype: "torch.dtype", device_class: "torch.device"}


def destination(
    args: tuple[Any, ...],
    device: Any = None,
    dtype: Any = None,
    non_blocking: Any = None,
    copy: Any = None,
    tensor: Any = None,
    **unknown: Any,
) -> tuple[Any, Any, bool, bool | None]:
    """Return device, dtype, `non_blocking` and `copy` (None where it was not given); TypeError unless the arguments are of one form."""
    found = _of_one_form(args, device, dtype, tensor)
    if found is not None and not unknown:
        *target, places = found
        flags = _flags(places, non_blocking, copy)
        if flags is not None:
            return *target, *flags
    named = {"device": device, "dtype": dtype, "non_blocking": non_blocking, "copy": copy}
    raise _refusal(args, {**named, "tensor": tensor, **unknown})


def _of_one_form(args: tuple[Any, ...], device: Any, dtype: Any, tensor: Any) -> tuple | None:
    """Return device, dtype and the arguments that follow these; None where the arguments fit no form."""
    rest = args[1:]
    if args:
        first = args[0]
        if isinstance(first, _TYPES):
            if device is not None or dtype is not None:
                return None
            dtype = first
        elif is_tensor(first):
            if tensor is not None:
                return None
            tensor = first
        else:
            if device is not None or (rest and dtype is not None):
                return None
            device = first
            if rest:
                dtype, rest = rest[0], rest[1:]
    if tensor is not None:
        if device is not None or dtype is not None or not is_tensor(tensor):
            return None
        return tensor.device, tensor.dtype, rest
    if device is not None and not isinstance(device, str | device_class):
        if device.__class__ is bool or not hasattr(device, "__index__"):
            return None
    try:
        return device, dtypes.asked(dtype, "to"), rest
    except TypeError:
        return None


def _flags(
    places: tuple[Any, ...], non_blocking: Any, copy: Any
) -> tuple[bool, bool | None] | None:
    """Return `non_blocking` and `copy`, given by position or by name; None where they are not two booleans."""
    if places:
        if non_blocking is not None or (len(places) > 1 and copy is not None) or len(places) > 2:
            return None
        non_blocking, copy = (*places, copy)[:2]
    if non_blocking.__class__ not in _FLAGS or copy.__class__ not in _FLAGS or None in places:
        return None
    return bool(non_blocking), copy


def _refusal(args: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
    kinds = ", ".join([_kind(value) for value in args])
    by_name = [f"{name}={_kind(value)}" for name, value in named.items() if value is not None]
    return TypeError(
        _FORMS.format(", ".join([kinds, *by_name]) if kinds else ", ".join([*by_name, ""]))
    )


def _kind(value: Any) -> str:
    return _NAMES.get(type(value), type(value).__name__)
