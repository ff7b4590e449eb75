"""Padding in one pass: by a constant, by reflection, by the nearest element, by wrapping around.

Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...layouts import numel
from ..operand import Operand
from ..region import (
    GPU_GROUP,
    LINE,
    empty,
    index_type,
    is_gpu,
    narrow,
    past_cache,
    run,
    storage,
    workers,
)
from ..scalars import Scalar, scalar_words
from ..source import include
from .copies import copy_strided, fill_strided

if TYPE_CHECKING:
    from ...runtime import Backend

MODES = ("constant", "reflect", "replicate", "circular")
Pairs = Sequence[tuple[int, int]]
ROWS = 4096  # from this many rows on, rows shorter than a cache line are padded by `_around_a_copy`, not one by one
AT_ONCE = 8  # elements that a GPU's lane reads before it writes the first
STAGED = 4096  # bytes of the buffer in which rows are made before their lines are written with non-temporal stores


def pad(backend: Backend, src: Operand, pairs: Pairs, mode: str, value: Scalar = 0) -> Operand:
    """Return `src` padded by `pairs` of amounts before and after each dim, dense; negative amounts crop.

    The caller has checked what the mode allows.
    """
    out = empty(backend, src.dtype, [n + a + b for n, (a, b) in zip(src.shape, pairs, strict=True)])
    if not numel(out.shape):
        return out
    dims = _merged(src, pairs)
    rank, gpu, size = len(dims), is_gpu(backend), src.dtype.itemsize
    scalars = []
    for n, step, before, after in dims:
        scalars += [n, n + before + after, before, step, max(-before, 0), n - max(-after, 0)]
    total, width = numel(out.shape), scalars[6 * (rank - 1) + 1]
    rows = total // width
    if mode == "constant" and not gpu and width * size < LINE and rows >= ROWS:
        _around_a_copy(backend, src, out, pairs, value)
        return out
    lanes = LINE // size if not gpu and dims[-1][1] == 1 and size <= 8 else 1
    lanes = min(lanes, 16)
    large = lanes > 1 and past_cache(backend, total * size)
    staged = STAGED // size if large and LINE < width * size <= STAGED // 2 else 0
    run(
        backend,
        "move/pad",
        f"pad_{mode}_b{size}_r{rank}_v{lanes}{'_staged' if staged else ''}",
        [out.buffer, src.buffer],
        [total if gpu else rows, src.offset, *scalars],
        -(-total // AT_ONCE) if gpu else min(rows, workers(backend, total)),
        2 * total * size,
        scalar_words(src.dtype, value),
        T=storage(src.dtype),
        I=index_type(backend, out, src),
        mode=mode,
        rank=rank,
        size=size,
        lanes=lanes,
        gpu=gpu,
        group=GPU_GROUP,
        at_once=AT_ONCE,
        staged=staged,
        side=LINE // size,
        headers=include("stream") if staged else "",
    )
    return out


def _around_a_copy(
    backend: Backend, src: Operand, out: Operand, pairs: Pairs, value: Scalar
) -> None:
    """Fill all of `out`, then copy `src` into it, cropped: for rows shorter than a cache line faster than one pass."""
    fill_strided(backend, out, value)
    for dim, (before, after) in enumerate(pairs):
        cut, end = max(-before, 0), src.shape[dim] - max(-after, 0)
        if end <= cut:
            return
        src = narrow(src, dim, cut, end - cut)
        out = narrow(out, dim, max(before, 0), end - cut)
    copy_strided(backend, src, out)


def _merged(src: Operand, pairs: Pairs) -> list[tuple[int, int, int, int]]:
    """Return (size, stride, before, after) of dims; adjacent dims that are not padded and are contiguous are merged."""
    dims: list[tuple[int, int, int, int]] = []
    for n, step, (before, after) in zip(src.shape, src.strides, pairs, strict=True):
        if not (before or after):
            if n == 1:
                continue
            if dims and dims[-1][1:] == (n * step, 0, 0):
                dims[-1] = dims[-1][0] * n, step, 0, 0
                continue
        dims.append((n, step, before, after))
    return dims or [(1, 1, 0, 0)]
