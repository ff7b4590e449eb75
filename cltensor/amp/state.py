"""Autocast's state, per thread and device type, and the functions that read and write it.

The device types "opencl" and "cuda" share one state.
"""

from __future__ import annotations

import threading
from typing import Any

from .. import dtypes
from ..dtypes import dtype
from ..subclasses import PREPARING

DEVICE_TYPES = ("cpu", "cuda")
_DEFAULTS = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
# Device types that only torch has, with their autocast dtypes: programs ask whether autocast is on for them.
_ABSENT = {
    **dict.fromkeys(("mps", "xpu", "ipu", "mtia", "privateuseone"), dtypes.float16),
    **dict.fromkeys(("hpu", "xla", "maia"), dtypes.bfloat16),
}


class _State(threading.local):
    """`active`: autocast is on for some device type, and no listed op is running.

    `casts`: low-precision copies of parameters, by their id.
    """

    def __init__(self) -> None:
        self.active = False
        self.enabled = dict.fromkeys(DEVICE_TYPES, False)
        self.dtypes = dict(_DEFAULTS)
        self.cache = True
        self.nesting = 0
        self.casts: dict[int, tuple[Any, Any]] = {}


STATE = _State()


def key(device_type: str) -> str:
    """Return the name of a device type's state, "cpu" or "cuda"; RuntimeError for other device types."""
    name = "cuda" if device_type == "opencl" else device_type
    if name not in DEVICE_TYPES:
        raise RuntimeError(
            f"unknown device type for autocast in get_autocast_dispatch_key_from_device_type: {device_type}"
        )
    return name


def is_autocast_available(device_type: str) -> bool:
    """Tell whether autocast knows a device type."""
    return device_type in (*DEVICE_TYPES, "opencl")


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Tell whether autocast is on for a device type."""
    return device_type not in _ABSENT and STATE.enabled[key(device_type)]


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast on or off for a device type ("cuda" when only the switch is given)."""
    if enabled is None:
        device_type, enabled = "cuda", bool(device_type)
    STATE.enabled[key(str(device_type))] = enabled
    STATE.active = any(STATE.enabled.values())
    if enabled:
        _install()


def _install() -> None:
    from .install import install

    install()


PREPARING.append(_install)


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the dtype listed ops compute in."""
    return _ABSENT.get(device_type) or STATE.dtypes[key(device_type)]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the dtype listed ops compute in."""
    STATE.dtypes[key(device_type)] = dtype


def is_autocast_cpu_enabled() -> bool:
    """Tell whether autocast is on for the cpu."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast on or off for the cpu."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dtype:
    """Return the dtype of autocast on the cpu."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Set the dtype of autocast on the cpu."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> dtype:
    """Return the dtype of autocast on GPUs."""
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Set the dtype of autocast on GPUs."""
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled() -> bool:
    """Tell whether low-precision copies of parameters are kept until autocast ends."""
    return STATE.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep low-precision copies of parameters until autocast ends, or not."""
    STATE.cache = enabled


def autocast_increment_nesting() -> int:
    """Count an autocast block entered; returns how many are open."""
    STATE.nesting += 1
    return STATE.nesting


def autocast_decrement_nesting() -> int:
    """Count an autocast block left; returns how many are open."""
    STATE.nesting -= 1
    return STATE.nesting


def clear_autocast_cache() -> None:
    """Drop the low-precision copies of parameters."""
    STATE.casts.clear()


PUBLIC = [
    is_autocast_enabled, set_autocast_enabled, get_autocast_dtype, set_autocast_dtype, is_autocast_cpu_enabled,
    set_autocast_cpu_enabled, get_autocast_cpu_dtype, set_autocast_cpu_dtype, get_autocast_gpu_dtype, set_autocast_gpu_dtype,
    is_autocast_cache_enabled, set_autocast_cache_enabled, autocast_increment_nesting, autocast_decrement_nesting,
    clear_autocast_cache,
]  # fmt: skip
