"""The standard's `linalg`: matrices are the last two axes, arguments of different dtypes are promoted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..layouts import broadcast_shapes
from ..ops.linalg.table import LINALG
from ..ops.row import FUNCTIONS as F
from ..tensor import Tensor
from .kinds import promoted
from .reductions import sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

det, eigvalsh, inv, svdvals = (LINALG[name] for name in ("det", "eigvalsh", "inv", "svdvals"))
matrix_power = LINALG["matrix_power"]


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """An orthonormal and an upper triangular factor."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """Sign of a determinant, and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Left singular vectors, singular values in descending order, right singular vectors in rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Triangular factor of positive definite matrices."""
    return LINALG["cholesky"](x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross products of the vectors of three along an axis."""
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"axis {axis} of cross must be negative and an axis of both arrays")
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross product axis must have size 3, got {x1.shape[axis]} and {x2.shape[axis]}")  # fmt: skip
    a, b = F["broadcast_tensors"](*promoted(x1, x2))
    return LINALG["cross"](a, b, dim=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The elements of a diagonal, as the last axis."""
    return LINALG["diagonal"](x, offset=offset, dim1=-2, dim2=-1)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return EighResult(*LINALG["eigh"](x))


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of matrices."""
    return F["matmul"](*promoted(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Swap the last two axes."""
    return x.mT


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norms of matrices."""
    return LINALG["matrix_norm"](x, "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Count the singular values above `rtol` times the largest."""
    return LINALG["matrix_rank"](x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of elements of two vectors."""
    return F["outer"](*promoted(x1, x2))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Pseudo-inverses, with singular values below `rtol` times the largest taken as zero."""
    return LINALG["pinv"](x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Orthonormal times upper triangular."""
    return QRResult(*LINALG["qr"](x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Sign and logarithm of determinants."""
    return SlogdetResult(*LINALG["slogdet"](x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Solve x1 @ y = x2; x2 is a vector only if it has one axis, else (a batch of) matrices."""
    a, b = promoted(x1, x2)
    if b.ndim == 1:
        return LINALG["solve"](a, b.unsqueeze(-1)).squeeze(-1)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return LINALG["solve"](a, b.expand(*batch, *b.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values and vectors."""
    return SVDResult(*LINALG["svd"](x, full_matrices))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:  # fmt: skip
    """Sum products over axes of both."""
    return F["tensordot"](*promoted(x1, x2), dims=axes)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sums of diagonals."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Inner products along an axis, which is counted from the end; the first is conjugated."""
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"axis {axis} of vecdot must be negative and an axis of both arrays")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot needs equal sizes, got {x1.shape[axis]} and {x2.shape[axis]}")
    a, b = promoted(x1, x2)
    return (a.conj() * b).sum(axis, dtype=a.dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Norms of vectors along axes, all by default."""
    if axis == ():  # of single elements, which torch takes as all axes
        return LINALG["vector_norm"](x.unsqueeze(-1), ord, -1)
    return LINALG["vector_norm"](x, ord, axis, keepdims)
