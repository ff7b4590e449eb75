"""What one call launched, noted so that it can be launched again for other memory, and for other sizes.

A `Trace` stands where a recording would while the call runs. It remembers each launch and copy with its arguments, and which
of the buffers among them the call was given and which it took from the pool. Playing takes new buffers in their places, one for
several of which each is done with before the next is begun, and does the same again: where there is a team, by one call in which
everything but the buffers' addresses is set already; else, and while somebody watches or records, through the backend. Where the
call was given Symbols for sizes (Note [Symbols] in symbols.py), what came of them is worked out anew by `numbers`, and set before
a play of other sizes than the last one's.
What depends on values (host reads and writes, random numbers, more than one check of indices) cannot be noted.

Owns the notes and their playing. Must not know tensors; ops/replay.py says when calls are alike.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..symbols import WORKING, Work, is_symbol, plain
from . import team
from .memory import Arena, Buffer
from .observe import OBSERVERS
from .recording import Counter, Recorder, Slot, Step
from .stats import STATS

if TYPE_CHECKING:
    from .backend import Backend
    from .team import Playlist


class Numbers(NamedTuple):
    """What came of some sizes."""

    taken: tuple[int, ...]  # bytes of the buffers that a play takes
    told: tuple[int, ...]  # to the playlist
    results: Any  # what else was to be known
    sizes: tuple[int, ...]


class Trace(Recorder):
    """The commands of one call on one backend, which got the memory `given`, and maybe Symbols of `work`."""

    checks = None

    def __init__(self, backend: Backend, given: Sequence[Buffer], work: Work) -> None:
        self.backend = backend
        self._work = work
        self._steps: list[Step] = []
        self._arena = Arena()  # by it the buffers are known that the call took
        self._given = len(given)
        self._places = {id(b): i for i, b in reversed(tuple(enumerate(given)))}
        self._sizes: list[int] = []  # of the buffers that the call took
        # Which of them are one buffer of a play; results come first, and are by themselves.
        self._shared: list[list[int]] = []
        self._taken: list[weakref.ref[Buffer]] = []  # whose sizes are Symbols
        # Which argument is which of a play's buffers.
        self._changing: list[tuple[Step, int, int]] = []
        self._playlist: Playlist | None = None  # where a team plays it
        self._slots: list[tuple[Any, int, int, int]] = []  # where their addresses go there
        self._slots_of: list[tuple[int, int, int]] = []  # the same, by command and argument
        self._last: Numbers | None = None  # what the playlist was told
        self._stated: Numbers | None = None  # what the steps say, which go through a backend
        self._is_long = False  # worth going on meanwhile
        self._still: list[Buffer] = []  # what each play uses beside its own buffers
        self._numbers: Callable[..., tuple[Any, ...] | None] | None = None
        self._described: Any = None  # the numbers of the steps, with Symbols in them
        self._steps_for: Callable[..., tuple[Any, ...]] | None = None  # what gives others
        self._launches = 0
        # What else is to be known for other sizes: tuples, with Symbols in them.
        self.results: Any = None
        self.refused = False  # not to be played
        self._check: Any = None  # what codegen/checks.py opened for the launches
        self._status: list[tuple[Step, int]] = []  # which arguments are where it notes a bad index

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note what the block launches, which runs as ever."""
        backend = self.backend
        with backend.lock:
            backend.pool.arena, Recorder.active = self._arena, self
            try:
                with self._work:
                    yield
                    if not self.refused:
                        self._prepare()
            finally:
                backend.pool.arena = Recorder.active = None
                backend.pool.close(self._arena)
                for ref in self._taken:
                    if (buffer := ref()) is not None:
                        (buffer.nbytes,) = plain([buffer.nbytes])

    @property
    def begun(self) -> bool:
        """Whether something was launched."""
        return bool(self._steps)

    def place(self, buffer: Buffer) -> int | None:
        """Say which of a play's buffers stands for one of the call's, None for one that stays; inside of the block."""
        if buffer.arena is self._arena and id(buffer) not in self._places:
            self._places[id(buffer)] = self._given + len(self._sizes)
            self._sizes.append(buffer.nbytes)
        return self._places.get(id(buffer))

    def _prepare(self) -> None:
        steps, threads, results = self._steps, self.backend.team, len(self._sizes)
        self._launches = sum(step.kernel is not None for step in steps)
        told: list[Any] = []
        if threads is not None and all(s.kernel is None or s.kernel.function for s in steps):
            self._playlist = threads.playlist([step.command() for step in steps])
            told = self._playlist.symbols
        found: list[tuple[int, int, int]] = []
        for number, step in enumerate(steps):
            for i, a in enumerate(step.args):
                if a.__class__ is Buffer and (place := self.place(a)) is not None:
                    found.append((number, i, place))
                elif self._check is not None and (a is self._check.buffer or a.__class__ is Slot):
                    self._status.append((step, i))
        places = self._share(found, results)
        for number, i, place in found:
            step, place = steps[number], places[place]
            self._changing.append((step, i, place))
            step.args[i] = None  # the memory of this call is not for the plays
            if self._playlist is not None:
                self._slots_of.append((number, i, place))
                self._slots.append((*self._playlist.slot(number, i), place))
        nbytes, flops = plain([s.nbytes for s in steps]), plain([s.flops for s in steps])
        self._is_long = sum(nbytes) + sum(flops) / team.PER_BYTE > team.LATER
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

    def _share(self, uses: Sequence[tuple[int, int, int]], results: int) -> dict[int, int]:
        """Find which buffers can be one, and return what places in the call are in plays. `uses`: steps, arguments and places, in order."""
        given, sizes = self._given, plain(self._sizes)
        last = {place: number for number, _, place in uses}
        self._shared = [[k] for k in range(results)]
        places = {k: k for k in range(given + results)}
        ends: list[tuple[int, int, int]] = []  # of what is shared: the last use, bytes, the place
        for number, _, place in uses:
            k = place - given
            if place in places:
                continue
            # Of what is done with, the one whose size is nearest.
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
        """Return what comes of other sizes in the places of the Symbols; None where the call would be another one."""
        assert self._numbers is not None
        found = self._numbers(*sizes)
        if found is None:
            return None
        taken, told, results = found
        return Numbers(tuple([max(group) for group in taken]), told, results, sizes)

    def play(self, given: Sequence[Buffer], numbers: Numbers) -> list[Buffer]:
        """Do the same with other memory; return the buffers, those given first. Raises what a bad index means."""
        backend = self.backend
        with backend.lock:
            take = backend.pool.take
            buffers = [*given, *[Buffer(backend, n, take(n), True) for n in numbers.taken]]
            if self._playlist is None or OBSERVERS or Recorder.active is not None:
                self._play_through_backend(buffers, numbers)
                return buffers
            playlist = self._playlist
            later = False
            if self._is_long or backend.seq != backend.finished:
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
        """Have the steps be of these sizes."""
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
        """Note a launch."""
        if backend is not self.backend or any(a.__class__ is Counter for a in step.args):
            self.refuse("draws random numbers, or uses two devices")
        self._steps.append(step)

    def copy(self, src: Buffer, src_off: int, dst: Buffer, dst_off: int, nbytes: int) -> None:
        """Note a copy."""
        if dst.backend is not self.backend:  # another thread's
            self.refuse("uses two devices")
        self._steps.append(Step(None, None, None, [dst, dst_off, src, src_off, nbytes], 2 * nbytes))

    def write(self, buffer: Buffer, offset: int, data: np.ndarray) -> None:
        """Refuse: the host's values are of this call."""
        self.refuse("writes values")

    def taken(self, buffer: Buffer, nbytes: Any) -> None:
        """Note whose size depends on others."""
        buffer.nbytes = nbytes
        self._taken.append(weakref.ref(buffer))

    def refuse(self, what: str) -> None:
        """Give up: the call did what depends on more than the layouts of its operands."""
        self.refused = True

    def checked(self, check: Any) -> None:
        """Note a check: each play makes it again."""
        if self._check is not None:
            self.refuse("checks indices more than once")
        self._check = check
        if WORKING:
            check.describe(0, 0)  # sizes that an error names are the very same then
        Recorder.active = None
        try:
            check.look()
        finally:
            Recorder.active = self
