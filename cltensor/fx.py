"""`cltensor.fx`: there is no symbolic tracing; the names exist because model libraries decorate functions and ask for types with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "symbolic_trace",
    "wrap",
]


class _Absent:
    """Of what nothing is ever an instance."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """NotImplementedError: there is no tracing."""
        raise NotImplementedError(
            f"fx.{cls.__name__}: there are no graphs; functions run as they are"
        )


class Graph(_Absent):
    """torch's list of operations; there are none here."""


class GraphModule(_Absent):
    """torch's module made from a graph; there are none here."""


class Interpreter(_Absent):
    """torch's way to run a graph; there are none here."""


class Node(_Absent):
    """torch's operation in a graph; there are none here."""


class Proxy(_Absent):
    """torch's stand-in for a tensor while it traces; there are none here."""


class Tracer(_Absent):
    """torch's maker of graphs; there are none here."""


def wrap(fn_or_name: str | Callable) -> str | Callable:
    """Return what is given: a tracer would not look into the function. RuntimeError for what is neither name nor function."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> NoReturn:
    """NotImplementedError: functions run as Python; `capture` records what they launch."""
    raise NotImplementedError(
        "fx.symbolic_trace: there are no graph modules; functions run as they are"
    )


class SymInt(_Absent):
    """torch's integer that a tracer does not know yet; sizes here are Python's numbers."""


class SymFloat(_Absent):
    """torch's number that a tracer does not know yet; there are none here."""


class SymBool(_Absent):
    """torch's truth that a tracer does not know yet; there are none here."""
