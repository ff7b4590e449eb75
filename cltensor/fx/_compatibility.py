"""torch's decorator for functions of `fx` that stay backward compatible. Nothing here reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Return a decorator that leaves a function or class as it is."""

    def mark(fn: _T) -> _T:
        return fn

    return mark
