"""Products with a sparse matrix: sparse by dense, and dense by dense sampled at a sparse matrix's entries.

A sparse matrix comes compressed by lines (rows of CSR, columns of CSC): `starts` holds the index of each line's first
entry, `other` each entry's position along its line. One work-item sums a line in the order of its entries, so results
do not depend on how work is divided. Knows operands and backends, nothing of tensors; callers have checked the
indices.
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
# A dense row is prefetched AHEAD entries before it is read, unless the dense matrix fits a core's own cache (CACHE
# bytes).
AHEAD, CACHE = 16, 1 << 20
# Mean entries per line from which on out-of-order execution hides the latency without prefetching. With shorter lines,
# mispredicted ends of lines stop it too often.
SHORT = 8
_VECTOR = {4: 16, 8: 8}  # vector lanes, by the bytes of an element in a register


def _lanes(dt: dtypes.dtype) -> int:
    return _VECTOR[8 if dt is dtypes.float64 else 4]


def _far(backend: Backend, rows: Operand) -> bool:
    """Return whether the rows that entries refer to should be prefetched."""
    return not is_gpu(backend) and rows.nbytes > CACHE


def lines_by_matrix(
    backend: Backend, starts: Operand, other: Operand, values: Operand | None, dense: Operand
) -> Operand:
    """Return `out[i] = sum over e in line i of values[e] * dense[other[e]]`; each row of `dense` (K, N) is contiguous.

    Without `values` every entry counts as 1.
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
    """Return `out[e] = sum over k of left[first[e], k] * right[second[e], k]`; rows of both matrices are contiguous."""
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
