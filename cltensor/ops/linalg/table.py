"""The rest of linear algebra: matrix exponentials, tensor equations, and the table of names.

`LINALG` lists what the namespace `cltensor.linalg` exports; importing this module loads the whole family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...layouts import numel, wrap_dim
from .. import writes
from ..added_products import baddbmm
from ..composite import at_once, in_one
from ..contract import linalg_cross, multi_dot
from ..core import Tensor
from ..matmul import matmul, matrix_power
from ..norms import vector_norm
from ..parts import diagonal
from ..row import FUNCTIONS, public
from .least_squares import lstsq, matrix_rank, pinv
from .lu import linalg_lu_solve, lu, lu_factor, lu_factor_ex
from .matrices import LinAlgError, adjoint, check_square, eye_like
from .matrix_norms import cond, linalg_norm, matrix_norm
from .orthogonal import householder_product, linalg_qr
from .solve import (
    cholesky_ex,
    det,
    inv,
    inv_ex,
    linalg_cholesky,
    linalg_slogdet,
    solve,
    solve_ex,
    solve_triangular,
)
from .spectral import eig, eigh, eigvals, eigvalsh, linalg_svd, svdvals  # fmt: skip

# ------------------------------------------------------------------------------------------- the exponential

# Degree of the Taylor polynomial for matrices scaled to norm 1 (later terms are below rounding), and terms in a block
# of Horner's rule.
_DEGREE = {"float32": (12, 4), "float64": (18, 6), "complex64": (12, 4), "complex128": (18, 6)}


@public(aliases=("linalg_matrix_exp",))
def matrix_exp(A: Tensor) -> Tensor:
    """Return the exponential of (batches of) square matrices, by scaling, a Taylor polynomial, and squaring."""
    check_square(A, "linalg.matrix_exp")
    if A.dtype.category < 2:
        raise RuntimeError(
            f"linalg.matrix_exp: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}"
        )
    with unrecorded():
        low = A.dtype.name in ("float16", "bfloat16")
        value = _exp(A.float()).to(A.dtype) if low else _exp(A.detach())
    if graph.needs_grad(A):
        graph.record("LinalgMatrixExpBackward0", (A,), value, _exp_back, {"self": A})
    return value


def _exp(a: Tensor) -> Tensor:
    if not a.numel():
        return a.clone()
    norm = float(_norm([a])[0])
    if not math.isfinite(norm):
        return a * math.nan
    squarings = max(0, math.frexp(norm)[1]) if norm > 1 else 0
    return _squared([a], squarings)[0]


@at_once
def _norm(xs: Sequence[Tensor]) -> list[Tensor]:
    return [xs[0].abs().sum(-1).amax()]


@at_once
def _squared(xs: Sequence[Tensor], squarings: int) -> list[Tensor]:
    """Return the exponential of matrices that `squarings` halvings bring to norm 1: that of the halved matrix, squared
    as often.
    """
    (a,) = xs
    degree, cut = _DEGREE[a.dtype.name]
    a = a * 2.0**-squarings
    one = eye_like(a).expand(a.shape)
    powers = [one, a]
    for k in range(2, cut + 1):
        powers.append(matmul(powers[k // 2], powers[k - k // 2]))
    # Horner's rule in A^cut over blocks of `cut` terms (Paterson and Stockmeyer, 1973).
    value = None
    for start in range(degree - degree % cut, -1, -cut):
        block = None
        for k in range(min(cut, degree - start + 1)):
            term = powers[k] * (1.0 / math.factorial(start + k))
            block = term if block is None else block + term
        value = (
            block
            if value is None
            else baddbmm(_flat(block), _flat(value), _flat(powers[cut])).reshape(a.shape)
        )
    for _ in range(squarings):
        value = matmul(value, value)
    assert value is not None
    return [value]


def _flat(x: Tensor) -> Tensor:
    return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])


def _exp_back(ctx: Any, g: Tensor) -> Tensor:
    """Return the gradient: the upper right block of the exponential of [[A^H, G], [0, A^H]]."""
    a = adjoint(ctx.self)
    n = a.shape[-1]
    cat = FUNCTIONS["cat"]
    top, bottom = cat((a, g), -1), cat((a.new_zeros(a.shape), a), -1)
    return matrix_exp(cat((top, bottom), -2)).narrow(-2, 0, n).narrow(-1, n, n)


# ------------------------------------------------------------------------------------------- tensor equations


def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse for `tensordot`: A's first `ind` dims are taken as the rows of a square matrix, the rest as
    its columns.
    """
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    rows, cols = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if numel(rows) != numel(cols):
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {numel(cols)} != {numel(rows)}"
        )
    return writes.deliver(
        inv(A.reshape(numel(rows), numel(cols))).reshape((*cols, *rows)),
        out,
        "linalg_tensorinv",
        (A,),
    )


