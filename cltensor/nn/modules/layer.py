"""What layers share: printed attributes, sizes per dimension, memory for parameters. Knows no layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import creation
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


def ntuple(value: Any, n: int) -> tuple[Any, ...]:
    """Return a tuple as it is, and a number n times."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


def new_parameter(shape: Any, device: Any, dtype: Any) -> Parameter:
    """Return a parameter with undefined contents."""
    return Parameter(creation.empty(shape, device=device, dtype=dtype))
