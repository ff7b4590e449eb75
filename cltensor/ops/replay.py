"""Replay: a repeated call of an immediate function repeats an earlier call's launches instead of planning them anew.

Note [Replay]. From operands to launch, a call passes several floors: pending expressions, layouts, a schedule, the
kernel's text and its arguments. All of that follows from shapes, strides, dtypes and a few settings, and is most of
the time of a small operation. So a `Replayed` function records, in the second call of a kind, what the call launches
(runtime/trace.py) and the layouts of its results; later calls only allocate memory, launch, and wrap the results. The
function must be a pure function of its tensors' memory: its results are new, or it writes to an operand that its
caller has prepared, and only layouts and settings decide what it launches. For a kernel that reads pending
expressions, the key of a call includes those expressions and their numbers. A call that cannot be traced runs the
function itself ("the long way") each time.

A trace serves other sizes, too (Note [Kinds] in ops/kinds.py). This module owns the traces and decides when one is
valid. It knows no op.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from .. import config, dtypes, lazy
from ..codegen.reduce.prologue import Source
from ..runtime import ACTIVE, STATS, Buffer, Numbers, Trace
from ..size import Size, sized
from ..storage import Storage, new_storage
from ..symbols import WORKING, Work, plain
from . import core
from .kinds import WATCHING, OfMemory, OfSource, measured, same

MOST = 1024  # calls that a function remembers; 0 turns replay off, as CLTENSOR_EAGER=1 does
# Pending operands of up to this many bytes are run first: a launch takes less Python time than collecting a Source.
SMALL = 1 << 16
MANY = 8  # from this many operands on, `_by_columns` collects their attributes
VARIANTS = 8  # variants of a kind; traces made after these serve exactly equal sizes only

_all: weakref.WeakSet[Replayed] = weakref.WeakSet()


class _Result(NamedTuple):
    """A tensor to be made after a play."""

    place: int  # of its buffer in the list that `Trace.play` returns
    nbytes: int  # of its storage
    shape: Size
    dtype: Any
    strides: tuple[int, ...] | None  # None: contiguous
    offset: int  # in its storage, in elements


class _Variant(NamedTuple):
    """What calls of a kind launch, with Symbols for sizes. The trace's numbers include the results' layouts."""

    trace: Trace
    # (place, dtype) as in `_Result`; None for a result that is None.
    results: tuple[tuple[int, Any] | None, ...]

    def call(self, sizes: tuple[int, ...]) -> _Call | None:
        """Return the call for these sizes; None if planning for them could take another path than was noted."""
        numbers = self.trace.numbers(sizes)
        if numbers is None:
            return None
        results = tuple(
            [
                None if r is None else _Result(r[0], n[0], sized(n[1]), r[1], n[2], n[3])
                for r, n in zip(self.results, numbers.results, strict=True)
            ]
        )
        return _Call(self.trace, numbers, results)


class _Call(NamedTuple):
    """What a call with given sizes launches, and its results."""

    trace: Trace
    numbers: Numbers  # the trace's, for these sizes
    results: tuple[_Result | None, ...]

    def play(self, given: Sequence[Buffer], dev: Any) -> list[Any]:
        """Repeat the launches with other memory; return the results."""
        trace, numbers, results = self
        buffers = trace.play(given, numbers)
        STATS.replays += 1
        backend, registry = trace.backend, core.Registry
        made: list[Any] = []
        for result in results:
            if result is None:
                made.append(None)
                continue
            place, nbytes, shape, dt, strides, offset = result
            storage = new_storage(backend, buffers[place], nbytes)
            if strides is None and not offset:
                made.append(registry.dense(storage, shape, dt, dev))
            else:
                made.append(registry.tensor._make(storage, shape, dt, dev, strides, offset))
        return made


class _Kind:
    """What is known of calls that differ in sizes only."""

    __slots__ = ("long", "noted", "variants")

    def __init__(self) -> None:
        self.variants: list[_Variant] = []  # the last one used first
        # Functions of sizes, one for each call that could not be traced: not None if a call of these sizes cannot be,
        # either.
        self.long: list[Callable[..., Any]] = []
        self.noted = 0  # how many traces with Symbols were made or tried


class Replayed:
    """A function whose repeated calls are replayed (Note [Replay]); it returns a list of new tensors and Nones.

    It is called as `f(operands, *settings)`. Operands are tensors, followed by buffers; settings are hashable, and
    equal settings must mean the same. Without `read` this calls `fn(operands, *settings)`. read: a function that makes
    a Source of tensors; then the kernel may compute pending operands, and this calls `fn(source, buffers, device,
    *settings)`. memory: pending operands are run first. exact: settings are compared by `repr`, because 0.0 == -0.0.
    """

    def __init__(
        self,
        fn: Callable[..., list[Any]],
        *,
        memory: bool = False,
        exact: bool = False,
        read: Callable[..., Source] | None = None,
    ) -> None:
        self._fn, self._memory, self._exact, self._read = fn, memory, exact, read
        # Exact layouts and settings -> call; None: cannot be traced.
        self._calls: dict[tuple, _Call | None] = {}
        self._kinds: dict[tuple, _Kind] = {}
        # Keys of calls that happened once, of kinds whose variants are full.
        self._seen: set[tuple] = set()
        _all.add(self)

    @staticmethod
    def of_memory(fn: Callable[..., list[Any]]) -> Replayed:
        """Decorator: make a function a Replayed one whose kernels read memory; pending operands are run first."""
        return Replayed(fn, memory=True)

    @staticmethod
    def reading(read: Callable[..., Source]) -> Callable[[Callable[..., list[Any]]], Replayed]:
        """Return a decorator: a Replayed function whose kernels compute the expressions in `read`'s Source."""
        return functools.partial(Replayed, read=read)

    def __call__(self, operands: Sequence[Any], *settings: Any) -> list[Any]:
        """Return what the function would return, replaying an earlier call's launches where one matches."""
        first = operands[0]
        if WORKING:  # within a call that is being noted
            for t in operands if not self._memory else ():
                if t.__class__ is not Buffer and t._storage.waits:
                    self._run_untold(t, first)
            return self._fn(*self._arguments(operands, settings))
        backend = first._storage.backend
        key: list[Any] = [backend, repr(settings) if self._exact else settings]
        given: list[Buffer] = []
        if len(operands) >= MANY and _by_columns(operands, key, given):
            return self._in_memory(tuple(key), given, operands, settings)
        pending: list[Storage] = []
        for t in operands:
            if t.__class__ is Buffer:
                given.append(t)
                continue
            storage = t._storage
            buffer = storage.value
            if storage.backend is not backend:
                return self._fn(*self._arguments(operands, settings))
            if buffer.__class__ is not Buffer:
                if not self._memory:
                    length = len(key)
                    if self._tell(t, first, key, given):
                        pending.append(storage)
                        continue
                    if storage.nbytes > SMALL and lazy.is_read(storage):
                        return self._of_pending(operands, settings)
                    del key[length:]
                buffer = storage.buffer()
            key += (t.shape, t.dtype, None if t._contig else t._strides, t._offset)
            if buffer in given:
                key.append(given.index(buffer))
            given.append(buffer)
        found = tuple(key)
        if not pending:
            return self._in_memory(found, given, operands, settings)
        call = self._calls.get(found)
        if call is not None:
            for storage in pending:
                # Running a later operand may have computed this one.
                if storage.value.__class__ is not Buffer:
                    lazy.note_read(storage)
            return call.play(given, first.device)
        return self._work_out(found, given, OfSource(*self._arguments(operands, settings)))

    def _in_memory(
        self, key: tuple, given: list[Buffer], operands: Sequence[Any], settings: tuple[Any, ...]
    ) -> list[Any]:
        """Execute a call that has no pending operands."""
        call = self._calls.get(key)
        if call is not None:
            return call.play(given, operands[0].device)
        return self._work_out(key, given, OfMemory(operands, settings))

    def _run_untold(self, t: Any, first: Any) -> None:
        """Run a pending operand that a call outside would run, so that what is noted adds up in the same order."""
        if t._storage.nbytes <= SMALL and not self._tell(t, first, [], []):
            t._storage.buffer()

    def _tell(self, t: Any, first: Any, key: list[Any], given: list[Buffer]) -> bool:
        """Describe a pending operand that the kernel computes, without making a Source; return False if that is not
        possible.

        What identifies the operand is appended to `key`, the buffers that it reads to `given`.
        """
        storage = t._storage
        expr = storage.value
        if self._read is None or not (t._contig and t.shape == expr.shape == first.shape):
            return False
        if t._offset or t.dtype is not expr.dtype or not lazy.is_read(storage):
            return False
        numbers: list[Any] = []
        key.append(t.shape)
        with storage.backend.lock:
            read = lazy.told(expr, key, numbers)
        if read is None:
            return False
        if numbers:
            key.append(repr(numbers))  # 0.0 equals -0.0
        for buffer, offset in read:
            key += (offset, given.index(buffer) if buffer in given else len(given))
            given.append(buffer)
        return True

    def _arguments(self, operands: Sequence[Any], settings: tuple[Any, ...]) -> tuple:
        """Return the arguments for `fn`."""
        if self._read is None:
            return (operands, *settings)
        tensors = [t for t in operands if t.__class__ is not Buffer]
        dev = core.common_device(tensors)
        with tensors[0]._storage.backend.lock:
            return (self._read(*tensors), operands[len(tensors) :], dev, *settings)

    def _of_pending(self, operands: Sequence[Any], settings: tuple[Any, ...]) -> list[Any]:
        """Execute a call with pending operands that `_tell` cannot describe; a Source is made to identify the call."""
        arguments = self._arguments(operands, settings)
        if self._read is None:
            return self._fn(*arguments)
        source, buffers, dev = arguments[:3]
        given = [*[leaf[0] for leaf in source.leaves], *buffers]
        key: list[Any] = [operands[0]._storage.backend, settings, source.pattern()]
        key += [leaf[3] for leaf in source.leaves]
        if source.scalars:
            key.append(repr(source.scalars))  # 0.0 equals -0.0
        for i, buffer in enumerate(given):
            if buffer in given[:i]:
                key += (i, given.index(buffer))
        found = tuple(key)
        call = self._calls.get(found)
        if call is not None:
            return call.play(given, dev)
        return self._work_out(found, given, OfSource(*arguments))

    def _work_out(self, key: tuple, given: list[Buffer], what: OfMemory | OfSource) -> list[Any]:
        """Replay a fitting variant of the call's kind; else call the function, traced from the kind's second call on."""
        if key in self._calls or ACTIVE.recorder is not None or config.CONFIG.eager or not MOST:
            return self._fn(*what.arguments(self._arguments))
        leaves = what.leaves()
        # Operands that were run only to make the Source lie in memory that belongs to no operand of later calls.
        if not {*given}.issuperset(leaves):
            return self._fn(*what.arguments(self._arguments))
        holders: list[Buffer | Storage] = [*given, *what.storages()]
        sizes: list[int] = [x.nbytes for x in holders]
        parts = what.kind(sizes)
        parts += [given.index(buffer) for buffer in (*given, *leaves)]
        if self._exact:
            parts = [repr(parts)]
        kinds = self._kinds
        found = (key[0], *parts)
        kind = kinds.get(found)
        if kind is None:
            if len(kinds) >= MOST:
                kinds.clear()
            kinds[found] = _Kind()
            return self._fn(*what.arguments(self._arguments))
        if len(self._calls) >= MOST:
            self._calls.clear()
        if any(holds(*sizes) is not None for holds in kind.long):
            self._calls[key] = None
            return self._fn(*what.arguments(self._arguments))
        for i, variant in enumerate(kind.variants):
            call = variant.call(tuple(sizes))
            if call is not None:
                self._calls[key] = call
                if i:
                    kind.variants.insert(0, kind.variants.pop(i))
                return call.play(given, what.device())
        if kind.noted < VARIANTS and not any(watches() for watches in WATCHING):
            kind.noted += 1
            return self._note(key, kind, given, holders, what)
        if key not in self._seen:
            if len(self._seen) > MOST:
                self._seen.clear()
            self._seen.add(key)
            return self._fn(*what.arguments(self._arguments))
        return self._note(key, None, given, holders, what)

    def _note(
        self,
        key: tuple,
        kind: _Kind | None,
        given: list[Buffer],
        holders: Sequence[Buffer | Storage],
        what: OfMemory | OfSource,
    ) -> list[Any]:
        """Call the function and trace its launches, with Symbols for `kind`; if that is None, for these sizes only."""
        work = Work()
        trace = Trace(key[0], given, work)
        self._calls[key] = None
        number = work.number if kind is not None else same
        try:
            with trace.noting(), measured(holders, number):
                results = self._fn(*what.opened(number).arguments(self._arguments))
                described = _describe(trace, results, len(given))
        except Exception:
            if trace.begun:
                raise
            return self._fn(*what.arguments(self._arguments))  # raises the error with plain numbers
        if described is not None and not trace.refused:
            variant = _Variant(trace, described)
            if kind is not None:
                kind.variants.insert(0, variant)
            self._calls[key] = variant.call(tuple(work.values))
        elif kind is not None:
            kind.long.append(work.function(()))
        # Results that cannot be described may be pending, and their expressions contain Symbols: call the function
        # again.
        if described is None and not trace.refused:
            return self._fn(*what.arguments(self._arguments))
        return _plainly(results)

    def forget(self) -> None:
        """Drop all traces of this function."""
        self._calls.clear()
        self._kinds.clear()
        self._seen.clear()


