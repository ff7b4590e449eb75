"""Approximate factorizations of matrices of low rank, by products with random vectors (Halko et al., arXiv 0909.4061)."""

from __future__ import annotations

from ..core import Tensor
from ..row import FUNCTIONS, public
from .table import LINALG


def _apply(A: Tensor, M: Tensor | None, X: Tensor) -> Tensor:
    """Return (A - M) X without forming A - M, so that a sparse A stays sparse; M may be a single row that broadcasts."""
    return A @ X if M is None else A @ X - M @ X


def _apply_adjoint(A: Tensor, M: Tensor | None, X: Tensor) -> Tensor:
    """Return (A - M)^H X without forming A - M, so that a sparse A stays sparse."""
    if M is None:
        return A.mH @ X
    return A.mH @ X - M.mH @ (X if M.shape[-2] == A.shape[-2] else X.sum(-2, keepdim=True))


@public(method=False)
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (U, S, V) with A - M near U diag(S) V^H, for (batches of) matrices (m, n) of a rank of at most about q."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None and (A._strided or M.shape != (1, A.shape[-1])):
        M = M.expand(A.shape)
    if M is not None and A._strided:
        A, M = A - M, None
    tall = A.shape[-2] >= A.shape[-1]
    along, back = (_apply, _apply_adjoint) if tall else (_apply_adjoint, _apply)
    # Q: orthonormal columns whose span approximates that of the tall matrix's columns (the paper's algorithm 4.4).
    start = FUNCTIONS["randn"](min(A.shape[-2:]), q, dtype=A.dtype, device=A.device)
    Q = LINALG["qr"](along(A, M, start))[0]
    for _ in range(niter):
        Q = LINALG["qr"](along(A, M, LINALG["qr"](back(A, M, Q))[0]))[0]
    U, S, Vh = LINALG["svd"](back(A, M, Q).mH, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (U, S, V) if tall else (V, S, U)


@public(method=False)
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (U, S, V) of the first q principal components, approximately; observations are rows of A."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter)
    if A._strided:
        return svd_lowrank(A - A.mean(-2, True), q, niter)
    if A.ndim != 2:
        raise ValueError("pca_lowrank input is expected to be 2-dimensional tensor")
    ones = FUNCTIONS["ones"](m, 1, dtype=A.dtype, device=A.device)
    return svd_lowrank(A, q, niter, (A.mT @ ones).mT / m)
