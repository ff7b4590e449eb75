"""What a recording remembers of a backend's work, and how it is played again.

While there is a `Recording.active`, every launch and copy of its backend is noted as it happens; reading
values on the host and the use of another backend are refused. Memory given out meanwhile comes from the
recording's own arena: reused within the recording as buffers die, never by anybody else, so that the
addresses stay good for ever. Playing sets the few arguments that differ from call to call and enqueues: kernels are private
copies whose other arguments stay set.

Owns the notes and their playing. Must not know tensors; capture.py says which buffers and numbers change.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from . import observe
from .memory import Arena, Buffer
from .observe import OBSERVERS
from .stats import STATS

if TYPE_CHECKING:
    from .backend import Backend
    from .program import Kernel


class RecordingError(RuntimeError):
    """A function did what cannot be recorded."""


class Counter(int):
    """A number taken from a random generator: when played again, the draw's number in that play takes its place.

    `read` gives the number for a play; it is a function of the play's first counter.
    """

    read: Callable[[], int]

    def __add__(self, other: int) -> Counter:
        shifted = Counter(int(self) + int(other))
        read = self.read
        shifted.read = lambda: read() + other
        return shifted


class Memory:
    """A buffer of the arena as commands know it: the memory, which a later one may have, too, and itself while it lives."""

    __slots__ = ("cl", "ref")

    def __init__(self, buffer: Buffer) -> None:
        self.cl, self.ref = buffer.cl, weakref.ref(buffer)


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


class Recording:
    """The commands of one run of a function, in order."""

    active: ClassVar[Recording | None] = None  # the one now being made, in whichever thread

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.steps: list[Step] = []
        self.arena = Arena()
        self.checks: Any = None  # codegen/checks.py's log for the launches in here
        self._inline = False  # whether all of it runs in the calling thread
        self._launches = 0
        self._constants: list[Buffer] = []  # what the host wrote
        self._memories: weakref.WeakKeyDictionary[Buffer, Memory] = weakref.WeakKeyDictionary()
        self._used: list[Buffer | weakref.ref[Buffer]] = []
        self._slots: dict[int, list[tuple[Any, int]]] = {}
        self._counters: list[tuple[Any, int, str, Counter]] = []

    # --- noting

    def launch(
        self,
        backend: Backend,
        kernel: Kernel,
        global_size: Any,
        local_size: Any,
        args: Sequence[Any],
        nbytes: int = 0,
        flops: int = 0,
    ) -> None:
        self._check(backend)
        noted = [self._noted(a) if a.__class__ is Buffer else a for a in args]
        self.steps.append(Step(kernel, global_size, local_size, noted, nbytes, flops))

    def copy(self, src: Buffer, src_off: int, dst: Buffer, dst_off: int, nbytes: int) -> None:
        self._check(dst.backend)
        args = [self._noted(src), src_off, self._noted(dst), dst_off, nbytes]
        self.steps.append(Step(None, None, None, args, 2 * nbytes))

    def _noted(self, buffer: Buffer) -> Buffer | Memory:
        """What a step keeps of an operand: nothing that would keep the arena from using its memory again."""
        if buffer.arena is not self.arena:
            return buffer
        found = self._memories.get(buffer)
        if found is None:
            found = self._memories[buffer] = Memory(buffer)
        return found

    def write(self, buffer: Buffer, offset: int, data: np.ndarray) -> None:
        """Host data are constants: kept in memory of their own and copied from there."""
        self._check(buffer.backend)
        Recording.active = None
        try:
            kept = self.backend.alloc(data.nbytes)
            self.backend.write(kept, 0, data)
            self._constants.append(kept)
        finally:
            Recording.active = self
        self.copy(kept, 0, buffer, offset, data.nbytes)

    def _check(self, backend: Backend) -> None:
        if backend is not self.backend:
            self.refuse(f"uses {backend.device} beside {self.backend.device}")

    def refuse(self, what: str) -> NoReturn:
        raise RecordingError(
            f"a captured function {what}: what depends on values the host sees cannot be recorded "
            "(optimisers count their steps on the device with capturable=True)"
        )

    # --- playing

    def buffers(self) -> list[Buffer]:
        """Every buffer the commands touch and somebody has, once."""
        found: dict[int, Buffer] = {}
        for step in self.steps:
            for a in step.args:
                if (buffer := _buffer(a)) is not None:
                    found[id(buffer)] = buffer
        return list(found.values())

    def prepare(self, rebound: Sequence[Buffer]) -> None:
        """Give each launch its own kernel with its arguments set; `rebound` buffers change from play to play."""
        self._used = [b if b.arena is not self.arena else weakref.ref(b) for b in self.buffers()]
        self._slots = {id(b): [] for b in rebound}
        launches = [s for s in self.steps if s.kernel is not None]
        self._launches = len(launches)
        programs = self._twins(launches)
        self._inline = programs is not None
        if programs is None:
            programs = [s.kernel.program.cl for s in launches if s.kernel is not None]
        for step, program in zip(launches, programs, strict=True):
            kernel = step.kernel
            assert kernel is not None
            step.cl = self.backend.module.Kernel(program, kernel.name)
            for i, (kind, value) in enumerate(zip(kernel.arg_types, step.args, strict=True)):
                if kind is None:
                    step.cl.set_arg(i, value.cl)
                    if (key := id(_buffer(value))) in self._slots:
                        self._slots[key].append((step.cl, i))
                else:
                    step.cl.set_arg(i, kind(value))
                    if isinstance(value, Counter):
                        self._counters.append((step.cl, i, kind, value))

    def _twins(self, launches: list[Step]) -> list[Any] | None:
        """The programs for the inline lane when all commands can go there, else None."""
        lane = self.backend.inline
        if lane is None or len(launches) < len(self.steps):
            return None
        if any(set(s.global_size) != {1} for s in launches):
            return None
        twins = [lane.program(s.kernel) for s in launches if s.kernel is not None]
        return None if any(t is None for t in twins) else twins

    def play(self, bound: dict[int, Buffer]) -> None:
        """Run the commands again; `bound` says which buffer stands for each changing one (by id)."""
        backend = self.backend
        cl = backend.module
        with backend.lock:
            for key, buffer in bound.items():
                memory = buffer.cl
                for kernel, i in self._slots[key]:
                    kernel.set_arg(i, memory)
            for kernel, i, kind, counter in self._counters:
                kernel.set_arg(i, kind(_wrapped(counter.read(), kind)))
            queue = backend.queue
            if self._inline and backend.inline is not None:
                if backend.seq != backend.finished:
                    backend.finish()
                queue = backend.inline.queue
            watched = bool(OBSERVERS)
            if watched and not self._inline:
                backend.finish()
                queue = backend.timed_queue()
            enqueue = cl.enqueue_nd_range_kernel
            for step in self.steps:
                if step.kernel is not None:
                    event = enqueue(queue, step.cl, step.global_size, step.local_size)
                else:
                    src, a, dst, b, n = step.args
                    src, dst = (bound.get(id(_buffer(x)), x) for x in (src, dst))
                    event = cl.enqueue_copy(
                        queue, dst.cl, src.cl, byte_count=n, src_offset=a, dst_offset=b
                    )
                if watched:
                    observe.played(backend, step, event)
            STATS.launches += self._launches
            STATS.copies += len(self.steps) - self._launches
            backend.seq += 1
            if self._inline:
                queue.finish()
                backend.finished = backend.seq
            else:
                queue.flush()
            seen = False
            for used in (*self._used, *bound.values()):
                held = used() if isinstance(used, weakref.ref) else used
                if held is not None:
                    held.seq = backend.seq
                    seen = seen or held.exported
            if seen:
                backend.finish()


def _buffer(a: Any) -> Buffer | None:
    """The buffer that an argument is, if somebody has it."""
    return a if a.__class__ is Buffer else a.ref() if a.__class__ is Memory else None


def _wrapped(value: int, kind: Any) -> int:
    bits = np.dtype(kind).itemsize * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if np.dtype(kind).kind == "i" and value >> (bits - 1) else value
