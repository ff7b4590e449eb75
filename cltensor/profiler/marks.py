"""Ranges of the profile that are opened and closed by calls of their own: what marks for other makers' tools become.

Owns the open ranges of each thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from .session import record_function

_local = threading.local()


def _stack() -> list[record_function]:
    if not hasattr(_local, "open"):
        _local.open = []
    return _local.open


def range_push(msg: str) -> int:
    """Open a range inside the open ones; return how many were open before."""
    stack = _stack()
    stack.append(record_function(msg).__enter__())
    return len(stack) - 1


def range_pop() -> int:
    """Close the innermost range; return how many are left, -1 when none was open."""
    stack = _stack()
    if stack:
        stack.pop().__exit__()
        return len(stack)
    return -1


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Mark the `with` block as a range named by `msg`, formatted with the arguments."""
    with record_function(msg.format(*args, **kwargs)):
        yield


def mark(msg: str) -> None:
    """Mark a moment, as an empty range."""
    with record_function(msg):
        pass
