"""The choices of torch.distributed.fsdp, which programs name where they offer it. Nothing is sharded here."""

from __future__ import annotations

from enum import Enum, auto

__all__ = ["BackwardPrefetch", "OptimStateKeyType", "ShardingStrategy", "StateDictType"]


class BackwardPrefetch(Enum):
    """When parameters of the next layer are gathered in backward passes."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class OptimStateKeyType(Enum):
    """What an optimiser's states are listed by."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class ShardingStrategy(Enum):
    """What is divided among processes."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class StateDictType(Enum):
    """Which part of a state each process gets."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()
