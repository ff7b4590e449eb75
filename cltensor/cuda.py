"""`cltensor.cuda`: the names torch programs ask a GPU by. A GPU here is any OpenCL device of that kind."""

from __future__ import annotations

from typing import Any

from . import opencl
from .runtime import default_device, get_backend
from .runtime import device as _device
from .runtime.device import DeviceInfo, platforms


def is_available() -> bool:
    """Tell whether there is a GPU."""
    return device_count() > 0


def device_count() -> int:
    """Return the number of GPUs."""
    return len(platforms().gpus)


def _name(device: Any) -> _device:
    if device is None:
        return _device("cuda", current_device())
    return _device("cuda", device) if isinstance(device, int) else _device(device)


def current_device() -> int:
    """Return the index of the GPU that "cuda" means."""
    found = default_device()
    return found.index or 0 if found.type == "cuda" else 0


def set_device(device: Any) -> None:
    """Accepted: name the device where tensors are made instead."""
    _name(device)


class device:
    """Context in which a GPU is the default device."""

    def __init__(self, device: Any) -> None:
        self._device = _name(device)

    def __enter__(self) -> None:
        self._device.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._device.__exit__(*exc)


def get_device_name(device: Any = None) -> str:
    """Return the GPU's name."""
    return get_backend(_name(device)).info.name


def get_device_properties(device: Any = None) -> DeviceInfo:
    """Return the record of what a GPU can do."""
    return get_backend(_name(device)).info


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return (0, 0): OpenCL devices have no CUDA capability."""
    get_backend(_name(device))
    return (0, 0)


def _forward(name: str) -> Any:
    fn = getattr(opencl, name)

    def call(device: Any = None) -> Any:
        return (
            fn(_name(device))
            if is_available()
            else (0 if name.startswith(("memory", "max")) and name != "memory_stats" else None)
        )

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
    "empty_cache",
):
    globals()[_fn] = _forward(_fn)


def is_initialized() -> bool:
    """Tell whether there is a GPU."""
    return is_available()


def is_bf16_supported() -> bool:
    """Tell whether bfloat16 can be stored: always."""
    return True


def manual_seed(seed: int) -> None:
    """Seed the generator; there is one for all devices."""
    from . import random

    random.manual_seed(seed)


manual_seed_all = manual_seed
