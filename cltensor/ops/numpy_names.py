"""numpy's names of arguments, which torch takes beside its own: `axis`, `keepdims`, and `a`, `x` or `x1` for the first operand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .row import FUNCTIONS, METHODS, NUMPYS

# torch's functions that are written in Python take `dim` only.
_PLAIN = {"norm", "split", "unique", "unique_consecutive"}


def numpy_names(fn: Callable) -> Callable:
    """Accept numpy's `axis` and `keepdims` for `dim` and `keepdim`, and its names of the operands."""
    first = fn.__code__.co_varnames[0]  # "input", or "A" in linear algebra

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if "axis" in kwargs:
                kwargs["dim"] = kwargs.pop("axis")
            if "keepdims" in kwargs:
                kwargs["keepdim"] = kwargs.pop("keepdims")
            for own, names in NUMPYS.items():
                for name in names:
                    if name in kwargs and name != first and not (args and own == "input"):
                        kwargs[first if own == "input" else own] = kwargs.pop(name)
        return fn(*args, **kwargs)

    wrapper._numpy_names = True  # type: ignore[attr-defined]
    return wrapper


def install(*tables: Any) -> None:
    """Let every exported function and method that has a `dim` take the names; `tables` are of other modules' functions."""
    made: dict[int, Callable] = {}
    for table in (FUNCTIONS, METHODS, *tables):
        plain = _PLAIN if table is FUNCTIONS or table is METHODS else ()
        for name, fn in table.items():
            code = getattr(fn, "__code__", None)
            if code is None or name in plain or hasattr(fn, "_numpy_names"):
                continue
            if "dim" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                table[name] = made.setdefault(id(fn), numpy_names(fn))
