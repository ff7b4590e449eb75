"""Eigenvalues and eigenvectors of general matrices: balancing, reduction to Hessenberg form, QR steps to triangular
(Schur) form, back substitution.

A work-item, on a GPU a work-group, takes a matrix, but for the back substitution, which is divided by eigenvectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ..operand import Operand
from ..region import empty, is_gpu
from .parts import LANES, columns_apart, flat, lanes_of, launch, zeros
from .rotations import literal

if TYPE_CHECKING:
    from ...runtime import Backend

# Reflectors or rotations that a GPU applies to a matrix in one launch, about: a fraction of a second, because the
# drivers of a GPU that draws the screen end longer launches.
_STEPS = 1 << 17


class Hessenberg(NamedTuple):
    """Q^H B Q, upper Hessenberg, where B is the balanced matrix, and Q's reflectors."""

    matrix: Operand  # [count, n, n], column-major, columns padded
    vectors: Operand  # [count, n - 1, n - 1], column-major; they begin in row 1
    inverse: Operand  # 1 / tau [count, n - 1]
    places: Operand  # the rows of A that B's rows were, int32 [count, n]
    scales: Operand  # the factors of B's columns, real [count, n]


def hessenberg(backend: Backend, a: Operand) -> Hessenberg:
    """Balance matrices (…, n, n) and reduce them to upper Hessenberg form."""
    a = columns_apart(backend, a)
    (count, n, _), real = a.shape, a.dtype.to_real()
    places, scales = empty(backend, dtypes.int32, (count, n)), empty(backend, real, (count, n))
    sizes = [count, n, a.strides[2]]
    launch(
        backend,
        "balance",
        "balance",
        [x.buffer for x in (a, places, scales)],
        sizes,
        (a,),
        count,
        4 * a.nbytes,
        large=literal(real, 2.0 ** (60 if real.itemsize == 4 else 500)),
    )
    vectors = flat(empty(backend, a.dtype, (count, n - 1, n - 1)), n - 1, n - 1)
    inverse = empty(backend, a.dtype, (count, n - 1))
    if n > 1:
        product = empty(backend, a.dtype, (count, n))
        launch(
            backend,
            "hessenberg",
            "hessenberg",
            [x.buffer for x in (a, vectors, inverse, product)],
            sizes,
            (a, vectors),
            count,
            n * a.nbytes,
        )
    return Hessenberg(a, vectors, inverse, places, scales)


def begin(backend: Backend, h: Operand) -> tuple[Operand, Operand]:
    """Allocate states [count, 3] (see the template) and eigenvalues [count, n] for `go_on`."""
    count, n, _ = h.shape
    return zeros(backend, dtypes.int32, (count, 3)), empty(
        backend, h.dtype.to_complex(), (count, n)
    )


def go_on(
    backend: Backend, h: Operand, states: Operand, values: Operand, z: Operand | None
) -> None:
    """Make QR steps until all eigenvalues are found or a launch is long enough.

    h: as from `hessenberg`, overwritten, with `z` by the triangular form. z: column-major [count, n, n], multiplied by
    the steps from the right.
    """
    count, n, _ = h.shape
    launch(
        backend,
        "schur",
        f"schur{'' if z is None else '_kept'}",
        [x.buffer for x in (h, values, states, *([] if z is None else [z]))],
        [
            *(count, n, h.strides[2]),
            max(1, _STEPS // n) if is_gpu(backend) else np.iinfo(np.int32).max,
            *([] if z is None else [z.strides[2]]),
        ],
        (h, *([] if z is None else [z])),
        count,
        n * h.nbytes,
        kept=z is not None,
        **_limits(h.dtype),
    )


def back_substitute(backend: Backend, h: Operand, values: Operand) -> Operand:
    """Return the eigenvectors of triangular forms [count, n, n] from `go_on`, as [count, groups, n, width].

    A row of a group holds `width` neighbouring vectors' numbers; together the groups have n vectors and some padding.
    """
    (count, n, _), dt = h.shape, values.dtype
    width = LANES if is_gpu(backend) else lanes_of(backend, dt)
    groups = -(-n // width)
    out = empty(backend, dt, (count, groups, n, width))
    launch(
        backend,
        "back_substitute",
        f"back_substitute{'' if h.dtype.is_complex else '_real'}",
        [out.buffer, values.buffer, h.buffer],
        [count, n, h.strides[2], groups],
        (out, h),
        count * groups,
        groups * h.nbytes,
        real=not h.dtype.is_complex,
        large=literal(dt.to_real(), 1024.0),
        **_limits(dt),
    )
    return out


def _limits(dt: dtypes.dtype) -> dict[str, Any]:
    limits, real = np.finfo(dt.np), dt.to_real()
    return {"epsilon": literal(real, limits.eps), "tiny": literal(real, limits.tiny)}
