"""Backward passes that custom functions start inside a pass, to any depth.

Owns how many passes share a thread's stack. Must not know what a pass does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .mode import GRAD

# Python allows 1000 frames on a stack. A pass inside a pass takes about ten, and the program has some, too.
_ON_ONE_STACK = 40


def call_at_depth(depth: int, fn: Callable[..., Any], *args: Any) -> None:
    """Call a function for the pass at a depth of nesting; every fortieth has a thread, and so a stack, of its own.

    That thread has the autograd state of this one, which waits; an error is raised here.
    """
    if depth % _ON_ONE_STACK:
        fn(*args)
        return
    from concurrent.futures import ThreadPoolExecutor

    state = dict(vars(GRAD))

    def run() -> None:
        vars(GRAD).update(state)
        fn(*args)

    with ThreadPoolExecutor(1, "backward") as stack:
        stack.submit(run).result()
