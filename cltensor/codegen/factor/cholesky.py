"""The Cholesky factorization, in place: recursive by halves (Gustavson, IBM J. Res. Dev. 41, 1997) down to blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operand import Operand
from .parts import (
    SMALL,
    block_width,
    launch,
    middle,
    part,
    runs,
    side_by_side,
    take_off,
    transposed,
)
from .triangular import solve

if TYPE_CHECKING:
    from ...runtime import Backend

# Columns of a symmetric update per product. Each product covers a stripe's square on the diagonal whole: what is
# above the diagonal is computed in vain.
_STRIPE = 256


def cholesky(backend: Backend, a: Operand, info: Operand) -> None:
    """Overwrite the lower triangles of A [count, n, n], column-major, by L with A = L L^H; the upper become undefined.

    `info` [count] gets the order of the first leading minor that is not positive, 0 if all are.
    """
    if not a.nbytes:
        return
    count, n, _ = a.shape
    if side_by_side(backend, a, n):
        launch(
            backend,
            "lanes",
            "cholesky_lanes",
            [a.buffer, info.buffer],
            [count, n, a.offset, a.strides[0], a.strides[2]],
            (a,),
            runs(backend, count, n**3),
            2 * a.nbytes,
            kind="cholesky",
            most=SMALL,
        )
    else:
        _factor(backend, a, info, 0, block_width(backend, count))


def _factor(backend: Backend, a: Operand, info: Operand, before: int, width: int) -> None:
    count, n, _ = a.shape
    if n <= width:
        launch(
            backend,
            "panel",
            "cholesky",
            [a.buffer, info.buffer],
            [count, n, n, before, a.offset, a.strides[0], a.strides[2]],
            (a,),
            count,
            2 * a.nbytes,
            kind="cholesky",
        )
        return
    at = middle(n, width)
    top, rest = (0, at), (at, n)
    first, below = part(a, top, top), part(a, rest, top)
    _factor(backend, first, info, before, width)
    # Solve L21 L11^H = A21 in transposed form: the rows of A21 are the right-hand sides.
    solve(backend, first, transposed(below), upper=False, conjugate=a.dtype.is_complex)
    for c in range(at, n, _STRIPE):
        columns = (c, min(c + _STRIPE, n))
        left, right = part(a, (c, n), top), transposed(part(a, columns, top))
        take_off(backend, part(a, (c, n), columns), left, right, (False, True))
    _factor(backend, part(a, rest, rest), info, before + at, width)
