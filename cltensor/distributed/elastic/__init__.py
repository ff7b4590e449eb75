"""`cltensor.distributed.elastic`: what processes that `cltensor.distributed.run` started use."""

from . import multiprocessing

__all__ = ["multiprocessing"]
