"""Measure how long a device is busy with queued work, apart from the host's time: a kernel occupies the queue until all
work is queued.

The launches then follow each other without waiting for the host, and the measured time does not include queueing.
The same method works for every library's queue or stream.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.case import Kit, Run

TURNS = 5  # measurements that must be valid, of twice as many tries; their median is the result
BUSY = 2e-3  # seconds of device time that the runs of one measurement should take
MOST_RUNS = 40
MOST_LAUNCHES = 400  # drivers make the host wait when more than some thousand are queued
# The queue is held for LONGER times the seconds that queueing takes, and SPARE seconds more. If queueing takes longer
# than that, it is held LONGER times as long at the next try, up to LONGEST seconds.
SPARE = 0.3e-3
LONGER = 1.5
LONGEST = 50e-3

HOLD = """
__kernel void bench_hold(__global uint *out, uint steps) {
  uint x = steps;
  for (uint i = 0; i < steps; i++) x = (x * 1664525u + 1013904223u) ^ i;
  out[0] = x;
}
"""


def runs_together(seconds: float, launches: int) -> int:
    """Return the number of runs to queue for one measurement, given the seconds and launches of one run."""
    by_time = int(BUSY / max(seconds, 1e-6))
    return max(1, min(by_time, MOST_RUNS, MOST_LAUNCHES // max(launches, 1)))


class Held:
    """A library's queue that can be held: `hold(seconds)` queues work of that duration and returns at once."""

    def __init__(self, kit: Kit, hold: Callable[[float], Any]) -> None:
        self.kit, self.hold = kit, hold

    def _measure(self, run: Run | None, count: int, seconds: float) -> tuple[float, float]:
        """Hold the queue, queue `count` runs, and wait; return the seconds until all runs were queued, and until all
        were done. run None: only hold.
        """
        self.kit.wait()
        begin = time.perf_counter()
        self.hold(seconds)
        kept = None
        if run is not None:
            for _ in range(count):
                kept = run()
                self.kit.submit()
        queued = time.perf_counter() - begin
        self.kit.wait()
        done = time.perf_counter() - begin
        del kept
        return queued, done

    def seconds(self, run: Run, count: int) -> float | None:
        """Return the device's seconds per run, of `count` runs queued at once; None if runs wait for the device, so
        that they cannot be queued while it is held.
        """
        queued, _ = self._measure(run, count, 0.0)
        length = LONGER * queued + SPARE
        found: list[float] = []
        for _ in range(TURNS * 2):
            _, alone = self._measure(None, 0, length)
            queued, done = self._measure(run, count, length)
            if queued > alone:
                length = min(LONGER * length, LONGEST)
            else:
                found.append((done - alone) / count)
        return statistics.median(found) if len(found) >= TURNS else None


def ours(kit: Kit, backend: Any) -> Held:
    """Return cltensor's queue, held by a kernel of one work-item with a chain of dependent steps."""
    import numpy as np

    kernel = backend.kernel("bench_hold", HOLD, (None, np.uint32))
    out = backend.alloc(4)

    def steps(count: int) -> None:
        backend.launch(kernel, (1,), (1,), [out, count])
        backend.queue.flush()

    def timed(count: int) -> float:
        begin = time.perf_counter()
        steps(count)
        kit.wait()
        return time.perf_counter() - begin

    few, many = 10_000, 400_000
    timed(many)  # warm-up: drivers do work of their own at a first launch
    a_step = (timed(many) - timed(few)) / (many - few)
    return Held(kit, lambda seconds: steps(max(1, int(seconds / a_step))))


def torch(kit: Kit) -> Held:
    """Return torch's stream, held by torch's own sleep kernel."""
    sleep = kit.torch.cuda._sleep
    cycles = 20_000_000

    def timed(count: int) -> float:
        kit.wait()
        begin = time.perf_counter()
        sleep(count)
        kit.wait()
        return time.perf_counter() - begin

    timed(cycles)
    a_cycle = (timed(cycles) - timed(cycles // 10)) / (cycles * 0.9)
    return Held(kit, lambda seconds: sleep(max(1, int(seconds / a_cycle))))
