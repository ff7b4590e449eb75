"""`cltensor.distributed.optim`: optimisers that processes share the work of."""

from __future__ import annotations

from ...reexport import absent
from .zero_redundancy import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

DistributedOptimizer, PostLocalSGDOptimizer = absent(
    __name__,
    "DistributedOptimizer PostLocalSGDOptimizer",
    "cltensor has data parallelism: no remote calls, no local steps",
)
