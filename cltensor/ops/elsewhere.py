"""Dispatch of calls with an operand without a strided storage: a sparse tensor, or an object that overrides functions.

Other modules register the handlers. Dense operands never pay for this: an operand without a storage raises `Strideless`
where its storage is read, an operand that is no tensor raises some error, and only then is this module asked. Knows no
layout but the strided one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..memory_format import strided

HANDLERS: dict[
    str, Callable[..., Any]
] = {}  # by the name of the function; they may return NotImplemented

# Called with a function that failed, its arguments, and the name of the module that called it. Each returns whether an
# argument overrides the function, which then dispatches to that argument when it is called again.
ANSWERING: list[Callable[[Any, Any, Any, str], bool]] = []


class Strideless(NotImplementedError, AttributeError):
    """An operand's memory is not one strided region."""


def refuse(name: str, kind: type[NotImplementedError] = NotImplementedError) -> NotImplementedError:
    """Return the error for a function that takes no sparse tensors; it begins as torch's does."""
    return kind(f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend.")


def need_strided(name: str, layout: Any) -> None:
    """Raise the error of `refuse` if a layout other than the strided one is asked for."""
    if layout is not None and layout is not strided:
        raise refuse(name)


def refuse_caller(names: Any) -> NotImplementedError:
    """Return the error that names the outermost function among `names` that this package is running."""
    frame, found = sys._getframe(1), "as_strided"
    package = __name__.rpartition(".")[0].rpartition(".")[0]
    while frame is not None and frame.f_globals.get("__name__", "").startswith(package):
        if frame.f_code.co_name in names:
            found = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return refuse(found, Strideless)


def elsewhere(name: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Do a call that found a `Strideless` operand, by the handler of that name; NotImplementedError if none can."""
    handler = HANDLERS.get(name)
    made = NotImplemented if handler is None else handler(*args, **(kwargs or {}))
    if made is NotImplemented:
        raise refuse(name.partition(" ")[0])
    return made


def foreign(function: Any, args: Any, kwargs: Any, between: int = 0) -> bool:
    """Return whether an argument overrides the failed function.

    The function calls this itself, and if so calls itself again. between: how many calls lie between the two.
    """
    frame = sys._getframe(1 + between).f_back
    caller = frame.f_globals.get("__name__", "") if frame else ""
    return any(answers(function, args, kwargs, caller) for answers in ANSWERING)
