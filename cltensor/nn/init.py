"""`cltensor.nn.init`: initial values of parameters. Functions fill their tensor in place, unrecorded, and return it.

Knows nothing of modules.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import creation
from ..autograd import no_grad
from ..ops.linalg.orthogonal import linalg_qr
from ..ops.row import FUNCTIONS
from ..tensor import Tensor

__all__ = [
    "calculate_gain",
    "uniform_",
    "normal_",
    "trunc_normal_",
    "constant_",
    "ones_",
    "zeros_",
    "eye_",
    "dirac_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "sparse_",
    "uniform",
    "normal",
    "constant",
    "eye",
    "dirac",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
    "orthogonal",
    "sparse",
]

_GAINS = {
    **dict.fromkeys(("linear", "sigmoid"), 1),
    **{f"conv{t}{n}d": 1 for t in ("", "_transpose") for n in (1, 2, 3)},
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the factor that keeps variance through a nonlinearity; `param` is the slope of leaky_relu. ValueError for others."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from U(a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def uniform_within(tensor: Tensor, fan: int) -> Tensor:
    """Draw from U(-1 / sqrt(fan), 1 / sqrt(fan)), as layers' biases are initialised; zeros if `fan` is 0."""
    bound = 1 / math.sqrt(fan) if fan > 0 else 0
    return uniform_(tensor, -bound, bound)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from N(mean, std²)."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
    generator: Any = None,
) -> Tensor:  # fmt: skip
    """Draw from N(mean, std²) limited to [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=3,
        )
    low, high = _cdf((a - mean) / std), _cdf((b - mean) / std)
    if high - low <= 0.3:
        return _trunc_by_rejection(tensor, mean, std, a, b, generator)
    # By the inverse of the distribution function: one draw and one fused pass.
    tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
    tensor.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean)
    return tensor.clamp_(min=a, max=b)


def _trunc_by_rejection(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    """Draw uniformly and keep by density.

    For [a, b] that is small or far out, where the inverse distribution function loses its digits.
    """
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    result = tensor.uniform_(a, b, generator=generator)
    pending = None
    while pending is None or pending.any():
        drawn = FUNCTIONS["empty_like"](tensor).uniform_(a, b, generator=generator)
        result = drawn if pending is None else FUNCTIONS["where"](pending, drawn, result)
        log_density = ((result - mean) / std).square() * -0.5 - peak
        chance = FUNCTIONS["empty_like"](tensor).uniform_(generator=generator).log_()
        refused = chance > log_density
        pending = refused if pending is None else pending & refused
    return tensor.copy_(result)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a value."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    with no_grad():
        return tensor.zero_()


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on its diagonal and zeros elsewhere."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(creation.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make the weight (out, in, ...) of a convolution that keeps as many channels of each group as it can."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out, channels, *kernel = tensor.shape
    if out % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = out // groups
    tensor.zero_()
    if 0 in tensor.shape:
        return tensor
    centre = (..., *[k // 2 for k in kernel])
    kept = min(per_group, channels)
    for g in range(groups):
        tensor[centre][g * per_group : g * per_group + kept].fill_diagonal_(1)
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


fans = _calculate_fan_in_and_fan_out


def _xavier_std(tensor: Tensor, gain: float) -> float:
    return gain * math.sqrt(2.0 / float(sum(fans(tensor))))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from U(-a, a) with a = gain * sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio, 2010)."""
    a = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from N(0, gain² * 2 / (fan_in + fan_out)) (Glorot & Bengio, 2010)."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of {modes}")
    return fans(tensor)[modes.index(mode.lower())]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """Return gain / sqrt(fan), or None for a tensor without elements."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:  # fmt: skip
    """Draw from U(-b, b) with b = gain * sqrt(3 / fan) (He et al., arXiv 1502.01852); `a` is the slope of leaky_relu."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:  # fmt: skip
    """Draw from N(0, gain² / fan) (He et al., arXiv 1502.01852); `a` is the slope of leaky_relu."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Make a matrix (dim 0 by the others) with orthonormal rows or columns, times gain (Saxe et al., arXiv 1312.6120)."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    wide = rows < cols
    q, r = linalg_qr(flat.t() if wide else flat)
    q = q * r.diagonal().sign()  # makes the distribution uniform
    return tensor.copy_((q.t() if wide else q).view(tensor.shape)).mul_(gain)


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draw a matrix from N(0, std²) and set a share of each column to zero (Martens, 2010)."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows = tensor.size(0)
    tensor.normal_(0, std, generator=generator)
    order = FUNCTIONS["rand_like"](tensor).argsort(0)
    return tensor.masked_fill_(order < math.ceil(sparsity * rows), 0)


@no_grad()
def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Any = None) -> Tensor:
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Any = None) -> Tensor:
    return tensor.normal_(mean, std, generator=generator)


def _deprecated(fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
    old = fn.__name__[:-1]

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{fn.__name__}`.",
            FutureWarning,
            stacklevel=2,
        )
        return fn(*args, **kwargs)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"Deprecated name of `{fn.__name__}`."
    return call


uniform, normal, constant, eye, dirac = (
    _deprecated(fn) for fn in (uniform_, normal_, constant_, eye_, dirac_)
)
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal, orthogonal, sparse = (
    _deprecated(fn)
    for fn in (
        xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_, orthogonal_, sparse_,
    )
)  # fmt: skip
