"""Normal vectors: with a full covariance matrix, with one of low rank plus a diagonal, and pushed onto the simplex."""

from __future__ import annotations

import math
from typing import Any

from ..layouts import broadcast_shapes
from ..size import Size
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform
from .utils import _standard_normal, lazy_property, linalg, ops

__all__ = ["LogisticNormal", "LowRankMultivariateNormal", "MultivariateNormal"]


def times_vector(matrix: Any, vector: Any) -> Any:
    """Multiply (batches of) a matrix and a vector."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def half_log_det(factor: Any) -> Any:
    """Half the log determinant of L Lᵀ."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def mahalanobis(factor: Any, vector: Any) -> Any:
    """vᵀ (L Lᵀ)⁻¹ v, batches broadcast."""
    n = vector.shape[-1]
    batch = broadcast_shapes(tuple(factor.shape[:-2]), tuple(vector.shape[:-1]))
    factor, vector = factor.expand((*batch, n, n)), vector.expand((*batch, n)).unsqueeze(-1)
    return linalg.solve_triangular(factor, vector, upper=False).square().sum((-2, -1))


def _precision_to_scale_tril(precision: Any) -> Any:
    """The Cholesky factor of a precision matrix's inverse."""
    turned = linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    identity = ops.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(turned, identity.expand(precision.shape), upper=False)


class MatrixParameter:
    """A mixin: of covariance, precision and Cholesky factor one is given, and the others are lazy.

    `_unbroadcasted_scale_tril` is the Cholesky factor, computed at once. `_not_one` is the class of the error for none or
    several matrices.
    """

    _unbroadcasted_scale_tril: Any
    _batch_shape: Size
    _parts: tuple[str, ...] = ("_unbroadcasted_scale_tril",)
    _not_one: type[Exception] = ValueError

    def _choose_matrix(self, matrices: dict[str, Any], batch: Any) -> Size:
        """Keep the matrix that is given, its batch broadcast with `batch`; returns that shape."""
        given = {k: v for k, v in matrices.items() if v is not None}
        if len(given) != 1:
            raise self._not_one(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, value),) = given.items()
        if value.dim() < 2:
            raise ValueError(
                f"{name} {'matrix ' if name == 'scale_tril' else ''}must be at least two-dimensional, with optional leading "
                "batch dimensions"
            )
        shape = Size(broadcast_shapes(tuple(value.shape[:-2]), tuple(batch)))
        self.__dict__[name] = value.expand((*shape, -1, -1))
        self._source = name, value
        return shape

    def _factor(self) -> None:
        """Compute the Cholesky factor, after the parameter was validated."""
        name, value = self.__dict__.pop("_source")
        make = {
            "scale_tril": lambda m: m, "covariance_matrix": linalg.cholesky, "precision_matrix": _precision_to_scale_tril,
        }[name]  # fmt: skip
        self._unbroadcasted_scale_tril = make(value)

    def _matrix_shape(self) -> Size:
        n = self._unbroadcasted_scale_tril.shape[-1]
        return Size((*self._batch_shape, n, n))

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return ops.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())


class MultivariateNormal(MatrixParameter, Distribution):
    """Normal vectors of mean `loc` and a covariance, given as such, by its inverse, or (fastest) by its Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        batch = self._choose_matrix(matrices, loc.shape[:-1])
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._factor()

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Any:
        """The diagonal of the covariance."""
        made = self._unbroadcasted_scale_tril.square().sum(-1)
        return made.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = _standard_normal(
            self._extended_shape(sample_shape), self.loc.dtype, self.loc.device
        )
        return self.loc + times_vector(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        size = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (size + mahalanobis(factor, value - self.loc)) - half_log_det(factor)

    def entropy(self) -> Any:
        n = self._event_shape[0]
        made = 0.5 * n * (1.0 + math.log(2 * math.pi)) + half_log_det(
            self._unbroadcasted_scale_tril
        )
        return made.expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of covariance W Wᵀ + D: a factor W of few columns and a diagonal D."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _parts = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: Any = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        shapes = [loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]]
        try:
            batch = Size(broadcast_shapes(*[tuple(s) for s in shapes]))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = loc.expand((*batch, -1)), cov_diag.expand((*batch, -1))
        self.cov_factor = cov_factor.expand((*batch, -1, -1))
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = capacitance(cov_factor, cov_diag)
        super().__init__(batch, event, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Any:
        """The diagonal of the covariance."""
        made = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return made.expand(self._batch_shape + self._event_shape)

    def _full(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        w = self._unbroadcasted_cov_factor
        return self._full(w @ w.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance, by Woodbury's formula."""
        w, d = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        a = linalg.solve_triangular(self._capacitance_tril, w.mT / d.unsqueeze(-2), upper=False)
        return self._full(d.reciprocal().diag_embed() - a.mT @ a)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        inner = _standard_normal(
            (*shape[:-1], self.cov_factor.shape[-1]), self.loc.dtype, self.loc.device
        )
        outer = _standard_normal(shape, self.loc.dtype, self.loc.device)
        drawn = times_vector(self._unbroadcasted_cov_factor, inner)
        return self.loc + drawn + self._unbroadcasted_cov_diag.sqrt() * outer

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        w = self._unbroadcasted_cov_factor
        d = self._unbroadcasted_cov_diag
        c = self._capacitance_tril
        size = self._event_shape[0] * math.log(2 * math.pi) + low_rank_log_det(d, c)
        return -0.5 * (size + low_rank_mahalanobis(w, d, value - self.loc, c))

    def entropy(self) -> Any:
        n = self._event_shape[0]
        log_det = low_rank_log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return (0.5 * (n * (1.0 + math.log(2 * math.pi)) + log_det)).expand(self._batch_shape)


def capacitance(w: Any, d: Any) -> Any:
    """The Cholesky factor of I + Wᵀ D⁻¹ W."""
    inner = (w.mT / d.unsqueeze(-2)) @ w
    return linalg.cholesky(inner + ops.eye(w.shape[-1], dtype=w.dtype, device=w.device))


def low_rank_log_det(d: Any, c: Any) -> Any:
    """log det(W Wᵀ + D)."""
    return 2 * half_log_det(c) + d.log().sum(-1)


def low_rank_mahalanobis(w: Any, d: Any, x: Any, c: Any) -> Any:
    """xᵀ (W Wᵀ + D)⁻¹ x, by Woodbury's formula."""
    inner = times_vector(w.mT / d.unsqueeze(-2), x)
    return (x.square() / d).sum(-1) - mahalanobis(c, inner)


class LogisticNormal(TransformedDistribution):
    """Normal vectors mapped onto the simplex by stick-breaking."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def _inner(self) -> Any:
        return (
            self.base_dist.base_dist if isinstance(self.base_dist, Independent) else self.base_dist
        )

    loc = property(lambda self: self._inner().loc)
    scale = property(lambda self: self._inner().scale)
