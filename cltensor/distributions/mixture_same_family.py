"""Mixtures: a class is chosen, then a number of that class's distribution."""

from __future__ import annotations

from typing import Any

from ..autograd import no_grad
from ..size import Size
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of the distributions along the last batch dimension of `component_distribution`, weighted by a Categorical."""

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: Any = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of torch.distributions.Distribution"
            )
        weights, parts = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(weights), reversed(parts), strict=False):
            if 1 not in (a, b) and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                    f"`component_distribution.batch_shape`({parts})"
                )
        km, kc = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if km != kc:
            raise ValueError(
                f"`mixture_distribution component` ({km}) does not equal `component_distribution.batch_shape[-1]` ({kc})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = km
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(parts, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the same distribution with its batch dimensions expanded."""
        made = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        inner = (*batch_shape, self._num_component)
        made._component_distribution = self._component_distribution.expand(inner)
        made._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        made._num_component, made._event_ndims = self._num_component, self._event_ndims
        return self._shaped(made, batch_shape)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self) -> Any:
        """The values that lie in every component's support."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Any:
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1,) * self._event_ndims))

    def _average(self, values: Any) -> Any:
        return (self._weights() * values).sum(-1 - self._event_ndims)

    mean = property(lambda self: self._average(self._component_distribution.mean))

    @property
    def variance(self) -> Any:
        """The variance: that within components and that between them."""
        parts = self._component_distribution
        off = parts.mean - self._pad(self.mean)
        return self._average(parts.variance) + self._average(off.square())

    def _pad(self, x: Any) -> Any:
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, value: Any) -> Any:
        value = self._pad(value)
        return (self._component_distribution.cdf(value) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        parts = self._component_distribution.log_prob(self._pad(value))
        return (parts + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            drawn = self._component_distribution.sample(sample_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            index = chosen.reshape((*chosen.shape, *(1,) * (self._event_ndims + 1)))
            index = index.expand((*chosen.shape, 1, *self._event_shape))
            dim = len(chosen.shape)
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
