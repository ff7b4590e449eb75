"""`torch._tensor`: where torch keeps the class; programs import it from there."""

from .tensor import Tensor

__all__ = ["Tensor"]
