"""Binding of arguments to a function's parameter names, and back, through its decorators.

A decorated function accepts the arguments of the function it wraps, and numpy's names for them (ops/numpy_names.py).
"""

from __future__ import annotations

import inspect
import types
from typing import Any

from ..ops.row import NUMPYS

_OURS = {"axis": "dim", "keepdims": "keepdim"}  # NumPy's name -> torch's
# Names of the first argument, whatever the function itself calls it.
_FIRST = {"input", "self", *NUMPYS["input"]}


def signature(entry: Any) -> Any:
    """Return the signature of an entry's innermost function, computed once."""
    if entry.signature is None:
        entry.signature = inspect.signature(entry.innermost)
    return entry.signature


def innermost(fn: Any) -> types.FunctionType:
    """Return a copy of the function under all decorators, which keeps its present code.

    The function itself may be intercepted later, and then has code with another signature.
    """
    while hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    bare = types.FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    bare.__kwdefaults__ = fn.__kwdefaults__
    return bare


def bound(entry: Any, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as a dict by parameter name, with defaults filled in and numpy's names translated."""
    sig = signature(entry)
    if kwargs:
        names = sig.parameters
        head = next(iter(names))
        kwargs = {_renamed(k, names, head): v for k, v in kwargs.items()}
    found = sig.bind(*args, **kwargs)
    found.apply_defaults()
    return dict(found.arguments)


def _renamed(name: str, names: Any, head: str) -> str:
    """Return the parameter that a keyword names; `names`: the function's parameters, `head`: the first of them."""
    if name in names:
        return name
    if name in _OURS and _OURS[name] in names:
        return _OURS[name]
    if name in _FIRST:
        return head
    for own, others in NUMPYS.items():
        if name in others and own in names:
            return own
    return name


def spread(entry: Any, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments for a dict of arguments by parameter name; the inverse of `bound`."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    gap = False
    for name, parameter in signature(entry).parameters.items():
        if name not in given:
            gap = True
            continue
        value = given[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            kwargs.update(value)
        elif gap or parameter.kind is parameter.KEYWORD_ONLY:
            if name != "out" or value is not None:
                kwargs[name] = value
        else:
            args.append(value)
    return args, kwargs
