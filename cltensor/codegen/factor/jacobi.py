"""Eigenvalues of small symmetric matrices by Jacobi's plane rotations on a CPU, each matrix in a lane of a vector.

Must not know how large matrices are reduced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import dtypes
from ...layouts import numel
from ..operand import Operand
from ..region import empty, is_gpu
from . import parts

if TYPE_CHECKING:
    from ...runtime import Backend

_FEW = 4  # up to this many matrices, vectors have as many lanes as there are matrices
MOST = parts.SMALL  # rows, at most
_ANY = 8  # matrices of up to this many rows are taken in any number
# Of larger ones, there must be at least _MANY, so that vectors are full, or at most _FEW.
_MANY = 64


def fits(backend: Backend, dt: dtypes.dtype, count: int, n: int) -> bool:
    """Return whether `count` matrices of n rows are so small that Jacobi's rotations are the fastest way, on a CPU.

    The other way is reduction by reflectors, then rotations of the tridiagonal matrix.
    """
    small = n <= MOST and (n <= _ANY or not _FEW < count < _MANY)
    return small and not dt.is_complex and not is_gpu(backend)


def eigenvalues(
    backend: Backend, x: Operand, upper: bool, vectors: bool
) -> tuple[Operand, Operand, Operand | None]:
    """Return eigenvalues, info and eigenvectors of dense symmetric matrices (…, n, n), of which one triangle is read.

    Eigenvalues (…, n) are ascending, info (…) is 1 for a matrix that is not finite, eigenvectors (…, n, n) are rows, or
    None without `vectors`.
    """
    n = x.shape[-1]
    batch, count = x.shape[:-2], numel(x.shape[:-2])
    values = empty(backend, x.dtype, x.shape[:-1])
    info = empty(backend, dtypes.int32, batch)
    rows = empty(backend, x.dtype, x.shape) if vectors else None
    if count:
        width = min(_FEW if count <= _FEW else 16, parts.lanes_of(backend, x.dtype))
        parts.launch(
            backend,
            "jacobi",
            f"jacobi{width}{'_vectors' if vectors else ''}",
            [x.buffer, values.buffer, info.buffer, *([] if rows is None else [rows.buffer])],
            [count, n, x.offset, n * n, *((1, n) if upper else (n, 1))],
            [x],
            parts.runs(backend, count, 24 * n**3),
            2 * x.nbytes,
            vector=width,
            vectors=vectors,
            most=parts.SMALL,
        )
    return values, info, rows
