"""Calls alike are launched alike: what an immediate kernel's call comes to is worked out once.

Note [Replay]. From operands to launch a call passes several floors: pending expressions, layouts, a schedule, the kernel's text
and its arguments. All of it follows from shapes, strides, dtypes and a few settings; of small operations it is most of the time.
So a `Replayed` function keeps, from its second call of a kind on, what the first such call launched (runtime/trace.py) and how its results
are laid out; later calls take memory, launch, and wrap. It must be a pure function of its tensors' memory: its results are fresh, and
nothing but layouts and settings decides what it launches. Calls whose operands are pending go the long way, for the kernel reads
their expression; so does what cannot be traced.

Owns when calls are alike. Knows no op.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import config
from ..runtime import STATS, Buffer, Recorder, Trace, Untraceable
from ..storage import Storage
from . import core

MOST = 1024  # calls that a function remembers; none with 0, nor with CLTENSOR_EAGER=1

_all: weakref.WeakSet[Replayed] = weakref.WeakSet()


class _Result(NamedTuple):
    """A tensor to be made after a play, in the buffer at `place`."""

    place: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...] | None
    offset: int


class _Call(NamedTuple):
    """What a call launched, and what it returned."""

    trace: Trace
    results: tuple[_Result | None, ...]

    def play(self, given: Sequence[Buffer], dev: Any) -> list[Any]:
        buffers = self.trace.play(given)
        STATS.replays += 1
        backend, make = self.trace.backend, core._Registry.tensor._make
        return [
            None if r is None
            else make(Storage(backend, buffers[r.place], r.nbytes), r.shape, r.dtype, dev, r.strides, r.offset)
            for r in self.results
        ]  # fmt: skip


class Replayed:
    """A function `fn(operands, *settings)` that returns a list of new tensors and Nones (see Note [Replay]).

    Operands are tensors, and buffers after them; settings are hashable, and equal ones mean the same.
    """

    def __init__(self, fn: Callable[..., list[Any]], *, memory: bool = False) -> None:
        self._fn, self._memory = fn, memory
        self._calls: dict[tuple, _Call | None] = {}  # None: not to be traced
        self._seen: set[tuple] = set()
        _all.add(self)

    def __call__(self, operands: Sequence[Any], *settings: Any) -> list[Any]:
        """Do as the function does."""
        backend = operands[0]._storage.backend
        key: list[Any] = [backend, settings]
        given: list[Buffer] = []
        for t in operands:
            if t.__class__ is Buffer:
                given.append(t)
                continue
            storage = t._storage
            buffer = storage.value
            if buffer.__class__ is not Buffer:
                if not self._memory:
                    return self._fn(operands, *settings)
                buffer = storage.buffer()
            if storage.backend is not backend:
                return self._fn(operands, *settings)
            key += (t.shape, t.dtype, t._lazy_strides, t._offset)
            if buffer in given:
                key.append(given.index(buffer))
            given.append(buffer)
        found = tuple(key)
        call = self._calls.get(found)
        if call is not None:
            return call.play(given, operands[0].device)
        if found in self._calls or Recorder.active is not None or config.CONFIG.eager or not MOST:
            return self._fn(operands, *settings)
        if found not in self._seen:  # most calls are the only ones of their kind
            if len(self._seen) > MOST:
                self._seen.clear()
            self._seen.add(found)
            return self._fn(operands, *settings)
        return self._trace(found, operands, settings, given)

    def _trace(
        self, key: tuple, operands: Sequence[Any], settings: tuple, given: list[Buffer]
    ) -> list[Any]:
        trace = Trace(given[0].backend, given)
        call = None
        try:
            with trace.noting():
                results = self._fn(operands, *settings)
                described = _describe(trace, results, len(given))
            if described is not None:
                call = _Call(trace, described)
        except Untraceable:
            results = self._fn(operands, *settings)
        if len(self._calls) >= MOST:
            self._calls.clear()
        self._calls[key] = call
        return results

    @staticmethod
    def of_memory(fn: Callable[..., list[Any]]) -> Replayed:
        """Make one of a function whose kernels read memory: what is pending is run first."""
        return Replayed(fn, memory=True)

    def forget(self) -> None:
        """Have everything worked out anew."""
        self._calls.clear()
        self._seen.clear()


def forget() -> None:
    """Have what every function launches worked out anew: after a change of what decides that."""
    for replayed in _all:
        replayed.forget()


def _describe(
    trace: Trace, results: Sequence[Any], count: int
) -> tuple[_Result | None, ...] | None:
    """Say how results lie in a trace's buffers; None where one is pending, an operand's memory, or shares another's."""
    found: list[_Result | None] = []
    taken: set[int] = set()
    for t in results:
        if t is None:
            found.append(None)
            continue
        storage = t._storage
        place = None if storage.waits else trace.place(storage.value)
        if place is None or place < count or place in taken or t._node is not None:
            return None
        taken.add(place)
        strides = t._lazy_strides
        found.append(_Result(place, storage.nbytes, t.shape, t.dtype, strides, t._offset))
    return tuple(found)
