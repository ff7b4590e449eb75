"""Inverses, determinants, linear systems, and the Cholesky factorization, with their gradients.

The factorizations are kernels (see factors.py); gradients are formulas over tensors, so they are differentiable again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...errors import warn_once
from ...layouts import broadcast_shapes
from .. import writes
from ..core import Tensor
from ..dims import check_flag
from ..operands import check_tensors
from ..row import FUNCTIONS, public
from . import diagonal_forms, factors
from .factors import first_bad
from .matrices import (
    LinAlgError,
    adjoint,
    check_float,
    check_matrix,
    check_square,
    eye_like,
    named,
    tril,
    triu,
)

SINGULAR = "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular."

# ------------------------------------------------------------------------------------------- inverse

InvEx = named("linalg_inv_ex", "inverse", "info")


def inv_ex(A: Tensor, *, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> Any:
    """Invert (batches of) square matrices; `info` is the first zero pivot's number, 0 where there is none."""
    made = _inverse(A, check_errors, "linalg.inv_ex")
    return InvEx(deliver_all(made, out, "linalg_inv_ex", (A,)))


def _inverse(A: Tensor, check_errors: bool, function: str) -> tuple[Tensor, Tensor]:
    check_square(A, "linalg.inv")
    check_float(A, "linalg.inv")
    value, code = factors.inverse(A)
    bad = first_bad(code) if check_errors else None
    if bad:
        raise LinAlgError(f"{function}: {bad[0]}{SINGULAR.format(bad[1])}")
    if graph.needs_grad(A):
        graph.record("LinalgInvExBackward0", (A,), (value, code), _inv_back, {"inverse": value})
    return value, code


def _inv_back(ctx: Any, g: Tensor, _: Any = None) -> Tensor:
    x = adjoint(ctx.inverse)
    return -(x @ g @ x)


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Invert (batches of) square matrices. LinAlgError for a singular one."""
    return writes.deliver(_inverse(A, True, "linalg.inv")[0], out, "linalg_inv", (A,))


@public()
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Invert (batches of) square matrices. LinAlgError for a singular one."""
    return inv(input, out=out)


# ------------------------------------------------------------------------------------------- determinants

Slogdet = named("slogdet", "sign", "logabsdet")
LinalgSlogdet = named("linalg_slogdet", "sign", "logabsdet")


