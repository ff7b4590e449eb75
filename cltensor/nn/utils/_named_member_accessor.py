"""`torch.nn.utils._named_member_accessor`: exchange a tensor of a module for another, by name."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from ..modules.module import Module

_MISSING: Any = object()


def _check(module: Any, name: str, tensor: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Replace a parameter, buffer or attribute by a tensor; a parameter's replacement need not be a Parameter."""
    _check(module, name, tensor)
    for table in (module._parameters, module._buffers):
        if name in table:
            table[name] = tensor
            return
    setattr(module, name, tensor)


def swap_tensor(
    module: Module, name: str, tensor: Any = _MISSING, allow_missing: bool = False
) -> Any:
    """Replace a tensor of a module, or remove it if none is given, and return the former one.

    AttributeError if there was none, unless `allow_missing`.
    """
    _check(module, name, tensor)
    tables: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
    for table in tables:
        if name in table:
            before = table[name]
            if tensor is _MISSING:
                del table[name]
            else:
                table[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not _MISSING and not isinstance(before, Tensor) and before is not None:
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before
