"""Out-of-place index_add on a GPU, also the gradient of looking rows up.

One kernel sorts the contributions by row and initialises the rows; another adds them up in that order, a stretch of contributions per lane. Owns
when that pays, and the launches; what an op means is in scatter.py and lookup.py. Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...dtypes import dtype, uint32
from ..checks import Describe, checking
from ..operand import Operand
from ..region import empty, group_limit, index_type, run
from .moves import summed

if TYPE_CHECKING:
    from ...runtime import Backend

# A group that sorts has LANES lanes, and room in local memory for lists of LISTED rows and contributions.
LANES, LISTED = 512, 1024
_GROUPS, _AHEAD = 2, 8  # sorting groups per compute unit; indices whose loads a lane has in flight
MOST = 1 << 15  # contributions, at most, as every group reads all of them
_READ = 1 << 24  # indices that all groups together read, at most
CROWDED = 16  # contributions per row, at most: with more, a group would list many of the same row
FEW = 32  # contributions, at most, for which a lane per column (index/write.mako) takes less time
_WIDEST = 16  # bytes that a lane reads or writes at once
SPAN, _WAITING = 16, 4  # contributions that a lane adds up, and how many of them it has in flight
_ADDING = 128, 256  # lanes of a group that adds, and of these lanes along a row, at most


def _groups(backend: Backend, rows: int) -> int:
    """Return how many groups sort the contributions to `rows` rows."""
    return max(min(rows, _GROUPS * backend.info.compute_units), -(-rows // LISTED))


def fits(backend: Backend, dt: dtype, rows: int, width: int, n: int) -> bool:
    """Return whether `collect` can make `rows` rows of `width` elements from n contributions, and pays."""
    if dt.code in ("b8", "c128") or not width or not FEW < n <= min(MOST, CROWDED * rows):
        return False
    return n * _groups(backend, rows) <= _READ


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
    """Do what `collect.collect` does, on a GPU."""
    result, begun = empty(backend, dt, shape), [base] if base else []
    rows, width, n = shape[0], math.prod(shape[1:]), index.shape[0]
    wide = 1 if backend.info.host_shared else _WIDEST // dt.itemsize
    while wide > 1 and any(v % wide for v in (width, *(x.offset for x in begun))):
        wide //= 2
    keys, order = (empty(backend, uint32, (n,)) for _ in range(2))
    lanes = min(LANES, group_limit(backend))
    groups, every = _groups(backend, rows), [result, *begun, index, keys, order]
    kind = index_type(backend, result, *begun, index, src)
    size = dt.itemsize * wide
    with checking(backend, describe) as status:
        run(
            backend,
            "index/order",
            f"index_order_b{size}_{index.dtype.code}{'' if begun else '_of_zeros'}",
            [*(x.buffer for x in every), status.buffer],
            [
                *(status.offset, n, rows, width // wide, max((n - 1).bit_length(), 1)),
                *(x.offset // wide for x in begun),
                *(index.offset, index.strides[0]),
            ],
            (groups * lanes, lanes),
            result.nbytes * (1 + len(begun)) + n * groups * index.dtype.itemsize,
            T={_WIDEST: "uint4", 8: "ulong", 4: "uint", 2: "ushort", 1: "uchar"}[size],
            I=kind,
            start=bool(begun),
            index=index.dtype.cl,
            wrap=wrap,
            L=lanes,
            U=_AHEAD,
            M=LISTED,
        )
    _add(backend, result, src, keys, order, width, wide, kind)
    return result


def _add(
    backend: Backend,
    dst: Operand,
    src: Operand,
    keys: Operand,
    order: Operand,
    width: int,
    wide: int,
    kind: str,
) -> None:
    """Add up the rows of `src` in sorted order; a second launch joins runs that cross from one stretch to the next."""
    dt, n, unit, row = dst.dtype, keys.shape[0], int(any(src.strides[1:])), src.strides[0]
    if dt.cl != dt.reg or dt.is_complex or (unit and (row % wide or src.offset % wide)):
        wide = 1
    stretches, columns, step = -(-n // SPAN), width // wide, wide if unit else 1
    lanes = min(_ADDING[0], group_limit(backend))
    across = 1
    while across < min(columns, _ADDING[1], lanes):
        across *= 2
    high = lanes // across
    partial = empty(backend, summed(dt), (2 * stretches * width,))
    key: dict[str, Any] = {"dt": dt, "I": kind, "V": wide, "unit": unit, "span": SPAN, "B": min(SPAN, _WAITING)}  # fmt: skip
    for joined in (False, True)[: min(stretches, 2)]:
        run(
            backend,
            "index/added",
            f"index_add_{dt.code}_v{wide}{'' if unit else '_flat'}{'_joins' * joined}",
            [x.buffer for x in (dst, src, keys, order, partial)],
            [n, columns, src.offset // step, row // step],
            ((-(-columns // across) * across, -(-stretches // high) * high), (across, high)),
            0 if joined else n * (1 + 2 * unit) * width * dt.itemsize,
            joined=joined,
            **key,
        )