_LOOK = attrgetter("_storage", "shape", "dtype", "_contig", "_offset")


def _by_columns(operands: Sequence[Any], key: list[Any], given: list[Buffer]) -> bool:
    """Append what identifies the operands to `key` and their buffers to `given`, if all are dense and in memory; else
    return False.

    For many operands this takes less time than going through them one by one.
    """
    backend, n = key[0], len(operands)
    if operands[-1].__class__ is Buffer:
        return False
    storages, shapes, types, dense, offsets = zip(*map(_LOOK, operands), strict=True)
    buffers = [s.value for s in storages]
    if (
        dense.count(True) < n
        or [b.__class__ for b in buffers].count(Buffer) < n
        or [s.backend for s in storages].count(backend) < n
    ):
        return False
    key.append(shapes[0] if shapes.count(shapes[0]) == n else shapes)
    key += (n, types[0] if types.count(types[0]) == n else types, offsets)
    if len({*buffers}) < n:
        places: dict[Buffer, int] = {}
        key.append(tuple([places.setdefault(b, i) for i, b in enumerate(buffers)]))
    given += buffers
    return True


def forget() -> None:
    """Drop the traces of all functions. Called when a setting changes that decides what functions launch."""
    lazy.forget()
    for replayed in _all:
        replayed.forget()


