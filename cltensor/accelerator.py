"""`cltensor.accelerator`: the machine's best OpenCL device that is not a CPU, by torch's device-neutral names."""

from __future__ import annotations

from typing import Any

from . import opencl
from .cuda import (
    FORWARDED,
    device_count,  # noqa: F401 - its name here
    forwarded,
    is_available,
)
from .cuda import current_device as current_device_index
from .cuda import device as device_index  # noqa: F401 - its name here
from .cuda import set_device as set_device_index  # noqa: F401 - its name here
from .runtime import device as _device


def current_accelerator(check_available: bool = False) -> _device | None:
    """Return the type of device to put tensors on, None when the CPU is all there is."""
    return _device("cuda") if is_available() else None


def _named(device: Any) -> _device:
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if device is None:
        return _device("cuda", current_device_index())
    return _device("cuda", device) if isinstance(device, int) else _device(device)


for _fn in FORWARDED:
    globals()[_fn] = forwarded(_fn, _named)


def empty_cache() -> None:
    """Return unused memory of the pools to the drivers."""
    opencl.empty_cache()
