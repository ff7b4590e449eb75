"""Batch and group normalisation of large images by sums for each channel, in memory order from end to end.

Statistics are sums over positions, a number for each channel; those of a group are put together from its channels'. What is left is a
chain over all elements with a few numbers a channel. Owns these numbers, forward and backward; which norms are taken so, and their
shapes, is normalization.py's matter. Channels lie side by side or each in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ...autograd.mode import unrecorded
from ...layouts import is_channels_last
from ...size import Size
from .. import core
from ..composite import placed, present, settled
from ..convert import wide
from ..core import Tensor
from ..replay import Replayed
from ..row import FUNCTIONS
from . import rowwise

LEAST = 8  # channels, of which a vector is worth its while


class Seen(NamedTuple):
    """Elements in the order in which they lie: [samples, positions, channels] if `last`, else [images, channels, positions].

    Of the second there is one sample of all images, or each is one.
    """

    x: Tensor
    samples: int
    last: bool

    @property
    def channels(self) -> int:
        """How many there are."""
        return self.x.shape[2 if self.last else 1]

    @property
    def positions(self) -> int:
        """Elements of a channel of a sample."""
        return self.x.numel() // (self.samples * self.channels)

    @property
    def dims(self) -> tuple[int, ...]:
        """Those that positions lie along."""
        return (1,) if self.last else (0, 2) if self.samples < self.x.shape[0] else (2,)

    @property
    def numbers(self) -> Size:
        """The shape of a number for each channel of each sample."""
        tail = (1, self.channels) if self.last else (self.channels, 1)
        return Size((self.samples, *tail))


def seen(
    x: Tensor,
    grouped: tuple[int, ...],
    dims: tuple[int, ...],
    images: bool,
    most: int = rowwise.COLUMNS,
) -> Seen | None:
    """What is normalised so, by groups of channels or over the batch: large images, if channels lie side by side, or on a GPU few rows.

    Rows are those of x in the shape `grouped` along `dims`.
    """
    over = dims[0] == 0  # the batch, in rows across, which are quick from a cache
    if not images or x.numel() < (rowwise.COLUMNS if over else rowwise.SMALL):
        return None
    samples = 1 if over else x.shape[0]
    found = side_by_side(x, samples)
    if found is not None or not rowwise.by_lanes(x) or not x._contig:
        return found
    plain = core.make(x._storage, Size(grouped), x.dtype, x.device, None, x._offset)
    few = not rowwise.worth(plain, dims, most, norm=True)
    return in_pieces(x, samples) if few else None


def side_by_side(x: Tensor, samples: int) -> Seen | None:
    """What lies as [samples, positions, channels]; None where channels do not lie side by side."""
    last = x._contig if x.ndim == 2 else is_channels_last(tuple(x.shape), x._strides)
    if not last or x.shape[1] < LEAST:
        return None
    shape = Size((samples, x.numel() // (samples * x.shape[1]), x.shape[1]))
    return Seen(core.make(x._storage, shape, x.dtype, x.device, None, x._offset), samples, True)


def in_pieces(x: Tensor, samples: int) -> Seen | None:
    """What lies as [images, channels, positions]; None where it does not."""
    if not x._contig or x.ndim < 3:
        return None
    shape = Size((*x.shape[:2], prod(x.shape[2:])))
    return Seen(core.make(x._storage, shape, x.dtype, x.device, None, x._offset), samples, False)


def like(g: Tensor, x: Seen) -> Tensor:
    """Another tensor's elements, which lie as those of `x` did, in its shape."""
    return core.make(g._storage, x.x.shape, g.dtype, g.device, None, g._offset)


def as_before(found: Tensor, x: Tensor) -> Tensor:
    """A result of a `Seen` one's shape in the shape and order of the tensor itself."""
    return core.make(found._storage, x.shape, found.dtype, x.device, x._strides)


