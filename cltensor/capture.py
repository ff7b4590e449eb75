"""`capture`: record what a function launches once, and from then on play the launches without running its Python.

Note [Capture]. Shapes, Python numbers and branches are what they were when the function was recorded;
tensors given as arguments, tensors the function reads and changes in place (parameters, statistics,
moments) and random numbers are those of the call. Memory: arguments and results are rebound at each play;
what existed before the recording keeps its buffer, into which the recording's last copy puts what an
in-place operation may have put elsewhere; everything between lives in the recording's arena
(runtime/recording.py).
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

from . import lazy
from .amp.state import STATE as AUTOCAST
from .autograd.mode import GRAD
from .codegen import checks
from .lazy import UNKNOWN_READS, Expr
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
)
from .storage import Storage
from .tensor import Tensor

MAX_RECORDINGS = 8
MAX_COUNTED = 64  # signatures whose warm-up calls are counted


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
        self.starts: dict[int, tuple[Generator, int]] = {}
        self.taken: dict[int, int] = {}
        self.base: dict[int, int] = {}

    def counters(self, generator: Generator, count: int) -> tuple[Counter, Counter]:
        key, first = id(generator), generator._offset - count
        _, start = self.starts.setdefault(key, (generator, first))
        self.taken[key] = first + count - start
        seed, counter = Counter(generator._seed), Counter(first)
        seed.read = lambda: generator._seed
        counter.read = lambda: self.base[key] + first - start
        return seed, counter

    def advance(self) -> None:
        """Take for a play what the recording took."""
        for key, (generator, _) in self.starts.items():
            _, self.base[key] = generator.take(self.taken[key])


class _Output:
    """A tensor to be made after each play: fresh memory for its storage, or the recorded tensor itself."""

    __slots__ = ("buffer", "dtype", "fixed", "nbytes", "offset", "shape", "strides")

    def __init__(self, t: Tensor, fixed: bool) -> None:
        self.fixed = t if fixed else None
        self.buffer, self.nbytes = t._storage.buffer(), t._storage.nbytes
        self.shape, self.dtype = t.shape, t.dtype
        self.strides = None if t.is_contiguous() else t._strides
        self.offset = t._offset


class _Recorded:
    """One recording of a function for one signature."""

    def __init__(self, backend: Backend, fn: Callable, plan: Any, inputs: list[Tensor]) -> None:
        lazy.flush(backend)
        backend.finish()
        before = _storages(backend)
        self.backend, self.watch = backend, _Watch()
        self.recording = recording = Recording(backend)
        recording.checks = checks.RecordedLog(backend)
        versions = [t._vc.value for t in inputs]
        args, kwargs = _restore(plan, inputs)
        backend.pool.arena, Recorder.active = recording.arena, recording
        Generator._watch = self.watch
        try:
            result = fn(*args, **kwargs)
            lazy.flush(backend)
            found: list[Tensor] = []
            self.plan = _flatten(result, found)
            outputs = [t.detach() for t in found]
            self.state = self._settle(before)
        except BaseException:
            backend.pool.close(recording.arena)
            raise
        finally:
            backend.pool.arena = Recorder.active = None
            Generator._watch = None
        self.result = _restore(self.plan, outputs)
        self._refuse_written(inputs, versions)
        mine = {id(t._storage) for t in inputs}
        known = {id(storage) for storage, _ in before} - mine
        self.inputs = [t._storage.value for t in inputs]
        self.sizes = [t._storage.nbytes for t in inputs]
        self.outputs = [_Output(t, id(t._storage) in known) for t in outputs]
        fresh = {id(o.buffer): o for o in self.outputs if o.fixed is None}
        for t in self.inputs:
            fresh.pop(id(t), None)
        self.fresh = list(fresh.values())
        recording.prepare([*self.inputs, *(o.buffer for o in self.fresh)])
        touched = {id(b) for b in recording.buffers()}
        self.state = [(ref, b) for ref, b in self.state if id(b) in touched]
        weakref.finalize(self, backend.pool.close, recording.arena).atexit = False

    def _settle(self, before: list) -> list[tuple[weakref.ref[Storage], Buffer]]:
        """Bring what was replaced back to where it was: the next play reads it there."""
        backend, state = self.backend, []
        for storage, old in before:
            new = storage.value
            if new is not old and new.__class__ is not Expr and storage.nbytes == old.nbytes:
                backend.copy(new, 0, old, 0, storage.nbytes)
                storage.value, storage.reads = old, UNKNOWN_READS
            state.append((weakref.ref(storage), old))
        return state

    def _refuse_written(self, inputs: list[Tensor], versions: list[int]) -> None:
        for i, (t, version) in enumerate(zip(inputs, versions, strict=True)):
            if t._vc.value != version:
                raise RecordingError(
                    f"a captured function writes to the tensor that is argument number {i}: return the new value instead"
                )

    def play(self, inputs: list[Tensor]) -> Any:
        """Run the recorded launches on these arguments."""
        backend = self.backend
        with backend.lock:
            buffers = [t._storage.buffer() for t in inputs]
            if backend.pending or backend.left:
                lazy.flush(backend)
            self._restore_state()
            self.watch.advance()
            bound = {id(r): b for r, b in zip(self.inputs, buffers, strict=True)}
            made: dict[int, Storage] = {}
            for out in self.fresh:
                buffer = backend.alloc(out.nbytes)
                bound[id(out.buffer)] = buffer
                made[id(out.buffer)] = Storage(backend, buffer, out.nbytes)
            for recorded, t in zip(self.inputs, inputs, strict=True):
                made[id(recorded)] = t._storage
            self.recording.play(bound)
        if self.recording.checks.pending:
            self.recording.checks.played(backend)
        tensors = [
            core.make(made[id(o.buffer)], o.shape, o.dtype, backend.device, o.strides, o.offset)
            if o.fixed is None
            else o.fixed
            for o in self.outputs
        ]
        return _restore(self.plan, tensors)

    def _restore_state(self) -> None:
        """Put what was changed outside meanwhile where the launches read it."""
        for ref, buffer in self.state:
            storage = ref()
            if storage is not None and storage.value is not buffer:
                self.backend.copy(storage.buffer(), 0, buffer, 0, storage.nbytes)
                storage.value, storage.reads = buffer, UNKNOWN_READS


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
    return GRAD.enabled, casts


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


class Captured:
    """A function that plays what it launched; made by `capture`."""

    def __init__(self, fn: Callable, warmup: int) -> None:
        functools.update_wrapper(self, fn)
        self._fn, self._warmup = fn, warmup
        self._name = getattr(fn, "__name__", "captured function")
        self._calls: dict[Any, int] = {}
        self._recorded: dict[Any, _Recorded] = {}
        self._quick: dict[Any, _Recorded] = {}  # by signature, for calls with tensors alone

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function the first times, record it, then play."""
        if not kwargs and (quick := self._quick.get(_signature(args))) is not None:
            inputs = [
                t if t._contig and not t._offset and t._storage.nbytes == n else _plain(t)
                for t, n in zip(args, quick.sizes, strict=True)
            ]
            return quick.play(inputs)
        inputs = []
        plan = _flatten((args, kwargs), inputs)
        for i, t in enumerate(inputs):
            if t.requires_grad:
                raise RecordingError(
                    f"{self._name}(): argument number {i} requires grad: parameters belong to the function, not to its arguments"
                )
            inputs[i] = _plain(t)
        key = (_told(plan), tuple([(t.shape, t.dtype, t.device) for t in inputs]), _modes())
        recorded = self._recorded.get(key)
        if recorded is not None:
            return recorded.play(inputs)
        calls = self._calls.pop(key, 0) + 1
        if calls <= self._warmup:
            self._calls[key] = calls
            if len(self._calls) > MAX_COUNTED:
                self._calls.pop(next(iter(self._calls)))
            args, kwargs = _restore(plan, inputs)
            return self._fn(*args, **kwargs)
        if len(self._recorded) >= MAX_RECORDINGS:
            self._recorded.pop(next(iter(self._recorded)))
            self._quick.clear()
        backend = inputs[0]._storage.backend if inputs else get_backend(default_device())
        recorded = self._recorded[key] = _Recorded(backend, self._fn, plan, inputs)
        if not kwargs and all(t.__class__ is Tensor for t in args):
            self._quick[_signature(args)] = recorded
        result, recorded.result = recorded.result, None
        return result


def capture(fn: Callable | None = None, *, warmup: int = 1) -> Any:
    """Record the launches of a function at its second call and play them from then on; a decorator too.

    The function gets and returns tensors (in tuples, lists, dicts); it may run autograd and optimiser
    steps, change tensors in place and draw random numbers. Everything else about it is fixed when it is
    recorded: shapes, dtypes and Python values (a learning rate, unless it is a tensor); for each
    combination of the arguments' there is a recording of its own. `warmup` calls run as they are first, so
    that what is made once (an optimiser's state) exists. Results carry no history.

    RecordingError (a RuntimeError) when the function reads values on the host (`item`, `tolist`, `numpy`,
    `if tensor:`), writes to an argument, or gets one that requires grad. An index out of range is reported
    at the next host read.

    >>> @cltensor.capture
    ... def double(x):
    ...     return x * 2
    >>> [double(torch.full((2,), float(n))).tolist() for n in range(4)]
    [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    """
    if fn is None:
        return functools.partial(capture, warmup=warmup)
    return Captured(fn, warmup)
