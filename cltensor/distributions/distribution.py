"""The base of all distributions: shapes, validation, expanding, and the methods that follow from a few of a subclass.

A parameter is an attribute named in `arg_constraints`; its constraint's `event_dim` is the number of last dims that
make one value.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..autograd import grad, no_grad
from ..size import Size
from ..tensor import Tensor
from . import constraints
from .utils import lazy_property

__all__ = ["Distribution", "ExponentialFamily"]


class Distribution:
    """A batch, of shape `batch_shape`, of independent probability distributions, whose samples have shape
    `event_shape`.

    ValueError for a parameter outside its constraint, unless `validate_args` is False.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    _parts: tuple[str, ...] = ()  # what an expanded distribution is made of, beside the parameters

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether parameters and values are checked by distributions made without `validate_args`."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()  # a distribution may be a module, too

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    # ---- shapes
    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the same distribution with its batch dimensions expanded.

        NotImplementedError for a subclass of a program with a constructor of its own: it has to define `expand`, too,
        which fills `_instance` and passes it on.
        """
        home = self._home()
        if home in (Distribution, ExponentialFamily):
            raise NotImplementedError
        made = self._get_checked_instance(home, _instance)
        batch_shape = Size(batch_shape)
        given: Any = home.arg_constraints
        parameters: Any = given.__get__(self) if isinstance(given, property) else given
        for name in (*parameters, *home._parts):
            if name in self.__dict__:
                value = self.__dict__[name]
                made.__dict__[name] = self._expanded(value, parameters.get(name), batch_shape)
        return self._shaped(made, batch_shape)

    def _home(self) -> type[Distribution]:
        """The class itself, or the nearest one of this library: subclasses' attributes are not known here."""
        package = __name__.rpartition(".")[0]
        return next(c for c in type(self).__mro__ if c.__module__.startswith(package))

    def _shaped(self, made: Any, batch_shape: Size) -> Any:
        """Complete an expanded distribution, which has its parameters, as the constructor of this class does."""
        Distribution.__init__(made, batch_shape, self._event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def _expanded(self, value: Any, constraint: Any, batch_shape: Size) -> Any:
        """Return a parameter, which has a constraint, or another part of the expanded distribution."""
        if isinstance(value, Distribution):
            return value.expand(batch_shape)
        if not isinstance(value, Tensor) or constraint is None:
            return value
        depth = 0 if constraints.is_dependent(constraint) else constraint.event_dim
        return value.expand(batch_shape + value.shape[value.ndim - depth :])

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a "
                "custom .expand() method."
            )
        return object.__new__(type(self)) if _instance is None else _instance

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    # ---- what subclasses define
    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraint of each parameter."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of the samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most likely value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw samples that are differentiable by the parameters."""
        raise NotImplementedError

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw samples, without history."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Any:
        """Draw n samples; deprecated for `sample((n,))`."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density or probability at values. ValueError outside the support."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """Return the probability of being at most a value."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """Return the quantile of a probability: the value that samples are at most with that probability."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values along a new first dimension; finite distributions only."""
        raise NotImplementedError

    def _enumerated(self, values: Any, expand: bool) -> Any:
        """Return numbers, those of the support, along a new first dimension; `expand`: of the batch's shape."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def entropy(self) -> Any:
        """Return the entropy."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    # ---- values
    def _validate_sample(self, value: Any) -> None:
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        if value.shape[value.ndim - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if 1 not in (i, j) and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        known = [(k, self.__dict__[k]) for k in self.arg_constraints if k in self.__dict__]
        return f"{type(self).__name__}({', '.join(f'{k}: {v if v.numel() == 1 else v.size()}' for k, v in known)})"


class ExponentialFamily(Distribution):
    """Distributions of exponential families, by natural parameters: the entropy follows from the gradient of the log
    normalizer.
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Any:
        """Return the entropy, by a Bregman divergence of the log normalizer."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        slopes = grad(normalizer.sum(), parameters, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for p, g in zip(parameters, slopes, strict=True):
            result = result - (p * g).reshape((*self._batch_shape, -1)).sum(-1)
        return result
