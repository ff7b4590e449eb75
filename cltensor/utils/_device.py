"""`torch.utils._device`: the device that `set_default_device` has chosen, and a decorator that chooses one for a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..runtime import device as _device
from ..runtime.device import chosen_device


def set_device(device: Any) -> Callable[[Callable], Callable]:
    """Return a decorator: a function's calls make tensors on `device` where they name none."""
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
