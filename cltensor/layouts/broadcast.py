"""Broadcasting: the shape operands have in common, and strides of 0 where a size is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..symbols import remembered
from .basics import Layout, Shape


@remembered(4096)
def _broadcast_two(a: Shape, b: Shape) -> Shape:
    ndim = max(len(a), len(b))
    shape = []
    for i in range(ndim):
        x = a[i - ndim] if ndim - i <= len(a) else 1
        y = b[i - ndim] if ndim - i <= len(b) else 1
        if x != y and x != 1 and y != 1:
            # torch looks at the last dimension first
            for j in range(ndim - 1, i, -1):
                u = a[j - ndim] if ndim - j <= len(a) else 1
                v = b[j - ndim] if ndim - j <= len(b) else 1
                if u != v and u != 1 and v != 1:
                    i, x, y = j, u, v
                    break
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at "
                f"non-singleton dimension {i}"
            )
        shape.append(y if x == 1 else x)
    return tuple(shape)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape that all `shapes` broadcast to; RuntimeError names the sizes that differ."""
    if not shapes:
        return ()
    result = tuple(shapes[0])
    for shape in shapes[1:]:
        if shape != result:
            result = _broadcast_two(result, tuple(shape))
    return result


def joint_shape(shapes: Sequence[Any]) -> Shape:
    """Return what shapes and lone sizes broadcast to, in the words of torch.broadcast_shapes."""
    whole = []
    for s in shapes:
        if not isinstance(s, int | tuple | list):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {s}"
            )
        whole.append((s,) if isinstance(s, int) else tuple(s))
    result = [1] * max(map(len, whole), default=0)
    for place, shape in enumerate(whole):
        for d in range(-1, -1 - len(shape), -1):
            size = shape[d]
            if size < 0 and result[d] == 1:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if size != 1 and result[d] not in (1, size):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size} at {d}! Mismatching argument at index {place} had "
                    f"{shape}; but expected shape should be broadcastable to {result}"
                )
            result[d] = result[d] if size == 1 else size
    return tuple(result)


def expand_shape(shape: Shape, sizes: Sequence[int], type_name: str = "torch.FloatTensor") -> Shape:
    """Return `sizes` with each -1 replaced by the size it keeps.

    RuntimeError where `shape` does not expand to it.
    """
    lead = len(sizes) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({type_name}{{{list(shape)}}}, size={list(sizes)}): the number of sizes provided ({len(sizes)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    result = list(sizes)
    for i in range(len(sizes) - 1, -1, -1):
        target = sizes[i]
        if i < lead:
            if target < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({target}) isn't allowed in a leading, "
                    f"non-existing dimension {i}"
                )
        elif target == -1:
            result[i] = shape[i - lead]
        elif target != shape[i - lead] and (shape[i - lead] != 1 or target < 0):
            raise RuntimeError(
                f"The expanded size of the tensor ({target}) must match the existing size ({shape[i - lead]}) at non-singleton dimension {i}.  Target sizes: {list(sizes)}.  Tensor sizes: {list(shape)}"
            )
    return tuple(result)


@remembered(4096)
def expand_strides(shape: Shape, strides: Shape, newshape: Shape) -> Shape:
    """Return the strides of a view expanded to `newshape` (no -1).

    RuntimeError where it does not expand.
    """
    if shape == newshape:
        return strides
    expand_shape(shape, newshape)
    if not shape:
        return (0,) * len(newshape)
    lead = len(newshape) - len(shape)
    result = [
        0 if old == 1 and new != 1 else stride
        for old, new, stride in zip(shape, newshape[lead:], strides, strict=True)
    ]
    for size in reversed(newshape[:lead]):
        # A new dimension of size 1 is given the stride that continues the one behind it.
        behind = newshape[len(newshape) - len(result)] * result[0]
        result.insert(0, behind if size == 1 else 0)
    return tuple(result)


def expand(shape: Shape, strides: Shape, offset: int, sizes: Sequence[int]) -> Layout:
    """Return the layout of a view expanded to `sizes` (-1 keeps a size)."""
    newshape = expand_shape(shape, sizes) if -1 in sizes else tuple(sizes)
    return newshape, expand_strides(shape, strides, newshape), offset
