"""Layouts side by side: collapsing dims that all operands step through evenly, and overlap in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from ..symbols import remembered
from .basics import Layout, Shape, storage_extent
from .order import is_non_overlapping_and_dense

NO_OVERLAP, FULL_OVERLAP, PARTIAL_OVERLAP, TOO_HARD = "NO", "FULL", "PARTIAL", "TOO_HARD"


@remembered(8192)
def merge(shape: Shape, operands: tuple[Shape, ...]) -> tuple[Shape, tuple[Shape, ...]]:
    """Merge neighbouring dims where every operand's strides satisfy `outer == inner * size`; drop dims of size 1."""
    sizes: list[int] = []
    kept: list[list[int]] = [[] for _ in operands]
    for dim, size in enumerate(shape):
        if size == 1:
            continue
        steps = [strides[dim] for strides in operands]
        if sizes and all(k[-1] == step * size for k, step in zip(kept, steps, strict=True)):
            sizes[-1] *= size
            for k, step in zip(kept, steps, strict=True):
                k[-1] = step
        else:
            sizes.append(size)
            for k, step in zip(kept, steps, strict=True):
                k.append(step)
    return tuple(sizes), tuple([tuple(k) for k in kept])


def collapse(shape: Shape, strides_list: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """Merge neighbouring dims that all operands step through evenly, and drop those of size 1.

    Row-major order of the elements is kept. One element gives shape (); no elements give shape
    (0,).
    """
    if 0 in shape:
        return (0,), [(1,)] * len(strides_list)
    sizes, strides = merge(shape, tuple(strides_list))
    return sizes, list(strides)


def internal_overlap(shape: Shape, strides: Shape) -> str:
    """Return whether elements of one view share memory: NO_OVERLAP, FULL_OVERLAP (a stride is 0) or TOO_HARD."""
    if is_non_overlapping_and_dense(shape, strides):
        return NO_OVERLAP
    if any(size > 1 and stride == 0 for size, stride in zip(shape, strides, strict=True)):
        return FULL_OVERLAP
    return TOO_HARD


def overlap(a: Layout, b: Layout) -> str:
    """Compare two views of one storage: NO, FULL (same elements, same order), PARTIAL or TOO_HARD."""
    if a == b:
        return FULL_OVERLAP
    if 0 in a[0] or 0 in b[0]:
        return NO_OVERLAP
    if not (is_non_overlapping_and_dense(*a[:2]) and is_non_overlapping_and_dense(*b[:2])):
        return TOO_HARD
    a_end, b_end = storage_extent(*a), storage_extent(*b)
    if a[2] == b[2] and a_end == b_end:
        return FULL_OVERLAP if a[1] == b[1] else PARTIAL_OVERLAP
    return PARTIAL_OVERLAP if a[2] < b_end and b[2] < a_end else NO_OVERLAP


def may_share(a: Layout, b: Layout) -> bool:
    """Return whether two views of one storage may share an element.

    Exact for disjoint ranges, and for interleaved ones whose common step keeps them apart.
    """
    if 0 in a[0] or 0 in b[0]:
        return False
    if a[2] >= storage_extent(*b) or b[2] >= storage_extent(*a):
        return False
    steps = [
        t for shape, strides, _ in (a, b) for s, t in zip(shape, strides, strict=True) if s > 1
    ]
    common = gcd(*steps)
    # Every address is the offset plus a multiple of `common`: different remainders never meet.
    return common == 0 or (a[2] - b[2]) % common == 0
