"""Eigenvectors of tridiagonal and singular vectors of bidiagonal matrices by divide and conquer.

A merge takes the vectors of two halves to those of the whole. It is the problem of a diagonal matrix with one more
row, or with a rank-one update z z^T, whose roots and vectors are independent of each other; most of the operations
are in the product of the halves' vectors with that problem's vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ..operand import Operand
from ..region import empty, index_type, is_gpu, run
from ..source import include, lane_macros
from .parts import lanes_of
from .rotations import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...runtime import Backend

LEAF = 32  # rows of an undivided block, at least
MANY = 160  # rows from which on a matrix is divided


def divided(n: int) -> tuple[int, int]:
    """Return into how many blocks, a power of 2, n rows are divided, and the rows of each; together n or a few more."""
    blocks = 1
    while n >= 2 * LEAF * blocks:
        blocks *= 2
    return blocks, -(-n // blocks)


class _Deflated(NamedTuple):
    """What is left of each merge's problem, and what becomes of the others' values (templates/factor/deflate.mako)."""

    poles: Operand  # the diagonal, ascending, [count, step]
    weights: Operand  # the row or the vector z of the problem, [count, step]
    places: Operand  # the vector of each pole, then of each deflated value, int32, [count, 2 m]
    states: Operand  # how many poles, how many rotations, int32, [count, 2]
    sizes: Operand  # magnitudes of the problem, [count, 3]
    turns: Operand  # which two vectors are rotated, int32, [count, 2 m, 2]
    numbers: Operand  # cosines and sines of these rotations, [count, 2 m, 2]


def _room(backend: Backend, dt: dtypes.dtype, count: int, both: int, step: int) -> _Deflated:
    """Allocate the results of the deflation of `count` merges to `both` rows; lines of poles have `step` numbers."""

    def made(kind: dtypes.dtype, *shape: int) -> Operand:
        return empty(backend, kind, (count, *shape))

    int32 = dtypes.int32
    return _Deflated(
        poles=made(dt, step),
        weights=made(dt, step),
        places=made(int32, both),
        states=made(int32, 2),
        sizes=made(dt, 3),
        turns=made(int32, both, 2),
        numbers=made(dt, both, 2),
    )


def merge(
    backend: Backend,
    values: Operand,
    order: Operand,
    vectors: Operand,
    beside: Operand,
    diagonal: Operand | None = None,
) -> tuple[Operand, Operand]:
    """Merge pairs of blocks; return their values [count, 2 m], unsorted, and the matrices to multiply the vectors by.

    values: [2 count, m], which is overwritten. order: the indices that sort each block's values, int64. vectors: [2
    count, m, m], as columns. beside: the off-diagonals of the whole matrices, 2 m numbers for each merge. The
    matrices returned are [sides, count, 2 m, 2 m'], where sides is 1; their rows are padded from 2 m to whole vectors
    and an odd number of cache lines, so that the numbers of a column fall on different cache sets.

    With a `diagonal`, of the length of `beside`, blocks are bidiagonal, m - 1 by m, and values are singular values;
    the last value of a block is only a placeholder, above all others. `vectors` are then the right ones, and sides is
    2, the right one first. Left vectors have m rows as well, the last of which is the row that follows the block.
    """
    (blocks, m), dt, gpu = values.shape, values.dtype, is_gpu(backend)
    count, both, squares = blocks // 2, 2 * m, diagonal is not None
    lanes, doubles = lanes_of(backend, dt), dt.itemsize == 8
    line = max(lanes, 64 // dt.itemsize)
    step = (-(-both // line) | 1) * line
    groups, sides = -(-both // lanes), 1 + squares
    origins, offsets, exact = (empty(backend, dt, (count, step)) for _ in range(3))
    found = empty(backend, dt, (count, both))
    columns = empty(backend, dt, (sides, count, both, step))
    poles, weights, places, states, sizes, *rotations = _room(backend, dt, count, both, step)
    key: dict[str, Any] = {"I": index_type(backend, columns, vectors), "R": dt.reg}
    key["squares"] = squares

    def launch(part: str, operands: list[Operand], scalars: list[int], work: Any, nbytes: int, **more: Any) -> None:  # fmt: skip
        name = f"{part}_{dt.code}{'_squares' if squares else ''}"
        buffers = [x.buffer for x in operands]
        run(backend, f"factor/{part}", name, buffers, scalars, work, nbytes, **more, **key)

    limits, small = np.finfo(dt.np), count * both * dt.itemsize
    epsilon, tiny = literal(dt, limits.eps / 2), literal(dt, limits.tiny)
    given = [values, order, vectors, beside]
    # `origins` is not needed yet: the rows z lie there meanwhile.
    given += [poles, weights, origins, places, states, sizes, *rotations]
    given += [] if diagonal is None else [diagonal]
    items = (count, 1) if gpu else count
    launch("deflate", given, [count, m, step], items, 8 * small, epsilon=epsilon, tiny=tiny)

    key |= {"J": "long" if doubles else "int", "V": lanes, "gpu": gpu}
    walk, items = [count, step, groups], count * groups
    problem, roots = [poles, weights, states], [origins, offsets]
    headers = lane_macros(lanes, double=doubles) + include("all_lanes")
    launch("secular", [*problem, sizes, *roots], walk, items, 4 * small, epsilon=epsilon, headers=headers)  # fmt: skip
    launch("secular_weights", [*problem, *roots, exact], walk, items, 5 * small)
    given = [poles, exact, places, states, *roots, *rotations, values]
    given += [sizes] if squares else []
    walk, items = [count, both, step, groups], sides * count * groups
    launch("secular_vectors", [*given, found, columns], walk, items, columns.nbytes)
    return found, columns


def made_square(
    backend: Backend, diagonal: Operand, beside: Operand
) -> tuple[Operand, Operand, Operand]:
    """Rotate upper bidiagonal blocks of m - 1 rows and m columns to square lower bidiagonal ones and a column of zeros.

    `diagonal` and `beside` (the off-diagonal) are [blocks, m]. Returns the lower blocks' diagonals and off-diagonals,
    [blocks, m - 1] each, and the rotations.
    """
    (blocks, m), dt = diagonal.shape, diagonal.dtype
    d, e = (empty(backend, dt, (blocks, m - 1)) for _ in range(2))
    numbers = empty(backend, dt, (blocks, m - 1, 2))
    _between_shapes(backend, [diagonal, beside, d, e, numbers], m, blocks, back=False)
    return d, e, numbers


def made_wide(backend: Backend, vectors: Operand, numbers: Operand) -> Operand:
    """Return right vectors (columns, [blocks, m, m]) with the rotations of `made_square` applied.

    The last of them belongs to the column of zeros.
    """
    blocks, m, _ = vectors.shape
    made = empty(backend, vectors.dtype, vectors.shape)
    _between_shapes(backend, [vectors, numbers, made], m, blocks * m, back=True)
    return made


def _between_shapes(
    backend: Backend, operands: Sequence[Operand], m: int, work: int, back: bool
) -> None:
    """Run factor/wide.mako in `work` work-items: to square blocks of m columns, or `back` to wide ones."""
    first, blocks = operands[0], operands[0].shape[0]
    dt, limits = first.dtype, np.finfo(first.dtype.np)
    run(
        backend,
        "factor/wide",
        f"made_{'wide' if back else 'square'}_{dt.code}",
        [x.buffer for x in operands],
        [blocks, m],
        work,
        2 * first.nbytes,
        I=index_type(backend, *operands),
        R=dt.reg,
        epsilon=literal(dt, limits.eps / 2),
        tiny=literal(dt, limits.tiny),
        back=back,
        gpu=is_gpu(backend),
    )
