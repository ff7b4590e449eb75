"""Functions of shape, order and selection, under the standard's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops.row import FUNCTIONS as F
from ..tensor import Tensor
from .kinds import promoted

__all__ = [
    "broadcast_arrays", "broadcast_to", "clip", "concat", "diff", "expand_dims", "flip", "meshgrid", "permute_dims", "repeat",
    "reshape", "roll", "squeeze", "stack", "take", "take_along_axis", "tile", "unstack", "where",
]  # fmt: skip


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Return arrays of one shape."""
    return list(F["broadcast_tensors"](*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """Return a view of a larger shape."""
    return F["broadcast_to"](x, tuple(shape))


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of a grid, one array per axis."""
    return list(F["meshgrid"](*arrays, indexing=indexing)) if arrays else []


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join along an axis; None joins flattened arrays."""
    if axis is None:
        return F["cat"]([a.flatten() for a in arrays], 0)
    return F["cat"](list(arrays), axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join along a new axis."""
    return F["stack"](promoted(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along an axis, without that axis."""
    return x.unbind(axis)


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """Insert an axis of size one."""
    return x.unsqueeze(axis)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Remove axes of size one. ValueError for another size."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"cannot squeeze axes {axes} of shape {tuple(x.shape)}")
    return x.squeeze(axes)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Reorder axes."""
    return x.permute(axes)


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Reverse along axes, all by default."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return x.flip(axes)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Shift elements cyclically along axes."""
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return x.roll(shift, axis)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element."""
    repeats = repeats.long() if isinstance(repeats, Tensor) else repeats
    return x.repeat_interleave(repeats, dim=axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeat the whole array."""
    return x.tile(repetitions)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape, a view if possible and unless `copy`.

    ValueError if `copy=False` but a copy is needed.
    """
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"a view of shape {tuple(shape)} would need a copy") from error
    return x.clone().reshape(shape) if copy else x.reshape(shape)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Pick along an axis; indices have one dim."""
    return x.index_select(0 if axis is None else axis, indices)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Pick along an axis, by indices of its own for each position in the other axes."""
    return F["take_along_dim"](x, indices, axis)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """n-th differences along an axis."""
    return F["diff"](x, n, axis, prepend, append)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Choose elementwise."""
    return F["where"](condition, x1, x2)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Limit to an interval; the dtype stays."""
    made = x.clone() if min is None and max is None else x.clamp(min, max)
    return made.to(x.dtype)
