"""Functions at torch's top level that few programs call, loaded when one is first asked for. No kernels of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .autograd import no_grad
from .ops.operands import check_tensor
from .ops.row import FUNCTIONS
from .reexport import absent
from .tensor import Tensor

has_lapack = has_spectral = True  # factorizations and Fourier transforms are the library's own
has_mkl = has_openmp = False

(qscheme,) = absent("cltensor", "qscheme", "there are no quantised tensors")


class FatalError(Exception):
    """torch's error for failures after which a process cannot go on; never raised here."""


def is_distributed(input: Tensor) -> bool:
    """Return False, as torch does of every tensor."""
    check_tensor("is_distributed", "input", 1, input)
    return False


def is_vulkan_available() -> bool:
    """Return False: devices are OpenCL's."""
    return False


def init_num_threads() -> None:
    """Do nothing: the number of threads is a property of the cpu device, not of the calling thread."""


def dequantize(input: Tensor) -> Tensor:
    """Return the values as float32: there are no quantised tensors."""
    check_tensor("dequantize", "tensor", 1, input)
    return input.float()


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raise RuntimeError unless a number is between two others."""
    if (min is not None and size < min) or (max is not None and size > max):
        low, high = -(1 << 63) if min is None else min, (1 << 63) - 1 if max is None else max
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


def sym_constrain_range_for_size(
    size: Any, *, min: int | None = None, max: int | None = None
) -> None:
    """Raise RuntimeError unless a number is between two others, and not negative."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """Return each channel's mean and variance, divided by the count, and update the running ones if given.

    The running variance is updated by the variance divided by the count less one, as in training.
    """
    dims = [d for d in range(input.ndim) if d != 1]
    with no_grad():
        var, mean = FUNCTIONS["var_mean"](input, dims, correction=0)
        count = input.numel() // input.shape[1]
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            unbiased = var * (count / max(count - 1, 1))
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return mean, var


def resize_as_sparse_(input: Any, the_template: Any) -> Any:
    """Give a sparse tensor the sizes of another; entries stay, so that dims may grow only."""
    return input.sparse_resize_(
        the_template.shape, the_template.sparse_dim(), the_template.dense_dim()
    )


def _copy_of(name: str) -> Callable[..., Tensor]:
    def call(input: Tensor) -> Tensor:
        check_tensor(f"{name}_copy", "input", 1, input)
        return getattr(input, name)().clone()

    call.__name__ = call.__qualname__ = f"{name}_copy"
    call.__doc__ = f"Return a copy of a sparse tensor's `{name}()`."
    return call


(
    ccol_indices_copy,
    col_indices_copy,
    crow_indices_copy,
    indices_copy,
    row_indices_copy,
    values_copy,
) = (
    _copy_of(name)
    for name in ("ccol_indices", "col_indices", "crow_indices", "indices", "row_indices", "values")
)

__all__ = [
    "FatalError", "batch_norm_update_stats", "ccol_indices_copy", "col_indices_copy", "crow_indices_copy", "dequantize", "has_lapack",
    "has_mkl", "has_openmp", "has_spectral", "indices_copy", "init_num_threads", "is_distributed", "is_vulkan_available", "qscheme",
    "resize_as_sparse_", "row_indices_copy", "sym_constrain_range", "sym_constrain_range_for_size", "values_copy",
]  # fmt: skip
