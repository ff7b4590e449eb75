"""`torch.fx.traceback`: notes that a program attaches to what it computes, for tracers to see.

As in torch, `symbolic_trace` does not look at them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ._compatibility import compatibility

__all__ = ["annotate", "annotate_fn", "current_meta", "get_current_meta"]

current_meta: dict[str, Any] = {}

_F = TypeVar("_F", bound=Callable[..., Any])


@compatibility(is_backward_compatible=False)
def get_current_meta() -> dict[str, Any]:
    """Return what is known of the operations being recorded; under "custom" the notes of `annotate`."""
    return current_meta


@compatibility(is_backward_compatible=False)
@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Add notes to those that hold for the operations of a `with` block, in which others may be nested."""
    before = current_meta.get("custom")
    current_meta["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is None:
            del current_meta["custom"]
        else:
            current_meta["custom"] = before


@compatibility(is_backward_compatible=False)
def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[_F], _F]:
    """Return a decorator that adds notes to all operations of a function."""

    def decorator(function: _F) -> _F:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated  # type: ignore[return-value]

    return decorator
