"""Eigenvalues of tridiagonal and singular values of bidiagonal matrices by plane rotations, and what these make of the identity.

One work-item finds the rotations of a matrix, which depend on each other; vectors of rows are then taken through all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, SupportsFloat

import numpy as np

from ... import dtypes
from ..move.copies import fill_strided
from ..operand import Operand
from ..region import empty, index_type, is_gpu, run
from ..source import include
from .parts import LANES, lanes_of, zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...runtime import Backend, Buffer

_NUMBERS = 1 << 24  # that are listed for all matrices before they are applied, at most
_VECTORS = 4  # of rows that a CPU's work-item takes through the rotations


class Lists(NamedTuple):
    """What the steps leave: [count, 3] as the kernels say, and rotations: two columns each [count, room, 2], cosines and sines [count, room, 2 or 4]."""

    states: Operand
    places: Operand | None
    numbers: Operand | None


def begin(
    backend: Backend, kind: str, diagonal: Operand, vectors: bool
) -> tuple[Lists, Operand | None]:
    """Make room for the rotations of real matrices [count, n], and identities to apply them to, by rows of whole vectors.

    Of "eigenvalues" these are [count, n, n'], of "singular_values" [2 count, n, n']: for the right vectors, then for the left ones.
    """
    (count, n), dt = diagonal.shape, diagonal.dtype
    sides = _sides(kind)
    states = zeros(backend, dtypes.int32, (count, 3))
    if not vectors:
        return Lists(states, None, None), None
    room = max(n, min(n * n + 64 * n, _NUMBERS // (2 * sides * count)))  # mostly for all
    places = empty(backend, dtypes.int32, (count, room, 2))
    numbers = empty(backend, dt, (count, room, 2 * sides))
    return Lists(states, places, numbers), _identity(backend, dt, sides * count, n)


def go_on(
    backend: Backend,
    kind: str,
    diagonal: Operand,
    beside: Operand,
    lists: Lists,
    products: Operand | None,
    lower: bool = False,
) -> None:
    """Go on with the "eigenvalues" of tridiagonal or "singular_values" of bidiagonal matrices until all is found or there is no room.

    What is listed is applied to the products of the rotations before. `lower`: bidiagonal matrices are, at first.
    """
    (count, n), dt = diagonal.shape, diagonal.dtype
    room: list[int] = []
    buffers: list[Buffer] = []
    if lists.places is not None and lists.numbers is not None:
        room, buffers = [lists.places.shape[1]], [lists.places.buffer, lists.numbers.buffer]
    eps = np.finfo(dt.np).eps / 2
    index = index_type(backend, diagonal, *(x for x in lists if x is not None))
    run(
        backend,
        f"factor/{kind}",
        f"{kind}_{dt.code}{'_kept' if products is not None else ''}",
        [diagonal.buffer, beside.buffer, lists.states.buffer, *buffers],
        [count, n, *room, *([lower] if kind == "singular_values" else [])],
        (count, 1) if is_gpu(backend) else count,
        n * n * dt.itemsize * count,
        I=index,
        R=dt.reg,
        epsilon=literal(dt, eps),
        tiny=literal(dt, np.finfo(dt.np).tiny),
        bound=literal(dt, max(10.0, min(100.0, eps**-0.125)) * eps),
        kept=products is not None,
    )
    if products is not None:
        _rotate(backend, products, [lists.states.buffer, *buffers], room[0], _sides(kind), index)


def _sides(kind: str) -> int:
    return 2 if kind == "singular_values" else 1


def literal(dt: dtypes.dtype, value: SupportsFloat) -> str:
    """Write a number as a kernel has it."""
    return f"{float(value)!r}{'f' if dt.itemsize == 4 else ''}"


def _identity(backend: Backend, dt: dtypes.dtype, count: int, n: int) -> Operand:
    """Make identities [count, n, n'] by rows that are whole vectors, an odd number of a work-item's parts: others share places in a cache."""
    lanes = lanes_of(backend, dt)
    group = lanes * _vectors(n, lanes)
    step = (-(-n // group) | 1) * group
    made = zeros(backend, dt, (count, n, step))
    if made.nbytes:
        fill_strided(backend, made._replace(shape=(count, n), strides=(n * step, step + 1)), 1)
    return made


def _vectors(n: int, lanes: int) -> int:
    return min(_VECTORS, -(-n // lanes)) if lanes > 1 else 1


def _rotate(
    backend: Backend,
    columns: Operand,
    buffers: Sequence[Buffer],
    room: int,
    sides: int,
    index: str,
) -> None:
    (count, n, step), dt, gpu = columns.shape, columns.dtype, is_gpu(backend)
    lanes = lanes_of(backend, dt)
    many = _vectors(n, lanes)
    blocks = -(-n // (LANES if gpu else lanes * many))
    run(
        backend,
        "factor/rotate",
        f"rotate_{dt.code}_{many}",
        [columns.buffer, *buffers],
        [count // sides, n, step, blocks, room, 2 * sides],
        (count * blocks * LANES, LANES) if gpu else count * blocks,
        n * n * count * dt.itemsize * 2,
        I=index,
        R=dt.reg,
        V=lanes,
        K=many,
        itemsize=dt.itemsize,
        lanes=LANES,
        gpu=gpu,
        headers=include("flush"),
    )
