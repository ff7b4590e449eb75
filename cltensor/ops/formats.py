"""Memory formats: the strides that a `memory_format=` argument asks for, and results laid out that way.

A format only changes the order in memory; each op decides whether its result keeps the operand's order. Ops that treat
all dims alike view the operand with its dims in memory order and compute on that (`order`, `turned`, `turned_back`);
other results are copied into the wanted order, lazily (`settled`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .. import layouts
from ..codegen.pointwise import IDENTITY
from ..memory_format import channels_last, channels_last_3d, contiguous_format, preserve_format
from ..memory_format import memory_format as MemoryFormat
from ..size import Size
from . import core
from .core import Tensor
from .row import Row, public

_RANK = {channels_last: 4, channels_last_3d: 5}


def strides(function: str, wanted: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the dense strides that the format `wanted` asks for; None for row-major, and where the op may choose.

    TypeError for anything but a format, RuntimeError for a shape of another rank than the format's.
    """
    if wanted is None or wanted is contiguous_format or wanted is preserve_format:
        return None
    if not isinstance(wanted, MemoryFormat):
        raise TypeError(
            f"{function}(): argument 'memory_format' must be torch.memory_format, not {type(wanted).__name__}"
        )
    if len(shape) != _RANK[wanted]:
        raise RuntimeError(f"required rank {_RANK[wanted]} tensor to use {wanted._name} format")
    return layouts.channels_last_strides(tuple(shape))


def strides_like(function: str, x: Tensor, wanted: Any) -> tuple[int, ...] | None:
    """Return the strides of a new tensor like `x`, in a format or else in the order of `x`; None is row-major."""
    if wanted is None or wanted is preserve_format:
        shape = tuple(x.shape)
        plain = layouts.contiguous_strides(shape)
        if x._strides == plain:
            return None
        kept = layouts.preserve_strides(shape, x._strides)
        return None if kept == plain else kept
    return strides(function, wanted, x.shape)


def suggested(x: Tensor) -> MemoryFormat:
    """Return the memory format that strides suggest, as in torch; row-major where several formats fit."""
    if x.ndim in _RANK.values() and layouts.like_channels_last(tuple(x.shape), x._strides):
        return channels_last if x.ndim == 4 else channels_last_3d
    return contiguous_format


def images(x: Tensor, shape: Sequence[int]) -> tuple[int, ...] | None:
    """Return the strides of a result: channels last if the layout of `x` suggests that, else None (row-major)."""
    if suggested(x) is contiguous_format:
        return None
    return layouts.channels_last_strides(tuple(shape))


def batch_strides(x: Tensor) -> tuple[int, ...] | None:
    """Return the strides of a batch norm's result: None (row-major) if `x` is contiguous, else channels last if `x` is
    dense in that order or its layout suggests it.
    """
    if x.is_contiguous():
        return None
    if any(is_in(x, wanted) for wanted in _RANK):
        return layouts.channels_last_strides(tuple(x.shape))
    return images(x, x.shape)


def is_in(x: Tensor, wanted: MemoryFormat) -> bool:
    """Return whether a tensor is dense in the format's order."""
    if wanted not in _RANK:
        return x.is_contiguous()
    return x.ndim == _RANK[wanted] and layouts.is_channels_last(tuple(x.shape), x._strides)


def settled(x: Tensor, to: tuple[int, ...] | None) -> Tensor:
    """Return a tensor without history in the dense strides `to` (None: row-major): itself, or a lazy copy."""
    if to is None:
        if x._contig:
            return x
        to = layouts.contiguous_strides(tuple(x.shape))
    if x._strides == to:
        return x
    if all(n == 1 or s == t for n, s, t in zip(x.shape, x._strides, to, strict=True)):
        return core.make(x._storage, x.shape, x.dtype, x.device, to, x._offset)
    return core.laid_out(IDENTITY, x.dtype, x.dtype, (x,), x.shape, x.device, to)


def like_images(x: Tensor, found: Tensor) -> Tensor:
    """Return the result `found`, without history, in channels last if the layout of `x` suggests that, else row-major."""
    return settled(found, images(x, found.shape))


def order(to: tuple[int, ...]) -> list[int]:
    """List dims from the one with the largest stride to that with the smallest."""
    return sorted(range(len(to)), key=lambda d: -to[d])


def turned(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Return a view of a tensor with its dims in the given order, without history; the tensor if that is its order."""
    if [*dims] == [*range(len(dims))]:
        return x
    shape, strides, offset = layouts.permute(tuple(x.shape), x._strides, x._offset, dims)
    return core.make(x._storage, Size(shape), x.dtype, x.device, strides, offset)


def turned_back(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Undo `turned`."""
    return turned(x, sorted(range(len(dims)), key=lambda d: dims[d]))


class RowMajor(Row):
    """A row whose results are row-major, whatever the operands are."""

    def general(self, xs: Sequence[Any]) -> Tensor:
        """Return the result, contiguous, without recording a gradient."""
        return settled(super().general(xs), None)


@public(function=False)
def dim_order(
    self: Tensor, *, ambiguity_check: bool | list[MemoryFormat] = False
) -> tuple[int, ...]:
    """Return the dimensions from the outermost to the innermost in memory.

    ambiguity_check: RuntimeError where several orders fit, or several of the memory formats listed.
    """
    asked = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    if not isinstance(asked, list) or not all(isinstance(f, MemoryFormat) for f in asked):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    unclear = 1 in self.shape or any(a == b for a, b in pairwise(self._strides))
    if ambiguity_check and unclear and sum(self.is_contiguous(memory_format=f) for f in asked) != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    return tuple(sorted(range(self.ndim), key=lambda d: -self._strides[d]))
