"""Rows made anew from the rows that an index sends to them: index_add, and the gradients of rows looked up. On a GPU ordered.py does it.

A copy that is then added to is written twice and read twice. Here each row is written once, by who has put in order what goes there.
Owns when that pays, and the launch; what an op means is for scatter.py and lookup.py. Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...dtypes import dtype
from ..checks import Describe, checking
from ..operand import Operand
from ..region import LINE, empty, is_gpu, past_cache, run, workers
from ..source import include
from . import ordered

if TYPE_CHECKING:
    from ...runtime import Backend

NARROW = 256  # bytes of a row from which on asking for each who is sent there costs little
LEAST = 1 << 21  # bytes of a result; a smaller one is written and read again in the caches
CROWDED = 8  # rows of a source for each of the result, from which on the result stays in a cache and they are better read in order
AHEAD = 6  # rows of a source between asking for one and adding it
OTHERS = 16  # places where what goes to other ranges is counted
SHARES = 2  # ranges of rows for each core: indices may prefer some


def fits(backend: Backend, dt: dtype, rows: int, width: int, n: int) -> bool:
    """Whether `collect` can make rows of so many elements, and should."""
    if is_gpu(backend):
        return ordered.fits(backend, dt, rows, width, n)
    if backend.info.kind != "cpu" or dt.is_complex or dt.code in ("b8", "f16", "bf16"):
        return False
    size = width * dt.itemsize
    return size >= NARROW and rows * size >= LEAST and 0 < n <= CROWDED * rows < 1 << 31


def collect(
    backend: Backend,
    dt: dtype,
    shape: tuple[int, ...],
    base: Operand | None,
    index: Operand,
    src: Operand,
    wrap: bool,
    describe: Describe,
) -> Operand:
    """Add the rows of `src` to those of `base` (dense; zeros for None) that `index` names, into fresh memory.

    A row is all dims after the first, dense in `src`, too, or one element repeated.
    """
    if is_gpu(backend):
        return ordered.collect(backend, dt, shape, base, index, src, wrap, describe)
    result = empty(backend, dt, shape)
    rows, width, n, size = shape[0], math.prod(shape[1:]), index.shape[0], dt.itemsize
    lanes = min(16, LINE // size)
    unit = int(any(src.strides[1:]))
    moved = (rows * (2 if base else 1) + n * unit) * width * size
    # What else passes through the cache drives the result out of it.
    streamed = width % lanes == 0 and past_cache(backend, max(rows * width * size, moved // 2))
    # Each work-item reads all indices: less of them than there is to write.
    items = min(SHARES * backend.info.compute_units, workers(backend, rows * width))
    items = min(items, max(1, rows * width // n))
    lists = backend.alloc(4 * (n + rows + (OTHERS + 1) * items))
    name = f"index_add_{dt.code}_{index.dtype.code}_collect{'' if base else '_of_zeros'}{'' if unit else '_flat'}"
    with checking(backend, describe) as status:
        run(
            backend,
            "index/collect",
            name + "_streamed" * streamed,
            [
                *[x.buffer for x in (result, *([base] if base else []), src, index)],
                lists,
                status.buffer,
            ],
            [
                *(status.offset, rows, width, n),
                *([base.offset] if base else []),
                *(src.offset, src.strides[0], index.offset, index.strides[0]),
            ],
            items,
            moved + n * index.dtype.itemsize * items,
            T=dt.cl,
            I="long",
            L=lanes,
            size=size,
            index=index.dtype.cl,
            wrap=wrap,
            base=base is not None,
            unit=unit,
            streamed=streamed,
            ahead=AHEAD,
            others=OTHERS,
            headers=include("ahead") + include("stream") * streamed,
        )
    return result
