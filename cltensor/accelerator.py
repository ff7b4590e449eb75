"""`cltensor.accelerator`: the machine's best OpenCL device that is not a CPU, by torch's device-neutral names."""

from __future__ import annotations

from typing import Any

from . import opencl
from .cuda import current_device as current_device_index
from .cuda import (
    device_count,  # noqa: F401 - its name here
    is_available,
)
from .cuda import set_device as set_device_index  # noqa: F401 - its name here
from .runtime import device as _device


def current_accelerator(check_available: bool = False) -> _device | None:
    """Return the type of device to put tensors on, None when the CPU is all there is."""
    return _device("cuda") if is_available() else None


class device_index:
    """Context in which an accelerator, by number, is the default device."""

    def __init__(self, device: int) -> None:
        self._device = _device("cuda", device)

    def __enter__(self) -> None:
        self._device.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._device.__exit__(*exc)


def _named(device: Any) -> _device:
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if device is None:
        return _device("cuda", current_device_index())
    return _device("cuda", device) if isinstance(device, int) else _device(device)


def _forward(name: str) -> Any:
    fn = getattr(opencl, name)

    def call(device_index: Any = None) -> Any:
        return fn(_named(device_index))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = fn.__doc__
    return call


for _fn in (
    "synchronize",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "reset_peak_memory_stats",
    "memory_stats",
):
    globals()[_fn] = _forward(_fn)


def empty_cache() -> None:
    """Give unused memory of the pools back."""
    opencl.empty_cache()
