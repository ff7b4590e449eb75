"""`cltensor.mps`: has no devices. Apple's GPUs are OpenCL devices, found in `cltensor.opencl` and `cltensor.cuda`."""

from __future__ import annotations

from .missing_devices import answering, raising, types
from .reexport import expose

_PROFILER = "start stop profile metal_capture"
# torch's functions -> what its error says they needed.
_HOOKS = {
    "current_allocated_memory": "getCurrentAllocatedMemory",
    "driver_allocated_memory": "getDriverAllocatedMemory",
    "empty_cache": "emptyCache",
    "get_rng_state": "getDefaultGenerator",
    "manual_seed": "getDefaultGenerator",
    "recommended_max_memory": "getRecommendedMaxMemory",
    "seed": "getDefaultGenerator",
    "set_per_process_memory_fraction": "setMemoryFraction",
    "set_rng_state": "getDefaultGenerator",
    "synchronize": "deviceSynchronize",
}
globals().update(
    answering(__name__, {"is_available": False, "device_count": 0})
    | answering(__name__, {"is_metal_capture_enabled": False, "is_capturing_metal": False})
    | raising(__name__, _PROFILER, RuntimeError, "mps.profiler.{}: there is no MPS backend.")
    | raising(
        __name__, "compile_shader load_metallib", RuntimeError, "MPS is not available: mps.{}"
    )
    | types(__name__, "Event")
)
for _name, _hook in _HOOKS.items():
    globals().update(
        raising(__name__, _name, RuntimeError, f"Cannot execute {_hook}() without MPS backend.")
    )

expose(
    globals(),
    {
        "event": "Event",
        "profiler": f"{_PROFILER} is_metal_capture_enabled is_capturing_metal",
    },
)
__all__ = ["Event", "compile_shader", "device_count", "is_available", "load_metallib", "profiler", *_HOOKS]  # noqa: PLE0604, F822 - the tables decide  # fmt: skip
