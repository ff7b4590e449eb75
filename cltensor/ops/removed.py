"""Names that torch kept of functions it removed: each says what has taken its place."""

from __future__ import annotations

from typing import Any

from .core import Tensor
from .row import public

_GONE = "This function was deprecated since version 1.9 and is now removed"
_DEFAULT = (
    "The default behavior has changed from using the upper triangular portion of the matrix by default to using the lower triangular "
    "portion.\n\nL, _ = torch.symeig(A, upper=upper) should be replaced with:\nL = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')\n\n"
    "and\n\nL, V = torch.symeig(A, eigenvectors=True) should be replaced with:\nL, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')"
)
_COMPLEX = (
    "`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors mimicking complex tensors.\n\n"
    "L, _ = torch.eig(A) should be replaced with:\nL_complex = torch.linalg.eigvals(A)\n\n"
    "and\n\nL, V = torch.eig(A, eigenvectors=True) should be replaced with:\nL_complex, V_complex = torch.linalg.eig(A)"
)
_SQUARES = (
    "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n`torch.linalg.lstsq` has reversed arguments and does not return the QR "
    "decomposition in the returned tuple (although it returns other information about the problem).\n\n"
    "To get the QR decomposition consider using `torch.linalg.qr`.\n\n"
    "The returned solution in `torch.lstsq` stored the residuals of the solution in the last m - n columns of the returned value whenever "
    "m > n. In torch.linalg.lstsq, the residuals are in the field 'residuals' of the returned named tuple.\n\n"
    "The unpacking of the solution, as in\nX, _ = torch.lstsq(B, A).solution[:A.size(1)]\n"
    "should be replaced with:\nX = torch.linalg.lstsq(A, B).solution"
)
_SYSTEM = (
    "`torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed and does not return the "
    "LU factorization.\n\nTo get the LU factorization see `torch.lu`, which can be used with `torch.lu_solve` or `torch.lu_unpack`.\n"
    "X = torch.solve(B, A).solution should be replaced with:\nX = torch.linalg.solve(A, B)"
)


@public()
def eig(input: Tensor, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> Any:
    """Removed: RuntimeError names `linalg.eig`."""
    raise RuntimeError(f"{_GONE}. {_COMPLEX}")


@public()
def symeig(
    input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Any = None
) -> Any:
    """Removed: RuntimeError names `linalg.eigh`."""
    raise RuntimeError(f"{_GONE}. {_DEFAULT}")


@public()
def lstsq(input: Tensor, A: Tensor, *, out: Any = None) -> Any:
    """Removed: RuntimeError names `linalg.lstsq`."""
    raise RuntimeError(f"{_GONE}. {_SQUARES}")


@public()
def solve(input: Tensor, A: Tensor, *, out: Any = None) -> Any:
    """Removed: RuntimeError names `linalg.solve`."""
    raise RuntimeError(f"{_GONE}. {_SYSTEM}")


@public(method=False)
def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> Any:
    """Removed: RuntimeError names `linalg.matrix_rank`."""
    raise RuntimeError(
        f"{_GONE}.\nPlease use the `torch.linalg.matrix_rank` function instead. "
        "The parameter 'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'."
    )
