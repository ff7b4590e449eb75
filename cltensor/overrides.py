"""`cltensor.overrides`: functions by which libraries let classes with a `__torch_function__` override calls.

The ops of this package call `__torch_function__` by themselves, from the first class on that needs it (Note [Asking]
in subclasses.py).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .autograd import TensorBase
from .subclasses import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    askers,
    current_modes,
    dispatch,
    overrides,
)
from .tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_SPACES = ("", "functional", "nn.functional", "nn.init", "linalg", "fft", "special")


def get_default_nowrap_functions() -> set[Callable]:
    """Return the functions whose results keep their class: reads of gradients and of a view's base."""
    return {Tensor.grad.__get__, Tensor._base.__get__}


def is_tensor_like(inp: Any) -> bool:
    """Tell whether a value is a tensor, or its class defines `__torch_function__`."""
    return isinstance(inp, TensorBase) or hasattr(type(inp), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Tell whether a mode is entered, or one of the arguments overrides functions by `__torch_function__`."""
    if not isinstance(relevant_args, Iterable):
        raise TypeError("expected a sequence")
    return bool(current_modes()) or any(map(overrides, relevant_args))


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """Do what `has_torch_function` does for one argument."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """Do what `has_torch_function` does for arguments given one by one."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Return what the innermost mode, or else one of the arguments, makes of a call; subclasses come first.

    TypeError if all of them return NotImplemented.
    """
    made = dispatch(public_api, relevant_args, args, kwargs)
    if made is not NotImplemented:
        return made
    name = f"{public_api.__module__}.{public_api.__name__}"
    types = list(dict.fromkeys(map(type, filter(overrides, relevant_args))))
    mode = f" nor in mode {current_modes()[-1]}" if current_modes() else ""
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: {types}{mode}"
    )


def wrap_torch_function(dispatcher: Callable[..., Sequence[Any]]) -> Callable:
    """Decorate a function so that the arguments which `dispatcher` returns may override it."""

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return call

    return decorate


# --- what can be overridden --------------------------------------------------------------------


def _spaces() -> list[tuple[Any, str]]:
    """Return the modules and the class that have functions, with their names; the first that has a function owns it."""
    found: list[tuple[Any, str]] = []
    for path in _SPACES:
        name = f"{__package__}.{path}".rstrip(".")
        if name in sys.modules:
            found.append((sys.modules[name], name))
    return [*found, (Tensor, f"{__package__}.Tensor")]


def _members(space: Any) -> Iterable[tuple[str, Any]]:
    kinds = Tensor.__mro__[:-1] if space is Tensor else (space,)
    return ((name, value) for kind in kinds for name, value in list(vars(kind).items()))


@functools.cache
def _overridable() -> dict[Any, dict[Callable, str]]:
    """Return the functions that ask, with their public names, by the module or class that owns them."""
    asking = {id(f) for f, _, _ in askers()}
    found: dict[Any, dict[Callable, str]] = {}
    for space, place in _spaces():
        own = found[space] = {}
        for name, value in _members(space):
            if isinstance(value, property):
                if id(value.fget) in asking:
                    own.setdefault(value.__get__, f"{place}.{name}.__get__")
            elif id(value) in asking:
                own.setdefault(value, f"{place}.{name}")
    return {space: own for space, own in found.items() if own}


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """Return the functions that can be overridden by `__torch_function__`, by the module or class that owns them."""
    return {space: list(own) for space, own in _overridable().items()}


def get_ignored_functions() -> set[Callable]:
    """Return public functions that cannot be overridden by `__torch_function__`."""
    known, found = {f for own in _overridable().values() for f in own}, set()
    for space, _ in _spaces():
        for name, value in _members(space):
            if name[0] != "_" and callable(value) and value.__hash__ and value not in known:
                found.add(value)
    return found


def get_testing_overrides() -> dict[Callable, Callable]:
    """Return, for each overridable function, one with the same signature that returns -1."""
    return {function: _stand_in(function) for own in _overridable().values() for function in own}


def _stand_in(function: Callable) -> Callable:
    def stand_in(*args: Any, **kwargs: Any) -> int:
        return -1

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = inspect.signature(lambda self: -1)
    stand_in.__signature__ = signature.replace(return_annotation=inspect.Signature.empty)  # type: ignore[attr-defined]
    return stand_in


def resolve_name(f: Callable) -> str | None:
    """Return an overridable function's public name, "torch.add" (which may be a method of Tensor, too); else None."""
    for own in _overridable().values():
        if f in own:
            return "torch" + own[f].removeprefix(__package__)
    return None


def is_tensor_method_or_property(func: Callable) -> bool:
    """Tell whether a function is one of Tensor's methods or the getter of one of its properties."""
    return any(func is value for _, value in _members(Tensor)) or func.__name__ == "__get__"
