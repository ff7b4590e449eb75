"""Tracing the launches of one call, so that they can be repeated with other memory and other sizes.

While the call runs, a `Trace` is the active recorder. It stores each launch and copy with its arguments, and which
buffers among these were given to the call and which the call took from the pool. A play takes new buffers instead, one
for several whose lifetimes do not overlap, and repeats the commands: where there is a team, by one call in which
everything except the buffers' addresses is set already; otherwise, and while there are observers or a recorder, through
the backend. If the call was given Symbols for sizes (Note [Symbols] in symbols.py), `numbers` recomputes for other
sizes everything that was derived from them, and a play sets these numbers if they differ from the last play's. Work
that depends on values (host reads and writes, random numbers, more than one check of indices) cannot be traced.

Owns the stored commands and their playing. Must not know tensors; ops/replay.py says which calls are alike.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..symbols import WORKING, Work, is_symbol, plain
from . import team
from .memory import Arena, Buffer, new_buffer
from .observe import OBSERVERS
from .playlist import Playlist
from .recorder import ACTIVE, Counter, Recorder, Slot, Step
from .stats import STATS

if TYPE_CHECKING:
    from .backend import Backend


class Numbers(NamedTuple):
    """The numbers that a trace derives from given sizes."""

    taken: tuple[int, ...]  # bytes of the buffers that a play takes from the pool
    told: tuple[int, ...]  # numbers in place of the Symbols among the playlist's arguments
    results: Any  # `Trace.results`, with numbers in place of Symbols
    sizes: tuple[int, ...]  # the sizes from which they were derived


class Trace(Recorder):
    """The commands of one call on one backend; its operands are the buffers `given`, sizes may be Symbols of `work`."""

    checks = None

    def __init__(self, backend: Backend, given: Sequence[Buffer], work: Work) -> None:
        self.backend = backend
        self._work = work
        self._steps: list[Step] = []
        self._arena = Arena()  # marks the buffers that the call took from the pool
        self._given = len(given)
        # id of a buffer -> its place: given buffers first, then those that the call took.
        self._places = {id(b): i for i, b in reversed(tuple(enumerate(given)))}
        self._sizes: list[int] = []  # bytes of the buffers that the call took
        # Indices in `_sizes` that share one buffer in a play; results come first, each in a group of its own.
        self._shared: list[list[int]] = []
        self._taken: list[weakref.ref[Buffer]] = []  # buffers whose `nbytes` is a Symbol
        # Arguments that change: step, index of the argument, place of the buffer in a play.
        self._changing: list[tuple[Step, int, int]] = []
        self._playlist: Playlist | None = None  # where a team plays the trace
        # Where the playlist takes those buffers' addresses: memory, word, offset to add, place of the buffer.
        self._slots: list[tuple[Any, int, int, int]] = []
        self._slots_of: list[tuple[int, int, int]] = []  # command, argument, place of each slot
        self._last: Numbers | None = None  # the numbers set in the playlist
        self._stated: Numbers | None = None  # the numbers set in the steps
        self._amount = 0.0  # bytes of work, by which `team.is_long` decides whether to post a play
        self._still: list[Buffer] = []  # buffers that are the same in every play
        self._numbers: Callable[..., tuple[Any, ...] | None] | None = None
        self._described: Any = None  # the steps' numbers, Symbols included
        # Computes `_described` for other sizes.
        self._steps_for: Callable[..., tuple[Any, ...]] | None = None
        self._launches = 0
        # Set by the caller: what else is to be computed for other sizes, as tuples that may contain Symbols.
        self.results: Any = None
        self.refused = False  # the call did something that cannot be traced
        self._check: Any = None  # codegen/checks.py's context for the launches' index checks
        # Arguments that tell a launch where to report a bad index.
        self._status: list[tuple[Step, int]] = []

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Trace what the `with` block launches; the block runs as usual."""
        backend = self.backend
        with backend.lock:
            backend.pool.arena, ACTIVE.recorder = self._arena, self
            try:
                with self._work:
                    yield
                    if not self.refused:
                        self._prepare()
            finally:
                backend.pool.arena = ACTIVE.recorder = None
                backend.pool.close(self._arena)
                for ref in self._taken:
                    if (buffer := ref()) is not None:
                        (buffer.nbytes,) = plain([buffer.nbytes])

    @property
    def begun(self) -> bool:
        """Whether anything has been launched or copied."""
        return bool(self._steps)

    def place(self, buffer: Buffer) -> int | None:
        """Return which of a play's buffers replaces a buffer of the call, None if the buffer is the same in every play.

        Valid inside `noting` only.
        """
        if buffer.arena is self._arena and id(buffer) not in self._places:
            self._places[id(buffer)] = self._given + len(self._sizes)
            self._sizes.append(buffer.nbytes)
        return self._places.get(id(buffer))

    def _prepare(self) -> None:
        """Turn the stored steps into what plays need: a playlist, places of buffers, and functions of sizes."""
        steps, crew = self._steps, self.backend.team
        self._launches = sum(step.kernel is not None for step in steps)
        told: list[Any] = []
        if crew is not None and all(s.kernel is None or s.kernel.function for s in steps):
            self._playlist = Playlist(crew, [step.command() for step in steps])
            told = self._playlist.symbols
        self._take_buffers_out()
        nbytes, flops = plain([s.nbytes for s in steps]), plain([s.flops for s in steps])
        self._amount = sum(nbytes) + sum(flops) / team.PER_BYTE
        self._still = [a for s in steps for a in s.args if a.__class__ is Buffer]
        taken = tuple([tuple([self._sizes[k] for k in group]) for group in self._shared])
        self._numbers = self._work.function((taken, tuple(told), self.results))
        self._described = tuple(
            [
                (s.global_size, s.nbytes, s.flops, *[a if is_symbol(a) else None for a in s.args])
                for s in steps
            ]
        )
        for step in steps:
            step.global_size, step.args = plain(step.global_size or ()), [*plain(step.args)]
        self._places.clear()

    def _take_buffers_out(self) -> None:
        """Note which of the steps' arguments are buffers that differ from play to play, and take these buffers out."""
        results = len(self._sizes)  # those that `place` was asked for inside `noting`
        found: list[tuple[int, int, int]] = []
        for number, step in enumerate(self._steps):
            for i, a in enumerate(step.args):
                if a.__class__ is Buffer and (place := self.place(a)) is not None:
                    found.append((number, i, place))
                elif self._check is not None and (a is self._check.buffer or a.__class__ is Slot):
                    self._status.append((step, i))
        places = self._share(found, results)
        for number, i, place in found:
            step, place = self._steps[number], places[place]
            self._changing.append((step, i, place))
            step.args[i] = None  # do not keep this call's memory alive
            if self._playlist is not None:
                self._slots_of.append((number, i, place))
                self._slots.append((*self._playlist.slot(number, i), place))

    def _share(self, uses: Sequence[tuple[int, int, int]], results: int) -> dict[int, int]:
        """Let buffers whose lifetimes do not overlap share one; return a dict: place in the call -> place in a play.

        uses: (step, argument, place) in order of execution. results: how many of the taken buffers hold results, which
        come first and share with none.
        """
        given, sizes = self._given, plain(self._sizes)
        last = {place: number for number, _, place in uses}
        self._shared = [[k] for k in range(results)]
        places = {k: k for k in range(given + results)}
        ends: list[tuple[int, int, int]] = []  # shared buffers: step of last use, bytes, place
        for number, _, place in uses:
            k = place - given
            if place in places:
                continue
            # Of the buffers no longer used, take the one whose size is nearest.
            done = [x for x in ends if x[0] < number]
            near = min(done, key=lambda x: abs(x[1] - sizes[k]), default=None)
            if near is None:
                at, nbytes = given + len(self._shared), 0
                self._shared.append([])
            else:
                ends.remove(near)
                _, nbytes, at = near
            self._shared[at - given].append(k)
            places[place] = at
            ends.append((last[place], max(nbytes, sizes[k]), at))
        return places

    def numbers(self, sizes: tuple[int, ...]) -> Numbers | None:
        """Return the numbers for other sizes in place of the Symbols; None if the call would launch something else."""
        assert self._numbers is not None
        found = self._numbers(*sizes)
        if found is None:
            return None
        taken, told, results = found
        return Numbers(tuple([max(group) for group in taken]), told, results, sizes)

    def play(self, given: Sequence[Buffer], numbers: Numbers) -> list[Buffer]:
        """Repeat the commands with other memory; return the buffers, the given ones first.

        Raises the error for a bad index.
        """
        backend = self.backend
        with backend.lock:
            take = backend.pool.take
            buffers = [*given, *[new_buffer(backend, n, take(n), True) for n in numbers.taken]]
            if self._playlist is None or OBSERVERS or ACTIVE.recorder is not None:
                self._play_through_backend(buffers, numbers)
                return buffers
            playlist = self._playlist
            later = backend.seq != backend.finished or team.is_long(self._amount, backend.waited)
            backend.waited = False
            if later:
                later = self._check is None and backend.may_post()
                if not later:
                    backend.finish()
                playlist.wait()
            if self._last is not numbers:
                self._tell(playlist, numbers)
            for words, word, offset, place in self._slots:
                words[word] = buffers[place].address + offset
            if later:
                seen = backend.note_use((*buffers, *self._still))
                playlist.post()
                if seen:
                    backend.finish()
            else:
                playlist.run()
            STATS.launches += self._launches
            STATS.copies += len(self._steps) - self._launches
            if self._check is not None:
                self._check.look()
        return buffers

    def _tell(self, playlist: Playlist, numbers: Numbers) -> None:
        """Set the playlist's numbers."""
        playlist.tell(numbers.told)
        if playlist.moves:
            self._slots = [(*playlist.slot(n, i), place) for n, i, place in self._slots_of]
        self._last = numbers

    def _play_through_backend(self, buffers: Sequence[Buffer], numbers: Numbers) -> None:
        if self._stated is not numbers:
            self._state(numbers)
        with self._check or nullcontext():
            for step, i, place in self._changing:
                step.args[i] = buffers[place]
            for step, i in self._status:
                step.args[i] = (
                    self._check.offset if step.args[i].__class__ is Slot else self._check.buffer
                )
            try:
                for step in self._steps:
                    self._run(step)
            finally:
                for step, i, _ in self._changing:
                    step.args[i] = None

    def _state(self, numbers: Numbers) -> None:
        """Set the steps' numbers for these sizes."""
        if self._steps_for is None:
            self._steps_for = self._work.function(self._described)
        for step, (size, nbytes, flops, *args) in zip(
            self._steps, self._steps_for(*numbers.sizes), strict=True
        ):
            step.global_size, step.nbytes, step.flops = size, nbytes, flops
            step.args = [
                old if new is None else new for old, new in zip(step.args, args, strict=True)
            ]
        self._stated = numbers

    def _run(self, step: Step) -> None:
        if step.kernel is None:
            dst, to, src, of, nbytes = step.args
            self.backend.copy(src, of, dst, to, nbytes)
        else:
            self.backend.launch_held(
                step.kernel, step.global_size, step.local_size, step.args, step.nbytes, step.flops
            )

    # --- what a backend tells a recording

    def launch(self, backend: Backend, step: Step) -> None:
        """Store a launch."""
        if backend is not self.backend or any(a.__class__ is Counter for a in step.args):
            self.refuse("draws random numbers, or uses two devices")
        self._steps.append(step)

    def copy(self, src: Buffer, src_off: int, dst: Buffer, dst_off: int, nbytes: int) -> None:
        """Store a copy."""
        if dst.backend is not self.backend:  # another thread's
            self.refuse("uses two devices")
        self._steps.append(Step(None, None, None, [dst, dst_off, src, src_off, nbytes], 2 * nbytes))

    def write(self, buffer: Buffer, offset: int, data: np.ndarray) -> None:
        """Refuse: host data belong to this call alone."""
        self.refuse("writes values")

    def taken(self, buffer: Buffer, nbytes: Any) -> None:
        """Store a buffer whose size is a Symbol."""
        buffer.nbytes = nbytes
        self._taken.append(weakref.ref(buffer))

    def refuse(self, what: str) -> None:
        """Give up: what the call did depends on more than its operands' layouts."""
        self.refused = True

    def checked(self, check: Any) -> None:
        """Store a check of indices, which each play repeats."""
        if self._check is not None:
            self.refuse("checks indices more than once")
        self._check = check
        if WORKING:
            # Formatting the error pins the sizes that it names: the trace is then played for exactly these.
            check.describe(0, 0)
        ACTIVE.recorder = None
        try:
            check.look()
        finally:
            ACTIVE.recorder = self
