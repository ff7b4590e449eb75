"""`cltensor.backends.mps`: Apple's Metal is not used; macOS offers its GPU through OpenCL."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False


def is_built() -> bool:
    """Return False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Return False: macOS's version matters to Metal only."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return False: macOS's version matters to Metal only."""
    return False


def get_name() -> str:
    """RuntimeError: there are no MPS devices."""
    raise RuntimeError("backends.mps.get_name: there is no MPS backend")


def get_core_count() -> int:
    """RuntimeError: there are no MPS devices."""
    raise RuntimeError("backends.mps.get_core_count: there is no MPS backend")
