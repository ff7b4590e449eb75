"""`cltensor.nn`: the functions of networks."""

from . import functional

__all__ = ["functional"]
