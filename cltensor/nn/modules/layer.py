"""What layers share: printed attributes, sizes per dimension, memory for parameters. Knows no layer."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

from ... import creation
from ...interception import twin
from ..parameter import Parameter
from .module import Module


class Layer(Module):
    """A module that prints the attributes named in `_shown`, and `inplace` if it is set."""

    _shown: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        shown = [f"{name}={getattr(self, name)}" for name in self._shown]
        if self.__dict__.get("inplace", False):
            shown.append("inplace=True")
        return ", ".join(shown)


def own_init(*classes: type[Module]) -> None:
    """Give classes a constructor of their own, the inherited one, so that Python's errors over its arguments name the class."""
    for cls in classes:
        inherited: Any = cls.__init__
        while not isinstance(inherited, FunctionType):
            inherited = inherited.__wrapped__
        own = twin(inherited)
        own.__qualname__ = f"{cls.__name__}.__init__"
        cls.__init__ = own  # type: ignore[method-assign]


def ntuple(value: Any, n: int) -> tuple[Any, ...]:
    """Return a tuple as it is, and a number n times."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


def new_parameter(shape: Any, device: Any, dtype: Any) -> Parameter:
    """Return a parameter with undefined contents."""
    return Parameter(creation.empty(shape, device=device, dtype=dtype))
