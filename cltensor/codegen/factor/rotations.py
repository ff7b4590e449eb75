"""Eigenvalues of tridiagonal and singular values of bidiagonal matrices by plane rotations, and their vectors.

One work-item finds and lists the rotations of a matrix, which depend on each other; all of them are then applied to
rows of the identity, by vectors.
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

_NUMBERS = 1 << 24  # cosines and sines listed for all matrices before they are applied, at most
_VECTORS = 4  # vectors of rows to which a CPU's work-item applies the rotations, at most


class Lists(NamedTuple):
    """The state of the iteration, and the rotations it lists (None without vectors to apply them to)."""

    states: Operand  # [count, 3], see the templates
    places: Operand | None  # [count, room, 2]: the two columns of each rotation
    numbers: Operand | None  # [count, room, 2 or 4]: cosines and sines


def begin(
    backend: Backend, kind: str, diagonal: Operand, vectors: bool
) -> tuple[Lists, Operand | None]:
    """Allocate lists for the rotations of real matrices with diagonals [count, n], and identities to apply these to.

    The identities are [count, n, n'] for "eigenvalues", and [2 count, n, n'] for "singular_values": for the right
    vectors, then for the left ones. Rows are padded to whole vectors.
    """
    (count, n), dt = diagonal.shape, diagonal.dtype
    sides = _sides(kind)
    states = zeros(backend, dtypes.int32, (count, 3))
    if not vectors:
        return Lists(states, None, None), None
    # Room for n^2 + 64 n rotations is mostly enough for all of a matrix.
    room = max(n, min(n * n + 64 * n, _NUMBERS // (2 * sides * count)))
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
    """Continue the iteration until all values are found or the lists are full, then apply the rotations to `products`.

    `kind` is "eigenvalues" (of tridiagonal matrices) or "singular_values" (of bidiagonal ones). `products` holds the
    product of all earlier rotations. `lower` says that the bidiagonal matrices are lower ones, in the first call.
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
    """Return a number as an OpenCL literal of a dtype."""
    return f"{float(value)!r}{'f' if dt.itemsize == 4 else ''}"


def _identity(backend: Backend, dt: dtypes.dtype, count: int, n: int) -> Operand:
    """Make identities [count, n, n'] whose rows are padded to an odd number of what a work-item takes.

    The numbers of a column then fall on different cache sets.
    """
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
