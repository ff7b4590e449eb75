"""Reduction to condensed form by Householder reflectors from both sides, panel by panel.

Hermitian matrices become real tridiagonal, others real upper bidiagonal. Where there are enough small matrices, a
work-group takes each, and a panel is one launch. Elsewhere the matrix-vector products with a whole matrix, which are
half of the work, are launches of their own, one or two per column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..operand import Operand
from ..products.gemv import PACE_BYTES
from ..products.product import tile
from ..region import empty, is_gpu
from .parts import LANES, columns_apart, flat, launch, odd_step, part, take_off, transposed, zeros
from .triangular import ROWS

if TYPE_CHECKING:
    from ...runtime import Backend

_WIDTH = ROWS  # columns of a panel
_COLUMNS = 64  # columns of a Hermitian matrix, about, in one part of its matrix-vector product
_STRIP = 128  # columns of a Hermitian matrix updated by one product, from the diagonal down
_SMALL = 128  # rows of a matrix that one work-group of a GPU takes alone, at most
# A CPU's thread takes a matrix alone if that has up to _ALONE times the bytes that the thread reads in the time in
# which a second thread could be woken: the products read a third of the matrix on average.
_ALONE = 6


class Condensed(NamedTuple):
    """The tridiagonal or bidiagonal form of matrices. Reflectors are a pair: vectors, column-major, and 1 / tau."""

    diagonal: Operand  # [count, n]
    beside: Operand  # the off-diagonal, [count, n]
    left: tuple[Operand, Operand]  # reflectors of Q (tridiagonal) or P (bidiagonal)
    # Reflectors of Q (bidiagonal); None for a tridiagonal form.
    right: tuple[Operand, Operand] | None


def tridiagonal(backend: Backend, a: Operand) -> Condensed:
    """Reduce Hermitian matrices (…, n, n) to real tridiagonal form Q^H A Q.

    The vectors of Q's reflectors, [count, n - 1, n - 1], begin in row 1.
    """
    a = columns_apart(backend, a)
    count, n, _ = a.shape
    made = _result(backend, a)
    v, inverse = _reflectors(backend, a, n - 1, n - 1)
    taus, thin = empty(backend, a.dtype, (count, n)), _thin(backend, a, n, 3)
    coefficients = empty(backend, a.dtype, (count, _WIDTH))
    sums = empty(backend, a.dtype, (count, _pieces(backend, n), thin.strides[2]))
    operands = (a, v, taus, inverse, *made, thin, coefficients, sums)
    strip = n if is_gpu(backend) else _STRIP
    for first, stop in _panels(n):
        _panel(backend, "tridiagonal", operands, first, stop)
        for c in range(stop, n, strip):
            end = min(c + strip, n)
            left = part(thin, (c, n), (_WIDTH, 3 * _WIDTH))
            right = part(thin, (c, end), (0, 2 * _WIDTH))
            take_off(backend, part(a, (c, n), (c, end)), left, transposed(right), (False, True))
    return Condensed(*made, (v, inverse), None)


def bidiagonal(backend: Backend, a: Operand) -> Condensed:
    """Reduce matrices (…, m, n), m >= n, to real upper bidiagonal form P^H A Q.

    The vectors of P's reflectors are [count, m, n]; those of Q's, [count, n - 1, n - 1], begin in row 1.
    """
    a = columns_apart(backend, a)
    count, m, n = a.shape
    made = _result(backend, a)
    v, inverse = _reflectors(backend, a, m, n)
    u, inverse_u = _reflectors(backend, a, n - 1, n - 1)
    left, right = (_thin(backend, a, size, 2) for size in (m, n))
    taus, coefficients = (empty(backend, a.dtype, (count, size)) for size in (2 * n, _WIDTH))
    row = zeros(backend, a.dtype, (count, right.strides[2]))
    operands = (a, v, taus, inverse, *made, left, coefficients, u, inverse_u, right, row)
    for first, stop in _panels(n):
        _panel(backend, "bidiagonal", operands, first, stop)
        if stop < n:
            columns = (0, 2 * _WIDTH)
            take_off(
                backend,
                part(a, (stop, m), (stop, n)),
                part(left, (stop, m), columns),
                transposed(part(right, (stop, n), columns)),
                (False, True),
            )
    return Condensed(*made, (v, inverse), (u, inverse_u))


def _panels(n: int) -> list[tuple[int, int]]:
    return [(first, min(first + _WIDTH, n)) for first in range(0, n, _WIDTH)]


def _result(backend: Backend, a: Operand) -> tuple[Operand, Operand]:
    shape, dt = (a.shape[0], a.shape[2]), a.dtype.to_real()
    return empty(backend, dt, shape), empty(backend, dt, shape)


def _reflectors(backend: Backend, a: Operand, rows: int, k: int) -> tuple[Operand, Operand]:
    """Allocate k reflectors: vectors [count, rows, k], column-major, and 1 / tau [count, k]."""
    count, dt = a.shape[0], a.dtype
    v = empty(backend, dt, (count, k, rows))
    return flat(v, k, rows), empty(backend, dt, (count, k))


def _thin(backend: Backend, a: Operand, rows: int, many: int) -> Operand:
    """Make `many` zero matrices of a panel's width, side by side: [count, rows, many * width], column-major."""
    step, k = odd_step(a.dtype, rows), many * _WIDTH
    return part(flat(zeros(backend, a.dtype, (a.shape[0], k, step)), k, step), (0, rows), (0, k))


