"""The modules of device types that have no devices here: `torch.mps`, `torch.xpu`, `torch.mtia`.

Questions are answered (no device, no bytes), what torch ignores without a device is ignored, and everything else raises as in a torch
that was built without the type. Owns the making of such functions; each module lists its names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .reexport import absent


def answering(module: str, answers: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return functions by name that return what the table says, a new copy of a dict or list at each call."""

    def of(name: str, value: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return type(value)(value) if isinstance(value, dict | list) else value

        return _named(call, module, name, f"Return {value!r}: there are no such devices.")

    return {name: of(name, value) for name, value in answers.items()}


def raising(
    module: str, names: str, error: type[Exception], text: str
) -> dict[str, Callable[..., Any]]:
    """Return functions by name that raise an error; "{}" in its text stands for the name."""

    def of(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            raise error(text.format(name))

        return _named(call, module, name, f"{error.__name__}: there are no such devices.")

    return {name: of(name) for name in names.split()}


def _named(call: Callable, module: str, name: str, doc: str) -> Callable[..., Any]:
    call.__module__, call.__name__, call.__qualname__, call.__doc__ = module, name, name, doc
    return call


def types(module: str, names: str) -> dict[str, type]:
    """Return types by name that have no instances."""
    return dict(zip(names.split(), absent(module, names, "no such devices"), strict=True))
