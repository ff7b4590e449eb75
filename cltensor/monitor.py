"""`torch.monitor`: events that a program logs for handlers it has registered, and statistics over windows of values."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

STAT_EVENT = "torch.monitor.Stat"


@dataclass
class Event:
    """Something that happened at a time: a name, and data by names."""

    name: str
    timestamp: datetime
    data: dict[str, Any] = field(default_factory=dict)


class EventHandlerHandle:
    """What `register_event_handler` returns, for `unregister_event_handler`."""

    def __init__(self, callback: Callable[[Event], None]) -> None:
        self._callback = callback


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Have a function called with each event."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Call a handler no more. RuntimeError if it is not registered."""
    if handler not in _handlers:
        raise RuntimeError("handler not registered")
    _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Pass an event to all handlers."""
    for handler in (*_handlers,):
        handler._callback(event)


class Aggregation(enum.Enum):
    """What a `Stat` tells of the values of a window."""

    VALUE, MEAN, COUNT, SUM, MAX, MIN = range(1, 7)

    @property
    def key(self) -> str:
        """The name in an event's data."""
        return self.name.lower()


_OF: dict[Aggregation, Callable[[list[float]], float]] = {
    Aggregation.VALUE: lambda v: v[-1] if v else 0,
    Aggregation.MEAN: lambda v: math.fsum(v) / len(v) if v else 0,
    Aggregation.COUNT: len,
    Aggregation.SUM: math.fsum,
    Aggregation.MAX: lambda v: max(v, default=0),
    Aggregation.MIN: lambda v: min(v, default=0),
}
VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation


class Stat:
    """Values collected over windows of time, of at most `max_samples` each; an event tells of each window that is over.

    An event tells of a window when it is full, or when the first value comes too late for it, or when the object dies.
    """

    def __init__(
        self,
        name: str,
        aggregations: Sequence[Aggregation],
        window_size: timedelta,
        max_samples: int = (1 << 63) - 1,
    ) -> None:
        self.name, self._aggregations = name, tuple(aggregations)
        self._window, self._most = window_size.total_seconds(), max_samples
        self._values: list[float] = []
        self._began, self._full = time.monotonic(), False
        self._last = dict.fromkeys(self._aggregations, 0.0)

    @property
    def count(self) -> int:
        """The number of values in this window."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Add a value; without effect while a full window is not over."""
        if time.monotonic() - self._began >= self._window:
            self._end()
            self._began, self._full = time.monotonic(), False
        if self._full:
            return
        self._values.append(float(v))
        if len(self._values) >= self._most:
            self._end()
            self._full = True

    def get(self) -> dict[Aggregation, float]:
        """Return what the values of the last window that is over amount to."""
        return dict(self._last)

    def _end(self) -> None:
        values, self._values = self._values, []
        self._last = {kind: float(_OF[kind](values)) for kind in self._aggregations}
        if values:
            data = {f"{self.name}.{kind.key}": value for kind, value in self._last.items()}
            log_event(Event(STAT_EVENT, datetime.now(), data))

    def __del__(self) -> None:
        if self._values:
            self._end()


class TensorboardEventHandler:
    """A handler that writes statistics as scalars to a SummaryWriter."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
