"""`cltensor.utils.benchmark`: time a statement as `timeit` does, with all devices synchronised when the clock is read.

Short statements are repeated until one measurement is long compared with the clock's resolution. A pending result of
the statement is materialised within the timed run; dropped unread, it would never be computed and seem to take no time.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import math
import statistics
import textwrap
import timeit as _timeit
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import opencl
from ..ops.replay import forget
from ..reexport import lend
from ..tensor import Tensor

__all__ = [
    "Compare",
    "Language",
    "Measurement",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
# Ratios of a time to the best time, and the terminal's colour from each ratio on: red, light red, none, blue, green.
_COLOURS = ((5.0, "\x1b[31m"), (2.0, "\x1b[91m"), (1.1, ""), (1.01, "\x1b[34m"), (1.0, "\x1b[92m"))  # fmt: skip


def timer() -> float:
    """Wait for all devices, then return the time of `timeit`'s clock in seconds."""
    opencl.synchronize()
    return _timeit.default_timer()


def _unit(seconds: float) -> tuple[float, str]:
    return next(((s, u) for s, u in _UNITS if abs(seconds) >= s), _UNITS[-1])


def _told(seconds: float) -> str:
    scale, unit = _unit(seconds)
    return f"{seconds / scale:.2f} {unit}"


def _compute(value: Any) -> None:
    """Materialise a pending tensor, or those in a (nested) tuple or list."""
    if isinstance(value, Tensor):
        if value._strided:
            value._storage.buffer()
    elif isinstance(value, tuple | list):
        for part in value:
            _compute(part)


def _computing(stmt: str) -> str:
    """Return the source of `stmt`, with its last expression, if it ends with one, wrapped in `__compute(...)`.

    SyntaxError if `stmt` is not valid Python.
    """
    tree = ast.parse(textwrap.dedent(stmt).strip())
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        last.value = ast.Call(ast.Name("__compute", ast.Load()), [last.value], [])
    return ast.unparse(ast.fix_missing_locations(tree)) or "pass"


class Language(enum.Enum):
    """The language of a statement to time, of which C++ is not supported."""

    PYTHON = 0
    CPP = 1


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit in which a time in seconds is at least 1, and its length in seconds: ("ms", 1e-3)."""
    scale, unit = _unit(t)
    return unit, scale


def unit_to_english(u: str) -> str:
    """Return a unit's name: "microsecond" for "us"."""
    return _WORDS[u].removesuffix("s")


def trim_sigfig(x: float, n: int) -> float:
    """Round a number to `n` significant digits."""
    if x != x or n != int(n):
        raise AssertionError("n must be an integer")
    magnitude = math.ceil(math.log10(abs(x))) if x else 0
    scale = 10.0 ** (magnitude - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return the elements without repetitions, in the order of their first occurrences."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Let `n` threads work on the cpu device inside the block."""
    from ..runtime import device, get_backend

    team = get_backend(device("cpu")).team
    if team is None:  # the driver owns the threads
        yield
        return
    before, team.threads = team.threads, n
    forget()  # calls are replayed as they were divided
    try:
        yield
    finally:
        team.threads = before
        forget()


class Measurement:
    """Measured times of one statement: each of `raw_times` is the seconds that `number_per_run` runs took together."""

    def __init__(
        self, number_per_run: int, raw_times: list[float], title: str, label: str, sub_label: str,
        description: str, env: str, num_threads: int = 1,
    ) -> None:  # fmt: skip
        self.num_threads = num_threads
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
        """Interquartile range of the seconds per run."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def significant_figures(self) -> int:
        """Number of significant digits of the median, one to five, according to its 90% confidence interval."""
        times = sorted(self.times)
        inner = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = 1.645 * statistics.pstdev(inner) / math.sqrt(len(inner)) if inner else 0.0
        if not interval:
            return 5
        return min(max(math.floor(math.log10(self.median / interval)), 1), 5)

    @property
    def has_warnings(self) -> bool:
        """Whether the interquartile range is a tenth of the median or more."""
        return self.iqr >= 0.1 * self.median

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Return whether there are five times or more, with an interquartile range below `threshold` × the median."""
        return len(self.times) > 4 and self.iqr < threshold * self.median

    @property
    def as_row_name(self) -> str:
        """Name of the measurement's row in a table of `Compare`."""
        return self.sub_label or self.title

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Merge measurements that differ only in their times; the results' `raw_times` are seconds of single runs."""
        made: dict[tuple[Any, ...], Measurement] = {}
        for m in measurements:
            what = (m.title, m.label, m.sub_label, m.description, m.env, m.num_threads)
            old = made.get(what)
            times = [*(old.times if old else []), *m.times]
            made[what] = Measurement(1, times, *what)
        return list(made.values())

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
    """A statement to time. `stmt` and `setup` are Python source, and `globals` the names that they may use."""

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Any = "python",
    ) -> None:  # fmt: skip
        if language not in ("python", "py", Language.PYTHON):
            raise ValueError(
                f"Timer: only Python statements can be timed, got language {language!r}"
            )
        if global_setup:
            raise ValueError(
                "global_setup is C++ only, most likely you wanted to use `setup` instead."
            )
        self._stmt = stmt
        self._names = {"label": label or "", "sub_label": sub_label or "", "description": description or "", "env": env or ""}  # fmt: skip
        self._threads = num_threads
        self._timer = _timeit.Timer(
            _computing(stmt),
            textwrap.dedent(setup).strip() or "pass",
            timer,
            {**(globals or {}), "__compute": _compute},
        )

    def _made(self, number: int, times: list[float]) -> Measurement:
        title = ": ".join(n for n in (self._names["label"], self._names["sub_label"]) if n)
        return Measurement(
            number, times, title or self._stmt.strip(), **self._names, num_threads=self._threads
        )

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Time `number` runs as one measurement, after a warm-up of a hundredth as many runs (at least two)."""
        self._timer.timeit(max(number // 100, 2))
        return self._made(number, [self._timer.timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raise NotImplementedError, as torch does; use `blocked_autorange` instead."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, least: float) -> int:
        """Return a number of runs, found by trying, that together take at least `least` seconds."""
        number = 1
        while (took := self._timer.timeit(number)) < least and number < 1 << 30:
            number = max(number * 2, min(number * 10, int(number * least / max(took, 1e-9))))
        return number

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Time blocks, all of the same number of runs, until they add up to `min_run_time` seconds.

        After each block, `callback` gets that number and the block's seconds.
        """
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
        """Time blocks of runs until `meets_confidence(threshold)`, for `min_run_time` to `max_run_time` seconds."""
        number = self._block(min_run_time / 1000)
        times: list[float] = []
        while sum(times) < max_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
            if sum(times) >= min_run_time and self._made(number, times).meets_confidence(threshold):
                break
        return self._made(number, times)


