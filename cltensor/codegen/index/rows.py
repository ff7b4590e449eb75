"""Rows and one index operand, on a CPU schedule: the index chooses rows, or elements along each row.

Most calls of gather, scatter_add, index_select, embeddings and index_add are of this kind; the general loops are in
moves.py, which tries `take` and `combine` first: these return whether they could do it. Knows operands and backends,
nothing of tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ... import dtypes
from ...layouts import numel
from ..checks import Describe, checking
from ..memory import Memory
from ..operand import Operand
from ..region import LINE, Dims, empty, past_cache, run, storage, workers
from ..source import include, lane_macros

if TYPE_CHECKING:
    from ...runtime import Backend
    from .moves import Meeting, Through

_LINE, _ROW = 64, 1 << 15  # bytes of a cache line, and of a row that fits the first-level cache
_AHEAD, _NEAR = 8, 1024  # rows from a prefetch to the read, and bytes of a row that are prefetched
_CACHE = 1 << 20  # bytes that a core's own cache holds: tables that fit are not prefetched
_BITS = {
    1: dtypes.uint8,
    2: dtypes.int16,
    4: dtypes.int32,
    8: dtypes.int64,
}  # for elements that are only moved
SLICE = 1024  # bytes of a row that are worth a work-item of their own
memory_of = functools.cache(Memory)  # part of a kernel's key


def take(
    backend: Backend,
    dst: Operand,
    src: Operand,
    dims: Dims,
    through: Sequence[Through],
    wrap: bool,
    describe: Describe,
) -> bool:
    """Copy what an index chooses to `dst`: rows of `src`, or elements of each row; return whether layouts allow it.

    `dims`: strides of dst, src and the index.
    """
    size = dst.dtype.itemsize
    lanes = min(16, 64 // size)
    if len(through) != 1 or dims.rank != 2 or size > 8 or dims.sizes[1] < lanes:
        return False
    if not dims.strides[1][1] and dims.strides[2][1]:
        _along(backend, "get", dst, src, dims, through[0], wrap, describe, None)
        return True
    (dst_step, dst_unit), (fixed, src_unit), (index_step, index_unit) = dims.strides
    if fixed or index_unit or dst_unit != 1 or src_unit != 1:
        return False
    (index, _, count, step), (n, width) = through[0], dims.sizes
    places = [dst.offset, src.offset, step, dst_step, width]
    name, storage_type = f"take_b{size}_{index.dtype.code}_rows", storage(dst.dtype)
    words = size < 4 and width * size >= _LINE and not any(k % (4 // size) for k in places)
    if words:  # rows of small elements move as 32-bit words, in wider vectors
        places = [k * size // 4 for k in places]
        size, lanes, storage_type, name = 4, 16, "uint", f"take_b4_{index.dtype.code}_rows"
    dst_offset, src_offset, step, dst_step, width = places
    aligned = not any(k % lanes for k in (width, dst_offset, dst_step))
    streamed = aligned and past_cache(backend, n * width * size)
    with checking(backend, describe) as status:
        run(
            backend,
            "index/take",
            name + "_streamed" * streamed,
            [dst.buffer, src.buffer, index.buffer, status.buffer],
            [
                *(status.offset, n, width, dst_offset, src_offset, index.offset, count, step),
                *(dst_step, index_step, min(width, _NEAR // size)),
            ],
            workers(backend, dims.n),
            n * (2 * width * size + index.dtype.itemsize),
            T=storage_type,
            L=lanes,
            size=size,
            headers=include("ahead") + include("stream") * streamed,
            ahead=_AHEAD if count * width * size > _CACHE else 0,
            streamed=streamed,
            I="long",
            index=index.dtype.cl,
            wrap=wrap,
        )
    return True


def combine(backend: Backend, meeting: Meeting) -> bool:
    """Reduce rows of `src` into the rows of `dst` that one index chooses; return whether the layout allows that."""
    action, dst, src, c, s, through, wrap, describe, factor = meeting
    dt, width = dst.dtype, s.n
    strides = [st[0] for st in c.strides]
    if len(through) != 1 or c.rank != 1 or s.rank != 1 or strides[0]:
        return False
    if action == "move":
        if dt.itemsize not in _BITS:
            return False
        dt = _BITS[dt.itemsize]
    elif width > 1 and abs(through[0].step) < abs(s.strides[0][0]) and c.n >= 8:
        dims = Dims((width, c.n), [(a[0], b[0]) for a, b in zip(s.strides, c.strides, strict=True)])
        if dims.rank == 2:
            _along(backend, action, dst, src, dims, through[0], wrap, describe, factor)
        return dims.rank == 2
    lanes = backend.info.lanes // (2 if dt.itemsize > 4 else 1)
    plain = s.strides[0] == (1,) and s.strides[1] in ((0,), (1,)) and s.strides[2] == (0,)
    if not plain or dt.is_complex or width < lanes:
        return False
    index, size, step = through[0].operand, through[0].size, through[0].step
    # Work is divided by slices of columns, which are balanced whatever the indices are, then by ranges of rows, which
    # keep memory runs long. Every work-item reads all indices, so there are no more of them than cores.
    items = min(backend.info.compute_units, workers(backend, c.n * width))
    slices = max(1, min(items, width * dt.itemsize // SLICE))
    ranges = max(1, min(items // slices, size))
    head = lane_macros(lanes, dt is dtypes.float64)
    head += include("half") if dt.code in ("f16", "bf16") else ""
    head += include("ahead")
    scalars = [ranges, slices, dst.offset, src.offset, index.offset, size, step, *strides[1:]]
    scalars.append(min(width, _NEAR // dt.itemsize))
    with checking(backend, describe) as status:
        run(
            backend,
            "index/rows",
            f"index_{action}_{dt.code}_{index.dtype.code}_rows{'' if s.strides[1][0] else '_flat'}",
            [x.buffer for x in (dst, src, *([factor] if factor else []), index)] + [status.buffer],
            [status.offset, c.n, width, *scalars],
            ranges * slices,
            c.n * (width * 3 * dt.itemsize + index.dtype.itemsize * ranges * slices),
            headers=head,
            ahead=_AHEAD if size * width * dt.itemsize > _CACHE else 0,
            dt=dt,
            L=lanes,
            memory=memory_of(dt, lanes),
            scalar=memory_of(dt, 1),
            I="long",
            action=action,
            index=index.dtype.cl,
            wrap=wrap,
            scale=factor is not None,
            unit=s.strides[1] == (1,),
        )
    return True


def _along(
    backend: Backend,
    action: str,
    dst: Operand,
    src: Operand,
    dims: Dims,
    through: Through,
    wrap: bool,
    describe: Describe,
    factor: Operand | None,
) -> None:
    """Read from, or reduce into, the elements of rows that an index chooses along them."""
    (index, _, count, step), (rows, n), dt = through, dims.sizes, dst.dtype
    size = dt.itemsize
    (dst_row, dst_step), (src_row, src_step), (index_row, index_step) = dims.strides
    # A row that fits the first-level cache and most of whose cache lines are needed is prefetched in order.
    whole = step == 1 and count * size <= _ROW and 2 * n * _LINE >= count * size
    flat = action == "get" and (dst_step, index_step, step) == (1, 1, 1)
    numbers = [rows, n, count if whole else 0, dst.offset, src.offset, index.offset, count, step]
    with checking(backend, describe) as status:
        run(
            backend,
            "index/along",
            f"index_{action}_{f'b{size}' if action == 'get' else dt.code}_{index.dtype.code}_along{'_flat' * flat}",
            [x.buffer for x in (dst, src, *([factor] if factor else []), index)] + [status.buffer],
            [status.offset, *numbers, dst_row, src_row, index_row, dst_step, src_step, index_step],
            min(rows, workers(backend, dims.n)),
            dims.n * (2 * size + index.dtype.itemsize),
            T=storage(dt),
            dt=None if action == "get" else dt,
            I="long",
            line=_LINE // size,
            headers=include("ahead"),
            action=action,
            index=index.dtype.cl,
            wrap=wrap,
            flat=flat,
            scale=factor is not None,
        )


def fits_anew(backend: Backend, dt: dtypes.dtype, width: int, adds: bool) -> bool:
    """Return whether `anew` can make rows of `width` elements."""
    kinds = not (adds and dt.code in ("f16", "bf16")) and not dt.is_complex
    return backend.info.kind == "cpu" and kinds and 0 < width * dt.itemsize <= _ROW


def anew(
    backend: Backend,
    action: str,
    dt: dtypes.dtype,
    shape: tuple[int, ...],
    base: Operand | None,
    index: Operand,
    src: Operand | tuple[int, int],
    describe: Describe,
) -> Operand:
    """Copy `base` (dense; zeros for None), write or add `src` in each row at the positions in the row of `index`, dense.

    `src` is dense, one element repeated, or the two words of a number's bits, which can only be written.
    """
    result, n = empty(backend, dt, shape), index.shape[-1]
    rows, width, size = numel(index.shape[:-1]), shape[-1], dt.itemsize
    lanes = min(16, LINE // size)
    words: Sequence[int] = () if isinstance(src, Operand) else src
    source, started = [src] if isinstance(src, Operand) else [], [base] if base else []
    unit = 1 if source and any(source[0].strides) else 0
    streamed = width % lanes == 0 and past_cache(backend, numel(shape) * size)
    T = storage(dt) if action == "move" else dt.cl
    name = f"index_{action}_{T}_{index.dtype.code}_anew{'' if base else '_of_zeros'}{'' if source else '_s'}"
    with checking(backend, describe) as status:
        run(
            backend,
            "index/anew",
            name + "_streamed" * streamed,
            [*[x.buffer for x in (result, *started, *source, index)], status.buffer],
            [
                *(status.offset, rows, n, width, *[x.offset for x in started]),
                *[number for x in source for number in (x.offset, n * unit, unit)],
                index.offset,
            ],
            max(1, min(rows, workers(backend, rows * (n + width)))),
            numel(shape) * size * (2 if base else 1)
            + rows * n * (unit * size + index.dtype.itemsize),
            words,
            T=T,
            dt=dt,
            I="long",
            L=lanes,
            size=size,
            room=_ROW // size,
            action=action,
            index=index.dtype.cl,
            base=base is not None,
            scalar=not source,
            streamed=streamed,
            headers=include("ahead") * bool(base) + include("stream") * streamed,
        )
    return result