def _pieces(backend: Backend, n: int) -> int:
    """Return into how many parts a CPU divides a Hermitian matrix-vector product.

    Each part has partial sums of its own, which have to be worth its columns.
    """
    return min(backend.info.compute_units, -(-n // _COLUMNS))


def _panel(
    backend: Backend, kind: str, operands: tuple[Operand, ...], first: int, stop: int
) -> None:
    a = operands[0]
    count, m, n = a.shape
    step, short_step = a.strides[2], odd_step(a.dtype, n)
    units = backend.info.compute_units
    # Kernels keep eight vectors of sums, or four and their operands, in registers: a vector has a register's width.
    vector = 0 if a.dtype.is_complex or is_gpu(backend) else tile(backend, a.dtype.reg)[1]

    def phases(begin: int, end: int, which: tuple[int, int], parts: int, nbytes: int) -> None:
        launch(
            backend,
            "condense",
            kind,
            [x.buffer for x in operands],
            [count, m, n, step, short_step, first, stop, begin, end, *which, parts, pieces],
            (a,),
            count * parts,
            nbytes,
            vector=vector,
            kind=kind,
            width=_WIDTH,
        )

    thin = [(0, 2), (3, 5)] if kind == "bidiagonal" else [(0, 2)]
    each, pieces = len(thin), 1
    if is_gpu(backend):
        alone = n <= _SMALL
    else:
        alone = m * n * a.dtype.itemsize < _ALONE * PACE_BYTES * backend.info.wake_us
    if alone or count >= units:
        rest = (m - first) * (n - first)
        phases(first, stop + 1, (0, 3 * each), 1, (stop - first) * rest * count * a.dtype.itemsize)
        return
    if is_gpu(backend):
        parts = -(-n // LANES)
    else:
        parts = units if kind == "bidiagonal" else _pieces(backend, n)
        pieces = parts
    for i in range(first, stop):
        for begin, end in thin:
            phases(i, i + 1, (begin, end), 1, 4 * (i - first) * m * count * a.dtype.itemsize)
            if i + 1 < n:
                whole = (m - i) * (n - i) * count * a.dtype.itemsize
                phases(i, i + 1, (end, end + 1), parts, whole)
    phases(stop, stop + 1, (0, 1), 1, 0)
