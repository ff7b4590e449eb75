"""What a backend reports while something records it: `Recorder`, the interface, and `Step`, one reported command.

Owns the words in which backends and recorders speak to each other. Must not know how commands are played again:
recording.py does it with the memory of the recording, trace.py with other memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .memory import Buffer
from .playlist import Command

if TYPE_CHECKING:
    from .backend import Backend
    from .kernel import Kernel


class RecordingError(RuntimeError):
    """Raised when a function being captured does something that cannot be recorded."""


class Counter(int):
    """A random generator's counter as a kernel argument; each play replaces it with the generator's counter at that
    time.

    `read` returns the number for the current play, derived from that play's first counter.
    """

    read: Callable[[], int]

    def __add__(self, other: int) -> Counter:
        shifted = Counter(int(self) + int(other))
        read = self.read
        shifted.read = lambda: read() + other
        return shifted


class Slot(int):
    """The place in the status buffer where a launch reports an index out of range, as a kernel argument."""


class Step:
    """One recorded command: what to run and with which arguments."""

    __slots__ = ("args", "cl", "flops", "global_size", "kernel", "local_size", "nbytes")

    def __init__(
        self,
        kernel: Kernel | None,
        global_size: Any,
        local_size: Any,
        args: Sequence[Any],
        nbytes: int,
        flops: int = 0,
    ) -> None:
        self.kernel, self.global_size, self.local_size = kernel, global_size, local_size
        self.nbytes, self.flops = nbytes, flops
        self.args = list(args)
        self.cl: Any = None  # the launch's own kernel object

    @property
    def single_group(self) -> bool:
        """Whether this is the launch of a single work-group."""
        return self.kernel is not None and self.global_size == self.local_size

    def command(self) -> Command:
        """Return this step in the form a team's playlist takes."""
        size = self.global_size or ()
        return Command(self.kernel, size, self.local_size or (1,) * len(size), self.args)


class Recorder:
    """Interface of the objects to which backends report everything they do (see `ACTIVE`)."""

    checks: Any  # codegen/checks.py's log for launches during the recording; None: the usual log

    def launch(self, backend: Backend, step: Step) -> None:
        """Record a launch."""
        raise NotImplementedError

    def copy(self, src: Buffer, src_off: int, dst: Buffer, dst_off: int, nbytes: int) -> None:
        """Record a copy between buffers."""
        raise NotImplementedError

    def write(self, buffer: Buffer, offset: int, data: np.ndarray) -> None:
        """Record a write of host data to a buffer."""
        raise NotImplementedError

    def taken(self, buffer: Buffer, nbytes: Any) -> None:
        """Record that a buffer was allocated whose size, `nbytes`, is a Symbol."""
        raise NotImplementedError

    def checked(self, check: Any) -> None:
        """Record that launches checked indices.

        `check` is codegen/checks.py's context for them, which may be entered again.
        """
        raise NotImplementedError

    def refuse(self, what: str) -> None:
        """Take note of something that cannot be recorded; a Recording raises, a Trace only remembers it."""
        raise NotImplementedError


class _Active:
    """`recorder`: the one to which all threads' backends report now; None for none.

    Every launch reads it, which takes longer of a class than of an object.
    """

    __slots__ = ("recorder",)

    def __init__(self) -> None:
        self.recorder: Recorder | None = None


ACTIVE = _Active()
