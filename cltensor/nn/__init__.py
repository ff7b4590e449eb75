"""`cltensor.nn`: the functions of networks, parameters and buffers."""

from . import functional, parameter
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "parameter"]
