"""Singular values, eigenvalues, QR, and what follows from them: pseudo-inverse, least squares, rank, norms, condition numbers.

The factorizations run on the host (see lapack.py); gradients are formulas over tensors, so they are differentiable again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..autograd import record as graph
from ..layouts import wrap_dim
from . import core
from .core import Tensor, is_tensor
from .lapack import (
    LinAlgError,
    absent,
    adjoint,
    check_float,
    check_matrix,
    check_square,
    device,
    diag,
    diagonal,
    eye_like,
    host,
    named,
    triu,
)
from .norms import vector_norm
from .row import FUNCTIONS, public
from .solve import deliver_all, inv_ex, solve_ex, solve_triangular

# ------------------------------------------------------------------------------------------- singular values

Svd = named("svd", "U", "S", "V")
LinalgSvd = named("linalg_svd", "U", "S", "Vh")


def _off_diagonal_quotient(x: Tensor, e: Tensor) -> Tensor:
    """x / e off the diagonal, x on it, where e is 0."""
    return x / (e + eye_like(e))


def _svd(
    A: Tensor, full: bool, vectors: bool, function: str = "linalg.svd"
) -> tuple[Any, Tensor, Any]:
    check_matrix(A, function)
    check_float(A, function)
    a = host(A)
    if not np.isfinite(a).all():
        raise LinAlgError(
            f"{function}: The algorithm failed to converge because the input matrix contained non-finite values."
        )
    grad = graph.needs_grad(A)
    try:
        parts: Any = (
            np.linalg.svd(a, full_matrices=full)
            if vectors or grad
            else np.linalg.svd(a, compute_uv=False)
        )
    except np.linalg.LinAlgError as error:
        raise LinAlgError(
            f"{function}: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values ({error})."
        ) from None
    if not (vectors or grad):
        return None, device(parts, A), None
    u, s, vh = (device(p, A) for p in parts)
    if grad:
        graph.record("LinalgSvdBackward0", (A,), (u, s, vh), _svd_back, {"U": u, "S": s, "Vh": vh})
    return u, s, vh


def _svd_back(ctx: Any, gu: Tensor, gs: Tensor, gvh: Tensor) -> Tensor:
    u, s, vh = ctx.U, ctx.S, ctx.Vh
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    # Only the leading vectors have a gradient; what a square completion adds is not unique.
    u, gu, vh, gvh = (
        u.narrow(-1, 0, k),
        gu.narrow(-1, 0, k),
        vh.narrow(-2, 0, k),
        gvh.narrow(-2, 0, k),
    )
    no_u, no_v = absent(gu), absent(gvh)
    if no_u and no_v:
        return (u * gs.unsqueeze(-2)) @ vh
    row, column = s.unsqueeze(-2), s.unsqueeze(-1)
    e = (row - column) * (row + column)
    uh, v = adjoint(u), adjoint(vh)
    inner = diag(gs).to(u.dtype)
    if not no_u:
        skew = uh @ gu
        skew = skew - adjoint(skew)
        inner = inner + _off_diagonal_quotient(skew, e) * row
        if u.dtype.is_complex:
            # The imaginary diagonal of U^H gU is divided by 2 S; the quotient above multiplied it by S.
            d = diagonal(skew)
            inner = inner + diag(d / (2 * s) - d * s)
    if not no_v:
        skew = vh @ adjoint(gvh)
        skew = skew - adjoint(skew)
        if u.dtype.is_complex:
            skew = skew - diag(diagonal(skew))
        inner = inner + column * _off_diagonal_quotient(skew, e)
    out = u @ inner @ vh
    if m > k and not no_u:
        part = gu / row
        out = out + (part - u @ (uh @ part)) @ vh
    if n > k and not no_v:
        part = gvh / column
        out = out + u @ (part - (part @ v) @ vh)
    return out


def linalg_svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None
) -> Any:
    """Factorize A = U diag(S) Vh with orthonormal U and V and descending S."""
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    return LinalgSvd(deliver_all(_svd(A, full_matrices, True), out, "linalg_svd", (A,)))


@public()
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """Factorize input = U diag(S) V^H (deprecated in favour of linalg.svd, which returns V^H)."""
    if not compute_uv:
        s = svdvals(input)
        m, n = input.shape[-2:]
        batch = tuple(input.shape[:-2])
        u, v = input.new_zeros((*batch, m, m)), input.new_zeros((*batch, n, n))
        return Svd(deliver_all((u, s, v), out, "svd", (input,)))
    u, s, vh = _svd(input, not some, True)
    return Svd(deliver_all((u, s, adjoint(vh)), out, "svd", (input,)))


def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """Return the singular values, largest first."""
    return core.deliver(_svd(A, False, False)[1], out, "linalg_svdvals", (A,))


# ------------------------------------------------------------------------------------------- eigenvalues

Eigh = named("linalg_eigh", "eigenvalues", "eigenvectors")
Eig = named("linalg_eig", "eigenvalues", "eigenvectors")


def _eigh(A: Tensor, UPLO: Any, vectors: bool) -> tuple[Tensor, Tensor | None]:
    check_square(A, "linalg.eigh")
    check_float(A, "linalg.eigh")
    side: Any = UPLO.upper() if isinstance(UPLO, str) else UPLO
    if side not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    a = host(A)
    grad = graph.needs_grad(A)
    try:
        if not np.isfinite(np.tril(a) if side == "L" else np.triu(a)).all():
            raise np.linalg.LinAlgError
        if not (vectors or grad):
            return device(np.linalg.eigvalsh(a, side), A), None
        values, vecs = (device(v, A) for v in np.linalg.eigh(a, side))
    except np.linalg.LinAlgError:
        raise LinAlgError(
            f"linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: {max(a.shape[-1] - 1, 1)})."
        ) from None
    if grad:
        graph.record(
            "LinalgEighBackward0",
            (A,),
            (values, vecs),
            _eigh_back,
            {"eigenvalues": values, "eigenvectors": vecs},
        )
    return values, vecs


def _eigh_back(ctx: Any, gl: Tensor, gv: Tensor) -> Tensor:
    values, v = ctx.eigenvalues, ctx.eigenvectors
    vh = adjoint(v)
    if absent(gv):
        return (v * gl.unsqueeze(-2)) @ vh
    e = values.unsqueeze(-2) - values.unsqueeze(-1)
    inner = _off_diagonal_quotient(vh @ gv, e)
    inner = inner - diag(diagonal(inner)) + diag(gl)
    return v @ inner @ vh


def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """Return eigenvalues (ascending) and eigenvectors of symmetric or Hermitian matrices, of which one triangle is read."""
    return Eigh(deliver_all(_eigh(A, UPLO, True), out, "linalg_eigh", (A,)))


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of symmetric or Hermitian matrices, ascending."""
    return core.deliver(_eigh(A, UPLO, False)[0], out, "linalg_eigvalsh", (A,))


