"""`cltensor.backends.cpu`: the instruction set is the OpenCL driver's to choose."""

from __future__ import annotations


def get_cpu_capability() -> str:
    """Return "DEFAULT": kernels are compiled for the processor by the driver."""
    return "DEFAULT"
