"""Rearranging regions by strided copies (flip, roll), and joining rows of several sources.

Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ... import dtypes
from ..memory import Memory
from ..operand import Operand
from ..region import (
    GRAIN,
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
from ..source import include
from .copies import copy_strided

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend

# `interleave` takes rows of at most RUN_BYTES bytes from at most RUN_PARTS sources.
RUN_BYTES, RUN_PARTS = 32, 8
BATCH = 128  # rows that are made in local memory before they are written with non-temporal stores
# A GPU's join of rows: lanes of a work-group, work-groups per compute unit, rows that a lane copies at most, and loads
# that a lane has in flight.
_LANES, _GROUPS, _EACH, _AHEAD = 128, 16, 16, 4


def interleaves(total: int, length: int, parts: int, itemsize: int) -> bool:
    """Return whether joining rows of `length` elements of each source in one launch pays, compared to a copy per source.

    `total`: elements of the result; `parts`: sources. There is a kernel for each length and number of sources, so both are
    limited, and a build is not worth it for little data.
    """
    return (
        total >= GRAIN
        and itemsize <= 8
        and length * itemsize <= RUN_BYTES
        and 1 < parts <= RUN_PARTS
    )


def interleave(backend: Backend, sources: Sequence[Operand], length: int, out: Operand) -> None:
    """Write rows of `length` elements of each source in turn into `out`; all are dense and of one dtype."""
    rows = math.prod(sources[0].shape) // length
    total, size = rows * length * len(sources), out.dtype.itemsize
    streams = not is_gpu(backend) and past_cache(backend, total * size)
    streamed = BATCH if streams and not out.offset * size % LINE else 0
    name = f"interleave_b{size}_{len(sources)}x{length}{'_streamed' * bool(streamed)}"
    run(
        backend, "move/interleave", name, [out.buffer, *[x.buffer for x in sources]],
        [rows, out.offset, *[x.offset for x in sources]], rows if is_gpu(backend) else workers(backend, total), 2 * total * size,
        I=index_type(backend, out, *sources), T=storage(out.dtype), gpu=is_gpu(backend), parts=len(sources), run=length,
        size=size, streamed=streamed, headers=include("stream") if streamed else "",
    )  # fmt: skip


def goes_beside(backend: Backend, rows: int, widths: Sequence[int], itemsize: int) -> bool:
    """Return whether joining rows of `widths` elements of the sources in one launch beats a copy per source."""
    few = 1 < len(widths) <= RUN_PARTS and rows * sum(widths) >= GRAIN
    if is_gpu(backend):
        return few and min(widths) > 0
    return few and min(widths) * itemsize >= LINE


def beside(
    backend: Backend, sources: Sequence[Operand], widths: Sequence[int], out: Operand
) -> None:
    """Write a row of each source in turn into each row of `out`; all are dense and of one dtype."""
    if is_gpu(backend):
        _beside_on_lanes(backend, sources, widths, out)
        return
    size, total = out.dtype.itemsize, math.prod(out.shape)
    places = [out.offset, *[k for x, n in zip(sources, widths, strict=True) for k in (x.offset, n)]]
    unit = _unit(places, size, 8)
    streamed = past_cache(backend, total * size)
    name = f"beside_b{unit}_{len(sources)}{'_streamed' * streamed}"
    run(
        backend, "move/beside", name, [out.buffer, *[x.buffer for x in sources]],
        [n * size // unit for n in (total, sum(widths), *places)], workers(backend, total * size // 4), 2 * total * size,
        I="long", parts=len(sources), memory=_memory(backend, unit), streamed=streamed, headers=include("stream") if streamed else "",
    )  # fmt: skip


def _unit(places: Sequence[int], size: int, most: int) -> int:
    """Return the bytes of the largest unit, at most `most`, that divides all places (elements of `size` bytes)."""
    return next(
        n
        for n in (16, 8, 4, 2, 1)
        if n <= most and (n <= size or all(k * size % n == 0 for k in places))
    )


def _beside_on_lanes(
    backend: Backend, sources: Sequence[Operand], widths: Sequence[int], out: Operand
) -> None:
    """Do what `beside` does on a GPU, in the largest units of memory that divide all rows and offsets."""
    size, total = out.dtype.itemsize, math.prod(out.shape)
    places = [out.offset, *(x.offset for x in sources), *widths]
    unit = _unit(places, size, 16)
    width, rows = sum(widths) * size // unit, total // sum(widths)
    lanes = min(_LANES, backend.info.max_group)
    blocks = -(-width // lanes)
    each = max(min(blocks * rows // (_GROUPS * backend.info.compute_units), _EACH), 1)
    each -= each % _AHEAD if each > _AHEAD else 0
    run(
        backend, "move/beside_gpu", f"beside_gpu{unit}_{len(sources)}", [out.buffer, *[x.buffer for x in sources]],
        [
            rows, width, each, out.offset * size // unit,
            *[k * size // unit for x, n in zip(sources, widths, strict=True) for k in (x.offset, n)],
        ],
        (blocks * -(-rows // each) * lanes, lanes), 2 * total * size,
        I=index_type(backend, out, *sources), parts=len(sources), size=unit, lanes=lanes, ahead=_AHEAD,
    )  # fmt: skip


@functools.cache
def _memory(backend: Backend, size: int) -> Memory:
    """Return loads and stores of vectors of `size`-byte words; cached, as it is part of a kernel's key."""
    dt = {1: dtypes.uint8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[size]
    return Memory(dt, min(backend.info.lanes * 4 // size, 16))


def spread(backend: Backend, ends: Operand, total: int, dt: dtype) -> Operand:
    """Return each number repeated by its count; `ends`: running totals of counts, dense int64.

    [1, 1, 3] makes [0, 2, 2].
    """
    out, n, gpu = empty(backend, dt, (total,)), ends.shape[0], is_gpu(backend)
    if total:
        run(
            backend, "move/spread", f"spread_{dt.code}", [out.buffer, ends.buffer], [n], n if gpu else workers(backend, n + total),
            n * 8 + total * dt.itemsize, I=index_type(backend, ends, out), T=dt.cl, gpu=gpu,
        )  # fmt: skip
    return out


def flipped(x: Operand, dims: Sequence[int]) -> Operand:
    """Return a view with the order of some dims reversed: their strides change sign."""
    offset, strides = x.offset, list(x.strides)
    for d in dims:
        offset += strides[d] * max(x.shape[d] - 1, 0)
        strides[d] = -strides[d]
    return x._replace(strides=tuple(strides), offset=offset)


def flip(backend: Backend, src: Operand, dims: Sequence[int]) -> Operand:
    """Return `src` with the order of `dims` reversed, in one launch."""
    result = empty(backend, src.dtype, src.shape)
    copy_strided(backend, flipped(src, dims), result)
    return result


def roll(
    backend: Backend,
    src: Operand,
    shifts: Sequence[int],
    dims: Sequence[int],
) -> Operand:
    """Return `src` rolled along `dims`: elements shifted beyond the end re-enter at the start.

    Each rolled dim doubles the number of copies.
    """
    result = empty(backend, src.dtype, src.shape)
    if not math.prod(src.shape):
        return result
    pairs = [(src, result)]
    for shift, d in zip(shifts, dims, strict=True):
        size = src.shape[d]
        shift %= size
        if not shift:
            continue
        pairs = [
            pair
            for a, b in pairs
            for pair in (
                (narrow(a, d, 0, size - shift), narrow(b, d, shift, size - shift)),
                (narrow(a, d, size - shift, shift), narrow(b, d, 0, shift)),
            )
        ]
    for a, b in pairs:
        copy_strided(backend, a, b)
    return result
