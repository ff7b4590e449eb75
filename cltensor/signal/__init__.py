"""`cltensor.signal`: signal processing under torch's names."""

from . import windows

__all__ = ["windows"]
