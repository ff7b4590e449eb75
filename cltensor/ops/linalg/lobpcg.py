"""Extreme eigenpairs of large symmetric matrices by the locally optimal block conjugate gradient method (Knyazev, 2001).

Products run on the device; the small eigenproblems of each step run where `linalg.eigh` does.
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...layouts import numel
from ..core import Tensor
from ..row import FUNCTIONS, public
from .table import LINALG

_ROUNDS = 1000


def _orthonormal(S: Tensor, B: Tensor | None) -> Tensor:
    """Return B-orthonormal columns Q (Q^T B Q = I; without B, Q^T Q = I) with the span of S; nearly dependent
    directions are dropped.
    """
    eps = dtypes.finfo(S.dtype).eps
    for _ in range(2):
        gram = S.mT @ (S if B is None else B @ S)
        scale = gram.diagonal().clamp_min(eps**2).rsqrt()
        values, vectors = LINALG["eigh"](gram * scale * scale.unsqueeze(1))
        kept = (values > eps * S.shape[1] * values.max()).nonzero().flatten()
        vectors = vectors.index_select(1, kept) * values.index_select(0, kept).rsqrt()
        S = S @ (scale.unsqueeze(1) * vectors)
    return S


def _best(A: Tensor, S: Tensor, n: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return the n extreme eigenpairs of A within the span of orthonormal columns S (Rayleigh-Ritz), the most extreme
    first.
    """
    values, vectors = LINALG["eigh"](S.mT @ (A @ S))
    if largest:
        values, vectors = values.flip(0), vectors.flip(1)
    return values[:n], S @ vectors[:, :n]


def _iterate(
    A: Tensor,
    B: Tensor | None,
    X: Tensor,
    iK: Tensor | None,
    rounds: int,
    tol: float,
    largest: bool,
) -> tuple[Tensor, Tensor]:
    n = X.shape[1]
    norm_a = LINALG["norm"](A @ X) / LINALG["norm"](X)
    norm_b = 1.0 if B is None else LINALG["norm"](B @ X) / LINALG["norm"](X)
    E, X = _best(A, _orthonormal(X, B), n, largest)
    parts: list[Tensor] = []
    for _ in range(rounds):
        BX = X if B is None else B @ X
        R = A @ X - BX * E
        error = LINALG["vector_norm"](R, dim=0) / (
            LINALG["vector_norm"](X, dim=0) * (norm_a + E.abs() * norm_b)
        )
        if bool((error < tol).all()):
            break
        W = R if iK is None else iK @ R
        E, Y = _best(A, _orthonormal(FUNCTIONS["cat"]([X, W, *parts], 1), B), n, largest)
        parts = [Y - X @ (BX.mT @ Y)]
        X = Y
    return E, X


def _dense(A: Tensor, B: Tensor | None, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return the k extreme eigenpairs by a full eigendecomposition, which is differentiable."""
    back = None
    if B is not None:
        back = LINALG["inv"](LINALG["cholesky"](B))
        A = back @ A @ back.mT
    # `eigh` reads one triangle of A. The iteration, which this replaces, multiplies by all of A: both triangles count.
    values, vectors = LINALG["eigh"]((A + A.mT) / 2)
    if back is not None:
        vectors = back.mT @ vectors
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :k], vectors[..., :k]


def _each(x: Any, batch: tuple[int, ...]) -> list[Any]:
    """List the matrices of a batch; where x is None, a None for each matrix."""
    if x is None:
        return [None] * numel(batch)
    return list(x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:]).unbind(0))


@public(method=False)
def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None, iK: Tensor | None = None,
    niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None, tracker: None = None,
    ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the k largest (or smallest) eigenvalues of symmetric A (…, m, m), and their vectors (…, m, k).

    With B, those of A x = λ B x. X (…, m, n) is the initial guess, iK an approximate inverse of A, niter the maximum
    number of steps, tol the relative error at which to stop. Where a gradient is wanted, all eigenpairs are computed
    instead. ValueError unless m >= 3 n.
    """
    m = A.shape[-1]
    if A.shape[-2] != m:
        raise ValueError(f"A must be a square matrix, but got shape {tuple(A.shape)}")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested eigenpairs (={n})"
        )
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"method must be 'basic' or 'ortho', got {method}")
    high = True if largest is None else largest
    if graph.needs_grad(A, B):
        return _dense(A, B, k, high)
    rounds = _ROUNDS if niter is None or niter < 0 else niter
    limit = dtypes.finfo(A.dtype).eps ** 0.5 if tol is None else tol
    with unrecorded():
        if X is None:
            X = FUNCTIONS["randn"](*A.shape[:-1], n, dtype=A.dtype, device=A.device)
        matrices, metrics, starts, inverses = (_each(v, A.shape[:-2]) for v in (A, B, X, iK))
        pairs = [
            _iterate(a, b, x, inverse, rounds, limit, high)
            for a, b, x, inverse in zip(matrices, metrics, starts, inverses, strict=True)
        ]
        E, V = (FUNCTIONS["stack"](list(v)) for v in zip(*pairs, strict=True))
    return E[:, :k].reshape(*A.shape[:-2], k), V[..., :k].reshape(*A.shape[:-1], k)
