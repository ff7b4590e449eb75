"""Functions built on singular values: pseudo-inverse, rank, least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...layouts import broadcast_shapes
from .. import writes
from ..composite import at_once
from ..core import Tensor, is_tensor
from ..matmul import matmul
from ..row import FUNCTIONS, public
from . import diagonal_forms, factors
from .matrices import LAPACK, adjoint, check_matrix, check_square, named
from .solve import deliver_all


def _refuse_complex(function: str, **tolerances: Any) -> None:
    for name, value in tolerances.items():
        if is_tensor(value) and value.dtype.is_complex:
            raise RuntimeError(
                f"torch.{function}: {name} tensor of complex type is not supported. Got {value.dtype.scalar_name}"
            )


def _check_lapack(A: Tensor) -> None:
    if A.dtype.name not in LAPACK:
        raise RuntimeError("This function doesn't handle types other than float and double")


def _tolerance(longer: int, s: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Return the bounds (…, 1) up to which singular values s (…, k) count as zero: max(atol, rtol * largest).

    rtol defaults to eps * `longer`, the matrix's longer side, or to 0 where atol is positive.
    """
    if rtol is None:
        rtol = dtypes.finfo(s.dtype).eps * longer
        if is_tensor(atol):
            rtol = FUNCTIONS["where"](atol > 0, 0.0, rtol)
        elif atol is not None and atol > 0:
            rtol = 0.0
    bound = s.amax(-1) * rtol
    if atol is not None:
        floor = atol if is_tensor(atol) else FUNCTIONS["full_like"](bound, atol)
        bound = FUNCTIONS["maximum"](bound, floor)
    return bound.unsqueeze(-1)


