"""`torch.utils.cpp_extension`: there is no C++ underneath that code could be compiled against; what asks for it is told so when it builds."""

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
