"""From a constraint to a transform from the reals to values that satisfy it.

`biject_to` gives bijections; `transform_to` maybe other transforms, which suit optimisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table of functions that make a transform for a constraint, by the constraint's class."""

    def __init__(self) -> None:
        self._table: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Enter a function for a class of constraints (or for that of an instance); a decorator without `factory`."""
        if factory is None:
            return lambda fn: self.register(constraint, fn)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}"
            )
        self._table[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return the transform. NotImplementedError where none is registered."""
        factory = self._table.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def enter(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return enter


@_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.positive, constraints.nonnegative)
def _to_bounded_below(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_both(constraints.less_than)
def _to_bounded_above(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if not hasattr(low, "shape") and not hasattr(high, "shape") and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda c: transforms.PositiveDefiniteTransform())


def _nested(registry: ConstraintRegistry) -> None:
    registry.register(
        constraints.independent,
        lambda c: transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        ),
    )
    registry.register(
        constraints.cat,
        lambda c: transforms.CatTransform([registry(p) for p in c.cseq], c.dim, c.lengths),
    )
    registry.register(
        constraints.stack, lambda c: transforms.StackTransform([registry(p) for p in c.cseq], c.dim)
    )


_nested(biject_to)
_nested(transform_to)
