"""`cltensor.fx`: there is no symbolic tracing; `wrap` exists because model libraries decorate functions with it for tracers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["symbolic_trace", "wrap"]


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
