"""Choices between classes: categorical, one-hot, and counts of many choices."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..autograd import no_grad
from ..nn import functional
from ..size import Size
from . import constraints
from .choice import ONE_OF_TWO, ProbsOrLogits
from .discrete import Binomial
from .distribution import Distribution
from .utils import ops

__all__ = [
    "Categorical",
    "Multinomial",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
]

_SCORES = {"probs": constraints.simplex, "logits": constraints.real_vector}


class Categorical(ProbsOrLogits, Distribution):
    """The index of a class; the last dimension of `probs` (which are normalized) or `logits` is the classes.

    >>> torch.distributions.Categorical(torch.tensor([0.25, 0.75])).log_prob(torch.tensor(1)).exp()
    tensor(0.7500)
    """

    arg_constraints = _SCORES
    has_enumerate_support = True
    _is_binary = False
    _parts = ("_given", "_num_events")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(ONE_OF_TWO)
        self._given = "probs" if probs is not None else "logits"
        value = probs if probs is not None else logits
        if value.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        self.__dict__[self._given] = (
            value / value.sum(-1, keepdim=True)
            if probs is not None
            else value - value.logsumexp(-1, keepdim=True)
        )
        self._num_events = value.size()[-1]
        super().__init__(value.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The classes' indices."""
        return constraints.integer_interval(0, self._num_events - 1)

    def _undefined(self) -> Any:
        return ops.full(
            self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device
        )

    mean = variance = property(_undefined)
    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = Size(sample_shape)
        flat = self.probs.reshape(-1, self._num_events)
        with no_grad():
            drawn = ops.multinomial(flat, max(1, math.prod(shape)), True).T
        return drawn[: math.prod(shape)].reshape(self._extended_shape(shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value = value.to(dtypes.int64).unsqueeze(-1)
        value, scores = ops.broadcast_tensors(value, self.logits)
        return scores.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = self.logits.clamp(min=dtypes.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        made = ops.arange(self._num_events, dtype=dtypes.int64, device=self._param.device)
        return self._enumerated(made, expand)


class OneHotCategorical(Distribution):
    """A class as a vector with a 1 at its index."""

    arg_constraints = _SCORES
    support = constraints.one_hot
    has_enumerate_support = True
    _parts = ("_categorical",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self._categorical = Categorical(probs, logits)
        size = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, size[-1:], validate_args=validate_args)

    _param = property(lambda self: self._categorical._param)
    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self._categorical.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Any:
        """The most likely class."""
        best = self._categorical.mode
        return functional.one_hot(best, self.event_shape[-1]).to(self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample(sample_shape)
        return functional.one_hot(drawn, self._categorical._num_events).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value = ops.broadcast_tensors(value, self.logits)[0]
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        made = ops.eye(n, dtype=self._param.dtype, device=self._param.device)
        made = made.view((n, *(1,) * len(self.batch_shape), n))
        return made.expand((n, *self.batch_shape, n)) if expand else made


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        samples, probs = self.sample(sample_shape), self._categorical.probs
        return samples + (probs - probs.detach())


class Multinomial(Distribution):
    """How often each class was chosen in `total_count` (a number) choices."""

    arg_constraints = _SCORES
    _parts = ("total_count", "_categorical")

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        Binomial(total_count, probs=self.probs)  # raises for a negative count
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts whose sum is the number of choices."""
        return constraints.multinomial(self.total_count)

    _param = property(lambda self: self._categorical._param)
    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample(Size((self.total_count, *shape)))
            drawn = drawn.movedim(0, -1)
            counts = self._param.new_zeros(self._extended_shape(shape))
            return counts.scatter_add_(-1, drawn, ops.ones_like(drawn).to(counts.dtype))

    def entropy(self) -> Any:
        n = ops.full((), self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        successes = Binomial(self.total_count, probs=self.probs)
        support = successes.enumerate_support(expand=False)[1:]
        weights = successes.log_prob(support).exp()
        part = (weights * (support + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - (n + 1).lgamma() + part

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = ops.broadcast_tensors(self.logits, value)
        logits = ops.where((value == 0) & (logits == -math.inf), 0.0, logits)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (logits * value).sum(-1)
