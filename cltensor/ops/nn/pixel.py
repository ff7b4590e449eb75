"""Pixels and channels rearranged: by a reshape, a permutation and a reshape; each gradient is the inverse."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ...autograd import record as graph
from ...size import Size
from .. import core, formats
from ..composite import in_one
from ..core import Tensor
from ..kinds import Sizes
from ..operands import check_tensor
from ..row import public


def _rearranged(
    node: str,
    input: Tensor,
    split: Sequence[int],
    order: Sequence[int],
    shape: Sequence[int],
    inverse: Callable[[Tensor], Tensor],
) -> Tensor:
    """Return a copy of `input` reshaped to `split`, permuted by `order` and reshaped to `shape`; record it as one node.

    inverse: the function that undoes this, which the gradient uses. The result is channels last if the input is; in
    either memory format there is a single copy.
    """
    (out,) = _moved((input.detach(),), Sizes(split), tuple(order), Sizes(shape))

    def backward(ctx: Any, g: Tensor) -> Tensor:
        return inverse(g)

    if graph.needs_grad(input):
        graph.record(node, (input,), out, backward)
    return out


@in_one
def _moved(
    given: Sequence[Tensor], split: Sequence[int], order: Sequence[int], shape: Sequence[int]
) -> list[Tensor]:
    (x,) = given
    parts = x.reshape(*split).permute(*order)
    strides = formats.images(x, shape)
    dims = formats.order(strides) if strides else range(len(shape))
    runs = _runs(parts.shape, shape)
    out = parts.permute([k for d in dims for k in runs[d]]).reshape([shape[d] for d in dims])
    if out._storage is x._storage:
        out = out.clone()
    out = formats.settled(out, None)
    if strides:
        out = core.make(out._storage, Size(shape), out.dtype, out.device, strides, out._offset)
    return [out]


def _runs(parts: Sequence[int], shape: Sequence[int]) -> list[list[int]]:
    """Return, for each size in `shape`, the indices of the adjacent `parts` whose product is that size."""
    runs: list[list[int]] = [[] for _ in shape]
    d, size = 0, 1
    for k, n in enumerate(parts):
        while d < len(shape) - 1 and size == shape[d] and n != 1:
            d, size = d + 1, 1
        runs[d].append(k)
        size *= n
    return runs


def _factor(name: str, argument: str, value: Any) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError(
            f"{name}(): argument '{argument}' (position 2) must be int, not {type(value).__name__}"
        )
    return operator.index(value)


def _check_pixels(name: str, input: Tensor, factor: int, what: str) -> None:
    check_tensor(name, "input", 1, input)
    if input.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {what}, but got {factor}")


@public(method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Turn channels into pixels: (…, C r², H, W) becomes (…, C, H r, W r) (Shi et al., arXiv 1609.05158)."""
    r = _factor("pixel_shuffle", "upscale_factor", upscale_factor)
    _check_pixels("pixel_shuffle", input, r, "upscale_factor")
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    return _rearranged(
        "PixelShuffleBackward0",
        input,
        (*lead, c // (r * r), r, r, h, w),
        (*range(n), n, n + 3, n + 1, n + 4, n + 2),
        (*lead, c // (r * r), h * r, w * r),
        lambda g: pixel_unshuffle(g, r),
    )


@public(method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Turn pixels into channels, the inverse of `pixel_shuffle`: (…, C, H r, W r) becomes (…, C r², H, W)."""
    r = _factor("pixel_unshuffle", "downscale_factor", downscale_factor)
    _check_pixels("pixel_unshuffle", input, r, "downscale_factor")
    *lead, c, h, w = input.shape
    for axis, size, at in (("height", h, -2), ("width", w, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {axis} to be divisible by downscale_factor, but input.size({at})={size} is not divisible by {r}"
            )
    n = len(lead)
    return _rearranged(
        "PixelUnshuffleBackward0",
        input,
        (*lead, c, h // r, r, w // r, r),
        (*range(n), n, n + 2, n + 4, n + 1, n + 3),
        (*lead, c * r * r, h // r, w // r),
        lambda g: pixel_shuffle(g, r),
    )


@public(aliases=("native_channel_shuffle",), method=False)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave `groups` groups of channels of (N, C, …) (Zhang et al., arXiv 1707.01083)."""
    groups = _factor("channel_shuffle", "groups", groups)
    check_tensor("channel_shuffle", "input", 1, input)
    if input.ndim < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    n, c, *rest = input.shape
    if c % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    return _rearranged(
        "ChannelShuffleBackward0",
        input,
        (n, groups, c // groups, *rest),
        (0, 2, 1, *range(3, 3 + len(rest))),
        input.shape,
        lambda g: channel_shuffle(g, c // groups),
    )