dtypes.DEFAULT_CHANGED.append(forget)


def _plainly(results: Sequence[Any]) -> list[Any]:
    """Return the results with plain numbers in place of Symbols."""
    found = []
    for t in results:
        if t is not None:
            storage = t._storage
            (storage.nbytes,) = plain([storage.nbytes])
            strides = None if t._contig else plain(t._strides)
            t = core.make(
                storage, sized(plain(t.shape)), t.dtype, t.device, strides, *plain([t._offset])
            )
        found.append(t)
    return found


def _describe(
    trace: Trace, results: Sequence[Any], count: int
) -> tuple[tuple[int, Any] | None, ...] | None:
    """Return (place among the trace's buffers, dtype) of each result, and store the layouts in the trace.

    None if a result is pending, lies in an operand's memory, shares memory with another result, or has a grad node.
    """
    found: list[tuple[int, Any] | None] = []
    numbers: list[Any] = []
    taken: set[int] = set()
    for t in results:
        if t is None:
            found.append(None)
            numbers.append(None)
            continue
        storage = t._storage
        place = None if storage.waits else trace.place(storage.value)
        if place is None or place < count or place in taken or t._node is not None:
            return None
        taken.add(place)
        found.append((place, t.dtype))
        strides = None if t._contig else tuple(t._strides)
        numbers.append((storage.nbytes, tuple(t.shape), strides, t._offset))
    trace.results = tuple(numbers)
    return tuple(found)
