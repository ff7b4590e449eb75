"""`cltensor.__config__`: descriptions of the package's build and threads as text."""

from __future__ import annotations

from .version import __version__

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Return the version of the package, and that there is neither CUDA nor MKL."""
    return (
        f"cltensor {__version__}:\n"
        "  - Kernels are OpenCL C, compiled for the device when they are first needed\n"
        "  - LAPACK is numpy's\n"
        "  - Build settings: USE_CUDA=OFF, USE_MKL=OFF, USE_MKLDNN=OFF, USE_OPENMP=OFF, USE_ROCM=OFF\n"
    )


def parallel_info() -> str:
    """Return how many threads work on the cpu device."""
    from . import get_num_interop_threads, get_num_threads

    return (
        "cltensor:\n"
        f"\tget_num_threads() : {get_num_threads()}\n"
        f"\tget_num_interop_threads() : {get_num_interop_threads()}\n"
    )
