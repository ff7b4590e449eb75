"""Which `vmap`s are running in this thread, the outermost first, and how each wants random numbers.

Knows nothing of tensors. A level's number, from 1, says which hidden dimension of a `Batched` is its own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Level:
    """One running `vmap`: its number, how many slices it maps over, and its `randomness=`."""

    __slots__ = ("number", "randomness", "size")

    def __init__(self, number: int, size: int, randomness: str) -> None:
        self.number, self.size, self.randomness = number, size, randomness


class _Stack(threading.local):
    """The levels of a thread. `inside`: how many functions of the library are being tried on batched tensors as they are."""

    levels: tuple[Level, ...] = ()
    inside: int = 0


STACK = _Stack()


@contextlib.contextmanager
def opened(size: int, randomness: str) -> Iterator[Level]:
    """Open a level within those that are open."""
    before, inside = STACK.levels, STACK.inside
    level = Level(len(before) + 1, size, randomness)
    STACK.levels, STACK.inside = (*before, level), 0
    try:
        yield level
    finally:
        STACK.levels, STACK.inside = before, inside


@contextlib.contextmanager
def without(number: int) -> Iterator[None]:
    """Close, for the block, the level of this number and those within it: what runs belongs to the outer ones."""
    before = STACK.levels
    STACK.levels = before[: number - 1]
    try:
        yield
    finally:
        STACK.levels = before


def level_of(number: int) -> Level | None:
    """Return the open level of a number, None where it is closed."""
    levels = STACK.levels
    return levels[number - 1] if number <= len(levels) else None
