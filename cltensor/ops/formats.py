"""Memory formats: the strides that a `memory_format=` argument asks for, and a lazy copy laid out that way.

Only the order in memory changes; which op keeps an order is the op's own matter.
"""

from __future__ import annotations

from typing import Any

from .. import layouts
from ..codegen.pointwise import IDENTITY
from ..memory_format import channels_last, channels_last_3d, contiguous_format, preserve_format
from ..memory_format import memory_format as MemoryFormat
from ..size import Size
from . import core
from .core import Tensor

_RANK = {channels_last: 4, channels_last_3d: 5}


def strides(function: str, wanted: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the dense strides a format asks for; None where that is row-major or the op's own choice.

    TypeError for what is no format, RuntimeError for images of another rank.
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
    """Return the strides of a new tensor after `x`: in its order of dims unless a format is asked for; None is row-major."""
    if wanted is None or wanted is preserve_format:
        if x.is_contiguous():
            return None
        return layouts.preserve_strides(tuple(x.shape), x._strides)
    return strides(function, wanted, x.shape)


def suggested(x: Tensor) -> MemoryFormat:
    """Return the format whose order a tensor's strides have, gaps allowed; row-major where they leave it open."""
    if x.ndim in _RANK.values() and layouts.like_channels_last(tuple(x.shape), x._strides):
        return channels_last if x.ndim == 4 else channels_last_3d
    return contiguous_format


def is_in(x: Tensor, wanted: MemoryFormat) -> bool:
    """Tell whether a tensor is dense in the order of the format."""
    if wanted not in _RANK:
        return x.is_contiguous()
    return x.ndim == _RANK[wanted] and layouts.is_channels_last(tuple(x.shape), x._strides)


def arranged(x: Tensor, to: tuple[int, ...]) -> Tensor:
    """Copy lazily into dense strides, without history."""
    order = sorted(range(x.ndim), key=lambda d: -to[d])
    inner = Size([x.shape[d] for d in order])
    walk = tuple([x._strides[d] for d in order])
    straight = core.make(x._storage, inner, x.dtype, x.device, walk, x._offset)
    t = core.pending(core.expression(IDENTITY, x.dtype, x.dtype, (straight,), inner), x.device)
    return core.make(t._storage, x.shape, x.dtype, x.device, to)
