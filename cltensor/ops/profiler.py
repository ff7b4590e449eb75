"""`torch.ops.profiler`: begin and end a profiled range by two calls, as a traced program can contain them.

Must not load the profiler before it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..profiler import record_function


def _record_function_enter_new(name: str, args: str | None = None) -> record_function:
    """Begin a range and return the record with which to end it."""
    from ..profiler import record_function

    return record_function(name, args).__enter__()


def _record_function_enter(name: str, args: str | None = None) -> record_function:
    """Begin a range and return the record with which to end it."""
    return _record_function_enter_new(name, args)


def _record_function_exit(record: record_function) -> None:
    """End a range."""
    record.__exit__()
