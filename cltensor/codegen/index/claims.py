"""Out-of-place scatter along the last dim on a GPU: scatter, scatter_add and the gradient of gather.

Each row is copied to local memory, or begins as zeros there, is written or added to, and written to the result: it is
read and written once. Owns when a row fits local memory, and the launch; what an operation means is in scatter.py.
Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...dtypes import dtype
from ..checks import Describe, checking
from ..operand import Operand
from ..region import empty, group_limit, index_type, is_gpu, run, storage
from .moves import summed

if TYPE_CHECKING:
    from ...runtime import Backend

_GROUPS = 1 << 16  # work-groups, at most
# A work-group has _LEAST to _MOST lanes, and a lane at most _EACH contributions.
_LEAST, _MOST, _EACH = 64, 256, 8
_PLACES = 4  # elements of a row per lane, at least, unless the row's contributions need more lanes
_CLAIMS = 4  # claims per contribution, if the row has that many places
_ROOM = 1 << 15  # bytes of a row in local memory, at most
ROUNDS = 8  # rounds of claims, before the remaining contributions are added one after another
CROWDED = 4  # contributions per place above which sorting them takes less time
FEW = 32  # contributions to a row, at most, for which a lane per row (index/write.mako) takes less time


def _divided(backend: Backend, width: int, count: int) -> tuple[int, int, int, int]:
    """Return a group's lanes, and the contributions, places and claims that it has room for."""
    contributions = 1 << max((count - 1).bit_length(), 1)
    places = 1 << max((width - 1).bit_length(), 1)
    lanes = max(_LEAST, min(_MOST, max(contributions, places // _PLACES)))
    lanes = min(lanes, group_limit(backend))
    contributions = max(contributions, lanes)
    return lanes, contributions, places, max(contributions, min(places, _CLAIMS * contributions))


def fits(backend: Backend, dt: dtype, rows: int, width: int, count: int, adds: bool) -> bool:
    """Return whether `anew` can make `rows` rows of `width` elements with `count` contributions each.

    That takes enough local memory, and enough rows for all compute units. `adds`: contributions are added, not written.
    """
    if not is_gpu(backend) or rows < backend.info.compute_units or not count > 0:
        return False
    size = summed(dt).itemsize
    if not 0 < width * size <= _ROOM or (adds and not FEW < count <= CROWDED * width):
        return False
    lanes, contributions, places, claims = _divided(backend, width, count)
    room = places * size + (4 * claims + contributions * size + 4) * adds
    return contributions <= _EACH * lanes and room <= backend.info.local_mem


def anew(
    backend: Backend,
    action: str,
    dt: dtype,
    shape: tuple[int, ...],
    base: Operand | None,
    index: Operand,
    src: Operand | tuple[int, int],
    describe: Describe,
) -> Operand:
    """Copy `base` (dense; zeros for None), write or add `src` in each row at the positions in the row of `index`, dense.

    `src` is dense, one element repeated, or the two words of a number's bits, which can only be written.
    """
    result, n, width = empty(backend, dt, shape), index.shape[-1], shape[-1]
    rows = math.prod(shape[:-1])
    lanes, contributions, places, claims = _divided(backend, width, n)
    sources, begun = [src] if isinstance(src, Operand) else [], [base] if base else []
    unit = int(any(src.strides)) if isinstance(src, Operand) else 0
    begins = "of_rows" if begun else "of_zeros"
    what = f"{action}_{dt.code}" if sources else f"set_b{dt.itemsize}"
    every = [result, *sources, *begun, index]
    with checking(backend, describe) as status:
        run(
            backend,
            "index/row_claims",
            f"index_row_claims_{what}_{index.dtype.code}_n{contributions}_w{places}_{begins}",
            [*(x.buffer for x in every), status.buffer],
            [
                *(status.offset, n, rows, width),
                *(number for x in sources for number in (x.offset, n * unit, unit)),
                *(x.offset for x in begun),
                index.offset,
            ],
            (min(rows, _GROUPS) * lanes, lanes),
            result.nbytes * (1 + len(begun))
            + rows * n * (index.dtype.itemsize + unit * dt.itemsize),
            () if isinstance(src, Operand) else src,
            I=index_type(backend, *every),
            dt=dt,
            T="ulong2" if dt.itemsize == 16 else storage(dt),
            action=action,
            start=bool(begun),
            number=not sources,
            index=index.dtype.cl,
            L=lanes,
            N=contributions,
            W=places,
            H=claims,
            ROUNDS=ROUNDS,
        )
    return result
