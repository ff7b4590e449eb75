"""The operations that take sparse tensors, by torch's names.

`op` enters a function; `dispatch` then makes it a method of sparse tensors, and has public functions and the rows of
`ops` come to it. A function that returns NotImplemented leaves the call to be refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.elsewhere import HANDLERS

TABLE: dict[str, Callable[..., Any]] = {}  # functions and methods
# Those of which a dense tensor's methods take sparse operands, and are no rows.
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
