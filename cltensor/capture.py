"""`capture`: record what a function launches once, and from then on play the launches without running its Python.

Note [Capture]. Shapes, Python numbers and branches are fixed when the function is recorded. Each play uses the
arguments of the call, the present values of other tensors that the function reads or changes in place (parameters,
statistics, moments), and new random numbers. Memory: arguments, gradients and results are rebound at each play. What
existed before the recording keeps its buffer; where an in-place operation has given a tensor another buffer, the
recording ends with a copy back. Everything between lives in the recording's arena (runtime/recording.py). A result
may not stay in the arena: an intermediate that was freed before the result was made may have had the same address,
and the next play writes it there again.
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
    ACTIVE,
    Backend,
    Buffer,
    Counter,
    Recording,
    RecordingError,
    default_device,
    get_backend,
    in_use,
)
from .storage import Storage, new_storage
from .tensor import Tensor

MAX_RECORDINGS = 8
MAX_COUNTED = 64  # signatures whose warm-up calls are counted
_STALE = object()


class _Place(int):
    """The index of a tensor among those of a call."""


def _flatten(value: Any, found: list[Tensor]) -> Any:
    """Return a value's plan, a part of the key: its containers, tensors replaced by their indices in `found`."""
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
    """Return the value of a plan, with these tensors in their places."""
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
    """Return a plan's key in a table, in which 1, 1.0, True and a tensor's index differ, and 0.0 from -0.0."""
    if isinstance(plan, tuple):
        return plan.__class__, *[_told(p) for p in plan]
    return plan.__class__, repr(plan) if isinstance(plan, int | float | complex) else plan


class _Watch:
    """The random draws of a recording: how far it advances each generator, and where each stands when a play begins."""

    def __init__(self) -> None:
        self._starts: dict[int, tuple[Generator, int]] = {}
        self._taken: list[tuple[int, Generator, int]] = []
        self._base: dict[int, int] = {}
        self._thread = get_ident()

    def counters(self, generator: Generator, count: int) -> tuple[int, int]:
        """Return the seed and the first counter of a draw of `count` numbers, as arguments that each play sets anew."""
        if get_ident() != self._thread:
            return generator._seed, generator._offset - count
        key, first = id(generator), generator._offset - count
        _, start = self._starts.setdefault(key, (generator, first))
        # Kernels take both as int64, and half of all (unsigned 64-bit) seeds do not fit.
        seed, counter = (Counter(wrap_int(v, int64)) for v in (generator._seed, first))
        seed.read = lambda: generator._seed
        counter.read = lambda: self._base[key] + first - start
        return seed, counter

    def refuse(self) -> None:
        """Raise RecordingError: a play could not set the generator, it continues from the generator's present state."""
        if get_ident() != self._thread:
            return
        raise RecordingError(
            "a captured function seeds a random generator that was there before, or sets its state: do so outside of it"
        )

    def end(self) -> None:
        """Note how far the recording advanced each generator, modulo 2**64: one may have gone back meanwhile."""
        self._taken = [
            (key, g, (g._offset - start) % 2**64) for key, (g, start) in self._starts.items()
        ]

    def advance(self) -> None:
        """Take as many numbers from each generator for a play as the recording took."""
        for key, generator, count in self._taken:
            _, self._base[key] = generator.take(count)


class _Output:
    """A result: a tensor made after each play over the memory bound in place of `buffer`, or always the same one."""

    __slots__ = ("buffer", "dtype", "fixed", "nbytes", "offset", "shape", "storage", "strides")

    def __init__(self, t: Tensor, fixed: bool) -> None:
        self.fixed = t if fixed else None
        self.storage: Storage | None = t._storage  # in the recording's own call, then None
        self.buffer, self.nbytes = t._storage.buffer(), t._storage.nbytes
        self.shape, self.dtype = t.shape, t.dtype
        self.strides = None if t.is_contiguous() else t._strides
        self.offset = t._offset


class _Recorded:
    """One recording of a function for one signature."""

    def __init__(self, backend: Backend, fn: Callable, plan: Any, inputs: list[Tensor]) -> None:
        self.backend, self.watch = backend, _Watch()
        self.recording = recording = Recording(backend)
        with backend.lock:  # keeps the work of other threads out of the recording
            self._record(fn, plan, inputs)
        weakref.finalize(self, backend.pool.close, recording.arena).atexit = False

    def _record(self, fn: Callable, plan: Any, inputs: list[Tensor]) -> None:
        backend, recording = self.backend, self.recording
        lazy.flush(backend)
        backend.finish()
        storages, before = _storages(backend), Before(backend)
        # Copies: an argument's memory may be another argument's, too, or that of a tensor the function finds elsewhere.
        copies = [t.detach().clone(memory_format=contiguous_format) for t in inputs]
        self.inputs = [t._storage.buffer() for t in copies]
        self.checks = recording.checks = checks.RecordedLog(backend)
        versions = [t._vc.value for t in copies]
        args, kwargs = _restore(plan, copies)
        backend.pool.arena, ACTIVE.recorder = recording.arena, recording
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
            backend.pool.arena = ACTIVE.recorder = None
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
        # If a storage that the function used dies, another has taken its place there: the recording no longer fits.
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
            if stays:  # no intermediate has the same address, and each play binds other memory
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
        """Copy values in new buffers back to the storages' old ones, where the next play reads them.

        Return all storages with their old buffers.
        """
        backend, state = self.backend, []
        for storage, old in before:
            new = storage.value
            if new is not old and new.__class__ is not Expr and storage.nbytes == old.nbytes:
                backend.copy(new, 0, old, 0, storage.nbytes)
                storage.value, storage.reads = old, UNKNOWN_READS
            state.append((storage, old))
        return state

    def fits(self) -> bool:
        """Whether the function would launch the same now, as far as tensors other than its arguments decide it."""
        return not self.lost and self.host.fits()

    def play(self, inputs: list[Tensor]) -> Any:
        """Run the recorded launches on these arguments; _STALE, with nothing launched, if they no longer fit."""
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
                made[id(out.buffer)] = new_storage(backend, buffer, out.nbytes)
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
        """Build the function's return value. made: by the id of a recorded buffer, the storage bound in its place."""
        device = self.backend.device
        tensors = [
            core.make(made[id(o.buffer)], o.shape, o.dtype, device, o.strides, o.offset)
            if o.fixed is None
            else o.fixed
            for o in self.outputs
        ]
        return _restore(self.plan, tensors)

    def _restore_state(self) -> bool:
        """Move values that were put into other buffers since the last play to where the launches read them.

        False where they must not move: their address is known, or numpy sees them.
        """
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
    """Return the storages of a device that have a buffer, with the buffer; the garbage collector knows them all."""
    return [
        (s, s.value)
        for s in gc.get_objects()
        if type(s) is Storage and s.backend is backend and s.value.__class__ is Buffer
    ]


