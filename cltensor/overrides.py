"""`cltensor.overrides`: what libraries ask before they leave a call to a class that defines `__torch_function__`.

The ops of this package ask subclasses of Tensor (subclasses.py), and others from when the first such subclass is defined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .autograd import TensorBase
from .subclasses import BaseTorchFunctionMode, TorchFunctionMode, dispatch, overrides

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "wrap_torch_function",
]


def is_tensor_like(inp: Any) -> bool:
    """Tell whether something is a tensor or defines `__torch_function__`."""
    return isinstance(inp, TensorBase) or hasattr(type(inp), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Tell whether one of some arguments defines `__torch_function__`."""
    return any(map(overrides, relevant_args))


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Return what the first argument that overrides a function makes of the call, subclasses first.

    TypeError where all of them return NotImplemented.
    """
    made = dispatch(public_api, relevant_args, args, kwargs)
    if made is not NotImplemented:
        return made
    name = f"{public_api.__module__}.{public_api.__name__}"
    types = list(dict.fromkeys(map(type, filter(overrides, relevant_args))))
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: {types}"
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
