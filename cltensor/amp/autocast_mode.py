"""`autocast`: a context and decorator in which listed ops choose their dtype; `custom_fwd` and `custom_bwd` for Functions."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .. import cuda, dtypes
from ..dtypes import dtype
from ..tensor import Tensor
from . import state
from .state import is_autocast_available

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_SUPPORTED = (dtypes.bfloat16, dtypes.float16)


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


class autocast:
    """Compute listed ops in a 16-bit dtype, and others in float32 where that is safer.

    device_type: "cpu", "opencl" or "cuda". dtype: bfloat16 or float16 (by default bfloat16 on the cpu, float16 elsewhere).
    cache_enabled: keep 16-bit copies of parameters until the outermost block ends. RuntimeError for other device types;
    warns and stays off for other dtypes, and for "cuda" without a GPU.

    >>> import cltensor as torch
    >>> with torch.autocast("cpu"):
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        _check_device_type(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.device = device_type
        self.fast_dtype = state.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            state.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._enabled = enabled and self._usable()

    def _usable(self) -> bool:
        if self.device == "cuda" and not cuda.is_available():
            warnings.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3
            )
            return False
        if self.fast_dtype in _SUPPORTED:
            return True
        name = self.device.upper()
        warnings.warn(
            f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
            f"{name} Autocast only supports dtypes of {', '.join(map(str, _SUPPORTED))} currently.",
            stacklevel=3,
        )
        return False

    def __enter__(self) -> autocast:
        self.prev_cache_enabled = state.is_autocast_cache_enabled()
        self.prev = state.is_autocast_enabled(self.device)
        self.prev_fastdtype = state.get_autocast_dtype(self.device)
        state.set_autocast_enabled(self.device, self._enabled)
        state.set_autocast_dtype(self.device, self.fast_dtype)
        state.autocast_increment_nesting()
        state.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *exc: Any) -> None:
        if state.autocast_decrement_nesting() == 0:
            state.clear_autocast_cache()
        state.set_autocast_enabled(self.device, self.prev)
        state.set_autocast_dtype(self.device, self.prev_fastdtype)
        state.set_autocast_cache_enabled(self.prev_cache_enabled)

    def __call__(self, func: Callable) -> Callable:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n        output = model(input)"
            )
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Callable) -> Callable:
    """Make a function that runs inside an autocast block."""

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorated


def _cast(value: Any, device_type: str, dtype: dtype) -> Any:
    """Cast the floating tensors in nested lists, tuples and dicts to a dtype, except float64 ones and those on other
    device types.
    """
    if isinstance(value, Tensor):
        mine = value.is_floating_point() and value.dtype is not dtypes.float64
        here = state.key(value.device.type) == state.key(device_type)
        return value.to(dtype) if mine and here else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, Iterable):
        items = (_cast(v, device_type, dtype) for v in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def custom_fwd(
    fwd: Callable | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Callable:
    """Decorate the `forward` of an autograd Function: with `cast_inputs`, it runs on tensors of that dtype, autocast off."""
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        on = state.is_autocast_enabled(device_type)
        ctx._dtype = state.get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return forward(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return forward(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return decorated


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorate the `backward` of an autograd Function: it runs with the autocast state of its `forward`."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return backward(*args, **kwargs)

    return decorated
