"""`cltensor.xpu`: has no devices. Intel's GPUs are OpenCL devices, found in `cltensor.opencl` and `cltensor.cuda`."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0
