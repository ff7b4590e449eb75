"""`torch.cuda.memory`: what the pool of a GPU holds, by torch's names, and limits of it.

The counters are those of `cltensor.runtime.memory`. A block belongs to one tensor as a whole, so that torch's "allocated"
and "active" are the same here; memory of the host is not pooled for transfers.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from .. import opencl
from ..errors import OutOfMemoryError  # noqa: F401 - torch has it here, too
from ..reexport import absent
from ..runtime import device as _device
from ..runtime import get_backend
from .devices import device_count, is_available, named

_BYTES = (
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
)
FORWARDED = (
    "synchronize",
    *_BYTES,
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
)


def forwarded(name: str, place: Callable[[Any], _device | None]) -> Any:
    """Return a function of `cltensor.opencl` that applies to the device `place(argument)`.

    If `place` returns None, there is no GPU: functions for bytes then return 0, statistics are empty, others do nothing.
    """
    fn = getattr(opencl, name)

    def call(device: Any = None) -> Any:
        found = place(device)
        if found is not None:
            return fn(found)
        return 0 if name in _BYTES else OrderedDict() if name == "memory_stats" else None

    call.__name__ = call.__qualname__ = name
    call.__doc__ = fn.__doc__
    return call


for _fn in (*FORWARDED, "empty_cache"):
    globals()[_fn] = forwarded(_fn, lambda device: named(device) if is_available() else None)


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return `memory_stats` as dicts in dicts: each dot in a name is a level."""
    nested: dict[str, Any] = {}
    for name, value in globals()["memory_stats"](device).items():
        *path, leaf = name.split(".")
        level = nested
        for key in path:
            level = level.setdefault(key, {})
        level[leaf] = value
    return nested


def host_memory_stats() -> dict[str, Any]:
    """Return an empty dict: there is no pool of pinned host memory."""
    return OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Return an empty dict: there is no pool of pinned host memory."""
    return {}


def reset_accumulated_host_memory_stats() -> None:
    """Do nothing: there is no pool of pinned host memory."""


def reset_peak_host_memory_stats() -> None:
    """Do nothing: there is no pool of pinned host memory."""


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the device's free and total bytes; all that this process's pool does not hold counts as free."""
    info = get_backend(named(device)).info
    return info.global_mem - opencl.memory_reserved(named(device)), info.global_mem


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the counters of the pool as lines of text."""
    return "\n".join(f"{k:36} {v:>16,}" for k, v in opencl.memory_stats(named(device)).items())


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """Return an empty list without a GPU; NotImplementedError with one: the pool has no record of what it gave out."""
    if is_available():
        raise NotImplementedError(
            "cuda.memory_snapshot: the pool has no record of the blocks it gave out; memory_stats() has its counters"
        )
    return []


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let the pool hold no more than a part of the device's memory; beyond that OutOfMemoryError is raised."""
    backend = get_backend(named(device))
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    backend.pool.limit = None if fraction == 1 else int(fraction * backend.info.global_mem)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the part of the device's memory that the pool may hold, 1.0 unless it was set."""
    backend = get_backend(named(device))
    limit = backend.pool.limit
    return 1.0 if limit is None else limit / backend.info.global_mem


def caching_allocator_enable(value: bool = True) -> None:
    """Let the pools of GPUs keep freed memory, as they do at first, or give it back to the driver."""
    for i in range(device_count()):
        backend = get_backend(named(i))
        with backend.lock:
            backend.pool.keep_freed(value)


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Give freed memory back to the driver inside the block."""
    caching_allocator_enable(False)
    try:
        yield
    finally:
        caching_allocator_enable(True)


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """NotImplementedError: memory of OpenCL devices has no address that other libraries could use."""
    get_backend(named(device))
    raise NotImplementedError(
        "cuda.caching_allocator_alloc: memory of OpenCL devices has no address that other libraries could use"
    )


caching_allocator_delete = caching_allocator_alloc


def get_allocator_backend() -> str:
    """Return "native": the pool is the library's own."""
    return "native"


def list_gpu_processes(device: Any = None) -> str:
    """Return a text that names this process, the only one whose memory is known here."""
    if not is_available():
        return "no GPU"
    found = named(device)
    used = opencl.memory_reserved(found) / (1 << 20)
    return f"GPU:{found.index or 0}\nprocess {os.getpid():>10d} uses {used:>12.3f} MB GPU memory"


def ipc_collect() -> None:
    """Do nothing: memory is not shared between processes."""


def _renamed(old: str, new: str, text: str) -> Callable[..., Any]:
    def call(device: Any = None) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return globals()[new](device=device)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"Deprecated name of `{new}`."
    return call


memory_cached, max_memory_cached = (
    _renamed(old, new, f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`")
    for old, new in (
        ("memory_cached", "memory_reserved"),
        ("max_memory_cached", "max_memory_reserved"),
    )
)
reset_max_memory_allocated, reset_max_memory_cached = (
    _renamed(
        old,
        "reset_peak_memory_stats",
        f"torch.cuda.{old} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
    )
    for old in ("reset_max_memory_allocated", "reset_max_memory_cached")
)

_OURS = "the pool of device memory is the library's own"
CUDAPluggableAllocator, MemPool = absent(__name__, "CUDAPluggableAllocator MemPool", _OURS)


def change_current_allocator(allocator: Any) -> None:
    """NotImplementedError: the pool of device memory is the library's own."""
    raise NotImplementedError(f"cuda.change_current_allocator: {_OURS}")


def use_mem_pool(pool: Any, device: Any = None) -> None:
    """NotImplementedError: there are no MemPool objects to use."""
    raise NotImplementedError(f"cuda.use_mem_pool: {_OURS}")