@public(aliases=("linalg_det",))
def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the determinant (…) of square matrices (…, n, n). RuntimeError for integers."""
    check_square(input, "linalg.det")
    check_float(input, "linalg.det", "lu_cpu")
    with unrecorded():
        value = factors.determinant(input.detach())
    if graph.needs_grad(input):
        graph.record(
            "LinalgDetBackward0", (input,), value, _det_back, {"A": input, "result": value}
        )
    return writes.deliver(value, out, "linalg_det", (input,))


def _det_back(ctx: Any, g: Tensor) -> Tensor:
    a, result = ctx.A, ctx.result
    wide = (g * result.conj())[..., None, None] if not bool((result == 0).any()) else None
    if wide is not None:
        return wide * adjoint(inv_ex(a)[0])
    # A singular matrix has no inverse, but cofactors: det'(A) = det(U Vh) * U diag(products of the other singular
    # values) Vh.
    with unrecorded():
        u, s, vh = diagonal_forms.svd(a, False, True, "linalg.svd")
        assert u is not None
        assert vh is not None
        others = FUNCTIONS["where"](eye_like(s) != 0, 1.0, s.unsqueeze(-2)).prod(-1)
        cofactors = (det(u) * det(vh)).conj()[..., None, None] * ((u * others.unsqueeze(-2)) @ vh)
    return g[..., None, None] * cofactors


def _slogdet(A: Tensor, function: str) -> tuple[Tensor, Tensor]:
    check_square(A, function)
    check_float(A, function)
    with unrecorded():
        s, value = factors.log_determinant(A.detach())
    if graph.needs_grad(A):
        graph.record("LinalgSlogdetBackward0", (A,), (s, value), _slogdet_back, {"A": A, "sign": s})
    return s, value


def _slogdet_back(ctx: Any, gs: Tensor, g: Tensor) -> Tensor:
    if ctx.A.dtype.is_complex:
        g = g - (gs.conj() * ctx.sign).imag * complex(0, 1)
    return g[..., None, None] * adjoint(inv_ex(ctx.A)[0])


@public()
def slogdet(input: Tensor, *, out: Sequence[Tensor] | None = None) -> Any:
    """Return the sign and the logarithm of the absolute value of the determinant."""
    return Slogdet(deliver_all(_slogdet(input, "linalg.slogdet"), out, "slogdet", (input,)))


def linalg_slogdet(A: Tensor, *, out: Sequence[Tensor] | None = None) -> Any:
    """Return the sign and the logarithm of the absolute value of the determinant."""
    return LinalgSlogdet(deliver_all(_slogdet(A, "linalg.slogdet"), out, "linalg_slogdet", (A,)))


@public()
def logdet(input: Tensor) -> Tensor:
    """Return the logarithm (…) of the determinant of (…, n, n): -inf for 0, nan where it is negative."""
    sign, size = _slogdet(input, "logdet")
    if input.dtype.is_complex:
        return sign.log() + size
    return FUNCTIONS["where"](sign == -1, float("nan"), size)


def deliver_all(values: Any, out: Any, function: str, inputs: tuple) -> Any:
    """Write several results into the tensors of `out=`, or return them."""
    return (
        values
        if out is None
        else tuple(writes.deliver(v, o, function, inputs) for v, o in writes.each(values, out))
    )


# ------------------------------------------------------------------------------------------- linear systems

SolveEx = named("linalg_solve_ex", "result", "info")


def check_pair(A: Tensor, B: Tensor, function: str, name: str = "A") -> None:
    """Raise torch's error unless A and B have the same dtype."""
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{function}: Expected {name} and B to have the same dtype, but found {name} of type {A.dtype.scalar_name} and B of type {B.dtype.scalar_name} instead"
        )


def check_sides(A: Tensor, b: tuple[int, ...], left: bool, function: str) -> None:
    """Raise torch's error unless a B of shape `b` fits AX = B, or XA = B where not `left`."""
    if A.shape[-2 if left else -1] != b[-2 if left else -1]:
        eq = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{function}: Incompatible shapes of A and B for the equation {eq} ({A.shape[-2]}x{A.shape[-1]} and {b[-2]}x{b[-1]})"
        )


def solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Solve AX = B (or XA = B) for (batches of) square A; B may be vectors. `info` is not 0 where A is singular."""
    check_square(A, "linalg.solve")
    check_float(A, "linalg.solve", "lu_cpu")
    check_pair(A, B, "linalg.solve")
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    shape = (*B.shape, 1) if vector else B.shape
    check_sides(A, shape, left, "linalg.solve")
    broadcast_shapes(shape[:-2], A.shape[:-2])
    value, code = factors.solution(A, B, left, vector)
    bad = first_bad(code) if check_errors else None
    if bad:
        raise LinAlgError(
            f"torch.linalg.solve: {bad[0]}The solver failed because the input matrix is singular."
        )
    if graph.needs_grad(A, B):
        graph.record(
            "LinalgSolveExBackward0",
            (A, B),
            (value, code),
            _solve_back,
            {"A": A, "result": value, "left": left, "vector": vector},
        )
    return SolveEx(deliver_all((value, code), out, "linalg_solve_ex", (A, B)))


def _solve_back(ctx: Any, g: Tensor, _: Any = None) -> tuple:
    left, vector = ctx.left, ctx.vector
    gb = solve_ex(adjoint(ctx.A), g, left=left)[0]
    if not ctx.needs[0]:
        return None, gb
    x = ctx.result
    if vector:
        return -(gb.unsqueeze(-1) @ adjoint(x.unsqueeze(-1))), gb
    return (-(gb @ adjoint(x)) if left else -(adjoint(x) @ gb)), gb


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Solve AX = B (or XA = B) for (batches of) square A; B may be vectors. LinAlgError for singular A."""
    return writes.deliver(
        solve_ex(A, B, left=left, check_errors=True)[0], out, "linalg_solve", (A, B)
    )


# ------------------------------------------------------------------------------------------- triangular systems


