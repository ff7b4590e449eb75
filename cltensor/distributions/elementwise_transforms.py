"""Transforms of each element by itself."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..layouts import broadcast_shapes
from ..nn import functional
from ..size import Size
from . import constraints
from .transform import PlainTransform, Transform
from .utils import _sum_rightmost, broadcast_all, ops

softplus = functional.softplus


class ExpTransform(PlainTransform):
    """y = exp(x)."""

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, +1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """y = x ** exponent."""

    domain, codomain, bijective = constraints.positive, constraints.positive, True
    _arguments = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    sign = property(lambda self: self.exponent.sign())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return _joint_shape(shape, self.exponent)

    inverse_shape = forward_shape


def _joint_shape(shape: Any, *parameters: Any) -> Size:
    return Size(
        broadcast_shapes(tuple(shape), *[tuple(getattr(p, "shape", ())) for p in parameters])
    )


def clipped_sigmoid(x: Any) -> Any:
    """The sigmoid, kept within (0, 1)."""
    info = dtypes.finfo(x.dtype)
    return x.sigmoid().clamp(min=info.tiny, max=1.0 - info.eps)


class SigmoidTransform(PlainTransform):
    """y = 1 / (1 + exp(-x))."""

    domain, codomain, bijective, sign = constraints.real, constraints.unit_interval, True, +1

    def _call(self, x: Any) -> Any:
        return clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        info = dtypes.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(PlainTransform):
    """y = log(1 + exp(x))."""

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, +1

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class TanhTransform(PlainTransform):
    """y = tanh(x)."""

    domain, codomain, bijective, sign = constraints.real, constraints.interval(-1.0, 1.0), True, +1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(PlainTransform):
    """y = |x|. Not injective: the inverse returns the nonnegative argument."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x."""

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @property
    def domain(self) -> Any:
        """The reals, or blocks of them with `event_dim`."""
        real = constraints.real
        return constraints.independent(real, self._event_dim) if self._event_dim else real

    codomain = domain

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(bool((a == b).all()) if hasattr(a == b, "all") else a == b for a, b in pairs)

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        """That of the scale."""
        scale = self.scale
        return scale.sign() if hasattr(scale, "sign") else (scale > 0) - (scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        scale, shape, depth = self.scale, x.shape, self._event_dim
        if hasattr(scale, "abs"):
            result = scale.abs().log()
        else:
            result = ops.full_like(x, math.log(abs(scale)))
        if depth:
            result = _sum_rightmost(result, depth)
            shape = shape[:-depth]
        return result.expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        return _joint_shape(shape, self.loc, self.scale)

    inverse_shape = forward_shape
