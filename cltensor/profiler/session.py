"""The records of a running profile: ranges of host code, and the commands that devices ran inside them.

At most one `Session` is active. `record_function` and the ops' wrappers open a `Range` in it; the runtime reports
launches and copies to it. Ops cost nothing extra while no session runs, because wrappers.py replaces them only during
one. Owns the raw records. Must not know how they are added up, printed or saved.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from cltensor.runtime import in_use
from cltensor.runtime.observe import OBSERVERS, Observed
from cltensor.symbols import plain

from . import wrappers

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MAX_STACK = 32

OP, USER, BACKWARD = 0, 2, 1  # torch's RecordScope numbers, as far as they are distinguished here


class Range:
    """A range of host code in one thread; times are ns of time.perf_counter_ns."""

    __slots__ = (
        "children",
        "end",
        "memory",
        "name",
        "parent",
        "scope",
        "shapes",
        "stack",
        "start",
        "thread",
    )

    def __init__(self, name: str, scope: int, parent: Range | None) -> None:
        self.name, self.scope, self.parent = name, scope, parent
        self.children: list[Range] = []
        self.memory = (0, 0)  # bytes allocated inside, on the cpu device and on others
        self.shapes: list[Any] = []
        self.stack: list[str] = []
        self.thread = threading.get_native_id()
        self.start = self.end = 0


class Session:
    """One run of profiling: `start()`, the program, `stop()`; after that, `ranges` and `commands` can be read."""

    active: Session | None = None

    def __init__(
        self,
        *,
        host: bool = True,
        shapes: bool = False,
        memory: bool = False,
        stacks: bool = False,
        modules: bool = False,
    ) -> None:
        self.host = host
        self.shapes = shapes
        self.memory = memory
        self.stacks = stacks
        self.modules = modules
        self.device = True  # whether launches and copies are collected now
        self.ranges: list[Range] = []  # in the order in which they ended
        self.commands: list[tuple[Observed, Range | None]] = []
        self.begin = self.end = 0
        self._open = threading.local()
        self._restore: Callable[[], None] | None = None

    def start(self) -> None:
        """Start collecting. RuntimeError if a session is active already.

        Everything pending is run first, so that its launches are not attributed to the profiled program.
        """
        if Session.active is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        run_pending()
        self.begin = time.perf_counter_ns()
        Session.active = self
        OBSERVERS.append(self._note)
        if self.host:
            self._restore = wrappers.install(self)

    def stop(self) -> None:
        """Run everything still pending, then stop collecting."""
        try:
            run_pending()
        finally:
            if self._restore is not None:
                self._restore()
                self._restore = None
            if self._note in OBSERVERS:
                OBSERVERS.remove(self._note)
            Session.active = None
            self.end = time.perf_counter_ns()

    # --- what is collected

    def _note(self, seen: Observed) -> None:
        if not self.device:
            return
        stack = self._stack()
        inside = stack[-1] if stack else None
        self.commands.append((seen, inside))

    def _stack(self) -> list[Range]:
        try:
            return self._open.ranges
        except AttributeError:
            self._open.ranges = []
            return self._open.ranges

    def enter(self, name: str, scope: int, args: tuple[Any, ...] = ()) -> Range | None:
        """Open a range and return it.

        None for an op called directly by the op of the same name (say, a method by its function).
        """
        if not self.host:
            return None
        stack = self._stack()
        parent = stack[-1] if stack else None
        if scope == OP and parent is not None and parent.name == name and parent.scope == OP:
            return None
        made = Range(name, scope, parent)
        if self.shapes:
            made.shapes = [_shape(a) for a in args]
        if self.stacks:
            made.stack = _stack_of(sys._getframe(2))
        if self.memory:
            made.memory = _memory()
        stack.append(made)
        made.start = time.perf_counter_ns()
        return made

    def leave(self, made: Range | None) -> None:
        """Close a range, and drop ranges that were opened inside it and not closed."""
        if made is None:
            return
        made.end = time.perf_counter_ns()
        if self.memory:
            now = _memory()
            made.memory = (now[0] - made.memory[0], now[1] - made.memory[1])
        stack = self._stack()
        if made in stack:
            del stack[stack.index(made) :]
        if made.parent is not None:
            made.parent.children.append(made)
        self.ranges.append(made)


def run_pending() -> None:
    """Run every pending expression on every device in use, and wait."""
    from cltensor import lazy

    for backend in in_use():
        lazy.flush(backend)
        backend.finish()


def _shape(value: Any) -> Any:
    shape = getattr(value, "shape", None)
    return [*plain(shape)] if isinstance(shape, tuple) else []


def _memory() -> tuple[int, int]:
    own = others = 0
    for backend in in_use():
        if backend.device.type == "cpu":
            own += backend.pool.active
        else:
            others += backend.pool.active
    return own, others


def _stack_of(frame: Any) -> list[str]:
    """Return the user's frames, innermost first, as torch prints them."""
    found: list[str] = []
    while frame is not None and len(found) < _MAX_STACK:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return found


class record_function:
    """A context manager, or decorator of a function, that records a named range in the profile.

    >>> with record_function("load"):
    ...     pass
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._session: Session | None = None
        self._range: Range | None = None

    def __enter__(self) -> record_function:
        session = Session.active
        if session is not None and session.host:
            self._session, self._range = session, session.enter(self.name, USER)
        return self

    def __exit__(self, *exc: object) -> None:
        session, self._session = self._session, None
        if session is not None and session is Session.active:
            session.leave(self._range)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped
