"""`capture`: record what a function launches once, and from then on play the launches without running its Python.

Note [Capture]. Shapes, Python numbers and branches are what they were when the function was recorded;
tensors given as arguments, tensors the function reads and changes in place (parameters, statistics,
moments) and random numbers are those of the call. Memory: arguments, gradients and results are rebound at each play;
what existed before the recording keeps its buffer, into which the recording's last copy puts what an
in-place operation may have put elsewhere; everything between lives in the recording's arena
(runtime/recording.py), where nothing that is returned may stay: what was freed before it was made has its place, too.
What the function does to `.grad` is Note [Host state] in capture_state.py.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

from . import lazy
from .amp.state import STATE as AUTOCAST
from .autograd.mode import GRAD
from .capture_state import Before, HostState
from .codegen import checks
from .dtypes import int64
from .lazy import UNKNOWN_READS, Expr
from .lazy.launch import wrap_int
from .memory_format import contiguous_format
from .ops import core
from .ops.random.generator import Generator
from .runtime import (
    Backend,
    Buffer,
    Counter,
    Recorder,
    Recording,
    RecordingError,
    default_device,
    get_backend,
    in_use,
)
from .storage import Storage
from .tensor import Tensor

MAX_RECORDINGS = 8
MAX_COUNTED = 64  # signatures whose warm-up calls are counted


_STALE = object()


def _flatten(value: Any, found: list[Tensor]) -> Any:
    """Replace tensors in nested containers by their numbers; what is left is part of the key."""
    if isinstance(value, Tensor):
        found.append(value)
        return _Place(len(found) - 1)
    if isinstance(value, list | tuple):
        items = [_flatten(v, found) for v in value]
        if hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items) if isinstance(value, tuple) else (list, tuple(items))
    if isinstance(value, dict):
        return dict, tuple((k, _flatten(v, found)) for k, v in value.items())
    return value


def _restore(plan: Any, tensors: list[Any]) -> Any:
    if isinstance(plan, _Place):
        return tensors[plan]
    if isinstance(plan, tuple):
        if len(plan) == 2 and plan[0] is list:
            return [_restore(p, tensors) for p in plan[1]]
        if len(plan) == 2 and plan[0] is dict:
            return {k: _restore(p, tensors) for k, p in plan[1]}
        items = [_restore(p, tensors) for p in plan]
        return type(plan)(*items) if hasattr(plan, "_fields") else type(plan)(items)
    return plan


def _told(plan: Any) -> Any:
    """What tells a plan from others in a table: to `==`, 1, 1.0, True and the place of a tensor are one, as are both zeros."""
    if isinstance(plan, tuple):
        return plan.__class__, *[_told(p) for p in plan]
    return plan.__class__, repr(plan) if isinstance(plan, int | float | complex) else plan


class _Place(int):
    """The number of a tensor among those of a call."""


class _Watch:
    """The draws of a recording: how far each generator went, and where it stands when played."""

    def __init__(self) -> None:
        self._starts: dict[int, tuple[Generator, int]] = {}
        self._taken: list[tuple[int, Generator, int]] = []
        self._base: dict[int, int] = {}
        self._thread = get_ident()

    def counters(self, generator: Generator, count: int) -> tuple[int, int]:
        """What a draw gets in the places of seed and counter."""
        if get_ident() != self._thread:
            return generator._seed, generator._offset - count
        key, first = id(generator), generator._offset - count
        _, start = self._starts.setdefault(key, (generator, first))
        # Kernels have them as int64, and half of all seeds lie beyond.
        seed, counter = (Counter(wrap_int(v, int64)) for v in (generator._seed, first))
        seed.read = lambda: generator._seed
        counter.read = lambda: self._base[key] + first - start
        return seed, counter

    def refuse(self) -> None:
        """Raise: a play counts on from where the generator is."""
        if get_ident() != self._thread:
            return
        raise RecordingError(
            "a captured function seeds a random generator that was there before, or sets its state: do so outside of it"
        )

    def end(self) -> None:
        """Note how far the recording went; it may have gone back on its way."""
        self._taken = [
            (key, g, (g._offset - start) % 2**64) for key, (g, start) in self._starts.items()
        ]

    def advance(self) -> None:
        """Take for a play what the recording took."""
        for key, generator, count in self._taken:
            _, self._base[key] = generator.take(count)


class _Output:
    """A tensor to be made after each play over the memory that stands for `buffer`, or the recorded tensor itself."""

    __slots__ = ("buffer", "dtype", "fixed", "nbytes", "offset", "shape", "storage", "strides")

    def __init__(self, t: Tensor, fixed: bool) -> None:
        self.fixed = t if fixed else None
        self.storage: Storage | None = t._storage  # of the recording's own call
        self.buffer, self.nbytes = t._storage.buffer(), t._storage.nbytes
        self.shape, self.dtype = t.shape, t.dtype
        self.strides = None if t.is_contiguous() else t._strides
        self.offset = t._offset


class _Recorded:
    """One recording of a function for one signature."""

    def __init__(self, backend: Backend, fn: Callable, plan: Any, inputs: list[Tensor]) -> None:
        self.backend, self.watch = backend, _Watch()
        self.recording = recording = Recording(backend)
        with backend.lock:  # other threads' work is none of the recording's
            self._record(fn, plan, inputs)
        weakref.finalize(self, backend.pool.close, recording.arena).atexit = False

    def _record(self, fn: Callable, plan: Any, inputs: list[Tensor]) -> None:
        backend, recording = self.backend, self.recording
        lazy.flush(backend)
        backend.finish()
        storages, before = _storages(backend), Before(backend)
        # Of their own: an argument may be what the function finds elsewhere, too, or another argument.
        copies = [t.detach().clone(memory_format=contiguous_format) for t in inputs]
        self.inputs = [t._storage.buffer() for t in copies]
        self.checks = recording.checks = checks.RecordedLog(backend)
        versions = [t._vc.value for t in copies]
        args, kwargs = _restore(plan, copies)
        backend.pool.arena, Recorder.active = recording.arena, recording
        Generator._watch = self.watch
        try:
            result = fn(*args, **kwargs)
            lazy.flush(backend)
            found: list[Tensor] = []
            self.plan = _flatten(result, found)
            outputs = [t.detach() for t in found]
            state = self._settle(storages)
            self.watch.end()
        except BaseException:
            backend.pool.close(recording.arena)
            raise
        finally:
            backend.pool.arena = Recorder.active = None
            Generator._watch = None
        touched = {id(b) for b in recording.buffers()}
        known = {id(storage) for storage, _ in storages}
        self.host = host = HostState(before, touched, known, [t._storage for t in copies])
        for i, (t, version) in enumerate(zip(copies, versions, strict=True)):
            if t._vc.value != version or host.writes(inputs[i]._storage):
                raise _written(i)
        used = {id(u.buffer) for u in host.used}
        self.outputs = [
            _Output(t, id(t._storage) in known and id(t._storage.value) not in used)
            for t in outputs
        ]
        fresh = {id(o.buffer): o for o in self.outputs if o.fixed is None}
        bound = [*self.inputs, *[x.buffer for x in host.used], *[x.buffer for x in host.put]]
        for buffer in bound:
            fresh.pop(id(buffer), None)
        self.fresh = list(fresh.values())
        recording.prepare([*bound, *[x.buffer for x in self.fresh]])
        touched -= used
        # What the function found and is gone, it does not find again: others have taken the place.
        self.lost: list[Any] = []
        self.state = [(weakref.ref(x, self.lost.append), b) for x, b in state if id(b) in touched]
        self.sizes = [t._storage.nbytes for t in inputs]
        self._finish_call(inputs)

    def _finish_call(self, inputs: list[Tensor]) -> None:
        """Make the results of the recording's own call, in memory that no play writes to."""
        backend = self.backend
        made = {id(b): t._storage for b, t in zip(self.inputs, inputs, strict=True)}
        mine = [(x.storage, x.buffer) for x in self.host.put]
        mine += [(x.storage, x.buffer) for x in self.fresh if x.storage is not None]
        alone = self.recording.alone([old for _, old in mine])
        for (storage, old), stays in zip(mine, alone, strict=True):
            if stays:  # each play has other memory in its place
                old.leave_arena()
            else:
                storage.value, storage.reads = backend.alloc(storage.nbytes), 0
                backend.copy(old, 0, storage.value, 0, storage.nbytes)
            made[id(old)] = storage
        for put in self.host.put:
            self.recording.bind(id(put.buffer), put.storage.value)
        for used in self.host.used:
            made[id(used.buffer)] = used.storage
        self.host.leave(inputs)
        self.result = self._results(made)
        for out in self.outputs:
            out.storage = None

    def _settle(self, before: list) -> list[tuple[Storage, Buffer]]:
        """Bring what was replaced back to where it was: the next play reads it there."""
        backend, state = self.backend, []
        for storage, old in before:
            new = storage.value
            if new is not old and new.__class__ is not Expr and storage.nbytes == old.nbytes:
                backend.copy(new, 0, old, 0, storage.nbytes)
                storage.value, storage.reads = old, UNKNOWN_READS
            state.append((storage, old))
        return state

    def fits(self) -> bool:
        """Whether the function would launch the same now."""
        return not self.lost and self.host.fits()

    def play(self, inputs: list[Tensor]) -> Any:
        """Run the recorded launches on these arguments; _STALE, with nothing done, where that would be another function."""
        backend, host = self.backend, self.host
        for i, t in enumerate(inputs):
            if host.writes(t._storage):
                raise _written(i)
        with backend.lock:
            made = {id(b): t._storage for b, t in zip(self.inputs, inputs, strict=True)}
            for used in host.used:
                made[id(used.buffer)] = used.now()  # type: ignore[assignment]
            bound = {key: storage.buffer() for key, storage in made.items()}
            if backend.pending or backend.left:
                lazy.flush(backend)
            if not self._restore_state():
                return _STALE
            self.watch.advance()
            for out in self.fresh:
                buffer = backend.alloc(out.nbytes)
                bound[id(out.buffer)] = buffer
                made[id(out.buffer)] = Storage(backend, buffer, out.nbytes)
            for put in host.put:
                if put.ready():
                    self.recording.bind(id(put.buffer), put.storage.value)
                made[id(put.buffer)] = put.storage
            self.recording.play(bound)
            host.count()
        if self.checks.pending:
            self.checks.played(backend)
        host.leave(inputs)
        return self._results(made)

    def _results(self, made: dict[int, Storage]) -> Any:
        """What the function returns, over the memory that stands for the recorded one."""
        device = self.backend.device
        tensors = [
            core.make(made[id(o.buffer)], o.shape, o.dtype, device, o.strides, o.offset)
            if o.fixed is None
            else o.fixed
            for o in self.outputs
        ]
        return _restore(self.plan, tensors)

    def _restore_state(self) -> bool:
        """Put what was changed outside meanwhile where the launches read it; False where somebody sees it lie elsewhere."""
        moved = []
        for ref, buffer in self.state:
            storage = ref()
            if storage is not None and storage.value is not buffer:
                if storage.pinned or storage.buffer().exported:
                    self.lost.append(ref)
                    return False
                moved.append((storage, buffer))
        for storage, buffer in moved:
            self.backend.copy(storage.buffer(), 0, buffer, 0, storage.nbytes)
            storage.value, storage.reads = buffer, UNKNOWN_READS
        return True


