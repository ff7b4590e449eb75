"""`torch.cpu`'s streams and events: the cpu device has one queue, so that nothing has to be ordered."""

from __future__ import annotations

from typing import Any

from .. import opencl


class Stream:
    """The device's only queue."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: the device's work runs in order."""

    def record_event(self) -> None:
        """Do nothing: an event waits for all work, whenever that was started."""

    def wait_event(self, event: Any) -> None:
        """Do nothing: the device's work runs in order."""


class Event:
    """A point in the device's work, which is waited for by waiting for all of it."""

    def query(self) -> bool:
        """Wait, then return True."""
        self.synchronize()
        return True

    def record(self, stream: Any = None) -> None:
        """Do nothing: waiting for the event waits for all work."""

    def synchronize(self) -> None:
        """Run what is pending on the device and wait for it."""
        opencl.synchronize("cpu")

    def wait(self, stream: Any = None) -> None:
        """Do nothing: the device's work runs in order."""


class StreamContext:
    """A context in which a stream is the current one; as there is only one, it merely says which."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        global _current
        if self.stream is not None:
            self._before, _current = _current, self.stream

    def __exit__(self, *exc: object) -> None:
        global _current
        if self.stream is not None:
            _current = self._before


_current = Stream()


def current_stream(device: Any = None) -> Stream:
    """Return the stream of the innermost `stream` context, or the default one."""
    return _current


def stream(stream: Stream | None) -> StreamContext:
    """Return a context in which a stream is the current one."""
    return StreamContext(stream)
