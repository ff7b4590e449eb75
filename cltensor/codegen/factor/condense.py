"""Matrices made narrow by reflectors from both sides: Hermitian ones real tridiagonal, others real upper bidiagonal, panel by panel.

Where there are enough small matrices, each is one work-group's, and a panel one launch. Elsewhere the products with the whole of a matrix,
which are half of the work, are launches of their own, one or two for each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..operand import Operand
from ..region import empty, is_gpu
from .parts import LANES, flat, launch, part, take_off, transposed
from .triangular import ROWS

if TYPE_CHECKING:
    from ...runtime import Backend

_WIDTH = ROWS  # columns of a panel
_SMALL = 128  # rows of a matrix that one work-group takes alone


class Condensed(NamedTuple):
    """The diagonal [count, n] and what stands beside it [count, n], and reflectors: vectors by columns, and 1 / tau."""

    diagonal: Operand
    beside: Operand
    left: tuple[Operand, Operand]
    right: tuple[Operand, Operand] | None


def tridiagonal(backend: Backend, a: Operand) -> Condensed:
    """Overwrite Hermitian A [count, n, n], by columns, whose Q^H A Q is real and tridiagonal; Q's reflectors [count, n - 1, n - 1] begin in row 1."""
    count, n, _ = a.shape
    made = _result(backend, a)
    v, inverse = _reflectors(backend, a, n - 1, n - 1)
    taus, w = empty(backend, a.dtype, (count, n)), _thin(backend, a, n)
    coefficients = empty(backend, a.dtype, (count, _WIDTH))
    operands = (a, v, taus, inverse, *made, w, coefficients)
    for first, stop in _panels(n):
        _panel(backend, "tridiagonal", operands, first, stop)
        if stop < n:
            rest, reflected = (stop, n), (stop - 1, n - 1)
            below = part(a, rest, rest)
            vectors = part(v, reflected, (first, stop))
            others = part(w, rest, (0, stop - first))
            for left, right in ((vectors, others), (others, vectors)):
                take_off(backend, below, left, transposed(right), (False, True))
    return Condensed(*made, (v, inverse), None)


def bidiagonal(backend: Backend, a: Operand) -> Condensed:
    """Overwrite A [count, m, n], m >= n, by columns, whose P^H A Q is real and upper bidiagonal.

    P's reflectors are [count, m, n], Q's [count, n - 1, n - 1] begin in row 1.
    """
    count, m, n = a.shape
    made = _result(backend, a)
    v, inverse = _reflectors(backend, a, m, n)
    u, inverse_u = _reflectors(backend, a, n - 1, n - 1)
    y, x = _thin(backend, a, n), _thin(backend, a, m)
    taus, row = (empty(backend, a.dtype, (count, size)) for size in (2 * n, n))
    coefficients = empty(backend, a.dtype, (count, _WIDTH))
    operands = (a, v, taus, inverse, *made, y, coefficients, u, inverse_u, x, row)
    for first, stop in _panels(n):
        _panel(backend, "bidiagonal", operands, first, stop)
        if stop < n:
            below, columns = part(a, (stop, m), (stop, n)), (0, stop - first)
            left = part(v, (stop, m), (first, stop))
            right = part(u, (stop - 1, n - 1), (first, stop))
            for one, other in (
                (left, part(y, (stop, n), columns)),
                (part(x, (stop, m), columns), right),
            ):
                take_off(backend, below, one, transposed(other), (False, True))
    return Condensed(*made, (v, inverse), (u, inverse_u))


def _panels(n: int) -> list[tuple[int, int]]:
    return [(first, min(first + _WIDTH, n)) for first in range(0, n, _WIDTH)]


def _result(backend: Backend, a: Operand) -> tuple[Operand, Operand]:
    shape, dt = (a.shape[0], a.shape[2]), a.dtype.to_real()
    return empty(backend, dt, shape), empty(backend, dt, shape)


def _reflectors(backend: Backend, a: Operand, rows: int, k: int) -> tuple[Operand, Operand]:
    """Make room for k vectors, and for 1 / tau [count, k]."""
    count, dt = a.shape[0], a.dtype
    v = empty(backend, dt, (count, k, rows))
    return flat(v, k, rows), empty(backend, dt, (count, k))


def _thin(backend: Backend, a: Operand, rows: int) -> Operand:
    """Make room for a panel's columns, [count, rows, width] by columns."""
    return flat(empty(backend, a.dtype, (a.shape[0], _WIDTH, rows)), _WIDTH, rows)


def _panel(
    backend: Backend, kind: str, operands: tuple[Operand, ...], first: int, stop: int
) -> None:
    a = operands[0]
    count, m, n = a.shape
    units = backend.info.compute_units

    def phases(begin: int, end: int, which: tuple[int, int], parts: int, nbytes: int) -> None:
        launch(
            backend,
            "condense",
            kind,
            [x.buffer for x in operands],
            [count, m, n, first, stop, begin, end, *which, parts],
            (a,),
            count * parts,
            nbytes,
            kind=kind,
            width=_WIDTH,
        )

    thin = [(0, 2), (3, 5)] if kind == "bidiagonal" else [(0, 2)]
    each = len(thin)
    if n <= _SMALL or count >= units:
        rest = (m - first) * (n - first)
        phases(first, stop + 1, (0, 3 * each), 1, (stop - first) * rest * count * a.dtype.itemsize)
        return
    parts = -(-n // LANES) if is_gpu(backend) else units
    for i in range(first, stop):
        for begin, end in thin:
            phases(i, i + 1, (begin, end), 1, 4 * (i - first) * m * count * a.dtype.itemsize)
            if i + 1 < n:
                whole = (m - i) * (n - i) * count * a.dtype.itemsize
                phases(i, i + 1, (end, end + 1), parts, whole)
    phases(stop, stop + 1, (0, 1), 1, 0)
