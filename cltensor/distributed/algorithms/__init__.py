"""`cltensor.distributed.algorithms`: uneven inputs, and hooks of DistributedDataParallel."""

from . import ddp_comm_hooks
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable", "ddp_comm_hooks"]
