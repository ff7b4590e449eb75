"""Bags of table rows summed, averaged or maximised in one kernel. Knows operands and backends, nothing of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ... import dtypes
from ..checks import Describe, checking
from ..move.copies import dense
from ..operand import Operand
from ..region import empty, index_type, is_gpu, run, workers
from ..source import include, lane_macros
from .rows import memory_of

if TYPE_CHECKING:
    from ...runtime import Backend

KINDS = ("sum", "mean", "max")


class Bags(NamedTuple):
    """The results of an embedding bag."""

    out: Operand  # the reduced rows, one per bag
    sizes: Operand  # how many rows count in each bag
    bag_of: Operand  # the bag of each index
    best_row: Operand | None  # the row that each element of `out` comes from; for max only


def _bad(rows: int, n: int, briefly: bool) -> Describe:
    """Make the function that words an error: of a bad index if `what` is its position, of offsets if negative."""

    def describe(value: int, what: int) -> Exception:
        if what >= 0 and briefly:
            return RuntimeError(
                f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {value}"
            )
        if what >= 0:
            return RuntimeError(
                f"Index {what} of input takes value {value} which is not in the valid range [0, {rows})"
            )
        if what == -1:
            return RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {value}"
            )
        if what == -2:
            return RuntimeError(
                f"offsets[-1] can not be greater than input's length {n} but got offsets[-1] of {value}"
            )
        return RuntimeError(f"offsets have to go up and stay within the input's length {n}")

    return describe


def bags(
    backend: Backend,
    table: Operand,
    indices: Operand,
    offsets: Operand,
    kind: str,
    padding: int,
    scale: Operand | None,
) -> Bags:
    """Reduce the rows of `table` (V, D) that 1-D `indices` name, bag by bag; `offsets` are where bags begin.

    `padding`: an index that does not count; `scale`: a factor per index. RuntimeError for bad indices and offsets.
    """
    n, count = indices.shape[0], offsets.shape[0]
    (rows, width), dt = table.shape, table.dtype
    result = Bags(
        empty(backend, table.dtype, (count, width)),
        empty(backend, dtypes.int64, (count,)),
        empty(backend, dtypes.int64, (n,)),
        empty(backend, dtypes.int64, (count, width)) if kind == "max" else None,
    )
    if not count:
        return result

    gpu = is_gpu(backend)
    if not gpu and table.strides[1] != 1:
        table = dense(backend, table)
    lanes = 8 if dt.itemsize > 4 else 16
    more: dict[str, Any] = {"L": 1, "memory": None}
    headers = ""
    if not gpu:
        headers = lane_macros(lanes) + include("ahead")
        headers += include("half") if dt.code in ("f16", "bf16") else ""
        more = {"L": lanes, "memory": memory_of(dt, lanes)}
    buffers = [x.buffer for x in (table, indices, offsets, *result[:3])]
    buffers += [x.buffer for x in (result.best_row, scale) if x is not None]
    briefly = kind == "max" or padding >= 0 or dt is dtypes.float64
    with checking(backend, _bad(rows, n, briefly)) as status:
        scalars = [status.offset, n, count, rows, width, table.offset, *table.strides]
        scalars += [indices.offset, *indices.strides, offsets.offset, *offsets.strides]
        scalars += [scale.offset, *scale.strides] if scale is not None else []
        run(
            backend,
            "bag",
            f"bag_{kind}_{table.dtype.code}_{indices.dtype.code}{'_scaled' if scale else ''}",
            [*buffers, status.buffer],
            scalars,
            count * max(width, 1) if gpu else min(workers(backend, n * width), count),
            n * width * table.dtype.itemsize,
            longs=[padding],
            dt=dt,
            index=indices.dtype.cl,
            offset=offsets.dtype.cl,
            I=index_type(backend, table, result.out),
            kind=kind,
            scaled=scale is not None,
            gpu=gpu,
            headers=headers,
            **more,
        )
    return result
