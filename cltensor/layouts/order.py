"""Dense orders of dimensions in memory: channels last, and the strides of a pointwise result, which follow its
operands'.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..symbols import remembered
from .basics import Shape, contiguous_strides, is_contiguous


@remembered(4096)
def channels_last_strides(shape: Shape) -> Shape:
    """Return the strides of a batch of images (N, C, *spatial) whose channels vary fastest."""
    return dense_strides(shape, (1, *range(len(shape) - 1, 1, -1), 0))


def is_channels_last(shape: Shape, strides: Shape) -> bool:
    """Return whether a 4-d or 5-d layout is dense with channels fastest.

    Strides of size-1 dimensions are ignored.
    """
    ndim = len(shape)
    if ndim not in (4, 5):
        return False
    step = 1
    for dim in (1, *range(ndim - 1, 1, -1), 0):
        if shape[dim] != 1:
            if strides[dim] != step:
                return False
            step *= shape[dim]
    return True


@remembered(1024)
def like_channels_last(shape: Shape, strides: Shape) -> bool:
    """Return whether strides rise in the order of channels last.

    Unlike in `is_channels_last`, strides of size-1 dims count, and an order that is ambiguous is refused.
    """
    least = 0
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        step = strides[dim]
        if not step or not shape[dim] or step < least or (dim == 0 and least == strides[1]):
            return False
        least = step * max(shape[dim], 1)
    return True


def dense_strides(shape: Shape, order: Sequence[int]) -> Shape:
    """Return gapless strides.

    `order` lists the dimensions, fastest first. Beyond a size of 0 strides are 0.
    """
    strides = [1] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def is_non_overlapping_and_dense(shape: Shape, strides: Shape) -> bool:
    """Return whether the elements fill a gapless block, each once, in any order of dimensions."""
    if strides == contiguous_strides(shape) or 0 in shape:
        return True
    step = 1
    for stride, size in sorted(pair for pair in zip(strides, shape, strict=True) if pair[1] != 1):
        if stride != step:
            return False
        step *= size
    return True


def _stride_order(shape: Shape, operands: Sequence[Shape]) -> list[int]:
    """Sort dimensions fastest first; of two dims, the first operand whose strides differ there decides.

    A stride of 0 decides nothing, so that this is no total order: that it is an insertion sort,
    beginning with row-major order, is part of the rule.
    """
    ndim = len(shape)
    order = list(range(ndim - 1, -1, -1))
    for i in range(1, ndim):
        moving = i
        for j in range(i - 1, -1, -1):
            below, above = order[j], order[moving]
            verdict = 0
            for strides in operands:
                s, t = strides[below], strides[above]
                if s == 0 or t == 0:
                    continue
                if s != t:
                    verdict = 1 if s > t else -1
                    break
                if shape[below] > shape[above]:
                    verdict = 1
                    break
            if verdict > 0:
                order[j], order[moving] = above, below
                moving = j
            elif verdict < 0:
                break
    return order


@remembered(4096)
def preserve_strides(shape: Shape, strides: Shape) -> Shape:
    """Return dense strides that keep an old tensor's order of dims (torch.preserve_format)."""
    if is_non_overlapping_and_dense(shape, strides):
        return strides
    return dense_strides(shape, _stride_order(shape, (strides,)))


def elementwise_strides(shape: Shape, operands: Sequence[tuple[Shape, Shape]]) -> Shape:
    """Return the strides of a pointwise result of `shape` over `(shape, strides)` operands.

    A dense layout that all operands share is kept; else dimensions are ordered by the operands'
    strides, the first operand that tells two dimensions apart deciding. Python scalars count as
    operands of shape ().
    """
    row_major = contiguous_strides(shape)
    same_shape = True
    for operand_shape, strides in operands:
        if operand_shape != shape:
            same_shape = False
        elif strides != row_major:
            break
    else:
        if same_shape:
            return row_major
    return _elementwise_strides(shape, tuple(operands))


@remembered(4096)
def _elementwise_strides(shape: Shape, operands: tuple[tuple[Shape, Shape], ...]) -> Shape:
    if all(s == shape for s, _ in operands):
        if all(is_contiguous(*o) for o in operands):
            return contiguous_strides(shape)
        if len(shape) == 4 and all(is_channels_last(*o) for o in operands):
            return channels_last_strides(shape)
        first = operands[0][1]
        if all(strides == first for _, strides in operands) and is_non_overlapping_and_dense(
            shape, first
        ):
            return first
    seen = []
    for operand_shape, strides in operands:
        lead = len(shape) - len(operand_shape)
        inner = (
            0 if size == 1 and shape[lead + i] != 1 else strides[i]
            for i, size in enumerate(operand_shape)
        )
        seen.append((0,) * lead + tuple(inner))
    order = _stride_order(shape, seen)
    return (
        contiguous_strides(shape)
        if order == [*range(len(shape) - 1, -1, -1)]
        else dense_strides(shape, order)
    )
