"""Batch and group normalisation of large images by sums per channel, reading and writing in memory order throughout.

The statistics are sums over positions, one number per channel; those of a group are combined from its channels'. The
rest is a pointwise chain over all elements that reads a few numbers per channel. This module computes these numbers,
forward and backward; which norms are computed like this, and in which shapes, is decided by normalized.py. Channels
lie side by side, or each channel in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ...autograd.mode import unrecorded
from ...codegen.reduce import row_kinds
from ...layouts import is_channels_last
from ...size import Size
from .. import core, formats
from ..composite import placed, present, settled
from ..convert import wide
from ..core import Tensor
from ..replay import Replayed
from ..row import FUNCTIONS
from . import rowwise

LEAST = 8  # fewest adjacent channels for which vectors along them pay


class Seen(NamedTuple):
    """Images whose channels lie side by side, or each in one piece.

    `samples` is the batch size if each image has statistics of its own, 1 if all images share them.
    """

    x: Tensor
    samples: int

    @property
    def order(self) -> tuple[int, ...]:
        """The dims in memory order: permuted like this, a pending tensor has the shape its expression was computed in."""
        x = self.x
        return tuple(range(x.ndim)) if x._contig else (0, *range(2, x.ndim), 1)

    @property
    def dims(self) -> tuple[int, ...]:
        """The positions in `order` of the dims over which a channel's statistics are taken."""
        along = [k for k, d in enumerate(self.order) if d > 1 or (d == 0 and self.samples == 1)]
        return tuple(along)

    @property
    def positions(self) -> int:
        """The number of elements of one channel of one sample."""
        return self.x.numel() // (self.samples * self.x.shape[1])

    @property
    def numbers(self) -> tuple[int, ...]:
        """The shape of one number per channel of each sample, broadcasting to `x`."""
        return (self.samples, self.x.shape[1], *(1,) * (self.x.ndim - 2))


def seen(
    x: Tensor,
    grouped: tuple[int, ...],
    dims: tuple[int, ...],
    images: bool,
    most: int = rowwise.COLUMNS,
) -> Seen | None:
    """Return `x` as `Seen` where this module should normalise it, by groups of channels or over the batch; else None.

    That is so for large images whose channels lie side by side, and on a GPU also for contiguous ones with few rows.
    Rows are those of x in the shape `grouped` along `dims`.
    """
    # Statistics over the batch: rows lie across memory, which is fast from a cache.
    over = dims[0] == 0
    if not images or x.numel() < (rowwise.COLUMNS if over else rowwise.SMALL):
        return None
    if x.ndim == 2 and not over:  # a group is a row of adjacent elements
        return None
    found = Seen(x, 1 if over else x.shape[0])
    if _side_by_side(x):
        return found
    if not rowwise.by_lanes(x) or not x._contig or x.ndim < 3:
        return None
    plain = core.make(x._storage, Size(grouped), x.dtype, x.device, None, x._offset)
    return None if rowwise.worth(plain, dims, most, norm=True) else found


def _side_by_side(x: Tensor) -> bool:
    """Return whether channels lie side by side, and are enough for a vector."""
    last = x._contig if x.ndim == 2 else is_channels_last(tuple(x.shape), x._strides)
    return last and x.shape[1] >= LEAST


