"""numpy's names of arguments, which torch takes beside its own: `axis`, `keepdims`, and `a`, `x` or `x1` for the first operand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .row import FUNCTIONS, METHODS

# torch's functions that are written in Python take `dim` only.
_PLAIN = {"norm", "split", "unique", "unique_consecutive"}


def numpy_names(fn: Callable) -> Callable:
    """Accept numpy's `axis` and `keepdims` for `dim` and `keepdim`, and its names of the operand."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if "axis" in kwargs:
                kwargs["dim"] = kwargs.pop("axis")
            if "keepdims" in kwargs:
                kwargs["keepdim"] = kwargs.pop("keepdims")
            for name in ("a", "x", "x1"):
                if name in kwargs and not args:
                    kwargs["input"] = kwargs.pop(name)
        return fn(*args, **kwargs)

    wrapper._numpy_names = True  # type: ignore[attr-defined]
    return wrapper


def install() -> None:
    """Let every exported function and method that has a `dim` take the names."""
    made: dict[int, Callable] = {}
    for table in (FUNCTIONS, METHODS):
        for name, fn in table.items():
            code = getattr(fn, "__code__", None)
            if code is None or name in _PLAIN or hasattr(fn, "_numpy_names"):
                continue
            if "dim" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                table[name] = made.setdefault(id(fn), numpy_names(fn))