def _modes() -> tuple:
    """Return the modes on which launches depend: grad and inference mode, autocast."""
    casts = (*AUTOCAST.enabled.values(), *AUTOCAST.dtypes.values()) if AUTOCAST.active else ()
    return GRAD.enabled, GRAD.inference, casts


def _signature(args: tuple) -> tuple:
    """Return what decides, of a call whose arguments are all tensors, which recording it plays."""
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
    """Return the tensor itself if it covers its whole storage in row-major order, else a copy that does."""
    if t._offset or not t.is_contiguous() or t._storage.nbytes != t.nbytes:
        return t.clone(memory_format=contiguous_format)
    return t


def _home(result: Any, before: dict[Backend, int]) -> Backend | None:
    """Return the backend of a call's first result, else the only one with new commands; None if there are several.

    before: each backend's `seq` before the call.
    """
    found: list[Tensor] = []
    _flatten(result, found)
    if found:
        return found[0]._storage.backend
    busy = [backend for backend in in_use() if backend.seq != before.get(backend, 0)]
    if not busy:  # a team's launches do not count in `seq`
        busy = [backend for backend in in_use() if backend.team is not None]
    return busy[0] if len(busy) == 1 else None


class Captured:
    """A function that is recorded, and played from then on; made by `capture`."""

    def __init__(self, fn: Callable, warmup: int) -> None:
        functools.update_wrapper(self, fn)
        self._fn, self._warmup = fn, warmup
        self._name = getattr(fn, "__name__", "captured function")
        self._calls: dict[Any, int] = {}
        # By key; several recordings of one key are for leaves in different states (with or without a gradient).
        self._recorded: dict[Any, list[_Recorded]] = {}
        # By `_signature`, for calls whose arguments are all tensors.
        self._quick: dict[Any, list[_Recorded]] = {}
        # The backend of calls without tensor arguments, where a warm-up call has shown it.
        self._home: Backend | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function in its warm-up calls, then record it once, then play the recording."""
        if ACTIVE.recorder is not None:  # called within another function's recording, as part of it
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
            return self._warm_up(plan, inputs)
        recorded = self._record(key, plan, inputs)
        if not kwargs and all(t.__class__ is Tensor for t in args):
            self._quick[_signature(args)] = self._recorded[key]
        result, recorded.result = recorded.result, None
        return result

    def _warm_up(self, plan: Any, inputs: list[Tensor]) -> Any:
        """Run the function itself."""
        args, kwargs = _restore(plan, inputs)
        if inputs:
            return self._fn(*args, **kwargs)
        before = {backend: backend.seq for backend in in_use()}
        result = self._fn(*args, **kwargs)
        self._home = _home(result, before)
        return result

    def _record(self, key: Any, plan: Any, inputs: list[Tensor]) -> _Recorded:
        """Record the function, and keep the recording in place of those that can never fit again."""
        self._make_room()
        backend = inputs[0]._storage.backend if inputs else self._home
        recorded = _Recorded(backend or get_backend(default_device()), self._fn, plan, inputs)
        variants = self._recorded.setdefault(key, [])
        variants[:] = [recorded, *[r for r in variants if not r.lost]]
        return recorded

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
    recorded: shapes, dtypes and Python values (a learning rate, unless it is a tensor). Arguments that
    differ in these have a recording of their own. The first `warmup` calls run the function itself, so
    that what is made once (an optimiser's state) exists. Results carry no history. The function may find
    gradients at leaves, and leave gradients there; when a leaf has a gradient that had none, or a parameter
    has other memory, the function is recorded once more.

    RecordingError (a RuntimeError) when the function reads values on the host (`item`, `tolist`, `numpy`,
    `if tensor:`), writes to an argument, gets an argument that requires grad, or seeds a random generator
    that existed before. An index out of range is reported at the next host read.

    >>> @cltensor.capture
    ... def double(x):
    ...     return x * 2
    >>> [double(torch.full((2,), float(n))).tolist() for n in range(4)]
    [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    """
    if fn is None:
        return functools.partial(capture, warmup=warmup)
    return Captured(fn, warmup)
