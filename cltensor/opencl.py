"""`cltensor.opencl`: devices, memory and synchronisation, for any device (None: the default one)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from . import lazy
from .codegen import checks
from .runtime import (
    Backend,
    DeviceInfo,
    default_device,
    device,
    device_list,
    get_backend,
    in_use,
)


def _backend(dev: Any) -> Backend:
    if dev is None:
        return get_backend(default_device())
    return get_backend(device("opencl", dev) if isinstance(dev, int) else device(dev))


def is_available() -> bool:
    """Tell whether there is an OpenCL device."""
    return device_count() > 0


def device_count() -> int:
    """Return the number of OpenCL devices of all platforms."""
    return sum(d.type == "opencl" for d in device_list())


def devices() -> list[device]:
    """Return every device: "cpu" first, then "opencl:0" and on."""
    return device_list()


def get_device_properties(device: Any = None) -> DeviceInfo:
    """Return the record of a device's properties."""
    return _backend(device).info


def get_device_name(device: Any = None) -> str:
    """Return the device's name."""
    return _backend(device).info.name


def current_device() -> int:
    """Return the default device's index."""
    return default_device().index or 0


def synchronize(device: Any = None) -> None:
    """Run all pending work and wait for it; on every device in use if none is named."""
    for backend in in_use() if device is None else (_backend(device),):
        if backend.pending or backend.left:
            lazy.flush(backend)
        backend.finish()
        checks.flush_checks(backend)


def flush(device: Any = None) -> None:
    """Start all pending work without waiting for it; on every device in use if none is named."""
    for backend in in_use() if device is None else (_backend(device),):
        lazy.flush(backend)


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that tensors hold."""
    return _backend(device).pool.active


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes that tensors held since the start or the last reset."""
    return _backend(device).pool.peak


def memory_reserved(device: Any = None) -> int:
    """Return the bytes the pool holds, those of tensors included."""
    return _backend(device).pool.held


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes the pool held since the start or the last reset."""
    return _backend(device).pool.peak_held


def reset_peak_memory_stats(device: Any = None) -> None:
    """Set the peaks to the bytes that tensors and the pool hold now."""
    _backend(device).pool.reset_peak()


reset_max_memory_allocated = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Count buffers, blocks, retries and refusals from now on; peaks stay."""
    _backend(device).pool.reset_counts()


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return the pool's figures by torch's names, as far as the pool knows them.

    A tensor's block is in use as a whole: bytes "allocated" and "active" are the same. A segment is a block that the
    driver allocated.
    """
    pool = _backend(device).pool
    active, held = pool.active, pool.held
    given, created, released, retries, refused = pool.counts()
    return OrderedDict(
        {
            "active_bytes.all.current": active,
            "active_bytes.all.peak": pool.peak,
            "allocated_bytes.all.current": active,
            "allocated_bytes.all.peak": pool.peak,
            "allocation.all.allocated": given,
            "num_alloc_retries": retries,
            "num_device_alloc": created,
            "num_device_free": released,
            "num_ooms": refused,
            "reserved_bytes.all.current": held,
            "reserved_bytes.all.peak": pool.peak_held,
            "segment.all.allocated": created,
            "segment.all.current": pool.created - pool.released,
            "segment.all.freed": released,
        }
    )


def empty_cache(device: Any = None) -> None:
    """Return unused memory of the pools to the drivers."""
    for backend in in_use() if device is None else (_backend(device),):
        backend.empty_cache()
