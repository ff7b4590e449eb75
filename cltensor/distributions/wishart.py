"""Random matrices: positive definite ones (Wishart), and Cholesky factors of correlation matrices (LKJ)."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import dtypes
from ..autograd import no_grad
from ..size import Size
from ..tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution, ExponentialFamily
from .gamma import Chi2
from .multivariate_normal import MatrixParameter, half_log_det
from .utils import _standard_normal, broadcast_all, linalg, ops

__all__ = ["LKJCholesky", "Wishart"]


class Wishart(MatrixParameter, ExponentialFamily):
    """Covariances of `df` normal vectors: positive definite matrices. The scale is given as one of three matrices."""

    support = constraints.positive_definite
    _not_one = AssertionError
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """Parameters' constraints; degrees of freedom are bounded by the dimension."""
        return {
            "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self._event_shape[-1] - 1),
        }  # fmt: skip

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = next((m for m in matrices.values() if m is not None), None)
        if not isinstance(df, Tensor):
            df = ops.as_tensor(
                df, dtype=getattr(given, "dtype", None), device=getattr(given, "device", None)
            )
        batch = self._choose_matrix(matrices, df.shape)
        event = Size(given.shape[-2:])
        self.df = df.expand(batch)
        self._batch_shape, self._event_shape = batch, event
        if bool((self.df <= event[-1] - 1).any()):
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}."
            )
        super().__init__(batch, event, validate_args=validate_args)
        if bool((self.df < event[-1]).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        self._factor()

    def _chi2(self) -> Any:
        steps = ops.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - steps, validate_args=False)

    def _product(self, matrix: Any) -> Any:
        return self.df[..., None, None] * matrix

    mean = property(lambda self: self._product(self.covariance_matrix))

    @property
    def mode(self) -> Any:
        """The most likely matrix, undefined for few degrees of freedom."""
        factor = self.df - self._event_shape[-1] - 1
        factor = ops.where(factor <= 0, math.nan, factor)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        """The variance of each element."""
        v = self.covariance_matrix
        d = v.diagonal(dim1=-2, dim2=-1)
        return self._product(v.square() + d.unsqueeze(-1) * d.unsqueeze(-2))

    def _bartlett(self, sample_shape: Any) -> Any:
        # Chi numbers on the diagonal, normal numbers below it.
        n = self._event_shape[-1]
        roots = self._chi2().rsample(sample_shape).sqrt()
        noise = _standard_normal(
            (*sample_shape, *self._batch_shape, n, n), roots.dtype, roots.device
        ).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (noise + roots.diag_embed())
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: Any = None) -> Any:
        """Draw matrices; those that rounding made singular are drawn again, at most `max_try_correction` times (10)."""
        made = self._bartlett(sample_shape)
        tries = 10 if max_try_correction is None else max_try_correction
        for attempt in range(tries):
            with no_grad():
                singular = self.support.check(made).logical_not()
            if not bool(singular.any()):
                break
            if attempt == 0:
                warnings.warn("Singular sample detected.", stacklevel=2)
            made = ops.where(singular[..., None, None], self._bartlett(sample_shape), made)
        return made

    def _log_gamma(self, a: Any) -> Any:
        return ops.mvlgamma(a, self._event_shape[-1])

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        size = nu * (p * math.log(2) / 2 + half_log_det(factor)) + self._log_gamma(nu / 2)
        log_det = linalg.slogdet(value).logabsdet
        trace = ops.cholesky_solve(value, factor.expand((*value.shape[:-2], p, p)))
        return (nu - p - 1) / 2 * log_det - trace.diagonal(dim1=-2, dim2=-1).sum(-1) / 2 - size

    def _digamma(self, a: Any) -> Any:
        steps = ops.arange(self._event_shape[-1], dtype=a.dtype, device=a.device) / 2
        return (a.unsqueeze(-1) - steps).digamma().sum(-1)

    def entropy(self) -> Any:
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        size = (p + 1) * (p * math.log(2) / 2 + half_log_det(factor))
        rest = (nu - p - 1) / 2 * self._digamma(nu / 2)
        return size + self._log_gamma(nu / 2) - rest + nu * p / 2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = self._event_shape[-1]
        a = y + (p + 1) / 2
        return a * (-linalg.slogdet(-2 * x).logabsdet + math.log(2) * p) + self._log_gamma(a)


class LKJCholesky(Distribution):
    """Cholesky factors of random correlation matrices of a dimension; concentration 1 is uniform. ValueError for dimensions below 2."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _parts = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: Any = None) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # Onion method: a row's squared length is a beta number.
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = ops.arange(
            dim - 1, dtype=self.concentration.dtype, device=self.concentration.device
        )
        offset = ops.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = super().expand(batch_shape, _instance)
        made._beta = self._beta.expand((*batch_shape, self.dim))
        return made

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            u = _standard_normal(
                self._extended_shape(sample_shape),
                self.concentration.dtype,
                self.concentration.device,
            ).tril(-1)
            length = u.square().sum(-1, keepdim=True).sqrt()
            sphere = (u / ops.where(length > 0, length, 1.0)).tril(-1)
            head = sphere[..., :1, :] * 0  # the first row of the sphere is empty
            w = y.sqrt() * ops.cat([head, sphere[..., 1:, :]], -2)
            eps = dtypes.finfo(w.dtype).tiny
            diagonal = (1 - w.square().sum(-1)).clamp(min=eps).sqrt()
            return w + diagonal.diag_embed()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = ops.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        density = (order * diagonal.log()).sum(-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        ratio = ops.mvlgamma(alpha - 0.5, less) - alpha.lgamma() * less
        return density - (0.5 * less * math.log(math.pi) + ratio)
