"""`cltensor.compiler`: functions by which programs control torch.compile, without effect: only kernels are compiled
here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from .switches import compile

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]


class Options(ModuleType):
    """Options of a compiler that does not exist here: they can be set and read, and have no effect."""

    @contextlib.contextmanager
    def patch(
        self, changes: str | dict[str, Any] | None = None, value: Any = None, **more: Any
    ) -> Iterator[None]:
        """Set options inside the block, given as a name and a value, a dict, or keywords."""
        wanted = {changes: value} if isinstance(changes, str) else {**(changes or {}), **more}
        before = {name: getattr(self, name) for name in wanted}
        vars(self).update(wanted)
        try:
            yield
        finally:
            vars(self).update(before)


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: Any = None) -> Any:
    """Return the function as it is; a decorator when called without one."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return the function as it is."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return the function as it is."""
    return fn


def is_compiling() -> bool:
    """Return False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return an empty list."""
    return []


def reset() -> None:
    """Do nothing: there is nothing compiled to forget."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing."""


def set_stance(stance: str = "default", **options: Any) -> None:
    """Do nothing: the call is accepted."""
