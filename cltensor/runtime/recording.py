"""Recording a backend's launches and copies, and playing them again.

While a `Recording` is `ACTIVE.recorder`, every launch and copy on its backend is recorded as it happens; reading values
on the host and using another backend raise RecordingError. Memory allocated meanwhile comes from the recording's own
arena: it is reused within the recording as buffers die, but by nothing else, so that the addresses stay valid. A play
sets the few arguments that differ from call to call and enqueues the commands: the kernel objects belong to the
recording, and their other arguments stay set.

Owns the playing of the commands that recorder.py describes. Must not know tensors; capture.py says which buffers and
numbers change.
"""

from __future__ import annotations

import collections
import time
import weakref
from collections.abc import Sequence
from itertools import groupby
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from . import observe
from .memory import Arena, Buffer
from .observe import OBSERVERS
from .playlist import Playlist
from .recorder import ACTIVE, Counter, Recorder, RecordingError, Step
from .stats import STATS

if TYPE_CHECKING:
    from .backend import Backend


# From this many consecutive launches of single work-groups on, they are run inline even if the queue has to be waited
# for first.
_RUN = 3


class Memory:
    """An arena buffer as commands refer to it: its memory, which a later buffer may reuse, and a weak reference to the
    buffer, which may die.
    """

    __slots__ = ("address", "cl", "ref")

    def __init__(self, buffer: Buffer) -> None:
        self.cl, self.address, self.ref = buffer.cl, buffer.address, weakref.ref(buffer)


