"""Where a call goes that finds an operand without a storage: a sparse tensor's ways, or what no tensor answers for itself.

Others fill that in. Dense operands never pay for it: an operand that has no storage raises `Strideless` where its storage is asked for,
what is no tensor raises something, and only then somebody looks here. Knows no layout but the strided one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

HANDLERS: dict[
    str, Callable[..., Any]
] = {}  # by the name of the function; they may return NotImplemented

# Told of a function that failed, of its arguments, and of the module that called it: whether an argument answers for itself, and the
# function asks it now.
ANSWERING: list[Callable[[Any, Any, Any, str], bool]] = []


class Strideless(NotImplementedError, AttributeError):
    """An operand's memory is not one strided region."""


def refuse(name: str, kind: type[NotImplementedError] = NotImplementedError) -> NotImplementedError:
    """The error for a function that takes no sparse tensors, in the first words of torch's."""
    return kind(f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend.")


def refuse_caller(names: Any) -> NotImplementedError:
    """The error for the outermost op of this package, among `names`, that is being called."""
    frame, found = sys._getframe(1), "as_strided"
    package = __name__.rpartition(".")[0].rpartition(".")[0]
    while frame is not None and frame.f_globals.get("__name__", "").startswith(package):
        if frame.f_code.co_name in names:
            found = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return refuse(found, Strideless)


def elsewhere(name: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Do a call that found a `Strideless` operand; raises the refusal by name where nobody knows how."""
    handler = HANDLERS.get(name)
    made = NotImplemented if handler is None else handler(*args, **(kwargs or {}))
    if made is NotImplemented:
        raise refuse(name.partition(" ")[0])
    return made


def foreign(function: Any, args: Any, kwargs: Any) -> bool:
    """Tell a function that failed, which calls this itself, whether one of its arguments is to answer for it: called again, it asks."""
    frame = sys._getframe(1).f_back
    caller = frame.f_globals.get("__name__", "") if frame else ""
    return any(answers(function, args, kwargs, caller) for answers in ANSWERING)
