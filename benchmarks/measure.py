"""Timing: libraries take turns within one process, and the result is the median of the pairs' ratios.

A shared machine changes its speed from minute to minute: the ratios within one run are meaningful, its absolute times less so.
OpenMP's threads spin for milliseconds after their work is done, on cores that the next library needs: each turn begins with a
pause that lets them sleep, and with untimed runs, which wake the library's own threads and fill the caches with its code.

On a CPU each run is waited for before the next one begins. A GPU has a queue, which programs fill: there a measurement queues all
of its runs and waits at the end, for every library alike. Work that a library would defer is submitted after each run (`submit`),
so that none is skipped because its result is dropped.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Run = Callable[[], Any]
LEAST = 2e-3  # seconds that a measurement, and the untimed runs before it, take at least: shorter runs are repeated
LONG = 50e-3  # seconds of a run from which on untimed runs before it would change little
PAUSE = 10e-3  # seconds in which the threads of the library measured before fall asleep


class Timed:
    """One library's program, with a function to wait for it, and its measured times. With `submit`, which starts
    deferred work after a run, only the last run of a measurement is waited for.
    """

    def __init__(
        self,
        name: str,
        run: Run,
        wait: Callable[[], Any],
        submit: Callable[[], Any] | None = None,
    ) -> None:
        self.name, self.run, self.wait, self.submit, self.inner = name, run, wait, submit, 1
        self.long = False  # whether a run takes more than LONG
        self.times: list[float] = []

    def first(self) -> tuple[float, Any]:
        """Run once and wait; return the seconds (for the very first call, with compilation) and the result."""
        begin = time.perf_counter()
        out = self.run()
        self.wait()
        return time.perf_counter() - begin, out

    def warm(self) -> None:
        """Run four times, twice if that takes long, and set the number of runs in a measurement."""
        for turn in range(4):
            took, _ = self.first()
            if took > LONG and turn:  # the first of them may still compile or record something
                break
        self.long = took > LONG
        self._repeat(took)
        if self.submit is not None:  # measure again, as `took` includes waiting
            self._repeat(self._measure())

    def _repeat(self, took: float) -> None:
        self.inner = max(1, min(1000, int(LEAST / max(took, 1e-7))))

    def _measure(self) -> float:
        """Make one measurement; return the seconds per run."""
        step = self.submit or self.wait
        begin = time.perf_counter()
        for _ in range(self.inner):
            kept = self.run()
            step()
        if self.submit is not None:
            self.wait()
        took = (time.perf_counter() - begin) / self.inner
        del kept
        return took

    def once(self) -> float:
        """Let the threads of the library measured before fall asleep (on a GPU there are none), wake this one's by
        untimed runs, unless a run takes long, and measure; return the seconds per run.
        """
        if self.submit is None:
            time.sleep(PAUSE)
        if not self.long:
            warm = time.perf_counter() + LEAST
            self.first()
            while time.perf_counter() < warm:
                self.first()
        took = self._measure()
        self.times.append(took)
        return took


def alternate(all_timed: list[Timed], budget: float) -> None:
    """Measure programs in turns, in alternating order, for about `budget` seconds: 5 to 41 turns."""
    for timed in all_timed:
        timed.warm()
    end, turn = time.perf_counter() + budget, 0
    while turn < 5 or (time.perf_counter() < end and turn < 41):
        for timed in all_timed if turn % 2 else reversed(all_timed):
            timed.once()
        turn += 1


def ratios(ours: Timed, peer: Timed) -> dict[str, float]:
    """Return the ratio of the peer's time to ours: the median over the pairs, and the quartiles."""
    pairs = sorted(p / o for o, p in zip(ours.times, peer.times, strict=True))
    low, _, high = statistics.quantiles(pairs, n=4)
    return {"ratio": statistics.median(pairs), "low": low, "high": high}


def summary(timed: Timed) -> dict[str, float]:
    """Return the median and the least seconds."""
    return {"median_s": statistics.median(timed.times), "least_s": min(timed.times)}
