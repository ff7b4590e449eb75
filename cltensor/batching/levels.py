"""The stack of `vmap` levels running in this thread, outermost first, with the `randomness` of each.

Knows nothing of tensors. Levels are numbered from 1; a `Batched` has the number of the `vmap` that hides its dimension.
How many transforms that differentiate are running is counted, too.
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
    """A thread's open levels.

    `inside`: nesting depth of library functions run unchanged on batched tensors (`calls.attempt`).
    `derivatives`: nesting depth of the transforms of `func` that differentiate.
    """

    levels: tuple[Level, ...] = ()
    inside: int = 0
    derivatives: int = 0


STACK = _Stack()


@contextlib.contextmanager
def opened(size: int, randomness: str) -> Iterator[Level]:
    """Open a level inside the open ones for the block."""
    before, inside = STACK.levels, STACK.inside
    level = Level(len(before) + 1, size, randomness)
    STACK.levels, STACK.inside = (*before, level), 0
    try:
        yield level
    finally:
        STACK.levels, STACK.inside = before, inside


@contextlib.contextmanager
def differentiating() -> Iterator[None]:
    """Count a transform that differentiates as running for the block."""
    STACK.derivatives += 1
    try:
        yield
    finally:
        STACK.derivatives -= 1


def transforming() -> bool:
    """Tell whether a `vmap` or a transform that differentiates is running in this thread."""
    return bool(STACK.levels or STACK.derivatives)


@contextlib.contextmanager
def without(number: int) -> Iterator[None]:
    """Close the level of this number and all inner ones for the block, so that its calls belong to the outer levels."""
    before = STACK.levels
    STACK.levels = before[: number - 1]
    try:
        yield
    finally:
        STACK.levels = before


@contextlib.contextmanager
def one_slice(number: int) -> Iterator[None]:
    """Have random functions draw for a single slice of this level in the block, where a function is run for each slice."""
    level = STACK.levels[number - 1]
    before = level.randomness
    if before == "different":
        level.randomness = "same"
    try:
        yield
    finally:
        level.randomness = before


def level_of(number: int) -> Level | None:
    """Return the open level with this number, or None if that level is closed."""
    levels = STACK.levels
    return levels[number - 1] if number <= len(levels) else None
