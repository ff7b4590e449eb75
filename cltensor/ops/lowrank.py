"""Approximate factorizations of matrices of low rank, by products with random vectors (Halko et al., arXiv 0909.4061)."""

from __future__ import annotations

from .core import Tensor
from .linalg import LINALG
from .row import FUNCTIONS, public


def _basis(A: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that span nearly what A's columns span (the paper's algorithm 4.4)."""
    found = LINALG["qr"](A @ FUNCTIONS["randn"](A.shape[-1], q, dtype=A.dtype, device=A.device))[0]
    for _ in range(niter):
        found = LINALG["qr"](A.mH @ found)[0]
        found = LINALG["qr"](A @ found)[0]
    return found


@public(method=False)
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (U, S, V) with A - M near U diag(S) V^H, for (batches of) matrices (m, n) of a rank of at most about q."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        A = A - M.expand(A.shape)
    tall = A.shape[-2] >= A.shape[-1]
    wide = A if tall else A.mH
    Q = _basis(wide, q, niter)
    U, S, Vh = LINALG["svd"](Q.mH @ wide, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (U, S, V) if tall else (V, S, U)


@public(method=False)
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (U, S, V) of the principal components of observations (rows), about the first q of them."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)
