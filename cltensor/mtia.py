"""`cltensor.mtia`: has no devices; Meta's accelerators have no OpenCL driver."""

from __future__ import annotations

from typing import Any

from .missing_devices import answering, raising, types
from .reexport import expose

_MEMORY = "max_memory_allocated memory_allocated memory_stats reset_peak_memory_stats"
_QUIET = "manual_seed manual_seed_all record_memory_history reset_peak_memory_stats seed seed_all set_rng_state_all"
_DEVICES = (
    "attach_out_of_memory_observer current_device current_stream default_stream empty_cache get_device_capability "
    "get_device_properties graph_pool_handle set_device set_stream snapshot stream synchronize"
)
_TYPES = "Event MTIAGraph Stream StreamContext device graph"
_ANSWERS: dict[str, Any] = {
    "device_count": 0,
    "get_rng_state_all": [],
    "is_available": False,
    "is_bf16_supported": True,
    "is_initialized": False,
    "max_memory_allocated": 0,
    "memory_allocated": 0,
    "memory_stats": {},
    **dict.fromkeys(_QUIET.split()),
}
_STARTED = "get_rng_state init initial_seed set_rng_state"
globals().update(
    answering(__name__, _ANSWERS)
    | raising(__name__, _DEVICES, RuntimeError, "Cannot execute {}() without MTIA backend.")
    | raising(__name__, _STARTED, AssertionError, "Torch not compiled with MTIA enabled.")
    | types(__name__, _TYPES)
)
expose(globals(), {"memory": _MEMORY, "mtia_graph": "MTIAGraph graph graph_pool_handle"})
__all__ = [*_ANSWERS, *_DEVICES.split(), *_STARTED.split(), *_TYPES.split()]  # noqa: PLE0604 - the tables decide
