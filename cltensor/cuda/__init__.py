"""`cltensor.cuda`: torch's functions for GPUs. A GPU here is any OpenCL device of that type.

Names are loaded with their module when they are first used. Owns the table that says where a name is.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..reexport import lend
from .devices import (
    _lazy_call,
    _lazy_init,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
)

_GRAPHS = "CUDAGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables"
_HOMES = {
    "memory": "CUDAPluggableAllocator MemPool OutOfMemoryError caching_allocator_alloc caching_allocator_delete caching_allocator_disabled "
    "caching_allocator_enable change_current_allocator empty_cache get_allocator_backend get_per_process_memory_fraction host_memory_stats "
    "host_memory_stats_as_nested_dict ipc_collect list_gpu_processes max_memory_allocated max_memory_cached max_memory_reserved mem_get_info "
    "memory_allocated memory_cached memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary "
    "reset_accumulated_host_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached "
    "reset_peak_host_memory_stats reset_peak_memory_stats set_per_process_memory_fraction synchronize use_mem_pool",
    "random": "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state set_rng_state_all",
    "streams": "Event Stream StreamContext current_stream default_stream set_stream stream",
    "toolkit": f"{_GRAPHS} CudaError DeferredCudaCallError ExternalStream GreenContext check_error clock_rate cudaStatus cudart "
    "current_blas_handle current_solver_handle device_memory_used get_stream_from_external get_sync_debug_mode has_half has_magma "
    "memory_usage power_draw set_sync_debug_mode temperature utilization",
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names.split()}
_SUBMODULES = ("amp", "memory", "nvtx", "random", "sparse", "streams", "tunable")
_STORAGES = [
    "BFloat16Storage",
    "BoolStorage",
    "ByteStorage",
    "CharStorage",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "FloatStorage",
    "HalfStorage",
    "IntStorage",
    "LongStorage",
    "ShortStorage",
]

lend(
    globals(),
    {
        "comm": ("nn.parallel.comm", "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter"),
        "gds": ("cuda.toolkit", "GdsFile gds_deregister_buffer gds_register_buffer"),
        "graphs": ("cuda.toolkit", _GRAPHS),
        "green_contexts": ("cuda.toolkit", "GreenContext"),
        "jiterator": ("cuda.toolkit", "_create_jit_fn _create_multi_output_jit_fn"),
        "nccl": (
            "cuda.toolkit",
            "all_gather all_reduce broadcast init_rank is_available reduce reduce_scatter unique_id version",
        ),
        "profiler": ("cuda.toolkit", "profile start stop"),
    },
)  # fmt: skip

__all__ = [  # noqa: PLE0604 - the table decides
    *_WHERE,
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "set_device",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _WHERE:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    if name == "default_generators":
        return importlib.import_module(f"{__name__}.random").default_generators()
    if name in _STORAGES:
        from ..storages import on_gpu

        return on_gpu(name)
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_SUBMODULES, *_STORAGES, "default_generators"})
