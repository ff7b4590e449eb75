"""Estimate how much of a case's time is arithmetic, by running it on so few rows that they fit a cache.

A case far below the device's memory speed may be waiting for memory, or computing. With data in a cache there is next to no waiting: if a
byte takes nearly as long there, arithmetic is the limit.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks import measure
from benchmarks.case import Case, Kit

# Bytes of the two sizes to which a case is reduced: in the difference of their times, fixed overhead cancels.
SMALL, SMALLER = 8 << 20, 2 << 20
# Families whose bytes are proportional to the first dim of their inputs.
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
    """A kit whose inputs have fewer rows: of each input with as many rows as the first, about the part `share`."""

    def __init__(self, kit: Kit, share: float) -> None:
        super().__init__(kit.name, kit.torch, kit.device, kit.wait, kit.version, kit.submit)
        self._share, self._rows = share, 0
        self.kept = 1.0  # the exact share of rows

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if not self._rows:
            self._rows = shape[0]
            self.kept = max(1, round(self._rows * self._share)) / self._rows
        return (round(self._rows * self.kept), *shape[1:]) if shape[0] == self._rows else shape

    def rand(self, *shape: int, **how: Any) -> Any:
        """Return what `Kit.rand` returns, with fewer rows."""
        return super().rand(*self._shape(shape), **how)

    def randint(self, high: int, *shape: int, seed: int = 0) -> Any:
        """Return what `Kit.randint` returns, with fewer rows."""
        return super().randint(high, *self._shape(shape), seed=seed)


def share(case: Case, mine: measure.Timed, kit: Kit, seconds: float) -> float | None:
    """Return the time per byte of a case in a cache, relative to that of the full case `mine`; None if the case cannot
    be made smaller."""
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
