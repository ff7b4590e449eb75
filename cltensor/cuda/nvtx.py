"""torch.cuda.nvtx: marks for NVIDIA's tools in torch, ranges of the profile here. Owns the open marks only."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

from ..profiler.session import record_function

_local = threading.local()
_started: dict[int, record_function] = {}
_ids = itertools.count(1)


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


def range_start(msg: str) -> int:
    """Open a range and return its number, with which `range_end` closes it."""
    number = next(_ids)
    _started[number] = record_function(msg).__enter__()
    return number


def range_end(range_id: int) -> None:
    """Close the range of that number."""
    _started.pop(range_id).__exit__()


def mark(msg: str) -> None:
    """Mark a moment, as an empty range."""
    with record_function(msg):
        pass
