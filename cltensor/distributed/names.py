"""Names of torch.distributed that programs use beside the collectives: debug levels, option objects, older spellings."""

from __future__ import annotations

import enum
import os
import warnings
from datetime import timedelta
from typing import Any, ClassVar

from .reduction import RedOpType
from .rendezvous import default_pg_timeout

__all__ = [
    "AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions", "BroadcastOptions", "BuiltinCommHookType",
    "DebugLevel", "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions", "get_debug_level", "reduce_op",
    "set_debug_level", "set_debug_level_from_env",
]  # fmt: skip


class DebugLevel(enum.IntEnum):
    """Debug levels of TORCH_DISTRIBUTED_DEBUG.

    The level is stored only: collectives always check and report mismatches.
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


_level: list[DebugLevel] = []


def set_debug_level_from_env() -> None:
    """Set the level to that of TORCH_DISTRIBUTED_DEBUG. ValueError for an unknown one."""
    text = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if text not in DebugLevel.__members__:
        raise ValueError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL; got {text}"
        )
    _level[:] = [DebugLevel[text]]


def get_debug_level() -> DebugLevel:
    """Return the level."""
    if not _level:
        set_debug_level_from_env()
    return _level[0]


def set_debug_level(level: DebugLevel) -> None:
    """Set the level."""
    _level[:] = [level]


class BuiltinCommHookType(enum.IntEnum):
    """Communication hooks of DistributedDataParallel that are built into torch's core."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1


class _Options:
    """Options of a method of a group, in one object."""

    def __init__(self) -> None:
        self.reduceOp: Any = RedOpType.SUM
        self.rootRank = self.rootTensor = 0
        self.asyncOp = True
        self.timeout: timedelta = default_pg_timeout
        self.device_ids: list[int] = []


AllreduceOptions, AllreduceCoalescedOptions, ReduceOptions, ReduceScatterOptions = (
    type(name, (_Options,), {"__module__": __name__, "__doc__": "Options of a reduction."})
    for name in (
        "AllreduceOptions",
        "AllreduceCoalescedOptions",
        "ReduceOptions",
        "ReduceScatterOptions",
    )
)
BroadcastOptions, GatherOptions, ScatterOptions, AllToAllOptions, BarrierOptions = (
    type(name, (_Options,), {"__module__": __name__, "__doc__": "Options of a collective."})
    for name in (
        "BroadcastOptions",
        "GatherOptions",
        "ScatterOptions",
        "AllToAllOptions",
        "BarrierOptions",
    )
)


class _reduce_op:
    """The older name of ReduceOp, which warns that it is deprecated."""

    __members__: ClassVar[dict[str, RedOpType]] = dict(RedOpType.__members__)

    def __getattr__(self, name: str) -> RedOpType:
        if name not in RedOpType.__members__:
            raise AttributeError(name)
        warnings.warn(
            "torch.distributed.reduce_op is deprecated, please use torch.distributed.ReduceOp instead",
            FutureWarning, stacklevel=2,
        )  # fmt: skip
        return RedOpType[name]


reduce_op = _reduce_op()
