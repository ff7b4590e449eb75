"""Strided copies and fills: plain, along the source's rows, or by tiles if the two sides run along different dims.

Owns which way a copy takes. Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ... import dtypes
from ..index.moves import move
from ..memory import Memory
from ..operand import Operand
from ..products.product import tile
from ..region import (
    LINE,
    Dims,
    empty,
    index_type,
    is_dense,
    is_gpu,
    past_cache,
    run,
    storage,
    workers,
)
from ..scalars import Scalar, scalar_words
from ..source import include
from ..turn import turn

if TYPE_CHECKING:
    from ...runtime import Backend

FEW = 8  # size of a dim below which it is not tiled
TALL = 2  # cache lines of a destination's row that are written at once
# Where registers are smaller than a cache line, and the destination's rows are at most CLOSE bytes apart, only one line
# of a row is written at once, and neighbouring rows are written together.
CLOSE = 512
# Cache lines of a row, at least, for non-temporal stores to rows that do not begin at a cache line.
PHASED = 4
FETCHED = 1 << 21  # bytes of a destination that does not fit a core's own cache
_SHARED = 1 << 19  # bytes from which on several threads do a copy
# Numbers, at most, of a block that is copied by a table of places; and how many such blocks there are, at least.
BLOCK = 64
# A block that is written several times is copied in pieces if it has at least REPEATED bytes, too many for a core's own
# cache; a piece, of _PIECE bytes, stays there.
REPEATED, _PIECE = 1 << 18, 1 << 14


def copy_strided(backend: Backend, src: Operand, dst: Operand) -> None:
    """Copy `src` to `dst` of the same shape and item size; strides of either sign, zero only in `src`.

    The order of the copy follows the rows of `dst`.
    """
    if not math.prod(src.shape):
        return
    if any(abs(a) < abs(b) for a, b in itertools.pairwise(dst.strides)):
        order = sorted(range(len(dst.shape)), key=lambda d: -abs(dst.strides[d]))
        src, dst = _ordered(src, order), _ordered(dst, order)
    size, n = dst.dtype.itemsize, math.prod(src.shape)
    if is_dense(src) and is_dense(dst):
        if n * size >= _SHARED and src.buffer is not dst.buffer and not is_gpu(backend):
            to, of = (x._replace(shape=(n,), strides=(1,)) for x in (dst, src))
            move(backend, "set", to, of, (n,), (1,), (1,))
            return
        backend.copy(src.buffer, src.offset * size, dst.buffer, dst.offset * size, n * size)
        return
    tiling = _tiling(backend, src, dst)
    if tiling is not None:
        _copy_tiled(backend, src, dst, tiling)
        return
    if _copied_by_blocks(backend, src, dst):
        return
    along = _along_rows(src)
    if along is not None:
        src, dst = _ordered(src, along), _ordered(dst, along)
    move(backend, "set", dst, src, dst.shape, dst.strides, src.strides)


def _copied_by_blocks(backend: Backend, src: Operand, dst: Operand) -> bool:
    """Copy many small blocks, dense on both sides, with dims in different orders; return whether it is such a copy."""
    dims, size = Dims(dst.shape, [dst.strides, src.strides]), dst.dtype.itemsize
    if dims.rank < 3 or is_gpu(backend):
        return False
    blocks, (to, of) = dims.sizes[0], dims.strides
    order = sorted(range(1, dims.rank), key=lambda d: -to[d])  # by the destination's strides
    inner, steps = [dims.sizes[d] for d in order], [of[d] for d in order]
    block = math.prod(inner)
    if block > BLOCK or blocks < BLOCK or to[0] != block or of[0] != block:
        return False
    for strides in ([to[d] for d in order], steps):
        dense = 1
        for stride, n in sorted(zip(strides, inner, strict=True)):
            if stride != dense:
                return False
            dense *= n
    run(
        backend, "move/blocks", f"copy_blocks_b{size}_r{len(inner)}", [dst.buffer, src.buffer],
        [blocks, block, dst.offset, src.offset, *inner, *steps], workers(backend, dims.n), 2 * dims.n * size,
        I=index_type(backend, dst, src), T=storage(dst.dtype), rank=len(inner), most=BLOCK,
    )  # fmt: skip
    return True


def repeated(backend: Backend, src: Operand, dst: Operand) -> bool:
    """Copy large dense blocks, each written several times in a row, to much memory; return whether it is such a copy."""
    dims, size = Dims(dst.shape, [dst.strides, src.strides]), dst.dtype.itemsize
    if dims.rank not in (2, 3) or backend.info.kind != "cpu" or not backend.info.host_shared:
        return False
    *blocks, times, n = dims.sizes
    if dims.strides != ((*[times * n] * len(blocks), n, 1), (*[n] * len(blocks), 0, 1)):
        return False
    places = n * size, dst.offset * size, src.offset * size
    large = past_cache(backend, dims.n * size)
    if n * size < REPEATED or not large or any(place % 4 for place in places):
        return False
    words, to, of = (place // 4 for place in places)
    run(
        backend, "move/repeat", "repeat", [dst.buffer, src.buffer], [math.prod(blocks), words, times, to, of],
        workers(backend, dims.n), 2 * dims.n * size, I="long", memory=_words(backend), piece=_PIECE // 4, headers=include("stream"),
    )  # fmt: skip
    return True


@functools.cache
def _words(backend: Backend) -> Memory:
    """Return loads and stores of vectors of 32-bit words; cached, as it is part of a kernel's key."""
    return Memory(dtypes.int32, backend.info.lanes)


