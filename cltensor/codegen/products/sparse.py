"""Products of a sparse matrix: its lines with a dense matrix, and rows of two dense matrices where it has entries.

A sparse matrix comes as lines, each a stretch of entries: `starts` says where they begin, `other` where along the line each
entry is. Every line is summed in the order of its entries by one work-item, so results do not depend on how work is divided.
Knows operands and backends, nothing of tensors; indices have been checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import dtypes
from ..operand import Operand
from ..region import empty, index_type, is_gpu, run, workers
from ..source import include

if TYPE_CHECKING:
    from ...runtime import Backend

DTYPES = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
# Entries between asking for a row and reading it, and bytes of rows that a core's own cache holds: those are not asked for.
AHEAD, CACHE = 16, 1 << 20
SHORT = 8  # entries of a line in the mean, from which on a processor looks ahead by itself: where lines end, it guesses wrong
_VECTOR = {4: 16, 8: 8}  # lanes, by the bytes of a register's element


def _lanes(dt: dtypes.dtype) -> int:
    return _VECTOR[8 if dt is dtypes.float64 else 4]


def _far(backend: Backend, rows: Operand) -> bool:
    """Whether rows that entries name are worth asking for."""
    return not is_gpu(backend) and rows.nbytes > CACHE


def lines_by_matrix(
    backend: Backend, starts: Operand, other: Operand, values: Operand | None, dense: Operand
) -> Operand:
    """Return `out[i] = sum over e in line i of values[e] * dense[other[e]]`; `dense` (K, N) has rows without gaps.

    Without values the rows are added up as they are.
    """
    lines, width, count = starts.shape[0], dense.shape[1], other.shape[0]
    out = empty(backend, dense.dtype, (lines, width))
    if not lines or not width:
        return out
    gpu = is_gpu(backend)
    weights = [] if values is None else [values]
    run(
        backend,
        "sparse/mm",
        f"sparse_mm_{dense.dtype.code}{'_vector' * (width == 1)}{'_rows' * (values is None)}",
        [x.buffer for x in (starts, other, *weights, dense, out)],
        [
            lines,
            count,
            width,
            dense.strides[0],
            *[x.offset for x in (starts, other, dense, *weights)],
        ],
        lines * width if gpu else workers(backend, (count + lines) * width),
        count * width * dense.dtype.itemsize + out.nbytes,
        dt=dense.dtype,
        I=index_type(backend, other, dense, out),
        V=_lanes(dense.dtype),
        one=width == 1,
        headers=include("ahead"),
        ahead=AHEAD if (width == 1 or count < SHORT * lines) and _far(backend, dense) else 0,
        valued=values is not None,
        gpu=gpu,
    )
    return out


def rows_by_rows(
    backend: Backend, first: Operand, second: Operand, left: Operand, right: Operand
) -> Operand:
    """Return `out[e] = sum over k of left[first[e], k] * right[second[e], k]`; both matrices have rows without gaps."""
    count, width = first.shape[0], left.shape[1]
    out = empty(backend, left.dtype, (count,))
    if not count:
        return out
    gpu = is_gpu(backend)
    run(
        backend,
        "sparse/dot",
        f"sparse_dot_{left.dtype.code}",
        [x.buffer for x in (first, second, left, right, out)],
        [
            count,
            width,
            left.strides[0],
            right.strides[0],
            *[x.offset for x in (first, second, left, right)],
        ],
        count if gpu else workers(backend, count * width),
        2 * count * width * left.dtype.itemsize,
        dt=left.dtype,
        I=index_type(backend, first, left, right),
        V=_lanes(left.dtype),
        headers=include("ahead"),
        ahead=AHEAD if _far(backend, right) else 0,
        gpu=gpu,
    )
    return out