def forward(
    given: Seen, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the normalised tensor, and mean, variance and reciprocal deviation [samples, groups]; no grad nodes.

    The result is a pending chain in the tensor's own shape, so that pointwise ops that follow fuse with it.
    """
    x, shape = given.x.detach(), given.numbers
    turned = formats.turned(wide(x), given.order)
    found = FUNCTIONS["var_mean"](turned, given.dims, correction=0)
    var, mean = [v.view(shape) for v in found]
    numbers, there = present((var, mean, weight))
    rstd, scale, *grouped = _scales(numbers, there, groups, eps)
    centre = mean
    if grouped:
        mean, var, centre = grouped
    out = (wide(x) - centre) * scale
    if bias is not None:
        out = out + wide(bias.detach()).view(shape[1:])
    out = formats.settled(out.to(x.dtype), x._strides)
    shape = (given.samples, groups)
    return out, mean.view(shape), var.view(shape), rstd


@Replayed.of_memory
def _scales(
    given: Sequence[Tensor], there: tuple[bool, ...], groups: int, eps: float
) -> list[Tensor]:
    """Return reciprocal deviations and the scale of each channel.

    For groups of several channels also mean, variance, and the mean repeated for each channel.
    """
    var, mean, weight = placed(given, there)
    shape, (samples, channels) = mean.shape, mean.shape[:2]
    with unrecorded():
        if channels != groups:
            parts = (samples, groups, channels // groups)
            given = [mean.view(parts), var.view(parts)]
            if weight is not None:
                given.append(weight.view(parts[1:]))
            kind = row_kinds.group_moments(weight is not None)
            scale, (mean, var, rstd) = rowwise.run(kind, given, (2,), mean.dtype, eps=eps)
            centre = mean.view(samples, groups, 1).expand(parts).reshape(shape)
            return settled([rstd, scale.view(shape), mean, var, centre])
        rstd = (var.view(samples, groups) + eps).rsqrt()
        scale = rstd.clone() if weight is None else rstd * wide(weight)
        return settled([rstd, scale.view(shape)])


def backward(
    seen: Seen,
    g: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    needs: Sequence[bool],
) -> list[Tensor | None]:
    """Return the gradients for input, weight and bias, None where not needed.

    `g` is the result's gradient; `mean` and `rstd` are what `forward` returned.
    """
    given, there = present((mean, rstd, weight))
    x, shape = seen.x.detach(), seen.numbers
    if mean.shape[1] == shape[1]:
        centre, inverse = mean.view(shape), rstd.view(shape)
    else:
        centre, inverse = _by_channel([mean, rstd], shape)
    turned = [formats.turned(v, seen.order) for v in (x, g, centre, inverse)]
    by_hat, by_one = rowwise.sums("norm_sums", turned, ("first", "second"), rstd.dtype, seen.dims)
    by_x = None
    if needs[0]:
        factor, slope, shift = _slopes([by_hat, by_one, *given], there, seen.positions, shape)  # fmt: skip
        by_x = (wide(g) * factor + (wide(x) - centre) * slope + shift).to(x.dtype)
        by_x = formats.settled(by_x, x._strides)
    if seen.samples > 1 and (needs[1] or needs[2]):
        parts = [v.view(shape[:2]) for v in (by_hat, by_one)]
        by_hat, by_one = rowwise.sums("sums", parts, ("first", "second"), rstd.dtype, (0,))
    return [by_x, by_hat if needs[1] else None, by_one if needs[2] else None]


@Replayed.of_memory
def _by_channel(numbers: Sequence[Tensor], shape: tuple[int, ...]) -> list[Tensor]:
    """Repeat numbers of groups [samples, groups] for the channels of each group, and return them in `shape`."""
    samples, groups = numbers[0].shape
    parts = (samples, groups, prod(shape[1:]) // groups)
    with unrecorded():
        return settled([v.view(*parts[:2], 1).expand(parts).clone().view(shape) for v in numbers])


@Replayed.of_memory
def _slopes(
    given: Sequence[Tensor], there: tuple[bool, ...], positions: int, shape: tuple[int, ...]
) -> list[Tensor]:
    """Return factor, slope and shift in `shape`: the gradient for x is g * factor + (x - mean) * slope + shift."""
    by_hat, by_one, *rest = given
    _, rstd, weight = placed(rest, there)
    samples, groups = rstd.shape
    parts = (samples, groups, by_hat.numel() // (samples * groups))
    with unrecorded():
        by_hat, by_one, rstd = by_hat.view(parts), by_one.view(parts), rstd.view(*parts[:2], 1)
        factor = rstd.expand(parts)
        if weight is not None:
            weight = wide(weight).view(parts[1:])
            by_hat, by_one, factor = by_hat * weight, by_one * weight, factor * weight
        if parts[2] > 1:
            two = rowwise.sums("sums", (by_hat, by_one), ("first", "second"), rstd.dtype, (2,))
            by_hat, by_one = [v.view(rstd.shape) for v in two]
        count = positions * parts[2]
        slope, shift = -rstd.square() * (by_hat / count), -rstd * (by_one / count)
        found = [factor, slope.expand(parts), shift.expand(parts)]
        return settled([v.clone().reshape(shape) for v in found])
