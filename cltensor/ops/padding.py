"""Padding by reflection, repetition and wrapping: each padded dimension reads positions computed on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd import record as graph
from ..autograd.mode import no_grad
from .core import Tensor
from .join import pad as constant_pad
from .row import FUNCTIONS
from .selection import where
from .shape import sizes

_NODES = {"reflect": "ReflectionPad{}DBackward0", "replicate": "ReplicationPad{}DBackward0"}

_SUPPORTED = """Supported combinations for non-constant padding:
  - 2D or 3D input: padding size = 2 (pads last dimension)
  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)
  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"""


def _positions(n: int, before: int, after: int, mode: str, x: Tensor) -> Tensor:
    """Which position of a dimension of size n each position of the padded one shows."""
    i = FUNCTIONS["arange"](-before, n + after, device=x.device)
    if mode == "replicate":
        return i.clamp(0, n - 1)
    if mode == "circular":
        # What is cut off at one end does not come back at the other.
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
    amounts = sizes("pad", (tuple(pad),), "pad")
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
    with no_grad():
        out, reads = input.detach(), []
        for k in range(spatial):
            before, after = amounts[2 * k : 2 * k + 2]
            if before or after:
                d = input.ndim - 1 - k
                at = _positions(input.shape[d], before, after, mode, input)
                out = out.index_select(d, at)
                reads.append((d, at))
    if graph.needs_grad(input):
        node = _NODES.get(mode, "CopySlices").format(spatial)
        graph.record(
            node,
            (input,),
            out,
            _back,
            {"dims": [d for d, _ in reads], "places": [at for _, at in reads]},
        )
    return out if reads else out.clone()


def _back(ctx: Any, g: Tensor) -> Tensor:
    shape = list(g.shape)
    for d, at in zip(reversed(ctx.dims), reversed(ctx.places), strict=True):
        shape[d] = ctx.shapes[0][d]
        g = g.new_zeros(shape).index_add(d, at, g)
    return graph.tie(ctx, g) if ctx.dims else g
