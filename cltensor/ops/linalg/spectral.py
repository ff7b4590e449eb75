"""Singular values and eigenvalues.

Values and vectors are computed by kernels: diagonal_forms.py and, of matrices that are not Hermitian, general_forms.py.
Gradients are formulas over tensors, so they are differentiable again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd import record as graph
from .. import writes
from ..core import Tensor
from ..dims import check_flag
from ..row import public
from . import diagonal_forms, general_forms
from .matrices import (
    absent,
    adjoint,
    check_float,
    check_matrix,
    check_square,
    diag,
    diagonal,
    eye_like,
    named,
)
from .solve import deliver_all, solve_ex

# ------------------------------------------------------------------------------------------- singular values

Svd = named("svd", "U", "S", "V")
LinalgSvd = named("linalg_svd", "U", "S", "Vh")


def _off_diagonal_quotient(x: Tensor, e: Tensor) -> Tensor:
    """Return x / e off the diagonal, and x itself on the diagonal, where e is 0."""
    return x / (e + eye_like(e))


def _refuse_phase(diagonals: Sequence[Tensor], text: str) -> None:
    """RuntimeError where a gradient depends on the phases of complex vectors, which are arbitrary."""
    if not diagonals:
        return
    total = diagonals[0] if len(diagonals) == 1 else diagonals[0] + diagonals[1]
    phase = total.detach().imag
    if not bool((phase.abs() <= 1e-2).all()):
        raise RuntimeError(text)


_PHASE = (
    "{}: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. "
    "The specified loss function depends on this quantity, so it is ill-defined."
)


def _svd(A: Tensor, full: bool, vectors: bool) -> tuple[Any, Tensor, Any]:
    check_matrix(A, "linalg.svd")
    check_float(A, "linalg.svd", "linalg_svd_cpu")
    grad = graph.needs_grad(A)
    u, s, vh = diagonal_forms.svd(A, full, vectors or grad, "linalg.svd")
    if grad:
        graph.record("LinalgSvdBackward0", (A,), (u, s, vh), _svd_back, {"U": u, "S": s, "Vh": vh})
    return u, s, vh


def _svd_back(ctx: Any, gu: Tensor, gs: Tensor, gvh: Tensor) -> Tensor:
    u, s, vh = ctx.U, ctx.S, ctx.Vh
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    # Only the leading k vectors have a gradient: those that complete a square U or V (full_matrices) are not unique.
    u = u.narrow(-1, 0, k)
    gu = gu.narrow(-1, 0, k)
    vh = vh.narrow(-2, 0, k)
    gvh = gvh.narrow(-2, 0, k)
    no_u, no_v = absent(gu), absent(gvh)
    if no_u and no_v:
        return (u * gs.unsqueeze(-2)) @ vh
    row, column = s.unsqueeze(-2), s.unsqueeze(-1)
    e = (row - column) * (row + column)
    uh, v = adjoint(u), adjoint(vh)
    inner = diag(gs).to(u.dtype)
    phases = []
    if not no_u:
        skew = uh @ gu
        skew = skew - adjoint(skew)
        phases.append(diagonal(skew))
        inner = inner + _off_diagonal_quotient(skew, e) * row
        if u.dtype.is_complex:
            # The imaginary diagonal of U^H gU is divided by 2 S; the quotient above multiplied it by S.
            d = diagonal(skew)
            inner = inner + diag(d / (2 * s) - d * s)
    if not no_v:
        skew = vh @ adjoint(gvh)
        skew = skew - adjoint(skew)
        phases.append(diagonal(skew))
        if u.dtype.is_complex:
            skew = skew - diag(diagonal(skew))
        inner = inner + column * _off_diagonal_quotient(skew, e)
    if u.dtype.is_complex:
        _refuse_phase(
            phases,
            "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. "
            "The specified loss function depends on this phase term, making it ill-defined.",
        )
    out = u @ inner @ vh
    if m > k and not no_u:
        part = gu / row
        out = out + (part - u @ (uh @ part)) @ vh
    if n > k and not no_v:
        part = gvh / column
        out = out + u @ (part - (part @ v) @ vh)
    return out


def linalg_svd(
    A: Tensor,
    full_matrices: bool = True,
    *,
    driver: str | None = None,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Factorize A = U diag(S) Vh with orthonormal U and V and descending S."""
    check_flag("linalg_svd", "full_matrices", full_matrices, 2)
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    return LinalgSvd(deliver_all(_svd(A, full_matrices, True), out, "linalg_svd", (A,)))


