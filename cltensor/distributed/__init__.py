"""`cltensor.distributed`: processes, on one machine or several, that compute together.

Groups carry tensors of all devices over TCP, under torch's name "gloo": those of the cpu device directly from their
memory, others by a copy in host memory. Sharded tensors and modules, device meshes and remote calls are not here; their
names exist and raise when used.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, NoReturn

from ..reexport import absent, expose
from . import algorithms, collectives, groups, names, nn, objects, point_to_point
from .collectives import *
from .errors import *
from .groups import *
from .groups import default_group as _get_default_group
from .groups import rank_not_in_group as _rank_not_in_group
from .names import *
from .objects import *
from .placements import Partial, Placement, Replicate, Shard, _StridedShard
from .point_to_point import *
from .process_group import ProcessGroup
from .reducer import GradBucket, Reducer
from .reduction import ReduceOp, supports_complex
from .rendezvous import default_pg_timeout, register_rendezvous_handler, rendezvous
from .sharding import BackwardPrefetch, OptimStateKeyType, ShardingStrategy, StateDictType
from .store import *
from .tcp_store import TCPStore
from .work import Work


def __getattr__(name: str) -> Any:  # loaded when first used: it needs all of the optimisers
    if name == "optim":
        return importlib.import_module(f"{__name__}.optim")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_available() -> bool:
    """Return True."""
    return True


_WHY = "cltensor has data parallelism: no sharded tensors or modules, and no remote calls"


def _absent(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"distributed.{name}(): {_WHY}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"RuntimeError: {_WHY}."
    return call


for _name in (
    "all_to_all_single_autograd",
    "compute_local_shape_and_global_offset",
    "distribute_module",
    "distribute_tensor",
    "fully_shard",
    "implicit_replication",
    "init_device_mesh",
    "init_rpc",
    "parallelize_module",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
    "size_based_auto_wrap_policy",
    "split_group",
    "transformer_auto_wrap_policy",
    "wait_tensor",
):
    globals()[_name] = _absent(_name)

DeviceMesh, DTensor = absent(__name__, "DeviceMesh DTensor", _WHY)
HuggingFaceStorageReader, HuggingFaceStorageWriter = absent(
    __name__, "HuggingFaceStorageReader HuggingFaceStorageWriter", _WHY
)
ParallelStyle, ColwiseParallel, RowwiseParallel, SequenceParallel = absent(
    __name__, "ParallelStyle ColwiseParallel RowwiseParallel SequenceParallel", _WHY
)
FSDPModule, FullyShardedDataParallel = absent(__name__, "FSDPModule FullyShardedDataParallel", _WHY)
CPUOffloadPolicy, MixedPrecisionPolicy, ModuleWrapPolicy = absent(
    __name__, "CPUOffloadPolicy MixedPrecisionPolicy ModuleWrapPolicy", _WHY
)
_FSDP = (
    "DataParallelMeshDims FullOptimStateDictConfig FullStateDictConfig LocalOptimStateDictConfig LocalStateDictConfig OffloadPolicy "
    "OptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig StateDictConfig StateDictSettings UnshardHandle"
)
_PARALLEL = "PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput"
_WRAP = "CustomPolicy always_wrap_policy enable_wrap lambda_auto_wrap_policy wrap"
_CALLS = "loss_parallel register_fsdp_forward_method share_comm_ctx"
for _names in (_FSDP, _PARALLEL, _WRAP, _CALLS):
    globals().update(zip(_names.split(), absent(__name__, _names, _WHY), strict=True))
CPUOffload, MixedPrecision = absent(__name__, "CPUOffload MixedPrecision", _WHY)
ProcessGroupGloo = ProcessGroup
GroupName = str
_of_groups = " ".join(
    [
        *collectives.__all__,
        *groups.__all__,
        *objects.__all__,
        *point_to_point.__all__,
        *names.__all__,
    ]
)
expose(
    globals(),
    {
        "_functional_collectives": "all_to_all_single_autograd wait_tensor",
        "_tensor": "DTensor Replicate Shard distribute_tensor",
        "rpc": "init_rpc remote rpc_async rpc_sync shutdown",
        "_composable": "FSDPModule fully_shard",
        "_composable.fsdp": "CPUOffloadPolicy FSDPModule MixedPrecisionPolicy fully_shard",
        "_tensor.experimental": "implicit_replication",
        "device_mesh": "DeviceMesh init_device_mesh",
        "fsdp": f"{_FSDP} BackwardPrefetch OptimStateKeyType StateDictType register_fsdp_forward_method share_comm_ctx CPUOffload CPUOffloadPolicy FSDPModule FullyShardedDataParallel MixedPrecision MixedPrecisionPolicy ShardingStrategy fully_shard",
        "fsdp.fully_sharded_data_parallel": "FullyShardedDataParallel OptimStateKeyType",
        "fsdp.api": f"{_FSDP} BackwardPrefetch StateDictType CPUOffload MixedPrecision ShardingStrategy",
        "fsdp.wrap": f"{_WRAP} ModuleWrapPolicy size_based_auto_wrap_policy transformer_auto_wrap_policy",
        "constants": "default_pg_timeout",
        "distributed_c10d": f"{_of_groups} GroupName ProcessGroup ProcessGroupGloo ReduceOp Store PrefixStore Work default_pg_timeout "
        "supports_complex _get_default_group _rank_not_in_group",
        "tensor": "DTensor DeviceMesh Partial Placement Replicate Shard distribute_module distribute_tensor",
        "tensor._utils": "compute_local_shape_and_global_offset",
        "tensor.device_mesh": "DeviceMesh init_device_mesh",
        "tensor.parallel": f"{_PARALLEL} loss_parallel ColwiseParallel ParallelStyle RowwiseParallel SequenceParallel parallelize_module",
        "tensor.parallel.api": "parallelize_module",
        "tensor.parallel.loss": "loss_parallel",
        "tensor.parallel.style": f"{_PARALLEL} ColwiseParallel ParallelStyle RowwiseParallel SequenceParallel",
        "tensor.placement_types": "Partial Placement Replicate Shard _StridedShard",
    },
)


def _no_calls() -> bool:
    """Return False: there are no remote calls."""
    return False


vars(sys.modules[f"{__name__}.rpc"])["is_available"] = _no_calls