def _eig(A: Tensor, vectors: bool, function: str) -> tuple[Tensor, Tensor | None]:
    check_square(A, "linalg.eig")
    if A.dtype.category < 2:
        A.dtype.to_complex()
    check_float(A, "linalg.eig")
    a = host(A)
    if not np.isfinite(a).all():
        raise RuntimeError(
            f"torch.linalg.{function}: input tensor should not contain infs or NaNs."
        )
    kind = A.dtype.to_complex().np
    grad = graph.needs_grad(A)
    if not (vectors or grad):
        return device(np.linalg.eigvals(a).astype(kind), A), None
    values, vecs = (device(v.astype(kind), A) for v in np.linalg.eig(a))
    if grad:
        graph.record(
            "LinalgEigBackward0",
            (A,),
            (values, vecs),
            _eig_back,
            {"eigenvalues": values, "eigenvectors": vecs, "real": not A.dtype.is_complex},
        )
    return values, vecs


def _eig_back(ctx: Any, gl: Tensor, gv: Tensor) -> Tensor:
    values, v = ctx.eigenvalues, ctx.eigenvectors
    vh = adjoint(v)
    if absent(gv):
        out = solve_ex(vh, gl.unsqueeze(-1) * vh)[0]
    else:
        vhg = vh @ gv
        inner = vhg - vh @ (v * diagonal(vhg).real.unsqueeze(-2))
        conj = values.conj()
        inner = _off_diagonal_quotient(inner, conj.unsqueeze(-2) - conj.unsqueeze(-1))
        inner = inner - diag(diagonal(inner)) + diag(gl)
        out = solve_ex(vh, inner @ vh)[0]
    return out.real if ctx.real else out


