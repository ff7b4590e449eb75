"""What a subclass says of its memory in place of the tensor: programs hear it, the package does not.

A class may override `shape`, `dtype` or `size()`. torch's kernels never see that; here ops ask the tensor in Python, and a kernel
that believed the class would read past the memory. So what a class overrides becomes a `Claim`, which tells by the module that
asks whether the class or the tensor is to answer. Classes that override nothing of this pay nothing.
"""

from __future__ import annotations

import sys
from typing import Any

from .attributes import fields

_OWN = ("shape", "dtype", "device")  # a tensor has them among its fields
_ASKED = (
    "ndim size dim numel nelement stride storage_offset is_contiguous element_size itemsize nbytes"
)
NAMES = (*_OWN, *_ASKED.split())


class Claim:
    """An attribute as a class overrides it. What the package reads or sets is the tensor's own."""

    def __init__(self, base: type, name: str, override: Any) -> None:
        self._base, self._name, self._override = base, name, override
        self.__doc__ = getattr(override, "__doc__", None)

    def __get__(self, t: Any, owner: Any = None) -> Any:
        if t is not None and _asked_by_package():
            if self._name in _OWN:
                return fields(t)[self._name]
            return getattr(self._base, self._name).__get__(t, owner)
        bound = getattr(type(self._override), "__get__", None)
        return self._override if bound is None else bound(self._override, t, owner)

    def __set__(self, t: Any, value: Any) -> None:
        if _asked_by_package():
            fields(t)[self._name] = value
            return
        write = getattr(type(self._override), "__set__", None)
        if write is None:
            raise AttributeError(f"attribute '{self._name}' of '{type(t).__name__}' objects is not writable")  # fmt: skip
        write(self._override, t, value)


def _asked_by_package() -> bool:
    """Say whether the attribute is read or set by code of this package: two frames up, or where a class hands on what is looked up."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name in ("__getattribute__", "__setattr__"):
        frame = frame.f_back
    asking = frame.f_globals.get("__name__", "")
    return asking == __package__ or asking.startswith(f"{__package__}.")


def note_claims(kind: type, base: type) -> None:
    """Turn what a subclass of the tensor's class `base` overrides, it or a class it also derives from, into claims."""
    for name in NAMES:
        for each in kind.__mro__[: kind.__mro__.index(base)]:
            if name in vars(each):
                if not isinstance(vars(each)[name], Claim):
                    setattr(kind, name, Claim(base, name, vars(each)[name]))
                break
