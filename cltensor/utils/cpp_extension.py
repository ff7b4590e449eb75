"""`torch.utils.cpp_extension`: names that raise when called: cltensor has no C++ core that extensions could use."""

from __future__ import annotations

from ..reexport import absent

__all__ = [
    "CUDA_HOME",
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "include_paths",
    "load",
    "load_inline",
]

CUDA_HOME = None
BuildExtension, CUDAExtension, CppExtension, include_paths, load, load_inline = absent(
    __name__,
    "BuildExtension CUDAExtension CppExtension include_paths load load_inline",
    "extensions of torch's C++ core do not fit a library of OpenCL kernels",
)
