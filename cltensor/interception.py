"""Interception of calls: a function object gets another code object, which first looks at the arguments.

Note [Interception]. Some tensors are not memory with a layout: subclasses answer for themselves, sparse tensors are
patterns, batched ones hide a dimension. Programs without such tensors should pay nothing, and yet every reference to
a function (in a namespace, a table, or a program that imported it by name) should be intercepted. So the function
object stays, and its code object is replaced by one that passes the arguments to an `ask`: permanently once there is
a subclass (subclasses.py) or a sparse tensor (sparse/dispatch.py), temporarily while a `vmap` runs
(batching/calls.py). Temporary interceptions lie outermost: they restore the code they replaced while a permanent one
is installed, and are then put around the new code.

Owns the exchange and its order. Must not know who asks, or what for.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, Protocol

Ask = Callable[[Any, Any], Any]  # takes a call's positional and named arguments, returns its result


class Temporary(Protocol):
    """An interception that is not permanent."""

    def give_back(self) -> None:
        """Restore the code of the intercepted functions, if there are any."""

    def take_again(self) -> None:
        """Intercept the functions again, if they were before `give_back`."""


TEMPORARY: list[Temporary] = []  # the outermost first
_LOCK = threading.RLock()
_depth = 0


@contextlib.contextmanager
def for_good() -> Iterator[None]:
    """Suspend all temporary interceptions in the block, so that permanent ones can be installed."""
    global _depth
    with _LOCK:
        _depth += 1
        try:
            if _depth == 1:
                for other in TEMPORARY:
                    other.give_back()
            yield
        finally:
            _depth -= 1
            if not _depth:
                for other in reversed(TEMPORARY):
                    other.take_again()


def twin(function: FunctionType) -> FunctionType:
    """Return a copy of a function, with its present code and attributes."""
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )  # fmt: skip
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    for name in functools.WRAPPER_ASSIGNMENTS:
        setattr(made, name, getattr(function, name))
    return made


def asking(function: FunctionType, ask: Ask) -> CodeType:
    """Return the code that hands a function's arguments to `ask`."""
    code = _template(len(function.__code__.co_freevars))
    consts = tuple(ask if c == "ask" else c for c in code.co_consts)
    return code.replace(co_consts=consts, co_name=function.__name__)


def ask_first(function: FunctionType, make: Callable[[FunctionType], Ask]) -> None:
    """Intercept a function permanently. make: returns the ask, given a twin of the original function.

    `inspect` finds the original signature by way of the twin (`__wrapped__`). `__plain__` is the first such twin. To be
    called within `for_good()`.
    """
    plain = twin(function)
    function.__code__ = asking(function, make(plain))
    function.__dict__.setdefault("__plain__", plain)
    function.__dict__["__wrapped__"] = plain


@functools.cache
def _template(closed: int) -> CodeType:
    """Return the code of a function that passes its arguments to a constant.

    It has `closed` free variables, as a code object must have as many as the one it replaces.
    """
    names = ", ".join(f"c{i}" for i in range(closed))
    text = f"def outer({names}):\n def asking(*args, **kwargs):\n  if 0: {names or None}\n  return 'ask'(args, kwargs)\n return asking"
    made: dict[str, Any] = {}
    with warnings.catch_warnings():
        # That a str is not callable: `asking` puts the ask in its place.
        warnings.simplefilter("ignore")
        exec(text, made)
    code: CodeType = made["outer"](*range(closed)).__code__
    return code
