"""Padding by a constant, by reflection, replication and wrapping, one kernel each.

Gradients are summed at positions computed on the device. Channels-last images stay channels last except, as in torch,
with mode "circular".
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ... import memory_format
from ...autograd import record as graph
from ...codegen.move import pad as family
from ...runtime import get_backend
from .. import core, formats
from ..composite import in_one
from ..core import Tensor
from ..operands import check_tensor
from ..replay import Replayed
from ..row import FUNCTIONS, public
from ..selection import where
from ..shape import sizes
from ..values import check_value

# ------------------------------------------------------------------------------------------- a constant


@public("constant_pad_nd", method=False)
def constant_pad(input: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """Add `value` before and after dimensions, last first; negative amounts cut off."""
    amounts = sizes("constant_pad_nd", (tuple(pad),), "pad")
    if len(amounts) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(amounts)}")
    if len(amounts) > 2 * input.ndim:
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length {len(amounts)} and input of "
            f"dimension {input.ndim}"
        )
    value = 0 if value is None else value
    check_value(value, input.dtype)
    pairs = [(0, 0)] * (input.ndim - len(amounts) // 2) + [
        (amounts[i], amounts[i + 1]) for i in range(len(amounts) - 2, -1, -2)
    ]
    dims = []
    for n, (before, after) in zip(input.shape, pairs, strict=True):
        if n + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        dims.append(n + before + after)

    to = formats.images(input, dims)
    order = range(input.ndim) if to is None else formats.order(to)
    turned = tuple([pairs[d] for d in order])
    (found,) = _padded((formats.turned(input, order),), turned, "constant", value)
    out = formats.turned_back(found, order)
    if graph.needs_grad(input):
        graph.record(
            "ConstantPadNdBackward0",
            (input,),
            out,
            lambda ctx, g: FUNCTIONS["constant_pad_nd"](g, [-a for a in ctx.pad], 0),
            {"pad": amounts},
        )
    return out


@functools.partial(Replayed, memory=True, exact=True)
def _padded(xs: Sequence[Tensor], pairs: family.Pairs, mode: str, value: Any) -> list[Tensor]:
    (x,) = xs
    found = family.pad(get_backend(x.device), core.kernel_operand(x), pairs, mode, value)
    return [core.result(found, x.device)]


# ------------------------------------------------------------------------------------------- what is there

_NODES = {"reflect": "ReflectionPad{}DBackward0", "replicate": "ReplicationPad{}DBackward0"}

_SUPPORTED = """Supported combinations for non-constant padding:
  - 2D or 3D input: padding size = 2 (pads last dimension)
  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)
  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"""


def _positions(n: int, before: int, after: int, mode: str, x: Tensor) -> Tensor:
    """Return, for each position of a padded dim, which position of the original dim of size n it shows."""
    i = FUNCTIONS["arange"](-before, n + after, device=x.device)
    if mode == "replicate":
        return i.clamp(0, n - 1)
    if mode == "circular":
        # Elements cut off at one end (a negative amount) must not reappear at the other.
        low, high = max(-before, 0), n - max(-after, 0)
        return where(i < 0, i + high, where(i >= n, i - n + low, i))
    i = i.abs()
    return where(i >= n, 2 * (n - 1) - i, i)


def _check(input: Tensor, amounts: tuple[int, ...], mode: str) -> int:
    spatial = len(amounts) // 2
    if not 1 <= spatial <= 3 or input.ndim not in (spatial + 1, spatial + 2):
        raise NotImplementedError(
            f"Padding size {len(amounts)} is not supported for {input.ndim}D input tensor.\n{_SUPPORTED}"
        )
    if mode != "circular" and 0 in input.shape[-spatial - 1 :]:
        raise RuntimeError(
            f"Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    for k in range(spatial):
        before, after = amounts[2 * k : 2 * k + 2]
        d = input.ndim - 1 - k
        n = input.shape[d]
        if mode == "reflect" and (before >= n or after >= n):
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({before}, {after}) at dimension {d} of input {list(input.shape)}"
            )
        if mode == "circular" and (before > n or after > n):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if n + before + after < 1:
            raise RuntimeError(
                f"input ({n}) is too small for padding ({before}, {after}) at dimension {d}"
            )
    return spatial


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Add elements before and after dimensions, given last dimension first; negative amounts cut off.

    mode: "constant" (`value`, 0), "reflect" (the edge is not repeated), "replicate" (the edge), "circular".
    """
    check_tensor("pad", "input", 1, input)
    if not isinstance(pad, tuple | list):
        raise TypeError(
            f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}"
        )
    amounts = sizes("pad", (pad,), "pad")
    if len(amounts) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(amounts) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(amounts)} and input of dimension {input.ndim}"
        )
    if mode == "constant":
        return constant_pad(input, amounts, value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    spatial = _check(input, amounts, mode)
    to = None if mode == "circular" else formats.images(input, input.shape)
    order = range(input.ndim) if to is None else formats.order(to)
    pairs = [(0, 0)] * input.ndim
    for k in range(spatial):
        pairs[input.ndim - 1 - k] = amounts[2 * k], amounts[2 * k + 1]
    turned = tuple([pairs[d] for d in order])
    (found,) = _padded((formats.turned(input, order),), turned, mode, 0)
    out = formats.turned_back(found, order)
    if graph.needs_grad(input):
        node = _NODES.get(mode, "CopySlices").format(spatial)
        graph.record(node, (input,), out, _back, {"pairs": turned, "order": order, "mode": mode})
    return out


def _folded(x: Tensor, d: int, before: int, after: int, mode: str) -> Tensor:
    """Return the inside of `x` along dim `d`, with its padding added at the positions that the padding was copied from.

    `before` and `after` must not be negative.
    """
    n = x.shape[d] - before - after
    inside = x.narrow(d, before, n).clone(memory_format=memory_format.contiguous_format)
    for start, count in ((0, before), (before + n, after)):
        if not count:
            continue
        edge, low = x.narrow(d, start, count), start == 0
        if mode == "replicate":
            edge, at, count = edge.sum(d, True), 0 if low else n - 1, 1
        elif mode == "circular":
            at = n - before if low else 0
        else:
            edge, at = edge.flip(d), 1 if low else n - 1 - after
        inside.narrow(d, at, count).add_(edge)
    return inside


def _back(ctx: Any, g: Tensor) -> Tensor:
    order = tuple(ctx.order)
    (total,) = _summed((g,), ctx.pairs, order, ctx.mode)
    total = total.permute(*sorted(range(len(order)), key=lambda d: order[d]))
    return graph.tie(ctx, total)


@in_one
def _summed(
    gs: Sequence[Tensor], pairs: family.Pairs, order: tuple[int, ...], mode: str
) -> list[Tensor]:
    """Sum the gradient dim by dim, in the memory order of the dims, which is `order`; the result is permuted so."""
    (g,) = gs
    total, plain = g.permute(*order), not graph.needs_grad(g)
    for d, (before, after) in enumerate(pairs):
        if plain and min(before, after) >= 0 < max(before, after):
            total = _folded(total, d, before, after, mode)
        elif before or after:
            n = total.shape[d] - before - after
            at = _positions(n, before, after, mode, g)
            total = total.new_zeros([*total.shape[:d], n, *total.shape[d + 1 :]]).index_add(
                d, at, total
            )
    return [total]
