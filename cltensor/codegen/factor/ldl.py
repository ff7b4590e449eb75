"""The factorization A = P L D L^T P^T of symmetric or Hermitian matrices, by Bunch and Kaufman, and its solver."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..operand import Operand
from .parts import launch
from .rotations import literal

if TYPE_CHECKING:
    from ...runtime import Backend

_ALPHA = (1 + math.sqrt(17)) / 8  # the pivoting threshold of least element growth
_COLUMNS = 4  # right-hand sides solved together


def ldl(backend: Backend, a: Operand, pivots: Operand, info: Operand, hermitian: bool) -> None:
    """Overwrite A [count, n, n], column-major, by L below the diagonal, D on it, and zeros above.

    A's lower triangle is read. Where a pivot is negative D has a 2 x 2 block. `pivots` [count, n], int32: row i (of a
    block the second row) was exchanged with row |pivots[i]| - 1. `info` [count] gets the number, from 1, of the first
    block that is zero, 0 if none is.
    """
    if not a.nbytes:
        return
    count, n, _ = a.shape
    conjugated = hermitian and a.dtype.is_complex
    launch(
        backend,
        "ldl",
        "ldl_hermitian" if conjugated else "ldl",
        [a.buffer, info.buffer, pivots.buffer],
        [count, n, a.offset, a.strides[0], a.strides[2], pivots.offset, pivots.strides[0]],
        (a, pivots),
        count,
        2 * a.nbytes,
        conjugated=conjugated,
        alpha=literal(a.dtype.to_real(), _ALPHA),
    )


def ldl_solve(backend: Backend, a: Operand, pivots: Operand, x: Operand, hermitian: bool) -> None:
    """Overwrite X [count, n, k] by A^-1 X, given what `ldl` made of A; both are column-major (rows have stride 1)."""
    if not x.nbytes:
        return
    count, n, k = x.shape
    conjugated = hermitian and a.dtype.is_complex
    launch(
        backend,
        "ldl_solve",
        "ldl_solve_hermitian" if conjugated else "ldl_solve",
        [a.buffer, pivots.buffer, x.buffer],
        [
            *(count, n, k, a.offset, a.strides[0], a.strides[2]),
            *(pivots.offset, pivots.strides[0], x.offset, x.strides[0], x.strides[2]),
        ],
        (x, a, pivots),
        count * -(-k // _COLUMNS),
        a.nbytes + 2 * x.nbytes,
        conjugated=conjugated,
    )