def eig(A: Tensor, *, out: Any = None) -> Any:
    """Return eigenvalues and eigenvectors of square matrices, complex, in no order."""
    return Eig(deliver_all(_eig(A, True, "eig"), out, "linalg_eig", (A,)))


def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of square matrices, complex, in no order."""
    return core.deliver(_eig(A, False, "eigvals")[0], out, "linalg_eigvals", (A,))


# ------------------------------------------------------------------------------------------- QR

Qr = named("qr", "Q", "R")
LinalgQr = named("linalg_qr", "Q", "R")


def _qr(A: Tensor, mode: Any) -> tuple[Tensor, Tensor]:
    check_matrix(A, "linalg.qr")
    check_float(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    a = host(A)
    if mode == "r":
        q, r = A.new_empty(0), device(np.linalg.qr(a, "r"), A)
    else:
        q, r = (device(v, A) for v in np.linalg.qr(a, mode))
    if graph.needs_grad(A):
        graph.record("LinalgQrBackward0", (A,), (q, r), _qr_back, {"Q": q, "R": r, "mode": mode})
    return q, r


def _copy_up(x: Tensor) -> Tensor:
    """X + X^H of an upper triangle, its diagonal real and not doubled."""
    d = diagonal(x)
    strict = triu(x, 1)
    return strict + adjoint(strict) + diag(d.real if d.dtype.is_complex else d)


def _qr_back(ctx: Any, gq: Tensor, gr: Tensor) -> Tensor:
    q, r, mode = ctx.Q, ctx.R, ctx.mode
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to require gradients."
        )
    m, n = ctx.shapes[0][-2:]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )
    if m >= n:
        return _square_qr_back(q, r, gq, gr)
    # Wide: A = [X | Y] with X = Q U the square case and Y = Q V.
    u, v = r.narrow(-1, 0, m), r.narrow(-1, m, n - m)
    gu, gv = gr.narrow(-1, 0, m), gr.narrow(-1, m, n - m)
    gx = _square_qr_back(q, u, gq + (q @ v) @ adjoint(gv), gu)
    return FUNCTIONS["cat"]((gx, q @ gv), -1)


def _square_qr_back(q: Tensor, r: Tensor, gq: Tensor, gr: Tensor) -> Tensor:
    inner = _copy_up(triu(gr @ adjoint(r) - adjoint(q) @ gq))
    return solve_triangular(adjoint(r), gq + q @ inner, upper=False, left=False)


def linalg_qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """Factorize A = Q R: mode "reduced", "complete" (square Q) or "r" (no Q)."""
    return LinalgQr(deliver_all(_qr(A, mode), out, "linalg_qr", (A,)))


@public()
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """Factorize input = Q R (deprecated in favour of linalg.qr)."""
    return Qr(deliver_all(_qr(input, "reduced" if some else "complete"), out, "qr", (input,)))


# ------------------------------------------------------------------------------------------- pseudo-inverse, rank


def _tolerance(x: Tensor, s: Any, atol: Any, rtol: Any) -> Any:
    """The bound under which singular values count as zero, as numpy arrays over the batch."""
    eps = float(np.finfo(s.dtype).eps) * max(x.shape[-2:])
    atol = atol._host() if is_tensor(atol) else atol
    rtol = rtol._host() if is_tensor(rtol) else rtol
    if rtol is None:
        rtol = eps if atol is None else np.where(np.asarray(atol) > 0, 0.0, eps)
    largest = s.max(-1, initial=0)
    return np.maximum(0.0 if atol is None else atol, rtol * largest)


def pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the Moore-Penrose inverse; singular values up to max(atol, rtol * largest) count as zero."""
    if A.ndim < 2 or A.dtype.category < 2:
        raise RuntimeError(
            f"linalg.pinv({A.dtype.scalar_name}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square(A, "linalg.pinv")
    check_float(A, "linalg.pinv")
    a = host(A)
    if a.size:
        if hermitian:  # of A = U S U^H only the lower triangle is read
            s, u = np.linalg.eigh(a)
            left = right = u
        else:
            right, s, vh = np.linalg.svd(a, full_matrices=False)
            left = vh.swapaxes(-1, -2).conj()
        size = np.abs(s)
        bound = np.asarray(_tolerance(A, size, atol, rcond if rtol is None else rtol))[..., None]
        inverse = np.where(size > bound, 1 / np.where(size > bound, s, 1), 0).astype(s.dtype)
        x = (left * inverse[..., None, :]) @ right.swapaxes(-1, -2).conj()
    else:
        x = np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    value = device(x, A, columns=False)
    if graph.needs_grad(A):
        graph.record(
            "LinalgPinvBackward0",
            (A,),
            value,
            lambda ctx, g: pinv_gradient(g, ctx.result, ctx.self),
            {"result": value, "self": A},
        )
    return core.deliver(value, out, "linalg_pinv", (A,))


def pinv_gradient(g: Tensor, p: Tensor, a: Tensor) -> Tensor:
    """The gradient of the pseudo-inverse p of a matrix a of locally constant rank (Golub and Pereyra, 1973)."""
    ph, gh = adjoint(p), adjoint(g)
    if a.shape[-2] <= a.shape[-1]:
        k = gh @ p
        kph = k @ ph
        return -adjoint(p @ k) + kph - (a @ p) @ kph + (ph @ p) @ (gh - k @ a)
    k = p @ gh
    phk = ph @ k
    return -adjoint(k @ p) + (gh - a @ k) @ p @ ph + phk - (phk @ p) @ a


@public()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the Moore-Penrose inverse."""
    return pinv(input, rcond)


def matrix_rank(
    A: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Count the singular values above max(atol, rtol * largest)."""
    check_matrix(A, "linalg.matrix_rank")
    if A.dtype.category < 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    check_float(A, "linalg.matrix_rank")
    a = host(A)
    if hermitian:
        check_square(A, "linalg.matrix_rank")
        s = np.abs(np.linalg.eigvalsh(a))
    else:
        s = np.linalg.svd(a, compute_uv=False)
    if tol is not None:
        atol, rtol = tol, 0.0
    bound = np.asarray(_tolerance(A, s, atol, rtol))
    return core.deliver(
        device((s > bound[..., None]).sum(-1).astype(np.int64), A, columns=False),
        out,
        "linalg_matrix_rank",
        (A,),
    )


# ------------------------------------------------------------------------------------------- least squares

Lstsq = named("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


def lstsq(
    A: Tensor,
    B: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    out: Any = None,
) -> Any:
    """Minimise |A X - B|: the solution, and residuals, ranks and singular values as far as the driver gives them."""
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    if vector and A.shape[-2] != B.shape[-1]:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-1)")
    if not vector and A.shape[-2] != B.shape[-2]:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype {A.dtype.scalar_name} and other's dtype {B.dtype.scalar_name}"
        )
    check_float(A, "torch.linalg.lstsq")
    driver = driver or "gelsy"
    a, b = host(A, B.unsqueeze(-1).detach() if vector else B)
    m, n = a.shape[-2:]
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    bound = (np.finfo(s.dtype).eps * max(m, n) if rcond is None else rcond) * s.max(-1, initial=0)
    keep = s > bound[..., None] if driver != "gels" else np.ones(s.shape, bool)
    with np.errstate(all="ignore"):
        inverse = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)
    x = vh.swapaxes(-1, -2).conj() @ (inverse[..., None] * (u.swapaxes(-1, -2).conj() @ b))
    rank = keep.sum(-1).astype(np.int64)
    empty = np.zeros(0, s.dtype)
    residuals = empty
    if driver != "gelsy" and m > n and bool((rank == n).all()):
        residuals = (np.abs(a @ x - b) ** 2).sum(-2)
    values = (
        device(x[..., 0] if vector else x, A),
        device(residuals, A, columns=False),
        device(rank if driver != "gels" else np.zeros(0, np.int64), A, columns=False),
        device(s if driver in ("gelsd", "gelss") else empty, A, columns=False),
    )
    if graph.needs_grad(A, B):
        saved = {"self": A, "b": B, "solution": values[0], "vector": vector}
        graph.record(
            "LinalgLstsqBackward0",
            (A, B),
            (values[0], values[1], values[2], None),
            _lstsq_back,
            saved,
        )
    return Lstsq(deliver_all(values, out, "linalg_lstsq", (A, B)))


