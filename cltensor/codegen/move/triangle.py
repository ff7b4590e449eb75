"""Lower and upper triangles of matrices, with zeros elsewhere. Knows operands and backends, nothing of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...layouts import numel
from ..operand import Operand
from ..region import LINE, Dims, empty, index_type, is_gpu, past_cache, run, storage, workers
from ..source import include
from .copies import dense

if TYPE_CHECKING:
    from ...runtime import Backend


def triangle(backend: Backend, src: Operand, diagonal: int, *, lower: bool) -> Operand:
    """Return the triangles of (…, rows, columns) up to a diagonal (`lower`) or from it on, zeros elsewhere, dense."""
    out, size, gpu = empty(backend, src.dtype, src.shape), src.dtype.itemsize, is_gpu(backend)
    total = numel(src.shape)
    if not total:
        return out
    rows, columns = src.shape[-2:]
    src = src if src.strides[-1] == 1 else dense(backend, src)
    dims = Dims(src.shape[:-1], [src.strides[:-1]])
    lanes = min(LINE // size, 16) if not gpu and size <= 8 else 1
    streamed = lanes > 1 and past_cache(backend, total * size)
    streamed = streamed and not (columns * size | out.buffer.address) % LINE
    run(
        backend,
        "move/triangle",
        f"{'lower' if lower else 'upper'}_b{size}_r{dims.rank}_v{lanes}{'_streamed' * streamed}",
        [out.buffer, src.buffer],
        [dims.n, rows, columns, diagonal + lower, src.offset, *dims.args()],
        total if gpu else min(dims.n, workers(backend, total)),
        (total + total // 2) * size,
        T=storage(src.dtype),
        I=index_type(backend, src, out),
        headers=include("stream") if streamed else "",
        lower=lower,
        rank=dims.rank,
        size=size,
        lanes=lanes,
        streamed=streamed,
        gpu=gpu,
    )
    return out