def _along_rows(src: Operand) -> list[int] | None:
    """Return an order of dims that reads the source along its rows if the last dim is short (channels), else None."""
    shape, strides = src.shape, src.strides
    last = first = len(shape) - 1
    if last < 1 or shape[last] >= FEW or strides[last - 1] != 1 or abs(strides[last]) <= 1:
        return None
    first -= 1
    while first and strides[first - 1] == strides[first] * shape[first]:
        first -= 1
    return [*range(first), last, *range(first, last)]


def _ordered(x: Operand, order: Sequence[int]) -> Operand:
    """Return a view with the dims in another order."""
    return x._replace(
        shape=tuple([x.shape[d] for d in order]), strides=tuple([x.strides[d] for d in order])
    )


class _Tiling(NamedTuple):
    """Tiles of two dims: `a`, along which the destination is written, and `b`, along which the source is read."""

    dims: Dims
    outer: Dims  # the other dims
    a: int
    b: int
    tile_a: int
    tile_b: int
    vector: int  # elements of a vector, 0 without vectors
    across: int  # elements of a source's row that are read at once
    streamed: bool  # non-temporal stores
    phased: bool  # rows of the destination do not begin at a cache line
    fetched: bool  # the destination's lines are prefetched

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        na, nb = self.dims.sizes[self.a], self.dims.sizes[self.b]
        return self.outer.n * -(-na // self.tile_a) * -(-nb // self.tile_b)


def _tiling(backend: Backend, src: Operand, dst: Operand) -> _Tiling | None:
    """Plan tiles; None if source and destination run along the same dim, or tiles do not pay."""
    dims = Dims(dst.shape, [dst.strides, src.strides])
    to, of = ([abs(s) for s in strides] for strides in dims.strides)
    a = min(range(dims.rank), key=lambda d: to[d])
    b = min((d for d in range(dims.rank) if of[d]), key=lambda d: of[d], default=a)
    na, nb = dims.sizes[a], dims.sizes[b]
    if a == b or min(na, nb) < FEW or dims.n < 4096 or of[a] < 4 * of[b] or to[b] < 4 * to[a]:
        return None
    rest = [d for d in range(dims.rank) if d not in (a, b)]
    outer = Dims([dims.sizes[d] for d in rest], [[s[d] for d in rest] for s in dims.strides])
    gpu, size = is_gpu(backend), dst.dtype.itemsize
    unit = dims.strides[0][a] == 1 and dims.strides[1][b] == 1
    # Non-temporal stores pay from half the usual size on: the destination's rows are far apart, so that reading the
    # lines before they are written costs more than in a copy along rows.
    large = past_cache(backend, 2 * dims.n * size)
    vector = across = 0
    if not gpu and unit and size <= 8 and nb >= 16 // size:
        wide = 4 * tile(backend, "float")[1] == LINE
        vector = min(16, (LINE if wide else LINE // 2) // size)
        # More lines for non-temporal stores; one line of bytes with wide vectors, as two steps of these would not stay
        # in the cache.
        across = (1 if size == 1 and wide else 4 if large else 2) * LINE // size
    # On a GPU a tile has at least a cache line each way, and enough numbers for lanes to have several loads in flight.
    tile_a = tile_b = (
        backend.tuned.get("copy.tile", {1: 64, 2: 64, 16: 16}.get(size, 32)) if gpu else 16
    )
    if vector:
        lines = max(1, na * size // LINE)
        close = dims.strides[0][b] * size <= CLOSE
        tall = 1 if close and large and not wide else TALL
        tile_a = (tall if lines >= 2 * tall else lines) * LINE // size
        tile_b = LINE // size * backend.tuned.get("copy.vectors", 64)
    steps = [k for count, k in zip(outer.sizes, outer.strides[0], strict=True) if count > 1]
    places = [dst.buffer.address, *(size * k for k in (dst.offset, dims.strides[0][b], *steps))]
    large = large and vector > 0
    phased = large and any(place % LINE for place in places)
    streamed = large and not (phased and na < PHASED * LINE // size)
    fetched = vector > 0 and not large and dims.n * size >= FETCHED
    return _Tiling(
        dims, outer, a, b, tile_a, tile_b, vector, across, streamed, phased and streamed, fetched
    )


def _in_pairs(src: Operand, dst: Operand, tiling: _Tiling) -> bool:
    """Return whether 16-bit numbers can be read and written as pairs: all sizes, offsets and strides are even."""
    dims, outer, a, b = tiling[:4]
    to, of = dims.strides
    places = [dst.offset, src.offset, dims.sizes[a], dims.sizes[b], to[b], of[a]]
    for strides in outer.strides:
        places += [step for n, step in zip(outer.sizes, strides, strict=True) if n > 1]
    return to[a] == of[b] == 1 and not any(place % 2 for place in places)


def _copy_tiled(backend: Backend, src: Operand, dst: Operand, tiling: _Tiling) -> None:
    """Launch move/tile.mako."""
    dims, outer, a, b, tile_a, tile_b, vector, across, streamed, phased, fetched = tiling
    gpu, size = is_gpu(backend), dst.dtype.itemsize
    paired = gpu and size == 2 and _in_pairs(src, dst, tiling)
    # With tiles of this size a GPU's lanes have eight loads in flight, more for small numbers.
    lanes = min(128 if size == 4 else 256, backend.info.max_group) if gpu else 1
    work = (
        (min(tiling.tiles, 1 << 16) * lanes, lanes)
        if gpu
        else min(tiling.tiles, workers(backend, dims.n))
    )
    steps = [strides[d] for strides in dims.strides for d in (a, b)]
    ways = "".join(
        f"_{way}"
        for way, taken in (
            ("streamed", streamed),
            ("phased", phased),
            ("fetched", fetched),
            ("paired", paired),
        )
        if taken
    )
    run(
        backend,
        "move/tile",
        f"copy_tile_b{size}_r{outer.rank}_v{vector}{ways}",
        [dst.buffer, src.buffer],
        [outer.n, dst.offset, src.offset, dims.sizes[a], dims.sizes[b], *steps, *outer.args()],
        work,
        2 * dims.n * size,
        T=storage(dst.dtype),
        I=index_type(backend, dst, src),
        rank=outer.rank,
        gpu=gpu,
        tile_a=tile_a,
        tile_b=tile_b,
        lanes=lanes,
        vector=vector,
        side=LINE // size,
        across=across,
        size=size,
        headers=include("limits", "ahead") * (vector > 0) + include("stream") * streamed,
        streamed=streamed,
        phased=phased,
        fetched=fetched,
        paired=paired,
        turn=turn,
    )


def fill_strided(backend: Backend, dst: Operand, value: Scalar) -> None:
    """Set every element of a strided region."""
    move(backend, "set", dst, scalar_words(dst.dtype, value), dst.shape, dst.strides, ())


def dense(backend: Backend, x: Operand) -> Operand:
    """Return `x` itself if it is dense (row-major without gaps), else a dense copy."""
    if is_dense(x):
        return x
    result = empty(backend, x.dtype, x.shape)
    copy_strided(backend, x, result)
    return result
