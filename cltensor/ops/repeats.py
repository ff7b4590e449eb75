"""Repeating: `repeat` and `tile`, which are lazy expressions, and `repeat_interleave`.

Owns their sizes, gradients and refusals. Must not know how tensors are joined.
"""

from __future__ import annotations

from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.move import join as kernels
from ..codegen.pointwise import IDENTITY
from ..memory_format import contiguous_format
from ..runtime import get_backend
from ..size import Size
from . import core
from .changes import zeros
from .composite import replayable
from .core import Tensor, is_tensor
from .join import stack
from .refusals import no_kernel
from .row import public
from .shape import sizes, variadic


@public(function=False)
@variadic("repeats")
def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """Repeat along each dimension; more counts than dimensions add leading ones. Lazy."""
    if not repeats:
        raise TypeError('repeat() missing 1 required positional arguments: "repeats"')
    counts = sizes("repeat", repeats, "repeats")
    if len(counts) < self.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    whole = (1,) * (len(counts) - self.ndim) + tuple(self.shape)
    target = tuple(n * c for n, c in zip(whole, counts, strict=True))
    layouts.check_shape(target)
    wide = tuple(v for n, c in zip(whole, counts, strict=True) for v in (c, n))
    with unrecorded():
        x = self.detach().reshape(tuple(v for n in whole for v in (1, n))).expand(wide)
        value = core.pending(
            core.expression(IDENTITY, x.dtype, x.dtype, (x,), x.shape), x.device, Size(target)
        )
    if graph.needs_grad(self):
        graph.record(
            "RepeatBackward0", (self,), value, _repeat_back, {"repeats": counts, "wide": wide}
        )
    return value


def _repeat_back(ctx: Any, g: Tensor) -> Tensor:
    if not g.numel():
        return zeros(g, ctx.shapes[0])
    dims = tuple(2 * d for d, c in enumerate(ctx.repeats) if c != 1)
    g = g.reshape(ctx.wide)
    return (g.sum(dims) if dims else g).reshape(tuple(ctx.shapes[0]))


@public()
@variadic("dims")
def tile(input: Tensor, *dims: Any) -> Tensor:
    """Repeat along the last dimensions."""
    counts = sizes("tile", dims, "dims")
    return repeat(input, (1,) * (input.ndim - len(counts)) + counts)


@public()
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each element of a dimension (of the flattened tensor without `dim`), all alike or by a tensor of counts."""
    if repeats is None:
        return _interleave_index(input, output_size)
    x, at = (input.reshape(-1), 0) if dim is None else (input, layouts.wrap_dim(dim, input.ndim))
    if not x.ndim:
        if is_tensor(repeats):
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        layouts.wrap_dim(1, 0)  # raises: torch asks for the dim behind
    if is_tensor(repeats):
        if repeats.ndim > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if not repeats.ndim or repeats.numel() == 1:
            repeats = repeats.reshape(1).expand(x.shape[at])
        elif repeats.numel() != x.shape[at]:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.numel()} and input.size({at}) = {x.shape[at]}"
            )
        return x.index_select(at, _interleave_index(repeats, output_size))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    total = x.shape[at] * int(repeats)
    if output_size is not None and output_size != total:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}"
        )
    before, after = tuple(x.shape[:at]), tuple(x.shape[at + 1 :])
    wide, shape = (*before, x.shape[at], int(repeats), *after), Size((*before, total, *after))
    if graph.needs_grad(x) or not replayable((x,)):
        out = x.unsqueeze(at + 1).expand(wide).clone(memory_format=contiguous_format)
        return out.view(shape)
    steps = (*x._strides[: at + 1], 0, *x._strides[at + 1 :])
    spread = core.make(x._storage, Size(wide), x.dtype, x.device, steps, x._offset)
    expr = core.expression(IDENTITY, x.dtype, x.dtype, (spread,), spread.shape)
    return core.pending(expr, x.device, shape)


def _interleave_index(repeats: Tensor, output_size: int | None) -> Tensor:
    """For counts [1, 0, 2]: the positions [0, 2, 2]."""
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (dtypes.int64, dtypes.int32):
        raise no_kernel("repeat_interleave_cpu", repeats.dtype)
    if not repeats.numel():
        return repeats.new_empty((0,))
    ends = repeats.cumsum(0)
    low, total = stack((repeats.min(), ends[-1])).tolist()
    if low < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != total:
        raise RuntimeError("allocated size does not match required size")
    backend = get_backend(repeats.device)
    places = kernels.spread(backend, core.kernel_operand(ends), total, repeats.dtype)
    return core.result(places, repeats.device)
