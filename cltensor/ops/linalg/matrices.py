"""Helpers shared by the functions of matrices: checks and errors, named results, parts of matrices."""

from __future__ import annotations

from typing import Any

from ...codegen.pointwise import IDENTITY
from ...lazy import Expr, Scalar
from .. import return_types
from ..core import Tensor
from ..operands import check_tensor
from ..refusals import no_kernel
from ..row import FUNCTIONS


class LinAlgError(RuntimeError):
    """A matrix that an algorithm of linear algebra cannot handle: singular, not positive-definite, not converging."""

    __module__ = "torch._C"
    __qualname__ = "_LinAlgError"


LinAlgError.__name__ = "_LinAlgError"


def named(name: str, *fields: str) -> Any:
    """Make a named tuple class and register it in `return_types`."""
    made = return_types._class(name, fields)
    setattr(return_types, name, made)
    return made


# ------------------------------------------------------------------------------------------- checks

LAPACK = ("float32", "float64", "complex64", "complex128")


def check_matrix(x: Any, function: str, name: str = "A") -> None:
    """Raise torch's errors unless `x` is a tensor with at least two dims."""
    check_tensor(function.replace(".", "_"), name, 1, x)
    if x.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")


def check_float(x: Tensor, function: str, kernel: str = "") -> None:
    """Raise torch's errors unless the dtype is one of LAPACK's four: 32- or 64-bit floats, real or complex.

    kernel: torch's name of what refuses shorter floats, if that is not the function; if `function` is empty, of what
    refuses all other dtypes.
    """
    if x.dtype.name in LAPACK:
        return
    name = x.dtype.scalar_name
    if x.dtype.category < 2 and function:
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as input. Got {name}"
        )
    if kernel:
        raise no_kernel(kernel, x.dtype)
    raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {name}")


def check_square(x: Any, function: str) -> None:
    """Raise torch's errors unless `x` is a batch of square matrices."""
    check_matrix(x, function)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{function}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )


# ------------------------------------------------------------------------------------------- parts of matrices


def adjoint(x: Tensor) -> Tensor:
    """Conjugate transpose."""
    t = x.transpose(-2, -1)
    return t.conj() if x.dtype.is_complex else t


def tril(x: Tensor, k: int = 0) -> Tensor:
    """Lower triangle, differentiable."""
    return FUNCTIONS["tril"](x, k)


def triu(x: Tensor, k: int = 0) -> Tensor:
    """Upper triangle, differentiable."""
    return FUNCTIONS["triu"](x, k)


def diagonal(x: Tensor) -> Tensor:
    """Diagonals of the last two dims."""
    return x.diagonal(0, -2, -1)


def diag(x: Tensor) -> Tensor:
    """Matrices with the last dim on their diagonals."""
    return FUNCTIONS["diag_embed"](x)


def eye_like(x: Tensor) -> Tensor:
    """The identity of a square matrix's size."""
    return FUNCTIONS["eye"](x.shape[-1], dtype=x.dtype, device=x.device)


def absent(g: Tensor) -> bool:
    """Return whether an output's gradient is all zeros, as it is for an output from which nothing was computed.

    May wait for the device.
    """
    if g._node is not None or g._requires:
        return False
    value = g._storage.value
    if value.__class__ is Expr and value.op is IDENTITY and value.args[0].__class__ is Scalar:
        return value.args[0].value == 0
    return not g.numel() or not bool((g != 0).any())
