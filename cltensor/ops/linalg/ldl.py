"""Factorizations P L D L^T P^T of symmetric or Hermitian matrices with Bunch-Kaufman pivoting, and systems solved with
them.

Factors are packed as by LAPACK's sytrf and hetrf: L below the diagonal, D on the diagonal and, where a pivot is
negative, in a 2 x 2 block. As in torch there is no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...codegen.factor import ldl as family
from ...codegen.factor import parts
from ...codegen.region import empty
from ...runtime import get_backend
from .. import core, writes
from ..composite import at_once
from ..core import Tensor
from ..replay import Replayed
from .factors import alike, as_column, as_stored, by_columns, flattened
from .matrices import check_float, check_square, named
from .table import LINALG

LdlFactor = named("linalg_ldl_factor", "LD", "pivots")
LdlFactorEx = named("linalg_ldl_factor_ex", "LD", "pivots", "info")


@Replayed.of_memory
def _factorized(xs: Sequence[Tensor], hermitian: bool) -> list[Tensor]:
    """Return the packed factors as they are stored (`factors.as_stored`), pivots (…, n) and info (…)."""
    (A,) = xs
    backend, batch, n = get_backend(A.device), A.shape[:-2], A.shape[-1]
    with backend.lock:
        a = parts.by_columns(backend, core.kernel_operand(A))
        count = a.shape[0]
        pivots = empty(backend, dtypes.int32, (count, n))
        info = (empty if n else parts.zeros)(backend, dtypes.int32, (count,))
        family.ldl(backend, a, pivots, info, hermitian)
    return [
        as_stored(a, batch, backend),
        core.result(pivots._replace(shape=(*batch, n)), A.device),
        core.result(info._replace(shape=tuple(batch)), A.device),
    ]


@Replayed.of_memory
def _solved(xs: Sequence[Tensor], hermitian: bool) -> list[Tensor]:
    """Return X as it is stored (`factors.as_stored`).

    Operands: the packed factors (…, n, n), B (…, n, k), pivots (…, n).
    """
    B = xs[1]
    backend = get_backend(B.device)
    with backend.lock:
        a, b, pivots = map(core.kernel_operand, xs)
        x, a = parts.by_columns(backend, b), flattened(backend, a)
        if a.strides[1] != 1:
            a = parts.by_columns(backend, a)
        rows = flattened(backend, as_column(pivots))
        family.ldl_solve(backend, a, rows, x, hermitian)
    return [as_stored(x, B.shape[:-2], backend)]


def _none(ctx: Any, *gs: Any) -> Any:
    raise RuntimeError(f"derivative for aten::{ctx.function} is not implemented")


def _worst(info: Tensor) -> int:
    """Return the largest info code; 0 for a tensor on "meta"."""
    return 0 if info.is_meta else int(info._host().max(initial=0))


def ldl_factor_ex(
    A: Tensor,
    *,
    hermitian: bool = False,
    check_errors: bool = False,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Factorize symmetric (or, if `hermitian`, Hermitian) matrices; `info` is the number of the first zero pivot, else 0."""
    check_square(A, "torch.linalg.ldl_factor_ex")
    check_float(A, "torch.linalg.ldl_factor_ex", "ldl_factor_kernel_cpu")
    packed, pivots, info = _factorized([A], hermitian)
    worst = _worst(info) if check_errors else 0
    if worst:
        raise RuntimeError(
            f"torch.linalg.ldl_factor_ex: the factorization has a zero pivot at {worst}"
        )
    values = by_columns(packed), pivots, info
    graph.record("NotImplemented", (A,), values, _none, {"function": "linalg_ldl_factor_ex"})
    if out is not None:
        values = tuple(
            writes.deliver(v, o, "linalg_ldl_factor_ex", (A,)) for v, o in writes.each(values, out)
        )
    return LdlFactorEx(values)


def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Sequence[Tensor] | None = None) -> Any:
    """Factorize symmetric (or, if `hermitian`, Hermitian) matrices into the packed LD and pivots."""
    LD, pivots, info = ldl_factor_ex(A, hermitian=hermitian)
    worst = _worst(info)
    if worst:
        raise RuntimeError(f"torch.linalg.ldl_factor: Unknown error code: {worst}.")
    if out is not None:
        LD, pivots = (
            writes.deliver(v, o, "linalg_ldl_factor", (A,))
            for v, o in writes.each((LD, pivots), out)
        )
    return LdlFactor((LD, pivots))


def _check_solve(LD: Tensor, pivots: Tensor, B: Tensor) -> None:
    what = "torch.linalg.ldl_solve"
    check_square(LD, what)
    check_float(LD, what, "ldl_solve_kernel_cpu")
    if LD.shape[-1] != B.size(-2):
        n, (rows, columns) = LD.shape[-1], B.shape[-2:]
        raise RuntimeError(
            f"Incompatible matrix sizes for {what}: each A matrix is {n} by {n} but each b matrix is {rows} by {columns}"
        )
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{what}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} instead"
        )
    if pivots.dtype.category != 1:
        raise RuntimeError(
            f"{what}: Expected pivots to be integers. Got {pivots.dtype.scalar_name}"
        )
    if LD.dtype is not B.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {B.dtype.scalar_name} and A of type {LD.dtype.scalar_name} instead."
        )


@at_once
def _outside(xs: Sequence[Tensor]) -> list[Tensor]:
    size = xs[0].abs()
    return [((size < 1) | (size > size.shape[-1])).any()]


def ldl_solve(
    LD: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Solve A X = B (…, n, k), given the packed factors and pivots of A; leading dims broadcast."""
    _check_solve(LD, pivots, B)
    if not pivots.is_meta and _outside([pivots])[0].item():
        raise RuntimeError("torch.linalg.ldl_solve: pivots out of range")
    given = alike(LD, B)
    with unrecorded():
        rows = pivots.to(dtypes.int32).contiguous().expand(*given[1].shape[:-2], LD.shape[-1])
    value = by_columns(_solved([*given, rows], hermitian)[0])
    graph.record("NotImplemented", (LD, B), value, _none, {"function": "linalg_ldl_solve"})
    return writes.deliver(value, out, "linalg_ldl_solve", (LD, B))


LINALG.update(ldl_factor=ldl_factor, ldl_factor_ex=ldl_factor_ex, ldl_solve=ldl_solve)