def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Solve AX = B (or XA = B) by substitution; reads only one triangle of A."""
    check_square(A, "linalg.solve_triangular")
    check_matrix(B, "linalg.solve_triangular", "B")
    check_pair(A, B, "linalg.solve_triangular")
    check_float(A, "", "triangular_solve_cpu")
    check_sides(A, B.shape, left, "linalg.solve_triangular")
    broadcast_shapes(A.shape[:-2], B.shape[:-2])
    value = factors.triangular(A, B, upper, left, unitriangular)
    if graph.needs_grad(A, B):
        saved = {
            "A": A,
            "result": value,
            "upper": upper,
            "left": left,
            "unitriangular": unitriangular,
        }
        graph.record("LinalgSolveTriangularBackward0", (A, B), value, _triangular_back, saved)
    return writes.deliver(value, out, "linalg_solve_triangular", (A, B))


def _triangle(g: Tensor, upper: bool, unit: bool) -> Tensor:
    return triu(g, int(unit)) if upper else tril(g, -int(unit))


def _triangular_back(ctx: Any, g: Tensor) -> tuple:
    gb = solve_triangular(
        adjoint(ctx.A), g, upper=not ctx.upper, left=ctx.left, unitriangular=ctx.unitriangular
    )
    if not ctx.needs[0]:
        return None, gb
    x = adjoint(ctx.result)
    return _triangle(-(gb @ x) if ctx.left else -(x @ gb), ctx.upper, ctx.unitriangular), gb


TriangularSolve = named("triangular_solve", "solution", "cloned_coefficient")


@public()
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Solve AX = input by substitution (deprecated in favour of linalg.solve_triangular); also returns a copy of A."""
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future PyTorch release.\n"
        "torch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the inputs.\n"
        "X = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B)."
    )
    for name, x in (("b", input), ("A", A)):
        if x.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {x.ndim} dimensions instead"
            )
    if A.shape[-1] == A.shape[-2] != input.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {A.shape[-2]} by {A.shape[-1]} but each b matrix is {input.shape[-2]} by {input.shape[-1]}"
        )
    with unrecorded():
        m = A.transpose(-2, -1) if transpose else A
        value = solve_triangular(m, input, upper=upper != transpose, unitriangular=unitriangular)
        copy = A.clone()
    if graph.needs_grad(input, A):
        saved = {
            "A": A,
            "result": value,
            "upper": upper,
            "transpose": transpose,
            "unitriangular": unitriangular,
        }
        graph.record(
            "TriangularSolveBackward0", (input, A), (value, copy), _triangular_solve_back, saved
        )
    return TriangularSolve(deliver_all((value, copy), out, "triangular_solve", (input, A)))


def _triangular_solve_back(ctx: Any, g: Tensor, gm: Tensor) -> tuple:
    a = ctx.A.conj() if ctx.transpose else adjoint(ctx.A)
    gb = solve_triangular(
        a, g, upper=ctx.upper if ctx.transpose else not ctx.upper, unitriangular=ctx.unitriangular
    )
    x = ctx.result
    ga = -(x.conj() @ gb.transpose(-2, -1)) if ctx.transpose else -(gb @ adjoint(x))
    return gb, _triangle(ga, ctx.upper, ctx.unitriangular) + gm


# ------------------------------------------------------------------------------------------- Cholesky

CholeskyEx = named("linalg_cholesky_ex", "L", "info")
NOT_POSITIVE = "The factorization could not be completed because the input is not positive-definite (the leading minor of order {} is not positive-definite)."


def _cholesky(
    A: Tensor, upper: bool, check: str, node: str, function: str
) -> tuple[Tensor, Tensor]:
    check_square(A, function)
    check_float(A, function if function.startswith("linalg") else "", "cholesky_cpu")
    value, code = factors.cholesky(A, upper)
    bad = first_bad(code) if check else None
    if bad:
        raise LinAlgError(f"{check}: {bad[0]}{NOT_POSITIVE.format(bad[1])}")
    if graph.needs_grad(A):
        graph.record(node, (A,), (value, code), _cholesky_back, {"L": value, "upper": upper})
    return value, code


