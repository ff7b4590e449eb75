"""Out-of-place index_add, also the gradient of looking rows up; on a GPU ordered.py does it.

A copy that is then added to would be written and read twice. Here a work-item sorts the contributions to its rows and
writes each row once. Owns when that pays, and the launch; what an op means is in scatter.py and lookup.py. Knows
operands and backends, nothing of tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...dtypes import dtype
from ..checks import Describe, checking
from ..operand import Operand
from ..region import LINE, empty, is_gpu, past_cache, run, workers
from ..source import include, lane_macros
from . import ordered
from .rows import memory_of

if TYPE_CHECKING:
    from ...runtime import Backend

NARROW = 256  # bytes of a row, at least: following the list of its contributions then costs little
LEAST = 1 << 21  # bytes of a result, at least: a smaller one is rewritten in the caches
# Rows of the source per row of the result, at most: with more, the result stays in a cache while the source is read in
# order, which takes less time.
CROWDED = 8
AHEAD = 6  # rows of the source from a prefetch to the addition
OTHERS = 16  # dummy counters for contributions that go to other work-items' ranges
SHARES = 2  # ranges of rows per core: indices may prefer some ranges


def fits(backend: Backend, dt: dtype, rows: int, width: int, n: int) -> bool:
    """Return whether `collect` can make `rows` rows of `width` elements from n contributions, and pays."""
    if is_gpu(backend):
        return ordered.fits(backend, dt, rows, width, n)
    if backend.info.kind != "cpu" or dt.is_complex or dt.code == "b8":
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

    A row is all dims after the first; in `src` it is dense, or one element repeated. `wrap`: negative indices count from
    the end.
    """
    if is_gpu(backend):
        return ordered.collect(backend, dt, shape, base, index, src, wrap, describe)
    result = empty(backend, dt, shape)
    rows, width, n, size = shape[0], math.prod(shape[1:]), index.shape[0], dt.itemsize
    lanes = min(16, LINE // size)
    unit, short = int(any(src.strides[1:])), dt.code in ("f16", "bf16")
    moved = (rows * (2 if base else 1) + n * unit) * width * size
    # Base and source pass through the cache, too, and evict the result, so they count here.
    streamed = width % lanes == 0 and past_cache(backend, max(rows * width * size, moved // 2))
    # Each work-item reads all indices: together no more than there is to write.
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
            dt=dt,
            memory=memory_of(dt, lanes),
            scalar=memory_of(dt, 1),
            short=short,
            I="long",
            L=lanes,
            index=index.dtype.cl,
            wrap=wrap,
            base=base is not None,
            unit=unit,
            streamed=streamed,
            ahead=AHEAD,
            others=OTHERS,
            headers=lane_macros(lanes, dt.reg == "double")
            + include(*["half"] * short, *["stream"] * streamed, "ahead"),
        )
    return result