def _lstsq_back(ctx: Any, gx: Tensor, gr: Tensor, *_: Any) -> tuple:
    a, b, x = ctx.self, ctx.b, ctx.solution
    if ctx.vector:
        b, x, gx = b.unsqueeze(-1), x.unsqueeze(-1), gx.unsqueeze(-1)
    p = pinv(a)
    ga = pinv_gradient(gx @ adjoint(b), p, a) if ctx.needs[0] else None
    gb = adjoint(p) @ gx if ctx.needs[1] else None
    if gr.numel():
        # At the minimum the residual changes with A and B only directly.
        off = (a @ x - b) * (gr.unsqueeze(-2) * 2)
        ga = None if ga is None else ga + off @ adjoint(x)
        gb = None if gb is None else gb - off
    return ga, gb.squeeze(-1) if ctx.vector and gb is not None else gb


# ------------------------------------------------------------------------------------------- norms


def _order_of(ord: Any) -> Any:
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    return ord


def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the norm of matrices over two dims: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    check_matrix(A, "linalg.matrix_norm")
    if A.dtype.category < 2:
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}"
        )
    dims = tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}"
        )
    rows, cols = (wrap_dim(d, A.ndim) for d in dims)
    if rows == cols:
        raise RuntimeError(
            f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})"
        )
    ord = _order_of(ord)
    if dtype is not None:
        A = A.to(dtype)
    if ord == "fro":
        value = vector_norm(A, 2, (rows, cols), keepdim)
    elif ord == "nuc" or abs(ord) == 2:
        s = svdvals(A.permute((*[d for d in range(A.ndim) if d not in (rows, cols)], rows, cols)))
        value = s.sum(-1) if ord == "nuc" else s.amax(-1) if ord > 0 else s.amin(-1)
        if keepdim:
            for d in sorted((rows, cols)):
                value = value.unsqueeze(d)
    else:
        first, second = (rows, cols) if abs(ord) == 1 else (cols, rows)
        if second > first and not keepdim:
            second -= 1
        sums = vector_norm(A, 1, first, keepdim)
        value = sums.amax(second, keepdim) if ord > 0 else sums.amin(second, keepdim)
    return core.deliver(value, out, "linalg_matrix_norm", (A,))


