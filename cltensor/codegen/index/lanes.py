"""Moves on a GPU: elements that index operands name, read or written by lanes (index/lanes.mako).

Owns how many elements are moved as one, and how many loads a lane has in flight. What an operation means is in
lookup.py and scatter.py. Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..checks import Describe, checking
from ..operand import Operand
from ..region import STORAGE, Dims, group_limit, index_type, run

if TYPE_CHECKING:
    from ...runtime import Backend
    from .moves import Through

_GROUP, _GROUPS = 256, 1 << 16  # lanes of a work-group; work-groups, at most
_WIDEST = 16  # bytes that a lane reads or writes at once
# A lane has up to _MOST loads in flight; more than one only if there are more than _LANES lanes per compute unit, which
# is one and a half times as many as run at once.
_MOST, _LANES = 4, 3072


def move(
    backend: Backend,
    side: str,
    operands: Sequence[Operand],
    words: Sequence[int],
    dims: Dims,
    through: Sequence[Through],
    wrap: bool,
    describe: Describe | None,
) -> None:
    """Launch index/lanes.mako over `dims`, with strides of the destination, the source if any, and the indices.

    `operands`: the destination and the source; without a source, `words` are the two words of a scalar's bits.
    """
    dt, moved = operands[0].dtype, len(operands)
    every = [*operands, *(t.operand for t in through)]
    wide = 1 if words or backend.info.host_shared else _side_by_side(operands, dims, through)
    sizes = (*dims.sizes[:-1], dims.sizes[-1] // wide)
    strides = [
        (*(v // wide for v in s[:-1]), s[-1]) if wide > 1 and k < moved else s
        for k, s in enumerate(dims.strides)
    ]
    n, each = dims.n // wide, _MOST
    lanes = min(_GROUP, group_limit(backend))
    while each > 1 and n < each * _LANES * backend.info.compute_units:
        each //= 2
    size = dt.itemsize * wide
    name = f"{side}{'s' if words else ''}_b{size}_r{dims.rank}_k{len(through)}_lanes{each}"
    buffers = [x.buffer for x in every]
    places = [n, *(x.offset // wide for x in operands)]
    walk = [*sizes, *(v for s in strides for v in s)]
    work = (min(max(-(-n // (lanes * each)), 1), _GROUPS) * lanes, lanes)
    nbytes = dims.n * (moved * dt.itemsize + sum(t.operand.dtype.itemsize for t in through))
    key: dict[str, Any] = {
        "T": "uint4" if wide > 1 and size == _WIDEST else STORAGE[size],
        "I": index_type(backend, *every),
        "rank": dims.rank,
        "side": side,
        "index": tuple(t.operand.dtype.cl for t in through),
        "wrap": wrap,
        "scalar": not moved - 1,
        "L": lanes,
        "U": each,
    }
    if not through:
        run(backend, "index/lanes", name, buffers, [*places, *walk], work, nbytes, words, **key)
        return
    assert describe is not None
    with checking(backend, describe) as status:
        named = [v for t in through for v in (t.operand.offset, t.size, t.step // wide)]
        scalars = [status.offset, *places, *named, *walk]
        run(backend, "index/lanes", name, [*buffers, status.buffer], scalars, work, nbytes, words, **key)  # fmt: skip


def _side_by_side(operands: Sequence[Operand], dims: Dims, through: Sequence[Through]) -> int:
    """Return how many elements are moved as one: they are adjacent and aligned in the source and the destination."""
    moved = dims.strides[: len(operands)]
    if any(s[-1] != 1 for s in moved) or any(s[-1] != 0 for s in dims.strides[len(operands) :]):
        return 1
    wide = max(_WIDEST // operands[0].dtype.itemsize, 1)
    steps = [dims.sizes[-1], *(x.offset for x in operands), *(v for s in moved for v in s[:-1])]
    steps += [t.step for t in through]
    while wide > 1 and any(v % wide for v in steps):
        wide //= 2
    return wide