def tensorsolve(
    A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Find X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first."""
    if dims is not None:
        moved = tuple(wrap_dim(d, A.ndim) for d in dims)
        A = A.movedim(moved, tuple(range(A.ndim - len(moved), A.ndim)))
    shape = tuple(A.shape[B.ndim :])
    if numel(shape) != B.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {numel(shape)} != {B.numel()}"
        )
    return writes.deliver(
        solve(A.reshape(B.numel(), numel(shape)), B.reshape(-1)).reshape(shape),
        out,
        "linalg_tensorsolve",
        (A, B),
    )


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the Vandermonde matrix: powers 0 to N - 1 of every element in a new last dim."""
    if x.dtype is dtypes.bool or (x.dtype.category == 2 and x.dtype.itemsize < 4):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {x.dtype.scalar_name}"
        )
    n = (x.shape[-1] if x.ndim else 1) if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    return _powers((x if x.ndim else x.unsqueeze(0),), n, True)[0]


@in_one
def _powers(xs: Sequence[Tensor], n: int, increasing: bool) -> list[Tensor]:
    """Return the powers 0 to n - 1 (n > 1) of every element in a new last dim, the highest first unless `increasing`."""
    wide = xs[0].unsqueeze(-1)
    higher = wide.expand(*xs[0].shape, n - 1).cumprod(-1)
    powers = FUNCTIONS["cat"]((FUNCTIONS["ones_like"](wide), higher), -1)
    return [powers if increasing else powers.flip(-1)]


@public("vander", method=False)
def numpy_vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Make the matrix of powers of a vector's elements, the highest (or the 0th, if `increasing`) first."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.numel() if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    wide = x.to(dtypes.int64) if x.dtype.category < 2 else x
    if n < 2:
        return wide.new_ones((x.numel(), n))
    return _powers((wide,), n, increasing)[0]


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Sum x.conj() * y over a dim; other dims broadcast."""
    if x.dtype.category < 2:
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}"
        )
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype.scalar_name} and y of type {y.dtype.scalar_name} instead"
        )
    step = "vdot" if x.ndim == y.ndim == 1 else "sum"
    return writes.deliver((x.conj() * y).sum(dim), out, step, (x, y))


def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """View the diagonals of matrices."""
    return diagonal(A, offset, dim1, dim2)


def linalg_matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply as `@` does."""
    return matmul(input, other, out=out)


LINALG: dict[str, Callable[..., Any]] = {
    "cholesky": linalg_cholesky, "cholesky_ex": cholesky_ex, "cond": cond, "cross": linalg_cross, "det": det, "diagonal": linalg_diagonal, "eig": eig, "eigh": eigh,
    "eigvals": eigvals, "eigvalsh": eigvalsh, "householder_product": householder_product, "inv": inv, "inv_ex": inv_ex, "lstsq": lstsq, "lu": lu,
    "lu_factor": lu_factor, "lu_factor_ex": lu_factor_ex, "lu_solve": linalg_lu_solve, "matmul": linalg_matmul, "matrix_exp": matrix_exp,
    "matrix_norm": matrix_norm, "matrix_power": matrix_power, "matrix_rank": matrix_rank, "multi_dot": multi_dot, "norm": linalg_norm, "pinv": pinv,
    "qr": linalg_qr, "slogdet": linalg_slogdet, "solve": solve, "solve_ex": solve_ex, "solve_triangular": solve_triangular, "svd": linalg_svd, "svdvals": svdvals,
    "tensorinv": tensorinv, "tensorsolve": tensorsolve, "vander": vander, "vecdot": vecdot, "vector_norm": vector_norm,
}  # fmt: skip

__all__ = ["LINALG", "LinAlgError", "svdvals"]
