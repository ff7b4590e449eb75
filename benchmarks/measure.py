"""Timing: libraries take turns within one process, and what counts is the median of the pairs' ratios.

A shared machine changes its speed from minute to minute: the ratios of one run mean something, its absolute times less.
OpenMP's threads spin for milliseconds after their work is done, on the cores of whoever comes next: each turn begins with a
pause that lets them sleep, and with runs that are not timed, which wake the library's own and fill the caches with its code.

A CPU's run is waited for before the next one begins. A GPU has a queue, which programs fill: there a measurement gives it all of
its runs and waits at the end, for every library alike. What a library would put off is handed over after each run (`submit`), so
that nothing is left out because its result is dropped.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Run = Callable[[], Any]
LEAST = 2e-3  # seconds: shorter runs are repeated within one measurement, and before it
PAUSE = 10e-3  # seconds


class Timed:
    """One library's program, and how to wait for it; with `submit`, which hands over what a run left, only after a measurement's last."""

    def __init__(
        self,
        name: str,
        run: Run,
        wait: Callable[[], Any],
        submit: Callable[[], Any] | None = None,
    ) -> None:
        self.name, self.run, self.wait, self.submit, self.inner = name, run, wait, submit, 1
        self.times: list[float] = []

    def first(self) -> tuple[float, Any]:
        """Run once, as a user's first call: seconds and the result."""
        begin = time.perf_counter()
        out = self.run()
        self.wait()
        return time.perf_counter() - begin, out

    def warm(self) -> None:
        """Find out how many runs make a measurement."""
        for _ in range(4):
            took, _ = self.first()
        self._repeat(took)
        if self.submit is not None:  # waiting was a part of that
            self._repeat(self._measure())

    def _repeat(self, took: float) -> None:
        self.inner = max(1, min(1000, int(LEAST / max(took, 1e-7))))

    def _measure(self) -> float:
        """Seconds of a run, of as many as make a measurement."""
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
        """Let the other library's threads go to sleep, wake one's own, and measure; a GPU's have no threads here."""
        if self.submit is None:
            time.sleep(PAUSE)
        warm = time.perf_counter() + LEAST
        self.first()
        while time.perf_counter() < warm:
            self.first()
        took = self._measure()
        self.times.append(took)
        return took


def alternate(all_timed: list[Timed], budget: float) -> None:
    """Measure in turns for about `budget` seconds, at least 5 turns and at most 41."""
    for timed in all_timed:
        timed.warm()
    end, turn = time.perf_counter() + budget, 0
    while turn < 5 or (time.perf_counter() < end and turn < 41):
        for timed in all_timed if turn % 2 else reversed(all_timed):
            timed.once()
        turn += 1


def ratios(ours: Timed, peer: Timed) -> dict[str, float]:
    """How many times as long as ours the peer takes: the median of the pairs, and its quartiles."""
    pairs = sorted(p / o for o, p in zip(ours.times, peer.times, strict=True))
    low, _, high = statistics.quantiles(pairs, n=4)
    return {"ratio": statistics.median(pairs), "low": low, "high": high}


def summary(timed: Timed) -> dict[str, float]:
    """Median and least seconds."""
    return {"median_s": statistics.median(timed.times), "least_s": min(timed.times)}