def _singular(A: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Factorize A = L diag(s) R^H.

    If `hermitian`, by the eigendecomposition of its lower triangle: s then has signs.
    """
    if hermitian:
        s, u = diagonal_forms.eigh(A, False, True, "linalg.eigh")
        assert u is not None
        return u, s, u
    u, s, vh = diagonal_forms.svd(A, False, True, "linalg.svd")
    assert u is not None
    assert vh is not None
    return u, s, adjoint(vh)


def _inverse(xs: Sequence[Tensor], longer: int, atol: Any, rtol: Any) -> list[Tensor]:
    """Return R diag(1 / s) L^H, leaving out singular values that count as zero. Operands: L, s, R."""
    left, s, right = xs
    size = s.abs()
    kept = size > _tolerance(longer, size, atol, rtol)
    inverse = FUNCTIONS["where"](kept, s.reciprocal(), 0.0)
    return [matmul(right * inverse.unsqueeze(-2), adjoint(left))]


_inverse_at_once = at_once(_inverse)


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
    if A.ndim < 2 or A.dtype.category < 2 or A.dtype.to_real().itemsize < 4:
        raise RuntimeError(
            f"linalg.pinv({A.dtype.scalar_name}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square(A, "linalg.pinv")
    _refuse_complex("linalg.pinv", rcond=rcond, atol=atol, rtol=rtol)
    with unrecorded():
        if A.numel():
            rtol = rcond if rtol is None else rtol
            plain = not (is_tensor(atol) or is_tensor(rtol))
            inverse = _inverse_at_once if plain else _inverse
            (value,) = inverse(_singular(A, hermitian), max(A.shape[-2:]), atol, rtol)
        else:
            value = A.new_zeros(A.mT.shape)
    if graph.needs_grad(A):
        graph.record(
            "LinalgPinvBackward0",
            (A,),
            value,
            lambda ctx, g: pinv_gradient(g, ctx.result, ctx.self),
            {"result": value, "self": A},
        )
    return writes.deliver(value, out, "linalg_pinv", (A,))


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
    check_matrix(A, "torch.linalg.matrix_rank", "input")
    _check_lapack(A)
    if tol is not None:
        atol, rtol = tol, 0.0
    _refuse_complex("linalg.matrix_rank", atol=atol, rtol=rtol)
    with unrecorded():
        if not min(A.shape[-2:]):
            rank = FUNCTIONS["zeros"](A.shape[:-2], dtype=dtypes.int64, device=A.device)
        else:
            if hermitian:
                check_square(A, "linalg.eigh")
                s = diagonal_forms.eigh(A, False, False, "linalg.eigh")[0].abs()
            else:
                s = diagonal_forms.svd(A, False, False, "linalg.svd")[1]
            rank = (s > _tolerance(max(A.shape[-2:]), s, atol, rtol)).sum(-1)
    return writes.deliver(rank, out, "linalg_matrix_rank")


Lstsq = named("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


def lstsq(
    A: Tensor,
    B: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Minimise |A X - B|: return the solution, and residuals, ranks and singular values, empty where the driver
    computes none.
    """
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
    _check_lapack(A)
    broadcast_shapes(A.shape[:-2], B.shape[: -1 if vector else -2])
    driver = driver or "gelsy"
    wide = B.unsqueeze(-1).detach() if vector else B
    values = _by_qr(A, wide, driver, rcond) or _by_svd(A, wide, driver, rcond)
    if vector:
        with unrecorded():
            values = (values[0].squeeze(-1), *values[1:])
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


def _by_qr(A: Tensor, B: Tensor, driver: str, rcond: float | None) -> tuple[Tensor, ...] | None:
    """Solve by QR if the driver allows it: "gels" assumes full rank; for "gelsy" no singular value may be small enough
    to be left out.

    None where that is not certain, or where the driver is another.
    """
    if driver not in ("gels", "gelsy"):
        return None
    real = A.dtype.to_real()
    if driver == "gelsy":
        found = factors.least_squares_if_certain(A, B, rcond)
        if found is None:
            return None
        return found[0], A.new_empty(0, dtype=real), found[1], A.new_empty(0, dtype=real)
    value, left = factors.least_squares(A, B)
    residuals = left if A.shape[-2] > A.shape[-1] else left.new_empty(0)
    return value, residuals, A.new_empty(0, dtype=dtypes.int64), left.new_empty(0)


def _by_svd(A: Tensor, B: Tensor, driver: str, rcond: float | None) -> tuple[Tensor, ...]:
    m, n = A.shape[-2:]
    with unrecorded():
        batch = broadcast_shapes(A.shape[:-2], B.shape[:-2])
        nothing = A.new_empty(0, dtype=A.dtype.to_real())
        if not A.numel():
            rank = FUNCTIONS["zeros"](A.shape[:-2], dtype=dtypes.int64, device=A.device)
            x = A.new_zeros((*batch, n, B.shape[-1]))
            if driver == "gelsy":
                return x, nothing, rank, nothing
            missed = nothing
            if m > n:
                missed = B.abs().square().sum(-2).expand((*batch, B.shape[-1]))
            return x, missed, rank, nothing.new_empty((*A.shape[:-2], min(m, n)))
        if rcond is not None and (rcond < 0 or (driver == "gelsd" and not 0 < rcond < 1)):
            rcond = (
                dtypes.finfo(A.dtype.to_real()).eps / 2
            )  # LAPACK's drivers then use the machine precision
        left, s, right = _singular(A, False)
        stored, rank, residuals, whole = _of_singular([A, B, left, s, right], rcond)
        if driver == "gelsy" or m <= n or not (rank.is_meta or whole):
            residuals = nothing
        x = factors.by_columns(stored)
    return x, residuals, rank, s if driver in ("gelsd", "gelss") else nothing


@at_once
def _of_singular(xs: Sequence[Tensor], rcond: float | None) -> list[Tensor]:
    """Solve A X = B for A = L diag(s) R^H, leaving out singular values that count as zero.

    Returns X as it is stored (transposed), ranks, residuals, and whether every rank equals A's number of columns.
    """
    a, b, left, s, right = xs
    kept = s > _tolerance(max(a.shape[-2:]), s, None, rcond)
    inverse = FUNCTIONS["where"](kept, s.reciprocal(), 0.0)
    x = matmul(right, inverse.unsqueeze(-1) * matmul(adjoint(left), b))
    rank = kept.sum(-1)
    residuals = (matmul(a, x) - b).abs().square().sum(-2)
    return [x.mT.contiguous(), rank, residuals, (rank == a.shape[-1]).all()]


def _lstsq_back(ctx: Any, gx: Tensor, gr: Tensor, *_: Any) -> tuple:
    a, b, x = ctx.self, ctx.b, ctx.solution
    if ctx.vector:
        b, x, gx = b.unsqueeze(-1), x.unsqueeze(-1), gx.unsqueeze(-1)
    p = pinv(a)
    ga = pinv_gradient(gx @ adjoint(b), p, a) if ctx.needs[0] else None
    gb = adjoint(p) @ gx if ctx.needs[1] else None
    if gr.numel():
        # The residual's derivative by X is 0 at the minimum, so A and B contribute only directly.
        off = (a @ x - b) * (gr.unsqueeze(-2) * 2)
        ga = None if ga is None else ga + off @ adjoint(x)
        gb = None if gb is None else gb - off
    return ga, gb.squeeze(-1) if ctx.vector and gb is not None else gb
