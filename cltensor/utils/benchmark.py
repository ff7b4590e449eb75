"""`cltensor.utils.benchmark`: time a statement as `timeit` does, waiting for the device.

Small statements are repeated until a measurement is long beside the clock's resolution.
"""

from __future__ import annotations

import statistics
import timeit as _timeit
from collections.abc import Callable, Iterable
from typing import Any

from .. import opencl

__all__ = ["Compare", "Measurement", "Timer", "timer"]

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def timer() -> float:
    """Wait for all devices and return seconds of a clock."""
    opencl.synchronize()
    return _timeit.default_timer()


def _told(seconds: float) -> str:
    scale, unit = next(((s, u) for s, u in _UNITS if abs(seconds) >= s), _UNITS[-1])
    return f"{seconds / scale:.2f} {unit}"


class Measurement:
    """Times of one statement: `raw_times` in seconds for `number_per_run` runs each."""

    def __init__(
        self, number_per_run: int, raw_times: list[float], title: str, label: str, sub_label: str,
        description: str, env: str,
    ) -> None:  # fmt: skip
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.title, self.label, self.sub_label = title, label, sub_label
        self.description, self.env = description, env

    @property
    def times(self) -> list[float]:
        """Seconds per run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """Median seconds per run."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """Mean seconds per run."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """Seconds between the quartiles."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    def __repr__(self) -> str:
        lines = [
            f"<{type(self).__module__}.{type(self).__name__} object at {id(self):#x}>",
            self.title,
        ]
        if self.description:
            lines.append(self.description)
        if len(self.times) > 1:
            lines += [f"  Median: {_told(self.median)}", f"  IQR:    {_told(self.iqr)}"]
            runs = f"  {len(self.times)} measurements, {self.number_per_run} runs per measurement"
        else:
            lines.append(f"  {_told(self.mean)}")
            runs = f"  1 measurement, {self.number_per_run} runs"
        return "\n".join([*lines, runs])


class Timer:
    """A statement to time. `stmt` and `setup` are Python source with `globals` as their names."""

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Any = "python",
    ) -> None:  # fmt: skip
        if language not in ("python", "py"):
            raise ValueError(
                f"Timer: only Python statements can be timed, got language {language!r}"
            )
        if global_setup:
            raise ValueError(
                "global_setup is C++ only, most likely you wanted to use `setup` instead."
            )
        self._stmt = stmt
        self._names = {"label": label or "", "sub_label": sub_label or "", "description": description or "", "env": env or ""}  # fmt: skip
        self._timer = _timeit.Timer(stmt, setup, timer, dict(globals or {}))

    def _made(self, number: int, times: list[float]) -> Measurement:
        title = ": ".join(n for n in (self._names["label"], self._names["sub_label"]) if n)
        return Measurement(number, times, title or self._stmt.strip(), **self._names)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Measure `number` runs in one go, after a warm-up."""
        self._timer.timeit(max(number // 100, 2))
        return self._made(number, [self._timer.timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """NotImplementedError: as in torch, see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, least: float) -> int:
        """How many runs last for `least` seconds."""
        number = 1
        while (took := self._timer.timeit(number)) < least and number < 1 << 30:
            number = max(number * 2, min(number * 10, int(number * least / max(took, 1e-9))))
        return number

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measure blocks of runs until `min_run_time` seconds are over."""
        number = self._block(min_run_time / 1000)
        times: list[float] = []
        while sum(times) < min_run_time or not times:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return self._made(number, times)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Measure until the spread between quartiles is below `threshold` of the median, or time is up."""
        number = self._block(min_run_time / 1000)
        times: list[float] = []
        while sum(times) < max_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
            found = self._made(number, times)
            if (
                len(times) > 4
                and sum(times) >= min_run_time
                and found.iqr < threshold * found.median
            ):
                break
        return self._made(number, times)


class Compare:
    """A table of measurements: a line per `sub_label`, a column per `description`."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        self._results += results

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self) -> str:
        columns = list(dict.fromkeys(m.description for m in self._results))
        rows = list(dict.fromkeys((m.label, m.sub_label) for m in self._results))
        cells = {(m.label, m.sub_label, m.description): _told(m.median) for m in self._results}
        head = ["", *columns]
        body = [[": ".join(filter(None, r)), *(cells.get((*r, c), "") for c in columns)] for r in rows]  # fmt: skip
        widths = [max(len(line[i]) for line in (head, *body)) for i in range(len(head))]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in (head, *body))  # fmt: skip
