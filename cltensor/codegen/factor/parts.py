"""What the factorizations share: views of parts of matrices, the update by a product, and the launch of their kernels.

Matrices are operands [count, rows, columns]; those that are factorized are column-major (rows have stride 1).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ... import dtypes
from ...layouts import numel
from ..memory import Memory
from ..move.copies import copy_strided, fill_strided
from ..operand import Operand
from ..products.gemm import matmul
from ..region import empty, index_type, is_gpu, run, workers
from ..source import include, lane_macros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...runtime import Backend, Buffer

LANES = 64  # lanes of a GPU's work-group
SMALL = 16  # rows of a matrix that is computed in one lane of a vector, at most
_WIDTH = 32  # columns of a block that one kernel factorizes
_MANY = 64  # the same where there is more than one matrix per compute unit
_LINE = 64  # bytes of a cache line
_memory = functools.cache(Memory)  # part of a kernel's key


def part(x: Operand, rows: tuple[int, int], columns: tuple[int, int]) -> Operand:
    """View a range of rows and a range of columns, each (begin, end)."""
    (r, end), (c, stop) = rows, columns
    strides = x.strides
    at = x.offset + r * strides[1] + c * strides[2]
    return x._replace(shape=(x.shape[0], end - r, stop - c), offset=at)


def transposed(x: Operand) -> Operand:
    """View the matrices with rows and columns exchanged."""
    (count, m, n), (batch, row, column) = x.shape, x.strides
    return x._replace(shape=(count, n, m), strides=(batch, column, row))


def by_columns(backend: Backend, x: Operand) -> Operand:
    """Copy matrices (…, m, n) to new memory, column-major, as [count, m, n]."""
    *batch, m, n = x.shape
    out = flat(empty(backend, x.dtype, (*batch, n, m)), n, m)
    copy_into(backend, x, out)
    return out


def odd_step(dt: dtypes.dtype, rows: int) -> int:
    """Return the column stride, an odd number of cache lines: the numbers of a row fall on different cache sets."""
    line = _LINE // dt.itemsize
    return (-(-rows // line) | 1) * line


def columns_apart(backend: Backend, a: Operand) -> Operand:
    """Copy matrices (…, m, n) to [count, m, n], column-major, columns padded with zeros."""
    *batch, m, n = a.shape
    step = odd_step(a.dtype, m)
    made = flat(empty(backend, a.dtype, (*batch, n, step)), n, step)
    if made.nbytes:
        fill_strided(backend, part(made, (m, step), (0, n)), 0)
    made = part(made, (0, m), (0, n))
    copy_into(backend, a, made)
    return made


def copy_into(backend: Backend, x: Operand, out: Operand) -> None:
    """Copy matrices (…, m, n) to an operand [count, m, n], which may be a part of larger matrices."""
    strides, step = [], out.strides[0]
    for size in reversed(x.shape[:-2]):
        strides.append(step)
        step *= size
    if out.nbytes:
        copy_strided(
            backend, x, out._replace(shape=x.shape, strides=(*reversed(strides), *out.strides[1:]))
        )


def flat(out: Operand, n: int, m: int) -> Operand:
    """View dense operands (…, n, m) as column-major [count, m, n]."""
    return out._replace(shape=(numel(out.shape[:-2]), m, n), strides=(n * m, 1, m))


def take_off(
    backend: Backend,
    out: Operand,
    a: Operand,
    b: Operand,
    conjugated: tuple[bool, bool] = (False, False),
) -> None:
    """Subtract the product a @ b from `out`."""
    matmul(backend, a, b, out, alpha=-1, beta=1, bias=out, conjugated=conjugated)


def lanes_of(backend: Backend, dt: dtypes.dtype) -> int:
    """Return the lanes of a vector of a dtype; 1 on a GPU, where a work-item is a lane."""
    return 1 if is_gpu(backend) else max(1, backend.info.lanes * 4 // dt.itemsize)


def block_width(backend: Backend, count: int) -> int:
    """Return how many columns one kernel factorizes, of each of `count` matrices."""
    return _MANY if count > backend.info.compute_units else _WIDTH


def middle(n: int, width: int) -> int:
    """Return where the recursion splits n > width rows or columns: at about half, in whole blocks of `width`."""
    return -(-n // (2 * width)) * width


def side_by_side(backend: Backend, x: Operand, n: int) -> bool:
    """Return whether the matrices, n by n and as many as X has, are better computed one per lane of vectors.

    They are on a CPU, where they are small and fill at least two vectors.
    """
    small = n <= SMALL and not x.dtype.is_complex and not is_gpu(backend)
    return small and x.shape[0] >= 2 * lanes_of(backend, x.dtype) > 2


def runs(backend: Backend, count: int, work: int) -> int:
    """Return how many work-items share `count` matrices that are computed one per lane, `work` elements each."""
    return min(count, workers(backend, count * work))


def launch(
    backend: Backend,
    template: str,
    name: str,
    buffers: Sequence[Buffer],
    scalars: Sequence[int],
    operands: Sequence[Operand],
    items: int,
    nbytes: int,
    *,
    lanes: int = LANES,
    vector: int = 0,
    **key: Any,
) -> None:
    """Run a kernel of templates/factor, for the dtype of `operands[0]`.

    `items`: work-items on a CPU, work-groups of `lanes` on a GPU. `vector`: the lanes of a vector, 0 for `lanes_of`.
    """
    dt, gpu = operands[0].dtype, is_gpu(backend)
    width = vector or lanes_of(backend, dt)
    headers = ""
    if dt.is_complex:
        headers = lane_macros(width, double=dt.itemsize == 16) + include("complex")
    run(
        backend,
        f"factor/{template}",
        f"{name}_{dt.code}",
        buffers,
        scalars,
        (items * lanes, lanes) if gpu else items,
        nbytes,
        dt=dt,
        memory=_memory(dt, width),
        headers=headers,
        I=index_type(backend, *operands),
        gpu=gpu,
        lanes=lanes,
        **key,
    )


def zeros(backend: Backend, dt: dtypes.dtype, shape: Sequence[int]) -> Operand:
    """Make a dense operand of zeros."""
    made = empty(backend, dt, shape)
    if made.nbytes:
        fill_strided(backend, made, 0)
    return made


def identity(backend: Backend, dt: dtypes.dtype, count: int, m: int, n: int) -> Operand:
    """Make column-major [count, m, n] with ones on the diagonals and zeros elsewhere."""
    made = flat(zeros(backend, dt, (count, n, m)), n, m)
    if made.nbytes:
        fill_strided(backend, made._replace(shape=(count, min(m, n)), strides=(m * n, m + 1)), 1)
    return made
