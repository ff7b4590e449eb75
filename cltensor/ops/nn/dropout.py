"""Dropout in its forms: masks from the counter-based generator, applied by a multiplication that fuses."""

from __future__ import annotations

import functools
import warnings

import numpy as np

from ... import dtypes
from ...autograd.mode import unrecorded
from ...errors import caller_level
from ...layouts import preserve_strides
from ..core import Tensor, make
from ..operands import check_tensor
from ..random.draws import keep_mask
from ..row import Row, public

# The value at which SELU's negative side saturates (Klambauer et al., arXiv 1706.02515).
_SATURATION = -1.7580993408473766


def check_probability(p: float) -> None:
    """Raise torch's ValueError for what is no probability."""
    if p < 0.0 or not p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


# The product with a scale that is rounded to the dtype first, or 0 where the mask is false. The graph saves only the
# mask.
_masked = Row(
    "scale_kept",
    {"f": "x * where(y, rounded(z), 0)"},
    masks="y",
    weak="z",
    exact=True,
    args=("input", "mask", "scale"),
    public=False,
    node="MulBackward0",
    graph_inputs=2,
    grad={"x": lambda g, y, z: _masked(g, y, z)},
)


def _noise(input: Tensor, p: float, features: bool) -> Tensor:
    """Return the factors of the input: 0 with probability p, else 1 / (1 - p); one per channel with `features`."""
    shape = _channels(input) if features else tuple(input.shape)
    with unrecorded():
        if p == 1:
            return input.new_zeros(shape)
        return _kept(input, shape, p).to(input.dtype) / (1 - p)


def _kept(input: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """Return the mask of elements to keep, in the input's memory order, so that the product has that order, too."""
    keep = keep_mask(shape, 1 - p, input.device)
    if not input._contig and shape == input.shape:
        strides = preserve_strides(shape, input._strides)
        keep = make(keep._storage, input.shape, keep.dtype, keep.device, strides)
    return keep


@functools.lru_cache(256)
def _scale(dt: dtypes.dtype, p: float) -> float:
    """Return the factor 1 / (1 - p) of kept elements, rounded as a kernel would compute it."""
    if dt is dtypes.float64:
        return 1 / (1 - p)
    return float(np.float32(1) / np.float32(1 - p))


def _channels(input: Tensor) -> tuple[int, ...]:
    """Shape of one number per channel of (N, C, …)."""
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*input.shape[:2], *[1] * (input.ndim - 2))


def _check_dtype(input: Tensor) -> None:
    if input.dtype.category < 2:
        name = input.dtype.scalar_name
        raise RuntimeError(f"result type Float can't be cast to the desired output type {name}")


def _chance(p: float) -> float:
    """Return a probability, as torch's compiled functions check it: RuntimeError for what is none."""
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    return p


def apply(input: Tensor, p: float, training: bool, inplace: bool, features: bool = False) -> Tensor:
    """Drop elements (or whole channels) and scale the rest, in training only."""
    check_tensor("feature_dropout" if features else "dropout", "input", 1, input)
    check_probability(p)
    if not training or p == 0 or not input.numel():
        return input
    if p != 1:
        _check_dtype(input)
    if features or p == 1 or input.dtype.category != 2:
        by = _noise(input, p, features)
        return input.mul_(by) if inplace else input * by
    keep = _kept(input, input.shape, p)
    call = _masked.inplace if inplace else _masked.__call__
    return call(input, keep, _scale(input.dtype, p))


def alpha(input: Tensor, p: float, training: bool, inplace: bool, features: bool = False) -> Tensor:
    """Set elements to SELU's saturation value, then restore mean and variance by an affine map."""
    check_tensor("feature_alpha_dropout" if features else "alpha_dropout", "input", 1, input)
    check_probability(p)
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        by = input.new_zeros(())
        return input.mul_(by) if inplace else input * by
    _check_dtype(input)
    shape = _channels(input) if features else tuple(input.shape)
    scale = ((_SATURATION**2 * p + 1) * (1 - p)) ** -0.5
    with unrecorded():
        keep = keep_mask(shape, 1 - p, input.device).to(input.dtype)
        shift = (1 - keep) * (_SATURATION * scale) - _SATURATION * scale * p
        by = keep * scale
    return input.mul_(by).add_(shift) if inplace else input * by + shift


@public(method=False)
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero elements with probability p and scale the rest by 1 / (1 - p), if `train`."""
    return apply(input, _chance(p), train, False)


@public("dropout_", method=False)
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of `dropout`."""
    return apply(input, _chance(p), train, True)


@public(method=False)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels with probability p."""
    return apply(input, _chance(p), train, False, True)


@public(method=False)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout that keeps the statistics SELU needs."""
    return alpha(input, _chance(p), train, False)


@public(method=False)
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` of whole channels."""
    return alpha(input, _chance(p), train, False, True)


def by_channel(input: Tensor, p: float, training: bool, inplace: bool, spatial: int) -> Tensor:
    """Drop channels of inputs (N, C, …) or (C, …) with `spatial` trailing dimensions.

    As in torch, `dropout2d` takes a 3-D input as (N, C, L), with a warning. Any other rank that does not fit is an
    error for one spatial dimension, a warning for more.
    """
    check_probability(p)
    name, ndim = f"dropout{spatial}d", input.ndim
    if ndim not in (spatial + 1, spatial + 2):
        _refuse_rank(name, ndim, spatial)
    if spatial == 2 and ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is interpreted "
            "as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using "
            "dropout1d instead.",
            stacklevel=caller_level(),
        )
    if spatial != 2 and ndim != spatial + 2:
        return apply(input.unsqueeze(0), p, training, inplace, True).squeeze(0)
    return apply(input, p, training, inplace, True)


def _refuse_rank(name: str, ndim: int, spatial: int) -> None:
    """Report a rank that does not fit: an error for one spatial dimension, a warning for more."""
    ranks = f"{spatial + 1}D or {spatial + 2}D inputs"
    exists = (
        f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimension"
    )
    if spatial == 1:
        raise RuntimeError(
            f"{name}: Expected 2D or 3D input, but received a {ndim}D input. Note that {exists}, a channel dimension, "
            f"and an optional batch dimension (i.e. {ranks})."
        )
    warnings.warn(
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future release. "
        "To retain the behavior and silence this warning, please use dropout instead. "
        f"Note that {exists}s, a channel dimension, and an optional batch dimension (i.e. {ranks}).",
        stacklevel=caller_level(),
    )
