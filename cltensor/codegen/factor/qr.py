"""The QR factorization by Householder reflectors, and products with Q, the product of the reflectors.

Reflectors are applied in blocks, H_1 H_2 ... H_w = I - V U^-1 V^H with U upper triangular: above the diagonal U is
V^H V, on it 1 / tau (Joffrain et al., "Accumulating Householder transformations, revisited", ACM TOMS 32, 2006).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..move.copies import copy_strided
from ..operand import Operand
from ..products.gemm import matmul
from ..region import empty
from .parts import launch, part, take_off, transposed
from .triangular import ROWS, solve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...runtime import Backend

# Reflectors of a block where all are known beforehand: one product over this K is faster than two over half of it.
_WIDE = 2 * ROWS


class Block(NamedTuple):
    """w consecutive reflectors."""

    first: int  # the row in which the first reflector begins
    vectors: Operand  # [count, m - first, w]
    triangle: Operand  # U [count, w, w]


def qr(backend: Backend, a: Operand, v: Operand, tau: Operand) -> list[Block]:
    """Overwrite A [count, m, n], column-major, by R and, below the diagonal, the vectors of Q's reflectors.

    `tau` [count, min(m, n)] gets the reflectors' factors, and `v` [count, m, min(m, n)], column-major, their vectors
    with the ones on the diagonal. The reflectors are returned in blocks.
    """
    (count, m, n), k = a.shape, tau.shape[1]
    inverse = empty(backend, a.dtype, (count, k))
    blocks = []
    for first, end in _ranges(k, ROWS):
        if a.nbytes:
            panel, vectors = part(a, (first, m), (first, end)), part(v, (first, m), (first, end))
            launch(
                backend,
                "reflectors",
                "reflectors",
                [a.buffer, tau.buffer, inverse.buffer, v.buffer],
                [
                    *(count, m - first, end - first, panel.offset, a.strides[0], a.strides[2]),
                    *(tau.offset + first, k, vectors.offset, v.strides[0], v.strides[2]),
                ],
                (a, v),
                count,
                3 * panel.nbytes,
            )
        blocks.append(_block(backend, v, inverse, first, end))
        if end < n:
            reflect(backend, blocks[-1], part(a, (0, m), (end, n)), adjoint=True)
    return blocks


def blocks_of(backend: Backend, v: Operand, inverse: Operand) -> list[Block]:
    """Return reflectors in blocks, given their vectors [count, m, k], zeros above the diagonal, and 1 / tau [count, k]."""
    return [
        _block(backend, v, inverse, first, end) for first, end in _ranges(inverse.shape[1], _WIDE)
    ]


def _ranges(k: int, width: int) -> Iterator[tuple[int, int]]:
    for first in range(0, k, width):
        yield first, min(first + width, k)


def _block(backend: Backend, v: Operand, inverse: Operand, first: int, end: int) -> Block:
    (count, m, _), w = v.shape, end - first
    vectors = part(v, (first, m), (first, end))
    triangle = empty(backend, v.dtype, (count, w, w))
    if triangle.nbytes:
        matmul(backend, transposed(vectors), vectors, triangle, conjugated=(True, False))
        shape, batch = (count, w), inverse.strides[0]
        copy_strided(
            backend,
            inverse._replace(shape=shape, strides=(batch, 1), offset=inverse.offset + first),
            triangle._replace(shape=shape, strides=(w * w, w + 1)),
        )
    return Block(first, vectors, triangle)


def reflect(backend: Backend, block: Block, x: Operand, *, adjoint: bool) -> None:
    """Overwrite X [count, m, k] by B X, or B^H X with `adjoint`, B the product of a block's reflectors."""
    first, v, u = block
    (count, m, k), w = x.shape, u.shape[1]
    below = part(x, (first, m), (0, k))
    if not below.nbytes:
        return
    inner = empty(backend, x.dtype, (count, w, k))
    matmul(backend, transposed(v), below, inner, conjugated=(True, False))
    triangle = transposed(u) if adjoint else u
    solve(
        backend,
        triangle,
        inner,
        upper=not adjoint,
        conjugate=adjoint and x.dtype.is_complex,
    )
    take_off(backend, below, v, inner)


def multiply(backend: Backend, blocks: list[Block], x: Operand, *, adjoint: bool) -> None:
    """Overwrite X [count, m, k] by Q X, or Q^H X with `adjoint`, Q the product of all reflectors."""
    for block in blocks if adjoint else reversed(blocks):
        reflect(backend, block, x, adjoint=adjoint)


def first_columns(backend: Backend, blocks: list[Block], x: Operand) -> None:
    """Overwrite X [count, m, k], which holds the first columns of the identity, by those of Q."""
    for block in reversed(blocks):
        # Columns left of the block are still zero from the block's first row on: reflectors would not change them.
        at = min(block.first, x.shape[2])
        reflect(backend, block, part(x, (0, x.shape[1]), (at, x.shape[2])), adjoint=False)