def _cholesky_back(ctx: Any, g: Tensor, _: Any = None) -> Tensor:
    low, g = (adjoint(ctx.L), adjoint(g)) if ctx.upper else (ctx.L, g)
    phi = adjoint(low) @ g
    phi = (tril(phi) + adjoint(tril(phi, -1))) * 0.5
    return solve_triangular(
        adjoint(low), solve_triangular(low, phi, upper=False, left=False), upper=True
    )


def cholesky_ex(
    A: Tensor,
    *,
    upper: bool = False,
    check_errors: bool = False,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Factorize positive-definite matrices A = L L^H; `info` is the first leading minor that is not positive."""
    made = _cholesky(
        A,
        upper,
        "linalg.cholesky_ex" if check_errors else "",
        "LinalgCholeskyExBackward0",
        "linalg.cholesky",
    )
    return CholeskyEx(deliver_all(made, out, "linalg_cholesky_ex", (A,)))


def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Factorize positive-definite matrices A = L L^H. LinAlgError for others."""
    return writes.deliver(
        _cholesky(A, upper, "linalg.cholesky", "LinalgCholeskyExBackward0", "linalg.cholesky")[0],
        out,
        "linalg_cholesky",
        (A,),
    )


@public()
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Factorize positive-definite matrices (deprecated in favour of linalg.cholesky)."""
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch release.\n"
        "L = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\n"
        "U = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\n"
        "This transform will produce equivalent results for all valid (symmetric positive definite) inputs."
    )
    return writes.deliver(
        _cholesky(input, upper, "cholesky", "CholeskyBackward0", "cholesky")[0],
        out,
        "cholesky",
        (input,),
    )


@public()
def cholesky_solve(
    input: Tensor, input2: Tensor, upper: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Solve A X = input (…, n, k), given the Cholesky factor input2 (…, n, n) of A, lower triangular unless `upper`."""
    check_tensors("cholesky_solve", ("input", "input2"), input, input2)
    for name, x in (("b", input), ("u", input2)):
        if x.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {x.ndim} dimensions instead"
            )
    if input2.shape[-1] != input2.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {input2.shape[-2]} by {input2.shape[-1]} matrices"
        )
    if input2.dtype is not input.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {input.dtype.scalar_name} and A of type {input2.dtype.scalar_name} instead."
        )
    if input2.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {input2.shape[-2]} by {input2.shape[-1]} but each b matrix is {input.shape[-2]} by {input.shape[-1]}"
        )
    check_float(input, "", "cholesky_solve_cpu")
    value = factors.cholesky_solve(input2, input, upper)
    if graph.needs_grad(input, input2):
        graph.record(
            "CholeskySolveBackward0",
            (input, input2),
            value,
            _cholesky_solve_back,
            {"input2": input2, "result": value, "upper": upper},
        )
    return writes.deliver(value, out, "cholesky_solve", (input, input2))


def _cholesky_solve_back(ctx: Any, g: Tensor) -> tuple:
    factor, upper = ctx.input2, ctx.upper
    gb = cholesky_solve(g, factor, upper)
    if not ctx.needs[1]:
        return gb, None
    both = gb @ adjoint(ctx.result)
    both = both + adjoint(both)
    return gb, -(factor @ both) if upper else -(both @ factor)


@public()
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Invert a matrix given its Cholesky factor."""
    check_flag("cholesky_inverse", "upper", upper, 2)
    check_square(input, "cholesky_inverse")
    check_float(input, "", "cholesky_inverse_out_cpu")
    value, zero = factors.cholesky_inverse(input, upper)
    bad = first_bad(zero)
    if bad:
        raise LinAlgError(f"cholesky_inverse: {bad[0]}{SINGULAR.format(bad[1])}")
    if graph.needs_grad(input):
        graph.record(
            "CholeskyInverseBackward0",
            (input,),
            value,
            _cholesky_inverse_back,
            {"self": input, "result": value, "upper": upper},
        )
    return writes.deliver(value, out, "cholesky_inverse", (input,))


def _cholesky_inverse_back(ctx: Any, g: Tensor) -> Tensor:
    x = ctx.result
    common = x @ (g + adjoint(g)) @ x
    return -(ctx.self @ common) if ctx.upper else -(common @ ctx.self)
