"""`cltensor.distributed.elastic`: names for processes that `cltensor.distributed.run` started."""

from . import multiprocessing

__all__ = ["multiprocessing"]
