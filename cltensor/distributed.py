"""`cltensor.distributed`: the answer that there is none, in the words programs ask with.

`is_available()` is False, as in a torch built without it; names that programs import at their top exist and raise when used.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .reexport import absent, expose


def is_available() -> bool:
    """Return False."""
    return False


is_initialized = is_nccl_available = is_gloo_available = is_mpi_available = is_available
is_torchelastic_launched = is_available


def _absent(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"distributed.{name}(): cltensor works on the devices of one process (distributed.is_available() is False)"
        )

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "RuntimeError: there is one process."
    return call


for _name in (
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "distribute_module",
    "distribute_tensor",
    "fully_shard",
    "gather",
    "gather_object",
    "get_backend",
    "get_rank",
    "get_world_size",
    "implicit_replication",
    "init_device_mesh",
    "init_process_group",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "init_rpc",
    "remote",
    "rpc_async",
    "rpc_sync",
    "scatter",
    "shutdown",
    "send",
):
    globals()[_name] = _absent(_name)

_WHY = "cltensor works on the devices of one process"
DeviceMesh, ProcessGroup, ReduceOp, Work, DTensor, Partial, Placement, Replicate, Shard = absent(
    __name__,
    "DeviceMesh ProcessGroup ReduceOp Work DTensor Partial Placement Replicate Shard",
    _WHY,
)
DistributedOptimizer, PostLocalSGDOptimizer, ZeroRedundancyOptimizer = absent(
    __name__, "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer", _WHY
)
FSDPModule, FullyShardedDataParallel = absent(__name__, "FSDPModule FullyShardedDataParallel", _WHY)
_collectives = "all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter"
_names = (
    "all_gather all_reduce barrier broadcast get_rank get_world_size new_group ProcessGroup Work"
)
expose(
    globals(),
    {
        "_tensor": "DTensor Replicate Shard distribute_tensor",
        "rpc": "init_rpc remote rpc_async rpc_sync shutdown",
        "_composable": "FSDPModule fully_shard",
        "_composable.fsdp": "FSDPModule fully_shard",
        "_tensor.experimental": "implicit_replication",
        "device_mesh": "DeviceMesh init_device_mesh",
        "distributed_c10d": f"{_names} ReduceOp is_initialized",
        "fsdp": "FSDPModule FullyShardedDataParallel fully_shard",
        "nn": _collectives,
        "nn.functional": _collectives,
        "optim": "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer",
        "tensor": "DTensor DeviceMesh Partial Placement Replicate Shard distribute_module distribute_tensor",
    },
)
