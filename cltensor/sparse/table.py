"""The operations that take sparse tensors, by torch's names.

`op` enters a function; `dispatch` then makes it a method of sparse tensors, and routes calls of the public functions
and of the rows of `ops` with sparse operands to it. Where the function returns NotImplemented, the call raises torch's
error for its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.elsewhere import HANDLERS

TABLE: dict[str, Callable[..., Any]] = {}  # functions and methods
# Names whose dense methods, unless rows, take sparse operands. Matters for those in OWN: for all in TABLE it is so
# anyway.
MIXED: set[str] = set()
OWN: dict[str, Callable[..., Any]] = {}  # methods only


def op(*names: str, mixed: bool = False, function: bool = True) -> Callable:
    """Enter a function under torch's names."""

    def enter(fn: Callable) -> Callable:
        for name in names:
            (TABLE if function else OWN)[name] = fn
            HANDLERS[name] = fn
            if mixed:
                MIXED.add(name)
        return fn

    return enter