@public()
def svd(
    input: Tensor,
    some: bool = True,
    compute_uv: bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Factorize input = U diag(S) V^H (deprecated in favour of linalg.svd, which returns V^H)."""
    check_flag("svd", "some", some, 2)
    check_flag("svd", "compute_uv", compute_uv)
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
    return writes.deliver(_svd(A, False, False)[1], out, "linalg_svdvals", (A,))


# ------------------------------------------------------------------------------------------- eigenvalues

Eigh = named("linalg_eigh", "eigenvalues", "eigenvectors")
Eig = named("linalg_eig", "eigenvalues", "eigenvectors")


def _eigh(A: Tensor, UPLO: Any, vectors: bool) -> tuple[Tensor, Tensor | None]:
    check_square(A, "linalg.eigh")
    check_float(A, "", "linalg_eigh_cpu")
    side: Any = UPLO.upper() if isinstance(UPLO, str) else UPLO
    if side not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    grad = graph.needs_grad(A)
    values, vecs = diagonal_forms.eigh(A, side == "U", vectors or grad, "linalg.eigh")
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
    vhg = vh @ gv
    if v.dtype.is_complex:
        _refuse_phase([diagonal(vhg)], _PHASE.format("linalg_eigh_backward"))
    inner = _off_diagonal_quotient(vhg, e)
    inner = inner - diag(diagonal(inner)) + diag(gl)
    return v @ inner @ vh


def eigh(A: Tensor, UPLO: str = "L", *, out: Sequence[Tensor] | None = None) -> Any:
    """Return eigenvalues (ascending) and eigenvectors of symmetric or Hermitian matrices, of which one triangle is read."""
    return Eigh(deliver_all(_eigh(A, UPLO, True), out, "linalg_eigh", (A,)))


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of symmetric or Hermitian matrices, ascending."""
    return writes.deliver(_eigh(A, UPLO, False)[0], out, "linalg_eigvalsh", (A,))


def _eig(A: Tensor, vectors: bool, function: str) -> tuple[Tensor, Tensor | None]:
    check_square(A, "linalg.eig")
    if A.dtype.category < 2:
        A.dtype.to_complex()
    check_float(A, "linalg.eig", "linalg_eig_out_cpu")
    grad = graph.needs_grad(A)
    values, vecs = general_forms.eig(A, vectors or grad, f"linalg.{function}")
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
        _refuse_phase([diagonal(vhg)], _PHASE.format("linalg_eig_backward"))
        inner = vhg - vh @ (v * diagonal(vhg).real.unsqueeze(-2))
        conj = values.conj()
        inner = _off_diagonal_quotient(inner, conj.unsqueeze(-2) - conj.unsqueeze(-1))
        inner = inner - diag(diagonal(inner)) + diag(gl)
        out = solve_ex(vh, inner @ vh)[0]
    return out.real if ctx.real else out


def eig(A: Tensor, *, out: Sequence[Tensor] | None = None) -> Any:
    """Return eigenvalues and eigenvectors of square matrices, complex, in no order."""
    values, vectors = _eig(A, True, "eig")
    if out is not None:
        values = writes.deliver(values, out[0], "linalg_eig", (A,))
        vectors = writes.deliver(vectors, out[1], "linalg_eig_vectors", (A,))
    return Eig((values, vectors))


def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of square matrices, complex, in no order."""
    return writes.deliver(_eig(A, False, "eigvals")[0], out, "linalg_eigvals", (A,))
