"""`cltensor.mps`: Apple's GPUs are OpenCL devices here: `cltensor.opencl` and `cltensor.cuda` name them."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0