def linalg_norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """Return a vector or matrix norm, by the number of dims given (or that the tensor has)."""
    dims = (dim,) if isinstance(dim, int) else dim
    if ord is None:
        value = vector_norm(A, 2, dims, keepdim, dtype=dtype)
        return core.deliver(value, out, "linalg_norm", (A,))
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}"
        )
    if dims is None and A.ndim not in (1, 2):
        if isinstance(ord, str):
            check_matrix(A, "linalg.matrix_norm")
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    matrix = isinstance(ord, str) or (A.ndim == 2 if dims is None else len(dims) == 2)
    if not matrix:
        return vector_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
    if A.dtype.category < 2 and not isinstance(ord, str):
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}"
        )
    return matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype, out=out)


def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Return the condition number of matrices with respect to a norm (2 by default); inf for singular ones."""
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        s = svdvals(A)
        big, small = s.narrow(-1, 0, 1), s.narrow(-1, s.shape[-1] - 1, 1)
        value = (small / big if p == -2 else big / small).squeeze(-1)
        return core.deliver(value, out, "linalg_cond", (A,))
    check_square(A, "linalg.cond")
    if p == "nuc":
        s = svdvals(A)
        return core.deliver(s.sum(-1) * s.reciprocal().sum(-1), out, "linalg_cond", (A,))
    inverse, info = inv_ex(A)
    inverse = inverse.masked_fill((info != 0)[..., None, None], math.inf)
    value = matrix_norm(A, p) * matrix_norm(inverse, p)
    return core.deliver(value.nan_to_num(math.inf, math.inf, -math.inf), out, "linalg_cond", (A,))


@public(method=False)
def nuclear_norm(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the sum of singular values."""
    return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, out=out)


@public(method=False)
def frobenius_norm(
    input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the root of the sum of squares over dims."""
    return vector_norm(input, 2, dim or None, keepdim, out=out)
