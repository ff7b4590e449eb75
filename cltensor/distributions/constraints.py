"""Constraints: sets that parameters and samples lie in. `check` tells, sample by sample, whether a tensor is in the set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from ..tensor import Tensor
from .utils import linalg, ops

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than",
    "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack", "symmetric",
    "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values.

    `is_discrete`: whether it consists of separate points; `event_dim`: how many last dims make one value.
    """

    is_discrete: Any = False
    event_dim: Any = 0
    _shown: tuple[str, ...] = ()

    def check(self, value: Tensor) -> Tensor:
        """Tell for each value whether it is in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        name = type(self).__name__[1:]
        return f"{name}({', '.join(f'{k}={getattr(self, k)}' for k in self._shown)})"


class _Dependent(Constraint):
    """A set that depends on a distribution's parameters, so that only an instance of the distribution knows it."""

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        """Whether the set consists of separate points."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        """How many dimensions one value has."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> Any:
        """Return a dependent constraint with `is_discrete` or `event_dim` given."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        """ValueError: only an instance of the distribution knows the set."""
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Tell whether a constraint depends on an instance of the distribution."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value on an instance is a constraint."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> Any:  # type: ignore[override]
        """Decorate a method."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _need_constraint(value: Any) -> None:
    if not isinstance(value, Constraint):
        raise AssertionError(f"base_constraint must be a Constraint, got {type(value).__name__}")


class _IndependentConstraint(Constraint):
    """Blocks of values of a base constraint: the last `reinterpreted_batch_ndims` batch dims make one value, too."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        _need_constraint(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(
                f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(
        lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims
    )

    def check(self, value: Tensor) -> Tensor:
        """Tell for each block. ValueError for too few dimensions."""
        found = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if found.ndim < n:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return found.reshape((*found.shape[: found.ndim - n], -1)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: values that lie in every component's support."""

    def __init__(self, base_constraint: Any) -> None:
        _need_constraint(base_constraint)
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        """Tell for each value. ValueError for too few dimensions."""
        n = self.event_dim
        found = self.base_constraint.check(value.unsqueeze(-1 - n))
        if value.dim() < n:
            raise ValueError(f"Expected value.dim() >= {n} but got {value.dim()}")
        return found.reshape((*found.shape[: value.dim() - n], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Any) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """A set between bounds; subclasses say which of the bounds belong to it."""

    def __init__(self, *bounds: Any, **named: Any) -> None:
        values = dict(zip(self._shown, bounds, strict=False)) | named
        if set(values) != set(self._shown):
            raise TypeError(f"{type(self).__name__} needs {', '.join(self._shown)}")
        self.__dict__.update(values)

    lower_bound: Any
    upper_bound: Any


class _IntegerInterval(_Bounded):
    is_discrete, _shown = True, ("lower_bound", "upper_bound")

    def check(self, value: Any) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Bounded):
    is_discrete, _shown = True, ("lower_bound",)

    def check(self, value: Any) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Any) -> Tensor:
        return value == value  # false for nan


class _GreaterThan(_Bounded):
    _shown = ("lower_bound",)

    def check(self, value: Any) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Bounded):
    _shown = ("lower_bound",)

    def check(self, value: Any) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    _shown = ("upper_bound",)

    def check(self, value: Any) -> Tensor:
        return value < self.upper_bound


class _Interval(_Bounded):
    _shown = ("lower_bound", "upper_bound")

    def check(self, value: Any) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    _shown = ("lower_bound", "upper_bound")

    def check(self, value: Any) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_Bounded):
    is_discrete, event_dim, _shown = True, 1, ("upper_bound",)

    def check(self, value: Any) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        positive = (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)
        return lower_triangular.check(value) & positive


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        tolerance = dtypes.finfo(value.dtype).eps * value.size(-1) * 10
        norms = value.detach().square().sum(-1).sqrt()
        return lower_cholesky.check(value) & ((norms - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Tensor:
        same = value.shape[-2] == value.shape[-1]
        return ops.full(value.shape[:-2], same, dtype=dtypes.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Tensor:
        found = super().check(value)
        if not bool(found.all()):
            return found
        return ops.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Tensor:
        found = super().check(value)
        return (linalg.eigvalsh(value) >= 0).all(-1) if bool(found.all()) else found


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Tensor:
        found = super().check(value)
        return linalg.cholesky_ex(value).info == 0 if bool(found.all()) else found


class _Parts(Constraint):
    """Constraints of consecutive parts of a value along a dim."""

    def __init__(self, cseq: Sequence[Any], dim: int) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )


class _Cat(_Parts):
    def __init__(
        self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: Any) -> Tensor:
        self._check_dim(value)
        parts = value.split(self.lengths, self.dim)
        return ops.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)

    def __repr__(self) -> str:
        return "Cat()"


class _Stack(_Parts):
    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:
        n = max(c.event_dim for c in self.cseq)
        return n + (self.dim + n < 0)

    def check(self, value: Any) -> Tensor:
        self._check_dim(value)
        parts = value.unbind(self.dim)
        return ops.stack([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)

    def __repr__(self) -> str:
        return "Stack()"


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
