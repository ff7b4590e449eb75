"""The gamma family: exponential, gamma, chi-squared and inverse gamma numbers; and ratios with them: Student's t and Fisher's F."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform
from .utils import _standard_normal, broadcast_all, ops

__all__ = ["Chi2", "Exponential", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT"]


def standard_gamma(concentration: Any) -> Any:
    """Draw gamma numbers of rate 1; differentiable."""
    return ops._standard_gamma(concentration)


class Exponential(ExponentialFamily):
    """Waiting times of a rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: ops.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Any) -> Any:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Any:
        return 1.0 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Any) -> Any:
        return -(-x).log()


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration` and a rate; samples are differentiable by both."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.square())

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        made = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return made.clamp(min=dtypes.finfo(made.dtype).tiny)

    def log_prob(self, value: Any) -> Any:
        value = ops.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_sample(value)
        a, b = self.concentration, self.rate
        return ops.xlogy(a, b) + ops.xlogy(a - 1, value) - b * value - a.lgamma()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return ops.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log()


class Chi2(Gamma):
    """Sums of `df` squared normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: Any = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made.concentration = self.concentration.expand(batch_shape)
        made.rate = self.rate.expand(batch_shape)
        return made

    df = property(lambda self: self.concentration * 2)


class InverseGamma(TransformedDistribution):
    """Reciprocals of gamma numbers."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = -base.rate.new_ones(())
        super().__init__(base, PowerTransform(minus_one), validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)

    @property
    def mean(self) -> Any:
        """The mean, infinite for concentrations up to 1."""
        a = self.concentration
        return ops.where(a > 1, self.rate / (a - 1), math.inf)

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Any:
        """The variance, infinite for concentrations up to 2."""
        a = self.concentration
        return ops.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class StudentT(Distribution):
    """Student's t distribution of `df` degrees of freedom, shifted and scaled."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _parts = ("_chi2",)

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: Any = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    mean = property(lambda self: ops.where(self.df <= 1, math.nan, self.loc))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Any:
        """The variance: infinite for df in (1, 2], undefined below."""
        made = self.scale.square() * self.df / (self.df - 2)
        return ops.where(self.df > 2, made, ops.where(self.df > 1, math.inf, math.nan + self.df))

    def rsample(self, sample_shape: Any = ()) -> Any:
        normal = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        y = normal * (self._chi2.rsample(sample_shape) / self.df).rsqrt()
        return self.loc + self.scale * y

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        y, half = (value - self.loc) / self.scale, 0.5 * self.df
        size = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        size = size + half.lgamma() - (half + 0.5).lgamma()
        return -(half + 0.5) * (y.square() / self.df).log1p() - size

    def entropy(self) -> Any:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        slope = more * (more.digamma() - half.digamma())
        return self.scale.log() + slope + 0.5 * self.df.log() + log_beta


class FisherSnedecor(Distribution):
    """Ratios of two chi-squared numbers, each by its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parts = ("_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: Any = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """The mean, undefined for df2 up to 2."""
        return ops.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Any:
        """The most likely value, undefined for df1 up to 2."""
        made = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return ops.where(self.df1 > 2, made, math.nan)

    @property
    def variance(self) -> Any:
        """The variance, undefined for df2 up to 4."""
        a, b = self.df1, self.df2
        made = 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4))
        return ops.where(b > 4, made, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        tiny = dtypes.finfo(self.df2.dtype).tiny
        below = self._gamma2.rsample(sample_shape).clamp(min=tiny)
        return (self._gamma1.rsample(sample_shape) / below).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        size = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return size + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
