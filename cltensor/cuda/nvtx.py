"""torch.cuda.nvtx: marks for NVIDIA's tools in torch, ranges of the profile here. Owns the numbered ranges only."""

from __future__ import annotations

import itertools

from ..profiler.marks import mark, range, range_pop, range_push
from ..profiler.session import record_function

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_started: dict[int, record_function] = {}
_ids = itertools.count(1)


def range_start(msg: str) -> int:
    """Open a range and return its number, with which `range_end` closes it."""
    number = next(_ids)
    _started[number] = record_function(msg).__enter__()
    return number


def range_end(range_id: int) -> None:
    """Close the range of that number."""
    _started.pop(range_id).__exit__()
