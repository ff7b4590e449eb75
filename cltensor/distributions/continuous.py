"""Families of real numbers with a location and a scale: uniform, Laplace, Cauchy, Gumbel; and heavy tails: Pareto, Weibull."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from . import constraints
from .distribution import Distribution
from .gamma import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import broadcast_all, euler_constant, ops, rand_like

__all__ = [
    "Cauchy",
    "GeneralizedPareto",
    "Gumbel",
    "Laplace",
    "Pareto",
    "Uniform",
    "Weibull",
]


class Uniform(Distribution):
    """Numbers uniform in [low, high)."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: Any = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ValueError("Uniform is not defined when low>= high")

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """Each bound is bounded by the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The interval."""
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low).square() / 12)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        made = ops.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + made * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return (self.high - self.low).log()


class Laplace(Distribution):
    """The two-sided exponential distribution."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: 2**0.5 * self.scale)
    variance = property(lambda self: 2 * self.scale.square())

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = 2 * rand_like(self._extended_shape(sample_shape), self.loc) - 1
        eps = dtypes.finfo(self.loc.dtype).eps
        return self.loc - self.scale * u.sign() * (-u.abs().clamp(max=1 - eps / 2)).log1p()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        off = value - self.loc
        return 0.5 - 0.5 * off.sign() * (-off.abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Any:
        off = value - 0.5
        return self.loc - self.scale * off.sign() * (-2 * off.abs()).log1p()

    def entropy(self) -> Any:
        return 1 + (2 * self.scale).log()


class Cauchy(Distribution):
    """The Cauchy distribution of median `loc` and half width `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = property(lambda self: ops.full_like(self.loc, math.nan).expand(self._extended_shape()))
    mode = property(lambda self: self.loc)
    variance = property(
        lambda self: ops.full_like(self.loc, math.inf).expand(self._extended_shape())
    )

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        off = ((value - self.loc) / self.scale).square()
        return -math.log(math.pi) - self.scale.log() - off.log1p()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(TransformedDistribution):
    """The distribution of largest values."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = dtypes.finfo(self.loc.dtype)
        base = Uniform(
            ops.full_like(self.loc, info.tiny), ops.full_like(self.loc, 1 - info.eps), validate_args
        )
        one = ops.ones_like(self.scale)
        steps = [
            ExpTransform().inv,
            AffineTransform(0, -one),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, steps, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.loc, made.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return made

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.square())

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)


class Pareto(TransformedDistribution):
    """Power laws: P(x > t) = (scale / t) ** alpha above `scale`."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: Any = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        steps = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, steps, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.scale, made.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        return made

    @property
    def mean(self) -> Any:
        """The mean, infinite for alpha up to 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)

    @property
    def variance(self) -> Any:
        """The variance, infinite for alpha up to 2."""
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `scale` on."""
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class GeneralizedPareto(Distribution):
    """What exceeds a threshold `loc`: a tail of index `concentration`, which may be negative (bounded) or 0 (exponential)."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: Any = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(rand_like(self._extended_shape(sample_shape), self.loc))

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    @property
    def _flat(self) -> Any:
        return ops.isclose(self.concentration, ops.zeros_like(self.concentration))

    @property
    def _safe(self) -> Any:
        return ops.where(self._flat, ops.ones_like(self.concentration), self.concentration)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z, k = self._z(value), self._safe
        tail = (1 + 1 / k) * (k * z).log1p()
        return -self.scale.log() - ops.where(self._flat, z, tail)

    def log_survival_function(self, value: Any) -> Any:
        """Return log P(x > value)."""
        self._validate_sample(value)
        z, k = self._z(value), self._safe
        return ops.where(self._flat, -z, -(k * z).log1p() / k)

    def log_cdf(self, value: Any) -> Any:
        """Return log P(x <= value)."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Any) -> Any:
        return self.log_cdf(value).exp()

    def icdf(self, value: Any) -> Any:
        log_rest, k = (-value).log1p(), self._safe
        z = ops.where(self._flat, -log_rest, (-k * log_rest).expm1() / k)
        return self.loc + self.scale * z

    @property
    def mean(self) -> Any:
        """The mean, infinite from concentration 1 on."""
        k = self.concentration
        valid = k < 1
        return ops.where(valid, self.loc + self.scale / (1 - ops.where(valid, k, 0.5)), math.inf)

    @property
    def variance(self) -> Any:
        """The variance, NaN from concentration 1/2 on."""
        k = self.concentration
        valid = k < 0.5
        safe = ops.where(valid, k, 0.25)
        value = self.scale.square() / ((1 - safe).square() * (1 - 2 * safe))
        return ops.where(valid, value + ops.zeros_like(self.loc), math.nan)

    def entropy(self) -> Any:
        made = self.scale.log() + self.concentration + 1
        return made.expand(self._batch_shape)

    mode = property(lambda self: self.loc)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the threshold on, up to a bound where the concentration is negative."""
        k = self.concentration
        upper = ops.where(k < 0, self.loc - self.scale / self._safe, math.inf)
        return constraints.interval(self.loc, upper)


class Weibull(TransformedDistribution):
    """The two-parameter Weibull distribution."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: Any = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(ops.ones_like(self.scale), validate_args=validate_args)
        steps = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, steps, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        for name in ("scale", "concentration", "concentration_reciprocal"):
            setattr(made, name, getattr(self, name).expand(batch_shape))
        return made

    mean = property(lambda self: self.scale * (1 + self.concentration_reciprocal).lgamma().exp())

    @property
    def mode(self) -> Any:
        """The most likely value, undefined for concentrations below 1."""
        k = self.concentration
        return self.scale * ((k - 1) / k).pow(k.reciprocal())

    @property
    def variance(self) -> Any:
        """The variance."""
        r = self.concentration_reciprocal
        return self.scale.square() * ((1 + 2 * r).lgamma().exp() - (2 * (1 + r).lgamma()).exp())

    def entropy(self) -> Any:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1
