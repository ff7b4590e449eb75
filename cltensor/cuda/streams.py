"""`torch.cuda.streams`: a device's queue and points in its work. Each device has one queue."""

from __future__ import annotations

import math
import time
from typing import Any

from .. import opencl
from .devices import named
from .toolkit import ExternalStream

__all__ = ["Event", "ExternalStream", "Stream"]


class Stream:
    """A queue of a device's work. Each device has only one here, so that all its Stream objects mean the same."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device, self.priority = named(device), priority

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    @property
    def device_index(self) -> int:
        """The device's index."""
        return self.device.index or 0

    @property
    def stream_id(self) -> int:
        """0: the number of a device's only stream."""
        return 0

    def synchronize(self) -> None:
        """Wait for all work started so far."""
        opencl.synchronize(self.device)

    def query(self) -> bool:
        """Wait, then return True."""
        self.synchronize()
        return True

    def wait_stream(self, stream: Stream) -> None:
        """Do nothing: a device's work runs in order."""

    def wait_event(self, event: Event) -> None:
        """Do nothing: a device's work runs in order."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given."""
        event = Event(enable_timing=True) if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class Event:
    """A point in a device's work. `record` waits for all earlier work and then takes the host's time."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._timing, self._time = enable_timing, math.nan

    def record(self, stream: Stream | None = None) -> None:
        """Wait for all work started so far and take the time."""
        opencl.synchronize(None if stream is None else stream.device)
        self._time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Do nothing: a device's work runs in order."""

    def query(self) -> bool:
        """Return True: `record` has waited for the work before it."""
        return True

    def synchronize(self) -> None:
        """Do nothing: `record` has waited for the work before it."""

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another; RuntimeError unless both record times."""
        if not (self._timing and end_event._timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if math.isnan(self._time) or math.isnan(end_event._time):
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3


class StreamContext:
    """A context that does nothing: a device has one stream."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def set_stream(stream: Stream) -> None:
    """Do nothing: a device has one stream."""


def stream(stream: Stream | None) -> StreamContext:
    """Return a context that does nothing: a device has one stream."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """Return the device's stream."""
    return Stream(device)


default_stream = current_stream
