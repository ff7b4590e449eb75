"""The kind of a call to replay: all that identifies the call except its sizes.

Note [Kinds]. Calls that differ in sizes only are of one kind: the same ranks, dtypes, settings, and sizes of 0 and 1 in
the same places. A kind's traces are made with Symbols in the places of all other sizes, strides and offsets (Note
[Symbols] in symbols.py). Symbols record every comparison that planning makes with them. So the trace serves each call
for which these comparisons have the same outcomes: its numbers are computed by a few generated lines. Sizes for which
an outcome differs (another schedule, say) get another trace, a variant of the kind. Settings that are numbers derived
from sizes are passed as `Sizes`.

Owns what makes a kind, and how Symbols get into a call's operands and settings. Knows nothing of the traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from .. import layouts
from ..codegen.reduce.prologue import Source
from ..runtime import Buffer
from ..size import sized
from ..storage import Storage
from ..symbols import few, opened, pattern
from . import core


class Sizes(tuple):
    """Settings that are numbers derived from sizes, and so no part of the kind (Note [Kinds]); may hold tuples of them."""

    __slots__ = ()


WATCHING: list[
    Callable[[], Any]
] = []  # each returns whether user code (a mode) now intercepts the calls within a function

_opened_classes: set[Any] = {Sizes}


def of_sizes(cls: type) -> type:
    """Class decorator for a named tuple: the numbers in settings of this class are sizes, and no part of the kind."""
    _opened_classes.add(cls)
    return cls


class OfMemory(NamedTuple):
    """A call whose operands are tensors in memory, followed by buffers."""

    operands: Sequence[Any]
    settings: tuple[Any, ...]

    def leaves(self) -> list[Buffer]:
        return []

    def storages(self) -> list[Storage]:
        return [t._storage for t in self.operands if t.__class__ is not Buffer]

    def device(self) -> Any:
        return self.operands[0].device

    def arguments(self, arguments: Callable[..., tuple]) -> tuple:
        """Return the arguments with which the replayed function is called."""
        return arguments(self.operands, self.settings)

    def kind(self, sizes: list[int]) -> list[Any]:
        """Return the parts of the kind's key, and append the numbers that are not part of it to `sizes`."""
        key: list[Any] = []
        for t in self.operands:
            if t.__class__ is not Buffer:
                key += (t.dtype, *few(t.shape, sizes), t._contig)
                if not t._contig:
                    key += few(t._strides, sizes)
                key += few((t._offset,), sizes)
        return key + [pattern(x, sizes) if type(x) in _opened_classes else x for x in self.settings]

    def opened(self, number: Callable[[int], Any]) -> OfMemory:
        """Return the call with each number that is not part of the kind replaced by `number` of it (a Symbol)."""
        operands = []
        for t in self.operands:
            if t.__class__ is not Buffer:
                shape = sized(opened(tuple(t.shape), number))
                strides = None if t._contig else opened(t._strides, number)
                (offset,) = opened((t._offset,), number)
                t = core.make(t._storage, shape, t.dtype, t.device, strides, offset)
            operands.append(t)
        return OfMemory(operands, _opened_settings(self.settings, number))


class OfSource:
    """A call whose kernel computes pending expressions itself, so that its operands are described by a Source."""

    def __init__(self, source: Source, buffers: Sequence[Buffer], dev: Any, *settings: Any) -> None:
        self.source, self.buffers, self.dev, self.settings = source, buffers, dev, settings

    def leaves(self) -> list[Buffer]:
        return [leaf[0] for leaf in self.source.leaves]

    def storages(self) -> list[Storage]:
        return []

    def device(self) -> Any:
        return self.dev

    def arguments(self, arguments: Callable[..., tuple]) -> tuple:
        """Return the arguments with which the replayed function is called."""
        return self.source, self.buffers, self.dev, *self.settings

    def kind(self, sizes: list[int]) -> list[Any]:
        """Return the parts of the kind's key, and append the numbers that are not part of it to `sizes`."""
        shape, leaves, scalars, *expression = self.source
        key: list[Any] = [pattern(shape, sizes), repr(scalars), *expression]
        dense = layouts.contiguous_strides(shape)
        for _, dt, strides, offset in leaves:
            key += (dt, strides == dense or pattern(strides, sizes), *pattern((offset,), sizes))
        return key + [pattern(x, sizes) if type(x) in _opened_classes else x for x in self.settings]

    def opened(self, number: Callable[[int], Any]) -> OfSource:
        """Return the call with each number that is not part of the kind replaced by `number` of it (a Symbol)."""
        source = self.source
        dense = layouts.contiguous_strides(source.shape)
        shape = opened(source.shape, number)
        leaves = []
        for buffer, dt, strides, offset in source.leaves:
            own = layouts.contiguous_strides(shape) if strides == dense else opened(strides, number)
            leaves.append((buffer, dt, own, *opened((offset,), number)))
        source = source._replace(shape=shape, leaves=tuple(leaves))
        return OfSource(source, self.buffers, self.dev, *_opened_settings(self.settings, number))


def _opened_settings(settings: tuple[Any, ...], number: Callable[[int], Any]) -> tuple:
    return tuple([opened(x, number) if type(x) in _opened_classes else x for x in settings])


def same(n: int, least: int = 2) -> int:
    """Return n itself: the `number` function for a call that is traced for its own sizes only."""
    return n


@contextmanager
def measured(holders: Sequence[Buffer | Storage], number: Callable[..., Any]) -> Iterator[None]:
    """While the block runs, replace the holders' sizes in bytes by `number` of them (Symbols)."""
    sizes = [x.nbytes for x in holders]
    for x, nbytes in zip(holders, sizes, strict=True):
        x.nbytes = number(nbytes, 0)
    try:
        yield
    finally:
        for x, nbytes in zip(holders, sizes, strict=True):
            x.nbytes = nbytes
