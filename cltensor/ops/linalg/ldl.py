"""Factorizations P L D L^T P^T of symmetric or Hermitian matrices by Bunch and Kaufman's pivoting, and systems solved with them.

Both run on the host (see lapack.py), laid out as LAPACK's sytrf and hetrf do: L below the diagonal, D on it and, where a pivot
is negative, in 2 x 2 blocks. As in torch there is no gradient.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...autograd import record as graph
from .. import writes
from ..core import Tensor
from .lapack import device, host
from .matrices import check_float, check_square, named
from .table import LINALG

LdlFactor = named("linalg_ldl_factor", "LD", "pivots")
LdlFactorEx = named("linalg_ldl_factor_ex", "LD", "pivots", "info")
_ALPHA = (1 + math.sqrt(17)) / 8  # keeps the growth of elements smallest
Array = np.ndarray


def _size(v: Any) -> Any:
    """What LAPACK compares pivots by: |re| + |im|."""
    return np.abs(v.real) + np.abs(v.imag)


def _choose(a: Array, k: int) -> tuple[int, int]:
    """Return the row to bring to the front and the size of the pivot block: 1 or 2 (0 where the column is all zero)."""
    n = len(a)
    diagonal = _size(a[k, k])
    if k == n - 1:
        return k, 1 if diagonal else 0
    row = k + 1 + int(np.argmax(_size(a[k + 1 :, k])))
    column_max = _size(a[row, k])
    if max(diagonal, column_max) == 0:
        return k, 0
    if diagonal >= _ALPHA * column_max:
        return k, 1
    row_max = max(_size(a[row, k:row]).max(), _size(a[row + 1 :, row]).max(initial=0))
    if diagonal >= _ALPHA * column_max * (column_max / row_max):
        return k, 1
    return row, 1 if _size(a[row, row]) >= _ALPHA * row_max else 2


def _swap(a: Array, k: int, at: int, row: int, turned: Any) -> None:
    """Exchange rows and columns `at` and `row` of the lower triangle whose factored part ends before column k."""
    a[row + 1 :, [at, row]] = a[row + 1 :, [row, at]]
    below, left = a[at + 1 : row, at].copy(), a[row, at + 1 : row].copy()
    a[at + 1 : row, at], a[row, at + 1 : row] = turned(left), turned(below)
    a[row, at] = turned(a[row, at])
    a[[at, row], [at, row]] = a[[row, at], [row, at]]
    if at > k:
        a[[at, row], k] = a[[row, at], k]


def _block(a: Array, k: int, turned: Any) -> Array:
    return np.array([[a[k, k], turned(a[k + 1, k])], [a[k + 1, k], a[k + 1, k + 1]]])


def _factor(a: Array, hermitian: bool) -> tuple[Array, Array, int]:
    """Factorize one matrix, of which the lower triangle is read."""
    a, n = np.tril(a), len(a)
    turned = np.conj if hermitian else np.asarray
    if hermitian and np.iscomplexobj(a):
        np.fill_diagonal(a, a.diagonal().real)
    pivots, info, k = np.zeros(n, np.int32), 0, 0
    while k < n:
        row, size = _choose(a, k)
        if not size:
            info, pivots[k] = info or k + 1, k + 1
            k += 1
            continue
        at = k + size - 1
        if row != at:
            _swap(a, k, at, row, turned)
        panel = a[k + size :, k : k + size].copy()
        d = a[k, k].reshape(1, 1) if size == 1 else _block(a, k, turned)
        scaled = panel @ np.linalg.inv(d)
        a[k + size :, k + size :] -= np.tril(scaled @ turned(panel).T)
        a[k + size :, k : k + size] = scaled
        pivots[k : k + size] = row + 1 if size == 1 else -(row + 1)
        k += size
    return a, pivots, info


def _solve(ld: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """Solve with one factorization."""
    b, n, k = b.copy(), len(ld), 0
    turned = np.conj if hermitian else np.asarray
    starts = []
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        at, row = k + size - 1, abs(int(pivots[k])) - 1
        b[[at, row]] = b[[row, at]]
        b[k + size :] -= ld[k + size :, k : k + size] @ b[k : k + size]
        d = ld[k, k].reshape(1, 1) if size == 1 else _block(ld, k, turned)
        with np.errstate(divide="ignore", invalid="ignore"):
            b[k : k + size] = b[k : k + size] / d if size == 1 else np.linalg.solve(d, b[k : k + 2])
        starts.append((k, size, at, row))
        k += size
    for k, size, at, row in reversed(starts):
        b[k : k + size] -= turned(ld[k + size :, k : k + size]).T @ b[k + size :]
        b[[at, row]] = b[[row, at]]
    return b


def _none(ctx: Any, *gs: Any) -> Any:
    raise RuntimeError(f"derivative for aten::{ctx.function} is not implemented")


def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None
) -> Any:
    """Factorize symmetric (or, if `hermitian`, Hermitian) matrices; `info` is the number of the first zero pivot, else 0."""
    check_square(A, "torch.linalg.ldl_factor_ex")
    check_float(A, "torch.linalg.ldl_factor_ex")
    a = host(A)
    n, batch = a.shape[-1], a.shape[:-2]
    made = [_factor(one, hermitian) for one in a.reshape(math.prod(batch), n, n)]
    LD = np.stack([m[0] for m in made]).reshape(a.shape) if made else np.zeros(a.shape, a.dtype)
    pivots = np.array([m[1] for m in made], np.int32).reshape(*batch, n)
    info = np.array([m[2] for m in made], np.int32).reshape(batch)
    if check_errors and info.any():
        raise RuntimeError(
            f"torch.linalg.ldl_factor_ex: the factorization has a zero pivot at {int(info.max())}"
        )
    values = device(LD, A), device(pivots, A, columns=False), device(info, A, columns=False)
    graph.record("NotImplemented", (A,), values, _none, {"function": "linalg_ldl_factor_ex"})
    if out is not None:
        values = tuple(
            writes.deliver(v, o, "linalg_ldl_factor_ex", (A,))
            for v, o in zip(values, out, strict=True)
        )
    return LdlFactorEx(values)


def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """Factorize symmetric (or, if `hermitian`, Hermitian) matrices into the packed LD and pivots."""
    LD, pivots, info = ldl_factor_ex(A, hermitian=hermitian)
    if bool((info != 0).any()):
        raise RuntimeError(f"torch.linalg.ldl_factor: Unknown error code: {int(info.max())}.")
    if out is not None:
        LD, pivots = (
            writes.deliver(v, o, "linalg_ldl_factor", (A,))
            for v, o in zip((LD, pivots), out, strict=True)
        )
    return LdlFactor((LD, pivots))


def _check_solve(LD: Tensor, pivots: Tensor, B: Tensor) -> None:
    what = "torch.linalg.ldl_solve"
    check_square(LD, what)
    check_float(LD, what)
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
    ld, p, b = host(LD, pivots, B)
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    n = ld.shape[-1]
    if p.size and (np.abs(p).min() < 1 or np.abs(p).max() > n):
        raise RuntimeError("torch.linalg.ldl_solve: pivots out of range")
    lds, ps, bs = (
        np.broadcast_to(v, (*batch, *tail)).reshape(math.prod(batch), *tail)
        for v, tail in ((ld, (n, n)), (p, (n,)), (b, b.shape[-2:]))
    )
    made = [_solve(*one, hermitian) for one in zip(lds, ps, bs, strict=True)]
    shape = (*batch, *b.shape[-2:])
    value = device(np.stack(made).reshape(shape) if made else np.zeros(shape, b.dtype), B)
    graph.record("NotImplemented", (LD, B), value, _none, {"function": "linalg_ldl_solve"})
    return writes.deliver(value, out, "linalg_ldl_solve", (LD, B))


LINALG.update(ldl_factor=ldl_factor, ldl_factor_ex=ldl_factor_ex, ldl_solve=ldl_solve)
