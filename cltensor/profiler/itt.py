"""torch.profiler.itt: marks for Intel's tools in torch, ranges of the profile here."""

from __future__ import annotations

from . import marks
from .marks import mark, range

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Tell whether marks are kept: they are, in profiles."""
    return True


def range_push(msg: str) -> None:
    """Open a range inside the open ones."""
    marks.range_push(msg)


def range_pop() -> None:
    """Close the innermost range, if one is open."""
    marks.range_pop()
