"""Index errors found by kernels: a status buffer per backend, and when it is looked at.

A kernel that meets an index out of range skips that element and notes (1, index, ordinal of the
index operand, position) in its slot. Host-shared devices are examined at once; on others
`flush_checks` examines all slots in one read, and the caller decides when that is (host reads,
`synchronize()`). Knows nothing of what the indices are for.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..runtime import ACTIVE, Slot
from .region import max_workers

if TYPE_CHECKING:
    from ..runtime import Backend, Buffer

WORDS = 4
_SLOTS = 256
Describe = Callable[[int, int], Exception]


class CheckLog:
    """The status buffer of one backend. Slots are handed out in turn; `pending` has for each one in use the function
    that makes its error.
    """

    def __init__(self, backend: Backend, slots: int = 0) -> None:
        self.entries = 1 if backend.info.kind != "cpu" else max_workers(backend)
        self.slots = slots or (1 if backend.info.host_shared else _SLOTS)
        self.buffer: Buffer = backend.alloc(self.slots * self.entries * WORDS * 8)
        self.pending: list[Describe] = []
        host = self.buffer.host if backend.team is not None else None
        # What a team's launches note can be read at once; launches in the driver's queue have to be waited for.
        # The words are compared as memory: numpy's any() would take a quarter of the time of a small lookup.
        self.noted = None if host is None else host.view(np.int64).data
        self.nothing = np.zeros(self.slots * self.entries * WORDS, np.int64).data
        self.clear(backend)

    def clear(self, backend: Backend) -> None:
        backend.write(self.buffer, 0, np.zeros(self.slots * self.entries * WORDS, np.int64))

    def words(self, backend: Backend, slots: int) -> np.ndarray:
        if backend.info.host_shared:
            raw = backend.host_view(self.buffer)
        else:
            raw = backend.read(self.buffer, 0, slots * self.entries * WORDS * 8)
        words = raw.view(np.int64)[: slots * self.entries * WORDS]
        return words.reshape(slots, self.entries, WORDS)

    def examine(self, backend: Backend) -> None:
        pending, self.pending = self.pending, []
        if not (pending and backend.info.has_memory):
            return
        if self.noted == self.nothing and backend.seq == backend.finished:
            return
        words = self.words(backend, len(pending))
        if not words[:, :, 0].any():
            return
        words = words.copy()
        self.clear(backend)
        for describe, entries in zip(pending, words, strict=True):
            for flag, value, ordinal, _ in entries:
                if flag:
                    raise describe(int(value), int(ordinal))


class RecordedLog(CheckLog):
    """The checks of a recording: every launch keeps its slot; slots are examined at the next host read after a play."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend, _SLOTS)

    def played(self, backend: Backend) -> None:
        """Note that the recording was played: the next `flush_checks` examines its slots."""
        _played.setdefault(backend, set()).add(self)
        backend.unchecked = True

    def examine(self, backend: Backend) -> None:
        kept = list(self.pending)
        try:
            super().examine(backend)
        finally:
            self.pending = kept


_played: weakref.WeakKeyDictionary[Backend, set[RecordedLog]] = weakref.WeakKeyDictionary()


def _log(backend: Backend) -> CheckLog:
    if backend.checks is None:
        with backend.lock:
            if backend.checks is None:
                backend.checks = CheckLog(backend)
    return backend.checks


class checking:
    """Context that lends a status slot to the launches inside the block. On leaving it, a device that shares the
    host's memory raises the error for a bad index at once.

    `describe(value, ordinal)` makes the exception for an index `value` met in the index operand
    number `ordinal`. Replayed calls keep it, so it must not hold buffers.
    """

    def __init__(self, backend: Backend, describe: Describe) -> None:
        self.backend, self.describe = backend, describe

    def __enter__(self) -> checking:
        backend = self.backend
        backend.lock.acquire()
        try:
            recorder = ACTIVE.recorder
            self.log = log = _log(backend) if recorder is None else recorder.checks or _log(backend)
            if len(log.pending) >= log.slots:
                if recorder is not None:
                    recorder.refuse(f"has more than {log.slots} launches that check indices")
                log.examine(backend)
        except BaseException:
            backend.lock.release()
            raise
        self.buffer = log.buffer
        self.offset = Slot(len(log.pending) * log.entries * WORDS)
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        try:
            if kind is not None:
                return
            if ACTIVE.recorder is None:
                self.look()
            else:
                ACTIVE.recorder.checked(self)
        finally:
            self.backend.lock.release()

    def look(self, *, now: bool = True) -> None:
        """Raise a bad index's error at once, if `now` and host memory is shared; else in the next `flush_checks`."""
        self.log.pending.append(self.describe)
        if now and self.backend.info.host_shared:
            self.log.examine(self.backend)


def flush_checks(backend: Backend) -> None:
    """Raise the error of the first index out of range met since the last call; waits for the
    device if any is pending.
    """
    log = backend.checks
    if log is not None and log.pending:
        with backend.lock:
            log.examine(backend)
    if backend.unchecked:
        backend.unchecked = False
        with backend.lock:
            for recorded in _played.pop(backend, ()):
                recorded.examine(backend)
