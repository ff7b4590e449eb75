"""`torch.ops.profiler`: a stretch of a profile is begun by one call and ended by another, which a traced program can hold.

Must not load the profiler before it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..profiler import record_function


def _record_function_enter_new(name: str, args: str | None = None) -> record_function:
    """Begin a stretch and return what ends it."""
    from ..profiler import record_function

    return record_function(name, args).__enter__()


def _record_function_enter(name: str, args: str | None = None) -> record_function:
    """Begin a stretch and return what ends it."""
    return _record_function_enter_new(name, args)


def _record_function_exit(record: record_function) -> None:
    """End a stretch."""
    record.__exit__()
