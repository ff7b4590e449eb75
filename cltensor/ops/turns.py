"""Turning around: flip, roll, rot90 and the flips by name; each is one copy.

Owns their order of dimensions and gradients. Must not know how tensors are joined or repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.move import join as kernels
from . import core, formats
from .core import Tensor
from .dims import whole
from .replay import Replayed
from .row import public
from .shape import sizes, variadic


@public()
@variadic("dims")
def flip(input: Tensor, *dims: Any) -> Tensor:
    """Reverse the order along dimensions; a copy."""
    given = sizes("flip", dims, "dims")
    order = tuple(layouts.wrap_dim(d, input.ndim) for d in given)
    for d in order:
        if order.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    if input.ndim:
        value = _flipped(input, order)
    else:
        with unrecorded():
            value = core.snapshot(input)
    if graph.needs_grad(input):
        graph.record(
            "FlipBackward0", (input,), value, lambda ctx, g: flip(g, ctx.dims), {"dims": order}
        )
    return value


def _flipped(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return the flipped tensor in the operand's memory order: the kernel works on a view with the dims in that order."""
    if x._contig:
        return _straight_flipped((x,), dims)[0]
    order = formats.order(layouts.preserve_strides(tuple(x.shape), x._strides))
    (found,) = _straight_flipped((formats.turned(x, order),), tuple([order.index(d) for d in dims]))
    return formats.turned_back(found, order)


@Replayed.of_memory
def _straight_flipped(xs: Sequence[Tensor], dims: tuple[int, ...]) -> list[Tensor]:
    (x,) = xs
    found = kernels.flip(x._storage.backend, core.kernel_operand(x), dims)
    return [core.result(found, x.device)]


@Replayed.of_memory
def _rolled(xs: Sequence[Tensor], moves: tuple[int, ...], dims: tuple[int, ...]) -> list[Tensor]:
    (x,) = xs
    found = kernels.roll(x._storage.backend, core.kernel_operand(x), moves, dims)
    return [core.result(found, x.device)]


@public()
def fliplr(input: Tensor) -> Tensor:
    """Reverse the second dimension. RuntimeError where there is none."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@public()
def flipud(input: Tensor) -> Tensor:
    """Reverse the first dimension."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@public()
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turn by k quarters in the plane of two dimensions, from the first towards the second."""
    k = whole("rot90", "k", k, 2)
    if not isinstance(dims, tuple | list):
        raise TypeError(
            f"rot90(): argument 'dims' (position 3) must be tuple of ints, not {type(dims).__name__}"
        )
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    a, b = (layouts.wrap_dim(d, input.ndim) for d in dims)
    if a == b:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    with unrecorded():
        x, turns = input.detach(), k % 4
        if turns == 0:
            value = core.snapshot(x)
        elif turns == 2:
            value = flip(x, a, b)
        else:
            value = flip(x, b if turns == 1 else a).transpose(a, b)
    if graph.needs_grad(input):
        graph.record(
            "Rot90Backward0",
            (input,),
            value,
            lambda ctx, g: rot90(g, -ctx.k, ctx.dims),
            {"k": k, "dims": (a, b)},
        )
    return value


@public()
def roll(input: Tensor, shifts: int | Sequence[int], dims: Any = ()) -> Tensor:
    """Shift along dimensions (of the flattened tensor without `dims`); what leaves at the end comes in at the start."""
    moves = [
        whole("roll", "shifts", s) for s in ([shifts] if hasattr(shifts, "__index__") else shifts)
    ]
    along = (dims,) if hasattr(dims, "__index__") else tuple(dims or ())
    if not moves:
        raise RuntimeError("`shifts` required")
    if not along and len(moves) == 1:
        flat = (
            roll(input.detach().reshape(-1), moves, 0) if input.numel() else input.detach().clone()
        )
        value = flat.reshape(tuple(input.shape))
        value._view = None
    else:
        if len(moves) != len(along):
            raise RuntimeError(
                f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(along)}"
            )
        if not input.ndim:
            raise IndexError(f"Dimension specified as {along[0]} but tensor has no dimensions")
        order = [layouts.wrap_dim(d, input.ndim) for d in along]
        total: dict[int, int] = {}
        for s, d in zip(moves, order, strict=True):
            total[d] = total.get(d, 0) + s
        (found,) = _rolled((input,), tuple(total.values()), tuple(total))
        value = formats.like_images(input, found)
    if graph.needs_grad(input):
        graph.record(
            "RollBackward0",
            (input,),
            value,
            lambda ctx, g: roll(g, tuple(-s for s in ctx.shifts), ctx.dims),
            {"shifts": moves, "dims": along},
        )
    return value