def _written(i: int) -> RecordingError:
    return RecordingError(
        f"a captured function writes to the tensor that is argument number {i}: return the new value instead"
    )


def _storages(backend: Backend) -> list[tuple[Storage, Buffer]]:
    """Every storage of a device that has memory; asked of the garbage collector, once per recording."""
    return [
        (s, s.value)
        for s in gc.get_objects()
        if type(s) is Storage and s.backend is backend and s.value.__class__ is Buffer
    ]


def _modes() -> tuple:
    """What a function finds switched on."""
    casts = (*AUTOCAST.enabled.values(), *AUTOCAST.dtypes.values()) if AUTOCAST.active else ()
    return GRAD.enabled, GRAD.inference, casts


def _signature(args: tuple) -> tuple:
    return (
        _modes(),
        *[
            (t.shape, t.dtype, t._storage.backend, t._requires or t._node)
            if t.__class__ is Tensor
            else t.__class__
            for t in args
        ],
    )


def _plain(t: Tensor) -> Tensor:
    """The tensor itself where it is all of its storage in row-major order, else such a copy."""
    if t._offset or not t.is_contiguous() or t._storage.nbytes != t.nbytes:
        return t.clone(memory_format=contiguous_format)
    return t


def _home(result: Any, before: dict[Backend, int]) -> Backend | None:
    """Return the device of a call's first result, else the one that has been given commands since; None where there are several."""
    found: list[Tensor] = []
    _flatten(result, found)
    if found:
        return found[0]._storage.backend
    busy = [backend for backend in in_use() if backend.seq != before.get(backend, 0)]
    if not busy:  # a team's launches are no commands
        busy = [backend for backend in in_use() if backend.team is not None]
    return busy[0] if len(busy) == 1 else None