class Compare:
    """A table of measurements for each label: a line per `sub_label` and number of threads, a column per `description`."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = self._warn = False
        # Whether the times in two cells of the table, each a pair (row, column), are compared with each other.
        self._colour: Callable[[Any, Any], bool] | None = None
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        for made in (results := list(results)):
            if not isinstance(made, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(made)} instead."
                )
        self._results += results

    def trim_significant_figures(self) -> None:
        """Show only as many digits of a time as `Measurement.significant_figures` says."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour times by their ratio to the best of the column, or row: green near 1, light red from 2, red from 5."""
        self._colour = (lambda a, b: a[0] == b[0]) if rowwise else (lambda a, b: a[0][:1] == b[0][:1] and a[1] == b[1])  # fmt: skip

    def highlight_warnings(self) -> None:
        """Show the interquartile range, in percent of the median, behind each time with `Measurement.has_warnings`."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def __str__(self) -> str:
        labels = dict.fromkeys(m.label for m in self._results)
        merged = Measurement.merge(self._results)
        return "\n".join(self._table(k, [m for m in merged if m.label == k]) for k in labels)

    def _table(self, label: str, results: list[Measurement]) -> str:
        scale, unit = _unit(min(m.median for m in results))
        places = {((m.num_threads, m.env, m.as_row_name), m.description): m for m in results}
        rows = sorted(dict.fromkeys(row for row, _ in places), key=lambda row: row[:2])
        columns = list(dict.fromkeys(column for _, column in places))
        several = len({env for _, env, _ in rows}) > 1
        names = [f"  ({env}) {name}" if several else f"  {name}" for _, env, name in rows]
        texts = {place: self._text(m, scale) for place, m in places.items()}
        first = max(map(len, names))
        widths = [max(len(c), *(len(texts.get((r, c), "")) for r in rows)) for c in columns]
        head = "  |  ".join([" " * first, *(c.center(w) for c, w in zip(columns, widths, strict=True))])  # fmt: skip
        lines = [f"[{f' {label} '.center(len(head) - 2, '-')}]", head]
        threads = None
        for row, name in zip(rows, names, strict=True):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            cells = [texts.get((row, c), "").center(w) for c, w in zip(columns, widths, strict=True)]  # fmt: skip
            cells = [self._coloured(text, (row, c), places) for text, c in zip(cells, columns, strict=True)]  # fmt: skip
            lines.append("  |  ".join([name.ljust(first), *cells]))
        lines += ["", f"Times are in {_WORDS[unit]} ({unit})."]
        if self._warn and any(m.has_warnings for m in results):
            lines.append(
                "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
            )
        return "\n".join([*lines, ""])

    def _text(self, made: Measurement, scale: float) -> str:
        value = made.median / scale
        text = f"{value:.1f}"
        if self._trim:
            digits = made.significant_figures - math.floor(math.log10(value)) - 1
            text = f"{round(value, digits):.{max(digits, 0)}f}"
        spread = self._warn and made.has_warnings
        return f"{text} (! {made.iqr / made.median * 100:.0f}%)" if spread else text

    def _coloured(self, text: str, place: Any, places: dict[Any, Measurement]) -> str:
        if self._colour is None or place not in places:
            return text
        best = min(m.median for other, m in places.items() if self._colour(place, other))
        ratio = places[place].median / best
        code = next((c for limit, c in _COLOURS if ratio >= limit), "")
        return f"{code}{text}\x1b[0m" if code else text


def __getattr__(name: str) -> Any:
    if name in ("FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"):
        from . import fuzzer

        return getattr(fuzzer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_COMMON = "Measurement ordered_unique select_unit set_torch_threads trim_sigfig unit_to_english"
lend(
    globals(),
    {
        "utils": ("utils.benchmark", f"Compare Language Timer timer {_COMMON}"),
        "utils.fuzzer": ("utils.fuzzer", "FuzzedParameter FuzzedTensor Fuzzer ParameterAlias"),
        "utils.common": ("utils.benchmark", _COMMON),
        "utils.compare": ("utils.benchmark", "Compare"),
        "utils.timer": ("utils.benchmark", "Language Timer timer"),
    },
)
