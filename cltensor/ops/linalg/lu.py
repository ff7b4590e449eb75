"""The LU factorization with row exchanges: packed, taken apart, used to solve systems, with its gradients.

The factorization is a kernel's (see factors.py); gradients are formulas over tensors, so they are differentiable again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...errors import warn_once
from .. import writes
from ..composite import at_once
from ..core import Tensor
from ..kinds import Sizes
from ..row import FUNCTIONS, public
from . import factors
from .factors import first_bad
from .matrices import adjoint, check_float, check_matrix, check_square, named, tril, triu
from .solve import check_pair, check_sides, deliver_all, solve_triangular

LuFactor = named("linalg_lu_factor", "LU", "pivots")
LuFactorEx = named("linalg_lu_factor_ex", "LU", "pivots", "info")
LuInfo = named("_lu_with_info", "LU", "pivots", "info")
LuUnpack = named("lu_unpack", "P", "L", "U")
LinalgLu = named("linalg_lu", "P", "L", "U")


def _split(lu: Tensor) -> tuple[Tensor, Tensor]:
    """Return the factors in a packed LU, differentiable: L (…, m, k) with ones on its diagonal, and U (…, k, n).

    k = min(m, n).
    """
    m, n = lu.shape[-2:]
    k = min(m, n)
    low = tril(lu.narrow(-1, 0, k), -1)
    return low + FUNCTIONS["eye"](m, k, dtype=lu.dtype, device=lu.device), triu(lu.narrow(-2, 0, k))


def _check_matrices(A: Tensor, name: str) -> None:
    if A.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )


def _factor(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    _check_matrices(A, "torch.lu_factor")
    check_float(A, "", "lu_cpu")
    packed, pivots, info = factors.lu(A, pivot)
    if graph.needs_grad(A):
        graph.record(
            "LinalgLuFactorExBackward0",
            (A,),
            (packed, pivots, info),
            _factor_back,
            {"LU": packed, "pivots": pivots},
        )
    return packed, pivots, info


def _lu_gradient(P: Tensor, low: Tensor, up: Tensor, gl: Tensor, gu: Tensor) -> Tensor:
    """Return the gradient of A = P L U (A = L U if P is empty), given those of L and U.

    With L1 and U1 the square parts of L and U, L2 the rows below L1 and U2 the columns beside U1, it is P times a
    matrix whose square part is L1^-H [tril(L1^H gL1 - gU2 U2^H, -1) + triu(gU1 U1^H - L2^H gL2)] U1^-H; the rows below
    that are gL2 U1^-H, the columns beside that L1^-H gU2.
    """
    m, n, k = low.shape[-2], up.shape[-1], up.shape[-2]
    low1, up1 = low[..., :k, :], up[..., :k]
    strict, rest = adjoint(low1) @ gl[..., :k, :], gu[..., :k] @ adjoint(up1)
    if n > k:
        strict = strict - gu[..., k:] @ adjoint(up[..., k:])
    if m > k:
        rest = rest - adjoint(low[..., k:, :]) @ gl[..., k:, :]
    inner = tril(strict, -1) + triu(rest)
    value = _over_unit(low1, _by_upper(inner, up1))
    if n > k:
        value = FUNCTIONS["cat"]((value, _over_unit(low1, gu[..., k:])), -1)
    if m > k:
        value = FUNCTIONS["cat"]((value, _by_upper(gl[..., k:, :], up1)), -2)
    return P @ value if P.ndim > 1 else value


def _over_unit(low: Tensor, x: Tensor) -> Tensor:
    """L^-H x for a lower triangle with ones on its diagonal."""
    return solve_triangular(adjoint(low), x, upper=True, unitriangular=True)


def _by_upper(x: Tensor, up: Tensor) -> Tensor:
    """X U^-H for an upper triangle."""
    return solve_triangular(adjoint(up), x, upper=False, left=False)


def _factor_back(ctx: Any, g: Tensor, *_: Any) -> Tensor:
    low, up = _split(ctx.LU)
    k = up.shape[-2]
    P = factors.permutation(ctx.pivots, low.shape[-2], low.dtype)
    return _lu_gradient(P, low, up, tril(g[..., :k], -1), triu(g[..., :k, :]))


def lu_factor_ex(
    A: Tensor,
    *,
    pivot: bool = True,
    check_errors: bool = False,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Factorize A = P L U into packed factors and pivots; `info` is the first zero pivot's number."""
    values = _factor(A, pivot)
    if check_errors:
        _check_pivots(values[2])
    return LuFactorEx(deliver_all(values, out, "linalg_lu_factor_ex", (A,)))


def _check_pivots(info: Tensor) -> None:
    bad = first_bad(info)
    if bad:
        raise RuntimeError(
            f"torch.linalg.lu_factor: {bad[0]}U[{bad[1]},{bad[1]}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
            "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )


def lu_factor(A: Tensor, *, pivot: bool = True, out: Sequence[Tensor] | None = None) -> Any:
    """Factorize A = P L U into packed factors and pivots. RuntimeError for a zero pivot."""
    values = _factor(A, pivot)
    _check_pivots(values[2])
    return LuFactor(deliver_all(values[:2], out, "linalg_lu_factor", (A,)))


@public("lu")
def torch_lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: Sequence[Tensor] | None = None
) -> Any:
    """Factorize A = P L U into packed factors and pivots (deprecated in favour of linalg.lu_factor)."""
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future PyTorch release.\n"
        "LU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    values = _factor(A, pivot)
    if get_infos:
        return LuInfo(deliver_all(values, out, "lu", (A,)))
    _check_pivots(values[2])
    return deliver_all(tuple(values[:2]), out, "lu", (A,))


