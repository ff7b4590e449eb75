"""`torch.utils._device`: the default device, and a decorator that sets a default device during a function's calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..runtime import device as _device
from ..runtime.device import chosen_device


def set_device(device: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that makes `device` the default device during a function's calls."""
    chosen = _device(device)

    def decorate(fn: Callable) -> Callable:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with chosen:
                return fn(*args, **kwargs)

        return call

    return decorate


def __getattr__(name: str) -> Any:
    if name == "CURRENT_DEVICE":
        return chosen_device()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