class Recording(Recorder):
    """The commands of one run of a function, in order."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.steps: list[Step] = []
        self.arena = Arena()
        self._thread = get_ident()  # other threads' work is not recorded
        self._checks: Any = None
        self._playlist: Playlist | None = None  # where a team plays the recording
        # Without a playlist: runs of consecutive steps, True for those that are single work-groups to be run inline.
        self._runs: list[tuple[bool, list[Step]]] = []
        self._launches = 0
        self._constants: list[Buffer] = []  # copies of data that the host wrote
        self._memories: weakref.WeakKeyDictionary[Buffer, Memory] = weakref.WeakKeyDictionary()
        self._used: list[Buffer | weakref.ref[Buffer]] = []
        self._slots: dict[int, list[tuple]] = {}  # id of a changing buffer -> its arguments
        self._bound: dict[int, Buffer] = {}  # bound by `bind`, for all plays to come
        self._counters: list[tuple[Any, int, Any, Counter]] = []

    # --- noting

    @property
    def _mine(self) -> bool:
        return get_ident() == self._thread

    @property
    def checks(self) -> Any:
        """codegen/checks.py's log for this recording's launches; None in other threads."""
        return self._checks if self._mine else None

    @checks.setter
    def checks(self, log: Any) -> None:
        self._checks = log

    def launch(self, backend: Backend, step: Step) -> None:
        if not self._mine:
            return
        self._check(backend)
        step.args = [self._noted(a) if a.__class__ is Buffer else a for a in step.args]
        self.steps.append(step)

    def copy(self, src: Buffer, src_off: int, dst: Buffer, dst_off: int, nbytes: int) -> None:
        if not self._mine:
            return
        self._check(dst.backend)
        args = [self._noted(dst), dst_off, self._noted(src), src_off, nbytes]
        self.steps.append(Step(None, None, None, args, 2 * nbytes))

    def _noted(self, buffer: Buffer) -> Buffer | Memory:
        """Return an operand as a step keeps it: for an arena buffer a Memory, so that the arena can reuse the block
        when the buffer dies.
        """
        if buffer.arena is not self.arena:
            return buffer
        found = self._memories.get(buffer)
        if found is None:
            found = self._memories[buffer] = Memory(buffer)
        return found

    def write(self, buffer: Buffer, offset: int, data: np.ndarray) -> None:
        """Record host data as a constant: the data are kept in a buffer of their own, from which each play
        copies them.
        """
        if not self._mine:
            return
        self._check(buffer.backend)
        ACTIVE.recorder = None
        try:
            kept = self.backend.alloc(data.nbytes)
            self.backend.write(kept, 0, data)
            self._constants.append(kept)
        finally:
            ACTIVE.recorder = self
        self.copy(kept, 0, buffer, offset, data.nbytes)

    def checked(self, check: Any) -> None:
        check.look(now=not self._mine)

    def _check(self, backend: Backend) -> None:
        if backend is not self.backend:
            self.refuse(f"uses {backend.device} beside {self.backend.device}")

    def refuse(self, what: str) -> None:
        if not self._mine:
            return
        raise RecordingError(
            f"a captured function {what}: what depends on values the host sees cannot be recorded "
            "(optimisers count their steps on the device with capturable=True)"
        )

    # --- playing

    def buffers(self) -> list[Buffer]:
        """Return every live buffer that the commands use, each once."""
        found: dict[int, Buffer] = {}
        for step in self.steps:
            for a in step.args:
                if (buffer := _buffer(a)) is not None:
                    found[id(buffer)] = buffer
        return list(found.values())

    def alone(self, buffers: Sequence[Buffer]) -> list[bool]:
        """Return for each arena buffer whether the commands use no other buffer at the same address."""
        touched = {
            id(a): a.address for step in self.steps for a in step.args if a.__class__ is Memory
        }
        there = collections.Counter(touched.values())
        mine = [self._memories.get(b) for b in buffers]
        return [m is not None and there[m.address] == (id(m) in touched) for m in mine]

    def prepare(self, rebound: Sequence[Buffer]) -> None:
        """Give each launch a kernel object of its own with the arguments set.

        The `rebound` buffers differ from play to play.
        """
        self._used = [b if b.arena is not self.arena else weakref.ref(b) for b in self.buffers()]
        self._slots = {id(b): [] for b in rebound}
        self._launches = sum(s.kernel is not None for s in self.steps)
        team = self.backend.team
        if team is not None and all(
            s.kernel is None or s.kernel.function is not None for s in self.steps
        ):
            self._playlist = Playlist(team, [s.command() for s in self.steps])
        for number, step in enumerate(self.steps):
            if step.kernel is not None and self._playlist is None:
                step.cl = self.backend.programs.on_driver(step.kernel)
            self._prepare(number, step)
        if self._playlist is None:
            inline = self.backend.inline is not self.backend.queue
            self._runs = [
                (single, list(run))
                for single, run in groupby(self.steps, lambda s: inline and s.single_group)
            ]

    def _prepare(self, number: int, step: Step) -> None:
        """Set a step's arguments, and remember where those that change from play to play are."""
        kinds = (None, 0, None, 0, 0) if step.kernel is None else step.kernel.arg_types
        playlist = self._playlist
        for i, (kind, value) in enumerate(zip(kinds, step.args, strict=True)):
            changing = kind is None and id(_buffer(value)) in self._slots
            if playlist is not None:
                if changing:
                    self._slots[id(_buffer(value))].append(playlist.slot(number, i))
                elif isinstance(value, Counter):
                    self._counters.append((number, i, kind, value))
            elif step.kernel is not None:
                step.cl.set_arg(i, value.cl if kind is None else kind(value))
                if changing:
                    self._slots[id(_buffer(value))].append((step.cl, i))
                elif isinstance(value, Counter):
                    self._counters.append((step.cl, i, kind, value))

    def bind(self, key: int, buffer: Buffer) -> None:
        """Bind `buffer` to the changing buffer with id `key`, for all plays until the next such call."""
        self._bound[key] = buffer
        self._set({key: buffer})

    def _set(self, bound: dict[int, Buffer]) -> None:
        """Set the buffers as arguments in place of the changing ones with these ids."""
        for key, buffer in bound.items():
            if self._playlist is None:
                for kernel, i in self._slots[key]:
                    kernel.set_arg(i, buffer.cl)
            else:
                address = buffer.address
                for words, place, offset in self._slots[key]:
                    words[place] = address + offset

    def play(self, bound: dict[int, Buffer]) -> None:
        """Run the commands again.

        bound: the id of each changing buffer (`rebound` in `prepare`) -> the buffer that replaces it in this play.
        """
        backend = self.backend
        with backend.lock:
            self._set(bound)
            if self._playlist is None:
                self._play_on_queue(bound if not self._bound else {**self._bound, **bound})
            else:
                self._play_on_team(self._playlist)
            STATS.launches += self._launches
            STATS.copies += len(self.steps) - self._launches

    def _play_on_team(self, playlist: Playlist) -> None:
        backend = self.backend
        for number, i, kind, counter in self._counters:
            playlist.put(number, i, np.dtype(kind).str, _wrapped(counter.read(), kind))
        if backend.seq != backend.finished:
            backend.finish()
        if not OBSERVERS:
            playlist.run()
            return
        for number, step in enumerate(self.steps):
            begin = time.perf_counter_ns()
            playlist.run_one(number)
            observe.played(backend, step, begin, time.perf_counter_ns())

    def _play_on_queue(self, bound: dict[int, Buffer]) -> None:
        backend = self.backend
        backend.leave_team()
        for kernel, i, kind, counter in self._counters:
            kernel.set_arg(i, kind(_wrapped(counter.read(), kind)))
        if OBSERVERS:
            self._enqueue_watched(bound)
        else:
            self._enqueue(bound)
        seen = False
        for used in (*self._used, *bound.values()):
            held = used() if isinstance(used, weakref.ref) else used
            if held is not None:
                held.seq = backend.seq
                seen = seen or held.exported
        if seen:
            backend.finish()

    def _enqueue(self, bound: dict[int, Buffer]) -> None:
        """Enqueue the commands; launches of a single work-group run in this thread while the queue is idle.

        If it is not idle, it is waited for before a run of at least `_RUN` such launches.
        """
        backend = self.backend
        queue, inline = backend.queue, backend.inline
        enqueue = backend.programs.enqueue
        idle = backend.seq == backend.finished
        for single, steps in self._runs:
            if single and len(steps) >= _RUN and not idle:
                queue.finish()
                idle = True
            idle = idle and single
            where = inline if idle else queue
            for step in steps:
                if step.kernel is not None:
                    enqueue(where, step.cl, step.global_size, step.local_size)
                else:
                    self._copy(queue, step, bound)
        backend.seq += 1
        if idle:
            backend.finished = backend.seq
        else:
            queue.flush()

    def _enqueue_watched(self, bound: dict[int, Buffer]) -> None:
        """Enqueue the commands one at a time and tell the observers how long each took."""
        backend = self.backend
        backend.finish()
        queue = backend.timed_queue()
        for step in self.steps:
            begin = time.perf_counter_ns()
            if step.kernel is not None:
                event = backend.module.enqueue_nd_range_kernel(
                    queue, step.cl, step.global_size, step.local_size
                )
            else:
                event = self._copy(queue, step, bound)
            event.wait()
            observe.played(backend, step, begin, time.perf_counter_ns(), event)
        backend.seq += 1

    def _copy(self, queue: Any, step: Step, bound: dict[int, Buffer]) -> Any:
        """Enqueue a copy between this play's buffers; return its event."""
        dst, b, src, a, n = step.args
        src, dst = (bound.get(id(_buffer(x)), x) for x in (src, dst))
        return self.backend.module.enqueue_copy(
            queue, dst.cl, src.cl, byte_count=n, src_offset=a, dst_offset=b
        )


def _buffer(a: Any) -> Buffer | None:
    """Return the live buffer behind an argument; None for a number, or if the buffer is dead."""
    return a if a.__class__ is Buffer else a.ref() if a.__class__ is Memory else None


def _wrapped(value: int, kind: Any) -> int:
    """Return an integer as one of the numpy type `kind`, modulo a power of two."""
    bits = np.dtype(kind).itemsize * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if np.dtype(kind).kind == "i" and value >> (bits - 1) else value
