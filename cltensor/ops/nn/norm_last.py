"""Batch and group normalisation of large images whose channels lie side by side, in memory order from end to end.

Statistics are sums over positions, a number for each channel; those of a group are put together from its channels'. What is left is a
chain over all elements with a few numbers a channel. Owns these numbers, forward and backward; which norms are taken so, and their
shapes, is normalization.py's matter.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def seen(x: Tensor, samples: int) -> Tensor | None:
    """The elements as [samples, positions, channels], row by row as they lie; None where channels do not lie side by side."""
    last = x._contig if x.ndim == 2 else is_channels_last(tuple(x.shape), x._strides)
    if not last or x.shape[1] < LEAST:
        return None
    shape = Size((samples, x.numel() // (samples * x.shape[1]), x.shape[1]))
    return core.make(x._storage, shape, x.dtype, x.device, None, x._offset)


def as_before(found: Tensor, x: Tensor) -> Tensor:
    """A result of `seen`'s shape in the shape and order of the tensor itself."""
    return core.make(found._storage, x.shape, found.dtype, x.device, x._strides)


def forward(
    x: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Normalise what `seen` gave: the result, and mean, variance and reciprocal deviation [samples, groups], without history."""
    out, x = x.dtype, wide(x.detach())
    var, mean = FUNCTIONS["var_mean"](x, 1, correction=0, keepdim=True)
    given, there = present((var, mean, weight))
    rstd, scale, *grouped = _scales(given, there, groups, eps)
    centre = mean
    if grouped:
        mean, var, centre = grouped
    found = (x - centre) * scale
    if bias is not None:
        found = found + wide(bias.detach())
    shape = (x.shape[0], groups)
    return found.to(out), mean.view(shape), var.view(shape), rstd


@Replayed.of_memory
def _scales(
    given: Sequence[Tensor], there: tuple[bool, ...], groups: int, eps: float
) -> list[Tensor]:
    """Reciprocal deviations and factors of channels; of groups of several channels also mean, variance, and the mean by channel."""
    var, mean, weight = placed(given, there)
    samples, _, channels = mean.shape
    own = []
    with unrecorded():
        if channels != groups:
            parts = (samples, groups, channels // groups)
            means = mean.view(parts)
            mean = means.mean(-1, True)
            var = var.view(parts).mean(-1, True) + (means - mean).square().mean(-1, True)
            own = [mean, var, mean.expand(parts).reshape(samples, 1, channels)]
        rstd = (var.view(samples, groups, 1) + eps).rsqrt()
        scale = rstd.expand(samples, groups, channels // groups)
        scale = scale.clone() if weight is None else scale * wide(weight).view(groups, -1)
        scale = scale.reshape(samples, 1, channels)
        return settled([rstd.view(samples, groups), scale, *own])


def backward(
    x: Tensor,
    g: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    needs: Sequence[bool],
) -> list[Tensor | None]:
    """Gradients by what `seen` gave, by weight and by bias, given that by the result and the numbers that `forward` gave."""
    given, there = present((mean, rstd, weight))
    samples, positions, channels = x.shape
    if mean.shape[1] == channels:
        centre, inverse = mean.view(samples, 1, channels), rstd.view(samples, 1, channels)
    else:
        centre, inverse = _by_channel([mean, rstd], channels)
    by_hat, by_one = rowwise.sums(
        "norm_sums", (x, g, centre, inverse), ("first", "second"), rstd.dtype, (1,)
    )
    by_x = None
    if needs[0]:
        factor, slope, shift = _slopes([by_hat, by_one, *given], there, positions)
        by_x = (wide(g.detach()) * factor + (wide(x.detach()) - centre) * slope + shift).to(x.dtype)
    if samples > 1 and (needs[1] or needs[2]):
        parts = [v.view(samples, channels) for v in (by_hat, by_one)]
        by_hat, by_one = rowwise.sums("sums", parts, ("first", "second"), rstd.dtype, (0,))
    return [by_x, by_hat if needs[1] else None, by_one if needs[2] else None]


@Replayed.of_memory
def _by_channel(numbers: Sequence[Tensor], channels: int) -> list[Tensor]:
    """Numbers of groups [samples, groups], each repeated for the channels of its group: [samples, 1, channels]."""
    samples, groups = numbers[0].shape
    parts = (samples, groups, channels // groups)
    with unrecorded():
        return settled(
            [v.view(*parts[:2], 1).expand(parts).clone().view(samples, 1, -1) for v in numbers]
        )


@Replayed.of_memory
def _slopes(given: Sequence[Tensor], there: tuple[bool, ...], positions: int) -> list[Tensor]:
    """By what the gradient and x less its mean are multiplied, and what is added, to give the gradient by x: [samples, 1, channels]."""
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
        return settled([v.clone().reshape(samples, 1, -1) for v in found])
