"""Counts: successes, trials and events. Bernoulli, geometric, binomial, negative binomial, Poisson; and the continuous Bernoulli."""

from __future__ import annotations

import math
from typing import Any

from ..autograd import no_grad
from ..nn import functional
from . import constraints
from .choice import ProbsOrLogits
from .distribution import Distribution, ExponentialFamily
from .gamma import Gamma
from .utils import broadcast_all, clamp_probs, lazy_property, ops, probs_to_logits, rand_like

__all__ = [
    "Bernoulli",
    "Binomial",
    "ContinuousBernoulli",
    "Geometric",
    "NegativeBinomial",
    "Poisson",
]

_PROBS = {"probs": constraints.unit_interval, "logits": constraints.real}


def _cross_entropy(logits: Any, value: Any) -> Any:
    return functional.binary_cross_entropy_with_logits(logits, value, reduction="none")


def _joint(*values: Any) -> Any:
    """Broadcast tensors, whose dtypes may differ."""
    return ops.broadcast_tensors(*values)


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """0 or 1."""

    arg_constraints = _PROBS
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self._choose(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    mean = property(lambda self: self.probs)

    @property
    def mode(self) -> Any:
        """The more likely value, undefined where both are equally likely."""
        made = (self.probs >= 0.5).to(self.probs.dtype)
        return ops.where(self.probs == 0.5, math.nan, made)

    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return ops.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -_cross_entropy(*_joint(self.logits, value))

    def entropy(self) -> Any:
        return _cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Any:
        made = ops.arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(made, expand)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.probs.logit(),)

    def _log_normalizer(self, x: Any) -> Any:
        return x.exp().log1p()


class Geometric(ProbsOrLogits, Distribution):
    """The number of failures before the first success."""

    arg_constraints = _PROBS
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self._choose(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs.detach()
            if not bool((value > 0).all()):
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to be positive but found invalid values:\n{value[value <= 0]}"
                )

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: ops.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            u = rand_like(self._extended_shape(sample_shape), self.probs)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value, probs = _joint(value, self.probs)
        p = ops.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-p).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return _cross_entropy(self.logits, self.probs) / self.probs


class Binomial(ProbsOrLogits, Distribution):
    """The number of successes in `total_count` trials."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **_PROBS}
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        (self.total_count,) = self._choose(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """From 0 to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(
        lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)
    )
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n, logits = self.total_count, self.logits
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return value * logits + ways + n * functional.logsigmoid(-logits)

    def entropy(self) -> Any:
        total = int(self.total_count.max())
        if not int(self.total_count.min()) == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        total = int(self.total_count.max())
        if not int(self.total_count.min()) == total:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        made = ops.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(made, expand)


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes before `total_count` failures; the count may be any nonnegative number."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        (self.total_count,) = self._choose(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    mean = property(lambda self: self.total_count * self.logits.exp())

    @property
    def mode(self) -> Any:
        """The most likely count."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            gamma = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return ops.poisson(gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self.total_count
        chances = n * functional.logsigmoid(-self.logits) + value * functional.logsigmoid(
            self.logits
        )
        ways = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return chances - ops.where(n + value == 0.0, 0.0, ways)


class Poisson(ExponentialFamily):
    """The number of events, of a mean `rate`."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return ops.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        rate, value = _joint(self.rate, value)
        return ops.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Any) -> Any:
        return x.exp()


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers in [0, 1] of density proportional to p^x (1 - p)^(1 - x). Near p = 1/2, inside `lims`, Taylor series take over."""

    arg_constraints = _PROBS
    support = constraints.unit_interval
    has_rsample = True
    _parts = ("_given", "_lims")
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: Any = None,
    ) -> None:
        self._choose(probs, logits)
        if probs is not None:
            inside = constraints.unit_interval.check(self.__dict__["probs"])
            if validate_args is not None and not bool(inside.all()):
                raise ValueError("The parameter probs has invalid values")
            self.__dict__["probs"] = clamp_probs(self.__dict__["probs"])
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def _outside(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Any:
        """The probabilities, moved out of the unstable region."""
        return ops.where(self._outside(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Any:
        cut = self._cut()
        below = ops.where(cut <= 0.5, cut, 0.0)
        above = ops.where(cut >= 0.5, cut, 1.0)
        gap = ops.where(cut <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log())
        log_norm = ((-cut).log1p() - cut.log()).abs().log() - gap
        x = (self.probs - 0.5).square()
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return ops.where(self._outside(), log_norm, series)

    @property
    def mean(self) -> Any:
        """The mean."""
        cut, x = self._cut(), self.probs - 0.5
        made = cut / (2.0 * cut - 1.0) + 1.0 / ((-cut).log1p() - cut.log())
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x
        return ops.where(self._outside(), made, series)

    @property
    def variance(self) -> Any:
        """The variance."""
        cut, x = self._cut(), (self.probs - 0.5).square()
        head = cut * (cut - 1.0) / (1.0 - 2.0 * cut).square()
        made = head + 1.0 / ((-cut).log1p() - cut.log()).square()
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return ops.where(self._outside(), made, series)

    stddev = property(lambda self: self.variance.sqrt())

    @lazy_property
    def logits(self) -> Any:
        """Log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities, kept away from 0 and 1."""
        return clamp_probs(self.logits.sigmoid())

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(rand_like(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -_cross_entropy(*_joint(self.logits, value)) + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        cut = self._cut()
        made = cut.pow(value) * (1.0 - cut).pow(1.0 - value) + cut - 1.0
        inner = ops.where(self._outside(), made / (2.0 * cut - 1.0), value)
        return ops.where(value <= 0.0, 0.0, ops.where(value >= 1.0, 1.0, inner))

    def icdf(self, value: Any) -> Any:
        cut = self._cut()
        head = (-cut + value * (2.0 * cut - 1.0)).log1p() - (-cut).log1p()
        return ops.where(self._outside(), head / (cut.log() - (-cut).log1p()), value)

    def entropy(self) -> Any:
        low = (-self.probs).log1p()
        return self.mean * (low - self.probs.log()) - self._cont_bern_log_norm() - low

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = ops.where(outside, x, (self._lims[0] - 0.5) + ops.zeros_like(x))
        made = cut.expm1().abs().log() - cut.abs().log()
        return ops.where(outside, made, 0.5 * x + x.square() / 24.0 - x.pow(4) / 2880.0)
