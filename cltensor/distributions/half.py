"""Magnitudes of numbers whose distribution is even: half of it, twice as dense."""

from __future__ import annotations

import math
from typing import Any

from . import constraints
from .continuous import Cauchy
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform
from .utils import ops

__all__ = ["HalfCauchy", "HalfNormal"]


class _Half(TransformedDistribution):
    """Base of both: cdf, icdf and entropy from those of the symmetric base distribution."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: ops.zeros_like(self.scale))

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """Magnitudes of normal numbers of mean 0."""

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args)

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.square() * (1 - 2 / math.pi))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        made = self.base_dist.log_prob(value) + math.log(2)
        return ops.where(value >= 0, made, -math.inf)


class HalfCauchy(_Half):
    """Magnitudes of Cauchy numbers of median 0."""

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args)

    mean = property(lambda self: ops.full_like(self.scale, math.inf).expand(self._extended_shape()))
    variance = property(lambda self: self.base_dist.variance)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        off = (value / self.scale).square()
        made = math.log(2 / math.pi) - self.scale.log() - off.log1p()
        return ops.where(value >= 0, made, -math.inf)