def forward(
    given: Seen, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Normalise: the result, and mean, variance and reciprocal deviation [samples, groups], without history."""
    out, x = given.x.dtype, wide(given.x.detach())
    var, mean = FUNCTIONS["var_mean"](x, given.dims, correction=0, keepdim=True)
    numbers, there = present((var, mean, weight))
    rstd, scale, *grouped = _scales(numbers, there, groups, eps)
    centre = mean
    if grouped:
        mean, var, centre = grouped
    found = (x - centre) * scale
    if bias is not None:
        found = found + (wide(bias.detach()) if given.last else wide(bias.detach()).view(-1, 1))
    shape = (given.samples, groups)
    return found.to(out), mean.view(shape), var.view(shape), rstd


@Replayed.of_memory
def _scales(
    given: Sequence[Tensor], there: tuple[bool, ...], groups: int, eps: float
) -> list[Tensor]:
    """Reciprocal deviations and factors of channels; of groups of several channels also mean, variance, and the mean by channel."""
    var, mean, weight = placed(given, there)
    shape, samples, channels = mean.shape, mean.shape[0], mean.shape[1] * mean.shape[2]
    own = []
    with unrecorded():
        if channels != groups:
            parts = (samples, groups, channels // groups)
            means = mean.view(parts)
            mean = means.mean(-1, True)
            var = var.view(parts).mean(-1, True) + (means - mean).square().mean(-1, True)
            own = [mean, var, mean.expand(parts).reshape(shape)]
        rstd = (var.view(samples, groups, 1) + eps).rsqrt()
        scale = rstd.expand(samples, groups, channels // groups)
        scale = scale.clone() if weight is None else scale * wide(weight).view(groups, -1)
        scale = scale.reshape(shape)
        return settled([rstd.view(samples, groups), scale, *own])


def backward(
    seen: Seen,
    g: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    needs: Sequence[bool],
) -> list[Tensor | None]:
    """Gradients by elements, by weight and by bias, given that by the result and the numbers that `forward` gave."""
    given, there = present((mean, rstd, weight))
    x, shape = seen.x, seen.numbers
    if mean.shape[1] == seen.channels:
        centre, inverse = mean.view(shape), rstd.view(shape)
    else:
        centre, inverse = _by_channel([mean, rstd], tuple(shape))
    by_hat, by_one = rowwise.sums(
        "norm_sums", (x, g, centre, inverse), ("first", "second"), rstd.dtype, seen.dims
    )
    by_x = None
    if needs[0]:
        factor, slope, shift = _slopes([by_hat, by_one, *given], there, seen.positions, tuple(shape))  # fmt: skip
        by_x = (wide(g.detach()) * factor + (wide(x.detach()) - centre) * slope + shift).to(x.dtype)
    if seen.samples > 1 and (needs[1] or needs[2]):
        parts = [v.view(seen.samples, seen.channels) for v in (by_hat, by_one)]
        by_hat, by_one = rowwise.sums("sums", parts, ("first", "second"), rstd.dtype, (0,))
    return [by_x, by_hat if needs[1] else None, by_one if needs[2] else None]


@Replayed.of_memory
def _by_channel(numbers: Sequence[Tensor], shape: tuple[int, ...]) -> list[Tensor]:
    """Numbers of groups [samples, groups], each repeated for the channels of its group, in a shape."""
    samples, groups = numbers[0].shape
    parts = (samples, groups, prod(shape[1:]) // groups)
    with unrecorded():
        return settled([v.view(*parts[:2], 1).expand(parts).clone().view(shape) for v in numbers])


@Replayed.of_memory
def _slopes(
    given: Sequence[Tensor], there: tuple[bool, ...], positions: int, shape: tuple[int, ...]
) -> list[Tensor]:
    """By what the gradient and x less its mean are multiplied, and what is added, to give the gradient by x, in a shape."""
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
            by_hat, by_one = by_hat.sum(-1, True), by_one.sum(-1, True)
        count = positions * parts[2]
        slope, shift = -rstd.square() * (by_hat / count), -rstd * (by_one / count)
        found = [factor, slope.expand(parts), shift.expand(parts)]
        return settled([v.clone().reshape(shape) for v in found])
