"""`cltensor.xpu`: has no devices. Intel's GPUs are OpenCL devices, found in `cltensor.opencl` and `cltensor.cuda`."""

from __future__ import annotations

from collections import OrderedDict

from .cuda import device_of  # noqa: F401 - torch.xpu has it, too
from .missing_devices import answering, raising, types
from .reexport import expose

_STATS = "max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict"
_MEMORY = (
    "change_current_allocator get_per_process_memory_fraction mem_get_info reset_accumulated_memory_stats reset_peak_memory_stats "
    "set_per_process_memory_fraction use_mem_pool"
)
_SEEDS = "get_rng_state initial_seed set_rng_state"
_QUIET = "empty_cache manual_seed manual_seed_all seed seed_all set_rng_state_all"  # torch ignores these without a device
_GRAPHS = "graph_pool_handle make_graphed_callables"
_SENSORS = "clock_rate device_memory_used memory_usage power_draw temperature utilization"
_DEVICES = (
    "can_device_access_peer current_device current_stream get_device_capability get_device_name get_device_properties "
    "get_stream_from_external init set_device set_stream synchronize"
)
_TYPES = "Event MemPool Stream StreamContext XPUGraph XPUPluggableAllocator device graph"
_WITHOUT = "Torch not compiled with XPU enabled"

default_generators: tuple[()] = ()
globals().update(
    answering(
        __name__,
        {
            **dict.fromkeys(_STATS.split()[:4], 0),
            "memory_snapshot": [],
            "memory_stats": OrderedDict(),
            "memory_stats_as_nested_dict": {},
            "device_count": 0,
            "get_arch_list": [],
            "get_gencode_flags": "",
            "get_rng_state_all": [],
            "is_current_stream_capturing": False,
            **dict.fromkeys(
                ("is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported"), False
            ),
            **dict.fromkeys(_QUIET.split()),
        },
    )
    | raising(__name__, f"{_MEMORY} {_SEEDS} {_GRAPHS} {_DEVICES}", AssertionError, _WITHOUT)
    | raising(__name__, _SENSORS, ImportError, "xpu.{}: there are no XPU devices")
    | types(__name__, _TYPES)
)


def stream(stream: object) -> object:
    """Accept None; AssertionError for a stream: there are no XPU devices."""
    if stream is not None:
        raise AssertionError(_WITHOUT)
    from contextlib import nullcontext

    return nullcontext()


expose(
    globals(),
    {
        "graphs": f"{_GRAPHS} XPUGraph graph is_current_stream_capturing",
        "memory": f"{_STATS} {_MEMORY} MemPool XPUPluggableAllocator empty_cache",
        "random": f"{_SEEDS} get_rng_state_all manual_seed manual_seed_all seed seed_all set_rng_state_all",
        "streams": "Event Stream",
    },
)
