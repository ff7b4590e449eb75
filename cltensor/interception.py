"""Functions that look at their arguments first: another code in the same function object.

Note [Interception]. Some tensors are not memory with a layout: subclasses answer for themselves, sparse tensors are patterns, batched ones
hide a dimension. Programs without them should pay nothing, and whoever holds a function - a namespace, a table, a program that
imported it by name - should meet them. So the function object stays, and its code is exchanged for a line that asks:
for good once there is a subclass (subclasses.py) or a sparse tensor (sparse/dispatch.py), and while a `vmap` runs (batching/calls.py).
What asks for a while asks outermost: it gives the codes back while others are put in for good, and takes the new ones.

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

Ask = Callable[[Any, Any], Any]  # of positional and named arguments


class Temporary(Protocol):
    """Who has functions ask for a while."""

    def give_back(self) -> None:
        """Give functions the code they had, if they ask now."""

    def take_again(self) -> None:
        """Have them ask again, if they did before."""


TEMPORARY: list[Temporary] = []  # the outermost first
_LOCK = threading.RLock()
_depth = 0


@contextlib.contextmanager
def for_good() -> Iterator[None]:
    """Whatever asks for a while does not, in here: codes may be exchanged for good."""
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
    """Return a function with the code and attributes that another has now."""
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
    """Have a function ask for good. make: gives the ask for a twin of what the function was.

    `inspect` finds the signature in the twin. To be called within `for_good()`.
    """
    plain = twin(function)
    function.__code__ = asking(function, make(plain))
    function.__dict__["__wrapped__"] = plain


@functools.cache
def _template(closed: int) -> CodeType:
    """Return the code of a function that hands its arguments to a constant, with as many names of a closure as the one it replaces."""
    names = ", ".join(f"c{i}" for i in range(closed))
    text = f"def outer({names}):\n def asking(*args, **kwargs):\n  if 0: {names or None}\n  return 'ask'(args, kwargs)\n return asking"
    made: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a text is no function: `asking` puts one there
        exec(text, made)
    code: CodeType = made["outer"](*range(closed)).__code__
    return code
