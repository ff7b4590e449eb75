"""Dropout in its forms: masks from the counter-based generator, applied by a multiplication that fuses."""

from __future__ import annotations

from typing import Any

from ..autograd.mode import no_grad
from .core import Tensor
from .random import keep_mask
from .row import public

# Of SELU's fixed point (Klambauer et al., arXiv 1706.02515): where its negative side saturates.
_SATURATION = -1.7580993408473766


def check_probability(p: float) -> None:
    """Raise torch's ValueError for what is no probability."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def noise(input: Tensor, p: float, features: bool) -> Tensor:
    """What an input is multiplied by: 0 with probability p, else 1 / (1 - p); one number per channel for `features`."""
    shape = tuple(input.shape)
    if features:
        shape = (*shape[:2], *[1] * (len(shape) - 2))
    with no_grad():
        if p == 1:
            return input.new_zeros(shape)
        return keep_mask(shape, 1 - p, input.device).to(input.dtype) / (1 - p)


def apply(input: Tensor, p: float, training: bool, inplace: bool, features: bool = False) -> Tensor:
    """Drop elements (or whole channels) and scale the rest, in training only."""
    check_probability(p)
    if not training or p == 0 or not input.numel():
        return input
    by = noise(input, p, features)
    return input.mul_(by) if inplace else input * by


def alpha(input: Tensor, p: float, training: bool, inplace: bool, features: bool = False) -> Tensor:
    """Set elements to SELU's saturation value, then restore mean and variance by an affine map."""
    check_probability(p)
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        by = input.new_zeros(())
        return input.mul_(by) if inplace else input * by
    shape = (*input.shape[:2], *[1] * (input.ndim - 2)) if features else tuple(input.shape)
    scale = ((_SATURATION**2 * p + 1) * (1 - p)) ** -0.5
    with no_grad():
        keep = keep_mask(shape, 1 - p, input.device).to(input.dtype)
        shift = (1 - keep) * (_SATURATION * scale) - _SATURATION * scale * p
        by = keep * scale
    return input.mul_(by).add_(shift) if inplace else input * by + shift


@public(method=False)
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero elements with probability p and scale the rest by 1 / (1 - p), if `train`."""
    return apply(input, p, train, False)


@public("dropout_", method=False)
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of `dropout`."""
    return apply(input, p, train, True)


@public(method=False)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels with probability p."""
    return apply(input, p, train, False, True)


@public(method=False)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout that keeps the statistics SELU needs."""
    return alpha(input, p, train, False)


@public(method=False)
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` of whole channels."""
    return alpha(input, p, train, False, True)


def by_channel(input: Tensor, p: float, training: bool, inplace: bool, spatial: int) -> Any:
    """Drop channels of inputs (C, …) or (N, C, …) with `spatial` trailing dimensions."""
    check_probability(p)
    if input.ndim == spatial + 1:
        out = apply(input.unsqueeze(0), p, training, inplace, True)
        return out.squeeze(0)
    return apply(input, p, training, inplace, True)
