"""How much of a case's time is arithmetic: the same work on so few rows that a cache holds them.

What moves little of what the device could may wait for memory, or compute. In a cache there is next to no waiting: where a byte
takes nearly as long there, arithmetic is the limit.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks import measure
from benchmarks.case import Case, Kit

SMALL, SMALLER = 8 << 20, 2 << 20  # bytes of two parts: the difference has no overhead
# Families whose bytes are in proportion to the first dim of their inputs.
FAMILIES = {
    "pointwise",
    "broadcast",
    "copy",
    "reduction",
    "rows",
    "loss",
    "pool",
    "image",
    "fourier",
}


class Part(Kit):
    """A library that makes inputs of about `share` of the rows: of those that have as many as the first input."""

    def __init__(self, kit: Kit, share: float) -> None:
        super().__init__(kit.name, kit.torch, kit.device, kit.wait, kit.version, kit.submit)
        self._share, self._rows = share, 0
        self.kept = 1.0  # of the rows

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if not self._rows:
            self._rows = shape[0]
            self.kept = max(1, round(self._rows * self._share)) / self._rows
        return (round(self._rows * self.kept), *shape[1:]) if shape[0] == self._rows else shape

    def rand(self, *shape: int, **how: Any) -> Any:
        """As in `Kit`, of fewer rows."""
        return super().rand(*self._shape(shape), **how)

    def randint(self, high: int, *shape: int, seed: int = 0) -> Any:
        """As in `Kit`, of fewer rows."""
        return super().randint(high, *self._shape(shape), seed=seed)


def share(case: Case, mine: measure.Timed, kit: Kit, seconds: float) -> float | None:
    """Return how long a byte of a case takes in a cache, in parts of what it takes in `mine`, the case itself; None where it cannot be made smaller."""
    if case.family not in FAMILIES or case.bytes <= 2 * SMALL:
        return None
    whole = measure.Timed(mine.name, mine.run, mine.wait)
    parts = [Part(kit, size / case.bytes) for size in (SMALL, SMALLER)]
    small, smaller = (measure.Timed(kit.name, case.make(part), kit.wait) for part in parts)
    more = parts[0].kept - parts[1].kept
    if not 0 < more < 1:
        return None
    measure.alternate([whole, small, smaller], seconds)
    turns = zip(whole.times, small.times, smaller.times, strict=True)
    return statistics.median([(two - one) / more / all_of_it for all_of_it, two, one in turns])
