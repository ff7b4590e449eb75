"""Eigenvalues of small symmetric matrices by plane rotations, each matrix a lane of vectors. Must not know how large ones are taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import dtypes
from ...layouts import numel
from ..operand import Operand
from ..region import empty, is_gpu
from . import parts

if TYPE_CHECKING:
    from ...runtime import Backend

_FEW = 4  # matrices, for which narrow vectors do
MOST = parts.SMALL  # rows
_ANY = 8  # rows of however many matrices
_MANY = 64  # matrices of more rows, so that vectors are full


def fits(backend: Backend, dt: dtypes.dtype, count: int, n: int) -> bool:
    """Whether `count` matrices of n rows are so small that turning the whole of them takes less than reflectors and a band's rotations; on a CPU."""
    small = n <= MOST and (n <= _ANY or not _FEW < count < _MANY)
    return small and not dt.is_complex and not is_gpu(backend)


def eigenvalues(
    backend: Backend, x: Operand, upper: bool, vectors: bool
) -> tuple[Operand, Operand, Operand | None]:
    """Return ascending eigenvalues (…, n), 1 where a matrix of a dense (…, n, n) is not finite (…), and eigenvectors as rows (…, n, n)."""
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