@at_once
def _apart(xs: Sequence[Tensor], pivot: bool) -> list[Tensor]:
    (A,) = xs
    packed, pivots, _ = factors.lu(A, pivot)
    P = factors.permutation(pivots, A.shape[-2], A.dtype) if pivot else A.new_empty(0)
    return [P, *_split(packed)]


def lu(A: Tensor, *, pivot: bool = True, out: Sequence[Tensor] | None = None) -> Any:
    """Factorize A = P L U into its three matrices; without pivoting, P is empty and A = L U."""
    _check_matrices(A, "linalg.lu")
    check_float(A, "", "lu_cpu")
    P, low, up = _apart([A], pivot)
    if graph.needs_grad(A):
        saved = {"P": P, "L": low, "U": up}
        graph.record(
            "LinalgLuBackward0",
            (A,),
            (None, low, up),
            lambda ctx, _, gl, gu: _lu_gradient(ctx.P, ctx.L, ctx.U, gl, gu),
            saved,
        )
    return LinalgLu(deliver_all((P, low, up), out, "linalg_lu", (A,)))


@public(method=False)
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Return the matrices P, L and U of packed factors and pivots; those not asked for are empty."""
    _check_matrices(LU_data, "torch.lu_unpack")
    m = LU_data.shape[-2]
    empty = LU_data.new_empty(0)
    if unpack_pivots:
        if LU_pivots.dtype is not dtypes.int32:
            raise RuntimeError(
                "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
            )
        if _outside([LU_pivots], Sizes((m,)))[0]:
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                "Did you properly pass the result of lu_factor?"
            )
    P = factors.permutation(LU_pivots, m, LU_data.dtype) if unpack_pivots else empty
    if not unpack_data:
        unpacked = (P, empty, LU_data.new_empty(0))
        return LuUnpack(deliver_all(unpacked, out, "lu_unpack", (LU_data,)))
    with unrecorded():
        low, up = _split(LU_data)
    if graph.needs_grad(LU_data):
        graph.record("LuUnpackBackward0", (LU_data,), (None, low, up), _unpack_back)
    return LuUnpack(deliver_all((P, low, up), out, "lu_unpack", (LU_data,)))


def _unpack_back(ctx: Any, _: Any, gl: Tensor, gu: Tensor) -> Tensor:
    m, n = ctx.shapes[0][-2:]
    k = min(m, n)
    low, up = tril(gl, -1), triu(gu)
    pad = FUNCTIONS["cat"]
    if n > k:
        low = pad((low, low.new_zeros((*low.shape[:-1], n - k))), -1)
    if m > k:
        up = pad((up, up.new_zeros((*up.shape[:-2], m - k, n))), -2)
    return low + up


def linalg_lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Solve A X = B (X A = B, or with A^H), given the packed factors and pivots of A."""
    check_square(LU, "torch.linalg.lu_solve")
    check_float(LU, "torch.linalg.lu_solve", "linalg.lu_solve_cpu")
    check_matrix(B, "linalg.lu_solve", "B")
    check_pair(LU, B, "linalg.lu_solve", "LU")
    check_sides(LU, B.shape, left, "linalg.lu_solve")
    _check_given(LU, pivots)
    return writes.deliver(_lu_solve(LU, pivots, B, left, adjoint), out, "linalg_lu_solve", (LU, B))


def _check_given(LU: Tensor, pivots: Tensor) -> None:
    name = "linalg.lu_solve"
    if pivots.dtype is not dtypes.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    if not pivots.ndim or pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
        )
    if pivots.shape[:-1] != LU.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} instead"
        )
    if _outside([pivots], Sizes((LU.shape[-1],)))[0]:
        low = bool((pivots < 1).any())
        side = "greater or equal to 1" if low else "smaller or equal to LU.size(-2)"
        raise RuntimeError(
            f"Pivots given to lu_solve must all be {side}. Did you properly pass the result of lu_factor?"
        )


@at_once
def _outside(xs: Sequence[Tensor], sizes: Sizes) -> list[Tensor]:
    """Return whether any pivot is less than 1 or greater than `sizes[0]`."""
    return [((xs[0] < 1) | (xs[0] > sizes[0])).any()]


def _lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, flip: bool) -> Tensor:
    if (left and not flip) or not graph.needs_grad(LU, B):
        value = factors.lu_solve(LU, pivots, B, left=left, adjoint=flip)
        if graph.needs_grad(LU, B):
            graph.record(
                "LinalgLuSolveBackward0",
                (LU, B),
                value,
                _lu_solve_back,
                {"LU": LU, "pivots": pivots, "result": value},
            )
        return value
    if not left:
        return adjoint(_lu_solve(LU, pivots, adjoint(B), True, not flip))
    low, up = _split(LU)
    y = solve_triangular(adjoint(up), B, upper=False)
    return factors.permutation(pivots, LU.shape[-1], LU.dtype) @ solve_triangular(
        adjoint(low), y, upper=True, unitriangular=True
    )


def _lu_solve_back(ctx: Any, g: Tensor) -> tuple:
    low, up = _split(ctx.LU)
    gb = _lu_solve(ctx.LU, ctx.pivots, g, True, True) if ctx.needs[1] else None
    if not ctx.needs[0]:
        return None, gb
    r = -(solve_triangular(adjoint(up), g, upper=False) @ adjoint(ctx.result))
    gl = solve_triangular(adjoint(low), r @ adjoint(up), upper=True, unitriangular=True)
    return triu(r) + tril(gl, -1), gb


@public()
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Solve A X = b, given the packed factors and pivots of A."""
    warn_once(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release.\n"
        "Note that torch.linalg.lu_solve has its arguments reversed.\n"
        "X = torch.lu_solve(B, LU, pivots)\nshould be replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)"
    )
    return linalg_lu_solve(LU_data, LU_pivots, b, out=out)
