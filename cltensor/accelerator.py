"""`cltensor.accelerator`: the machine's best OpenCL device that is not a CPU, by torch's device-neutral names."""

from __future__ import annotations

from typing import Any

from . import dtypes, opencl
from .cuda import (
    current_device,
    device,
    device_count,  # noqa: F401 - its name here
    is_available,
    set_device,
)
from .cuda.memory import FORWARDED, forwarded, mem_get_info
from .cuda.streams import Stream
from .legacy import TENSOR_NAMES
from .reexport import absent, expose
from .runtime import device as _device
from .runtime import get_backend


def current_accelerator(check_available: bool = False) -> _device | None:
    """Return the type of device to put tensors on, None when the CPU is all there is."""
    return _device("cuda") if is_available() else None


def _named(device: Any) -> _device:
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if device is None:
        return _device("cuda", current_device())
    return _device("cuda", device) if isinstance(device, int) else _device(device)


def _checked(fn: Any) -> Any:
    """Return a function of `cltensor.cuda` that raises torch's error where there is no accelerator."""

    def call(*args: Any) -> Any:
        _named(None)
        return fn(*args)

    call.__name__, call.__doc__ = fn.__name__, fn.__doc__
    return call


for _fn in FORWARDED:
    globals()[_fn] = forwarded(_fn, _named)
current_device_index = current_device_idx = _checked(current_device)
set_device_index = set_device_idx = _checked(set_device)
device_index = device
get_memory_info = _checked(mem_get_info)
(Graph,) = absent(__name__, "Graph", "`cltensor.capture` records launches")


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """Return {"supported_dtypes": ...}: the dtypes that tensors on a device may have."""
    info = get_backend(_named(device)).info
    doubles = (dtypes.float64, dtypes.complex128)
    found = {dt for dt in TENSOR_NAMES.values() if info.fp64 or dt not in doubles}
    return {"supported_dtypes": found}


def current_stream(device: Any = None) -> Stream:
    """Return the device's stream."""
    return Stream(_named(device))


def set_stream(stream: Stream) -> None:
    """Do nothing: a device has one stream."""
    _named(stream.device)


def empty_cache() -> None:
    """Return unused memory of the pools to the drivers. RuntimeError without an accelerator."""
    _named(None)
    opencl.empty_cache()


def empty_host_cache() -> None:
    """Do nothing: there is no pool of pinned host memory. RuntimeError without an accelerator."""
    _named(None)


expose(
    globals(),
    {
        "graphs": "Graph",
        "memory": "empty_cache empty_host_cache get_memory_info max_memory_allocated max_memory_reserved memory_allocated memory_reserved "
        "memory_stats reset_accumulated_memory_stats reset_peak_memory_stats",
    },
)
