"""Triangular systems and inverses: recursive by halves of the matrix, products between, substitution in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operand import Operand
from ..region import is_gpu
from .parts import LANES, SMALL, launch, middle, part, runs, side_by_side, take_off

if TYPE_CHECKING:
    from ...runtime import Backend

ROWS = 32  # rows of a block solved by substitution, at most
_BLOCKS = 4  # cache lines of right-hand sides that a CPU's work-item takes, at least


def solve(
    backend: Backend,
    a: Operand,
    x: Operand,
    *,
    upper: bool,
    unit: bool = False,
    conjugate: bool = False,
) -> None:
    """Overwrite X [count, n, k] by A^-1 X for triangular A [count, n, n], of which one triangle is read.

    `unit`: the diagonal is taken to be ones, and not read. `conjugate`: solve with conj(A). X is row- or
    column-major. A zero on the diagonal gives infinities and nans.
    """
    n = a.shape[1]
    if not x.nbytes:
        return
    if side_by_side(backend, x, n) and x.shape[2] <= SMALL:
        _side_by_side(backend, a, x, upper, unit)
        return
    if n <= ROWS:
        _block(backend, a, x, upper, unit, conjugate)
        return
    options = {"upper": upper, "unit": unit, "conjugate": conjugate}
    at, k = middle(n, ROWS), (0, x.shape[2])
    first, second = ((at, n), (0, at)) if upper else ((0, at), (at, n))
    known, rest = part(x, first, k), part(x, second, k)
    solve(backend, part(a, first, first), known, **options)
    take_off(backend, rest, part(a, second, first), known, (conjugate, False))
    solve(backend, part(a, second, second), rest, **options)


def invert(
    backend: Backend, a: Operand, x: Operand, *, unit: bool = False, conjugate: bool = False
) -> None:
    """Overwrite identities X [count, n, n] by A^-1 for lower triangular A, in half the work of `solve`.

    The half of X that stays zero is not computed. `unit`, `conjugate` and strides are as for `solve`.
    """
    n = a.shape[1]
    if not x.nbytes:
        return
    if side_by_side(backend, x, n):
        _side_by_side(backend, a, x, False, unit)
        return
    if n <= ROWS:
        _block(backend, a, x, False, unit, conjugate)
        return
    at = middle(n, ROWS)
    first, second = (0, at), (at, n)
    last, below = part(a, second, second), part(x, second, first)
    known = part(x, first, first)
    invert(backend, part(a, first, first), known, unit=unit, conjugate=conjugate)
    take_off(backend, below, part(a, second, first), known, (conjugate, False))
    if n - at <= ROWS:
        _block(backend, last, part(x, second, (0, n)), False, unit, conjugate)
        return
    solve(backend, last, below, upper=False, unit=unit, conjugate=conjugate)
    invert(backend, last, part(x, second, second), unit=unit, conjugate=conjugate)


def _side_by_side(backend: Backend, a: Operand, x: Operand, upper: bool, unit: bool) -> None:
    count, n, k = x.shape
    launch(
        backend,
        "solve_lanes",
        "solve_lanes",
        [a.buffer, x.buffer],
        [count, n, k, upper, unit, a.offset, *a.strides, x.offset, *x.strides],
        (x, a),
        runs(backend, count, n * n * k),
        n * n // 2 * count * x.dtype.itemsize + 2 * x.nbytes,
        most=SMALL,
    )


def _block(
    backend: Backend, a: Operand, x: Operand, upper: bool, unit: bool, conjugate: bool
) -> None:
    (count, n, k), dt = x.shape, x.dtype
    by_rows = x.strides[2] == 1
    lanes = LANES if dt.itemsize < 16 else LANES // 2
    if is_gpu(backend):
        # The triangle and the lanes' rows have room in local memory.
        while lanes > 1 and ROWS * (ROWS + lanes) * dt.itemsize > backend.info.local_mem:
            lanes //= 2
        items = count * -(-k // lanes)
    else:
        runs = count * -(-k // max(1, 64 // dt.itemsize))
        items = min(backend.info.compute_units * 4, -(-runs // _BLOCKS))
    launch(
        backend,
        "solve",
        f"solve_{'rows' if by_rows else 'columns'}",
        [a.buffer, x.buffer],
        [count, n, k, upper, unit, conjugate, a.offset, *a.strides, x.offset, *x.strides],
        (x, a),
        items,
        (n * n // 2 * count) * dt.itemsize + 2 * x.nbytes,
        by_rows=by_rows,
        N=ROWS,
        lanes=lanes,
    )
