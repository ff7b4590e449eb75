"""`cltensor.backends.mps`: Apple's Metal is not used; macOS offers its GPU through OpenCL."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False


def is_built() -> bool:
    """Return False."""
    return False
