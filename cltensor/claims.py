"""Overrides of `shape`, `dtype`, `size()` and the like in subclasses of Tensor: programs see them, the package does
not.

torch's kernels never see such overrides. Here ops read these attributes in Python, and a kernel launched for an
overridden shape would read past the end of the memory. So each override becomes a `Claim`, a descriptor that looks at
the module of the reading code: the package gets the tensor's own value, other code the override's. Classes without
such overrides pay nothing.
"""

from __future__ import annotations

import sys
from typing import Any

from .attributes import fields

_OWN = ("shape", "dtype", "device")  # instance attributes of a tensor
_ASKED = (
    "ndim size dim numel nelement stride storage_offset is_contiguous element_size itemsize nbytes"
)
NAMES = (*_OWN, *_ASKED.split())


class Claim:
    """A descriptor for an attribute that a class overrides. The package reads and sets the tensor's own instead."""

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
    """Tell whether this package's code uses the attribute: two frames up, past overrides of `__getattribute__`."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name in ("__getattribute__", "__setattr__"):
        frame = frame.f_back
    asking = frame.f_globals.get("__name__", "")
    return asking == __package__ or asking.startswith(f"{__package__}.")


def note_claims(kind: type, base: type) -> None:
    """Turn the overrides of `kind`, a subclass of Tensor (`base`), into claims; also those it inherits."""
    for name in NAMES:
        for each in kind.__mro__[: kind.__mro__.index(base)]:
            if name in vars(each):
                if not isinstance(vars(each)[name], Claim):
                    setattr(kind, name, Claim(base, name, vars(each)[name]))
                break