class Captured:
    """A function that plays what it launched; made by `capture`."""

    def __init__(self, fn: Callable, warmup: int) -> None:
        functools.update_wrapper(self, fn)
        self._fn, self._warmup = fn, warmup
        self._name = getattr(fn, "__name__", "captured function")
        self._calls: dict[Any, int] = {}
        # Several of a signature find leaves in different states.
        self._recorded: dict[Any, list[_Recorded]] = {}
        self._quick: dict[Any, list[_Recorded]] = {}  # by types alone, for calls with tensors alone
        # Where calls without tensors compute, as far as they told.
        self._home: Backend | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function the first times, record it, then play."""
        if Recorder.active is not None:  # part of what another one records
            return self._fn(*args, **kwargs)
        if not kwargs:
            for quick in self._quick.get(_signature(args), ()):
                if quick.fits():
                    inputs = [
                        t if t._contig and not t._offset and t._storage.nbytes == n else _plain(t)
                        for t, n in zip(args, quick.sizes, strict=True)
                    ]
                    if (result := quick.play(inputs)) is not _STALE:
                        return result
        inputs = []
        plan = _flatten((args, kwargs), inputs)
        for i, t in enumerate(inputs):
            if t.requires_grad:
                raise RecordingError(
                    f"{self._name}(): argument number {i} requires grad: parameters belong to the function, not to its arguments"
                )
            inputs[i] = _plain(t)
        key = (_told(plan), tuple([(t.shape, t.dtype, t.device) for t in inputs]), _modes())
        variants = self._recorded.get(key)
        for recorded in variants or ():
            if recorded.fits() and (result := recorded.play(inputs)) is not _STALE:
                return result
        calls = self._calls.pop(key, 0) + 1
        if variants is None and calls <= self._warmup:
            self._calls[key] = calls
            if len(self._calls) > MAX_COUNTED:
                self._calls.pop(next(iter(self._calls)))
            args, kwargs = _restore(plan, inputs)
            if inputs:
                return self._fn(*args, **kwargs)
            before = {backend: backend.seq for backend in in_use()}
            result = self._fn(*args, **kwargs)
            self._home = _home(result, before)
            return result
        self._make_room()
        backend = inputs[0]._storage.backend if inputs else self._home
        backend = backend or get_backend(default_device())
        recorded = _Recorded(backend, self._fn, plan, inputs)
        variants = self._recorded.setdefault(key, [])
        variants[:] = [recorded, *[r for r in variants if not r.lost]]
        if not kwargs and all(t.__class__ is Tensor for t in args):
            self._quick[_signature(args)] = variants
        result, recorded.result = recorded.result, None
        return result

    def _make_room(self) -> None:
        """Forget the oldest recording where there are too many."""
        if sum(map(len, self._recorded.values())) >= MAX_RECORDINGS:
            oldest = next(iter(self._recorded))
            self._recorded[oldest].pop()
            if not self._recorded[oldest]:
                del self._recorded[oldest]
            self._quick.clear()


def capture(fn: Callable | None = None, *, warmup: int = 1) -> Any:
    """Record the launches of a function at its second call and play them from then on; a decorator too.

    The function gets and returns tensors (in tuples, lists, dicts); it may run autograd and optimiser
    steps, change tensors in place and draw random numbers. Everything else about it is fixed when it is
    recorded: shapes, dtypes and Python values (a learning rate, unless it is a tensor); for each
    combination of the arguments' there is a recording of its own. `warmup` calls run as they are first, so
    that what is made once (an optimiser's state) exists. Results carry no history. Gradients may be left to
    what is not captured, or be found; where a leaf has one that had none, or a parameter has other memory,
    the function is recorded once more.

    RecordingError (a RuntimeError) when the function reads values on the host (`item`, `tolist`, `numpy`,
    `if tensor:`), writes to an argument, gets one that requires grad, or seeds a random generator that was
    there before. An index out of range is reported at the next host read.

    >>> @cltensor.capture
    ... def double(x):
    ...     return x * 2
    >>> [double(torch.full((2,), float(n))).tolist() for n in range(4)]
    [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    """
    if fn is None:
        return functools.partial(capture, warmup=warmup)
    return Captured(fn, warmup)
