"""Kullback-Leibler divergences: a registry by pairs of classes, and the closed forms that are known.

The divergence of p from q in different families of real numbers is the cross entropy less p's entropy. The cross
entropy is a formula of q's family over a few expectations under p (`_Expected`).
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from ..autograd import grad
from ..layouts import broadcast_shapes
from ..nn import functional
from .beta import Beta, Dirichlet
from .categorical import Categorical, OneHotCategorical
from .continuous import Cauchy, Gumbel, Laplace, Pareto, Uniform
from .discrete import Bernoulli, Binomial, ContinuousBernoulli, Geometric, Poisson
from .distribution import ExponentialFamily
from .gamma import Exponential, Gamma
from .half import HalfNormal
from .independent import Independent
from .multivariate_normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_det,
    low_rank_log_det,
    low_rank_mahalanobis,
    mahalanobis,
)
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .utils import _sum_rightmost, euler_constant, linalg, ops

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorate a function of two distributions: it becomes the divergence of these classes. TypeError unless both are
    classes.

    They need not be subclasses of `Distribution`: libraries register bases of their own.
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):
            raise TypeError("issubclass() arg 1 must be a class")

    def enter(fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        _KL_REGISTRY[type_p, type_q] = fn
        _find.cache_clear()
        return fn

    return enter


@functools.cache
def _find(type_p: type, type_q: type) -> Callable[[Any, Any], Any] | None:
    """Return the function registered for the nearest base classes, the first argument's compared first.

    Warns where comparing the second argument's first finds another function.
    """

    def steps(kind: type, base: type) -> int:
        # Virtual bases (of abstract classes, not in the MRO) are the farthest.
        return kind.__mro__.index(base) if base in kind.__mro__ else len(kind.__mro__)

    found = [
        (steps(type_p, p), steps(type_q, q), fn)
        for (p, q), fn in _KL_REGISTRY.items()
        if issubclass(type_p, p) and issubclass(type_q, q)
    ]
    if not found:
        return None
    left, right = min(found, key=lambda m: m[:2]), min(found, key=lambda m: (m[1], m[0]))
    if left[2] is not right[2]:
        p, q = (
            (*kind.__mro__, kind)[i].__name__ for kind, i in ((type_p, left[0]), (type_q, right[1]))
        )
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({p}, {q})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left[2]


def kl_divergence(p: Any, q: Any) -> Any:
    """Return KL(p ‖ q) for each of a batch. NotImplementedError for classes without a registered formula.

    >>> normal = torch.distributions.Normal(torch.tensor(0.0), torch.tensor(1.0))
    >>> torch.distributions.kl_divergence(normal, normal)
    tensor(0.)
    """
    fn = _find(type(p), type(q))  # type: ignore[arg-type]
    if fn is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return fn(p, q)


# ------------------------------------------------------------------------------------- within a family


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    softplus = functional.softplus
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    one = ops.where(p.probs == 0, 0.0, ops.where(q.probs == 0, math.inf, one))
    return one + ops.where(p.probs == 1, 0.0, ops.where(q.probs == 1, math.inf, zero))


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return ops.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    each = p.probs * (p.logits - q.logits)
    each = ops.where(p.probs == 0, 0.0, ops.where(q.probs == 0, math.inf, each))
    return each.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    size = a.sum(-1).lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return size + ((a - b) * (a.digamma() - a.sum(-1, True).digamma())).sum(-1)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    ours, theirs = [n.detach().requires_grad_() for n in p._natural_params], q._natural_params
    normalizer = p._log_normalizer(*ours)
    slopes = grad(normalizer.sum(), ours, create_graph=True)
    result = q._log_normalizer(*theirs) - normalizer
    for a, b, slope in zip(ours, theirs, slopes, strict=True):
        result = result - _sum_rightmost((b - a) * slope, len(q.event_shape))
    return result


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    made = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return ops.where(p.scale < q.scale, math.inf, made)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return apart.log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc) / q.scale
    last = (-apart + (1 + ratio).lgamma()).exp()
    return -ratio.log() + apart + ratio * euler_constant + last - (1 + euler_constant)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ------------------------------------------------------------------------------------- normal vectors


def _square_norm(m: Any) -> Any:
    return m.square().sum((-2, -1))


def _log_det(d: Any) -> Any:
    if isinstance(d, LowRankMultivariateNormal):
        return low_rank_log_det(d._unbroadcasted_cov_diag, d._capacitance_tril)
    return 2 * half_log_det(d._unbroadcasted_scale_tril)


def _roots(d: Any) -> list[Any]:
    """Return matrices A for which the sum of all A Aᵀ is the covariance."""
    if isinstance(d, LowRankMultivariateNormal):
        return [d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag.sqrt().diag_embed()]
    return [d._unbroadcasted_scale_tril]


def _trace(q: Any, root: Any) -> Any:
    """The trace of Q⁻¹ A Aᵀ."""
    if isinstance(q, LowRankMultivariateNormal):
        w, d = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
        inner = linalg.solve_triangular(q._capacitance_tril, w.mT / d.unsqueeze(-2), upper=False)
        return _square_norm(root * d.rsqrt().unsqueeze(-1)) - _square_norm(inner @ root)
    factor = q._unbroadcasted_scale_tril
    batch = broadcast_shapes(tuple(factor.shape[:-2]), tuple(root.shape[:-2]))
    solved = linalg.solve_triangular(
        factor.expand((*batch, *factor.shape[-2:])),
        root.expand((*batch, *root.shape[-2:])),
        upper=False,
    )
    return _square_norm(solved)


def _distance(q: Any, x: Any) -> Any:
    if isinstance(q, LowRankMultivariateNormal):
        w, d = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
        return low_rank_mahalanobis(w, d, x, q._capacitance_tril)
    return mahalanobis(q._unbroadcasted_scale_tril, x)


def _normal_vectors(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )
    trace = sum(_trace(q, root) for root in _roots(p))
    size = _log_det(q) - _log_det(p) - p.event_shape[0]
    return 0.5 * (size + trace + _distance(q, q.loc - p.loc))


for _a in (MultivariateNormal, LowRankMultivariateNormal):
    for _b in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_a, _b)(_normal_vectors)


# ------------------------------------------------------------------------------------- across families


class _Expected:
    """Expectations under a distribution p, of which cross entropies consist."""

    def __init__(self, p: Any) -> None:
        self.p = p

    def square(self, center: Any) -> Any:
        """E (x - center)²."""
        return self.p.variance + (self.p.mean - center).square()

    def log(self) -> Any:
        """E log x."""
        p = self.p
        if isinstance(p, Beta):
            return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
        if isinstance(p, Exponential):
            return -euler_constant - p.rate.log()
        if isinstance(p, Gamma):
            return p.concentration.digamma() - p.rate.log()
        if isinstance(p, Pareto):
            return p.scale.log() + p.alpha.reciprocal()
        return _mean_log(p.low, p.high)

    def log_rest(self) -> Any:
        """E log(1 - x)."""
        p = self.p
        if isinstance(p, Beta):
            return p.concentration0.digamma() - (p.concentration1 + p.concentration0).digamma()
        return _mean_log(1 - p.high, 1 - p.low)

    def exp(self, t: Any) -> Any:
        """E exp(-t x)."""
        p = self.p
        if isinstance(p, Exponential):
            return p.rate / (p.rate + t)
        if isinstance(p, Gamma):
            return (p.rate / (p.rate + t)).pow(p.concentration)
        if isinstance(p, Normal):
            return (-t * p.loc + 0.5 * (t * p.scale).square()).exp()
        return ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low))


def _mean_log(low: Any, high: Any) -> Any:
    """The mean of log x between two numbers."""
    return (ops.xlogy(high, high) - ops.xlogy(low, low)) / (high - low) - 1


def _to_normal(e: _Expected, q: Any) -> Any:
    scale = q.scale.log() + 0.5 * math.log(2 * math.pi)
    return scale + e.square(q.loc) / (2 * q.scale.square())


def _to_exponential(e: _Expected, q: Any) -> Any:
    return q.rate * e.p.mean - q.rate.log()


def _to_gamma(e: _Expected, q: Any) -> Any:
    size = q.concentration.lgamma() - q.concentration * q.rate.log()
    return size - (q.concentration - 1) * e.log() + q.rate * e.p.mean


def _to_gumbel(e: _Expected, q: Any) -> Any:
    last = (q.loc / q.scale).exp() * e.exp(q.scale.reciprocal())
    return q.scale.log() + (e.p.mean - q.loc) / q.scale + last


def _to_beta(e: _Expected, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    size = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return size - (a - 1) * e.log() - (b - 1) * e.log_rest()


def _to_continuous_bernoulli(e: _Expected, q: Any) -> Any:
    return -e.p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


def _to_uniform(e: _Expected, q: Any) -> Any:
    return (q.high - q.low).log() + 0 * e.p.mean


def _to_pareto(e: _Expected, q: Any) -> Any:
    return (q.alpha + 1) * e.log() - q.alpha.log() - q.alpha * q.scale.log()


_CROSS: dict[type, Callable[[_Expected, Any], Any]] = {
    Normal: _to_normal, Exponential: _to_exponential, Gamma: _to_gamma, Gumbel: _to_gumbel, Beta: _to_beta,
    ContinuousBernoulli: _to_continuous_bernoulli, Uniform: _to_uniform, Pareto: _to_pareto,
}  # fmt: skip


def _outside(p: Any, q: Any) -> Any:
    """Return where the divergence is infinite, as p has values outside q's support or lacks a moment; False if that
    cannot be.
    """
    if isinstance(p, Pareto):
        return p.alpha <= (2 if isinstance(q, Normal) else 1)
    if isinstance(q, Uniform):
        return (q.low > 0) | (q.high < 1)  # p lives on [0, 1]
    if not isinstance(p, Uniform):
        return False
    if isinstance(q, Beta):
        return (p.high > 1) | (p.low < 0)
    if isinstance(q, ContinuousBernoulli):
        return (p.high >= 1) | (p.low <= 0)
    if isinstance(q, Pareto):
        return p.low < q.scale
    return p.low < 0 if isinstance(q, Exponential | Gamma) else False


def _cross(p: Any, q: Any) -> Any:
    kind = next(k for k in _CROSS if isinstance(q, k))
    made = _CROSS[kind](_Expected(p), q) - p.entropy()
    outside = _outside(p, q)
    return made if outside is False else ops.where(outside, math.inf, made)


def _infinite(p: Any, q: Any) -> Any:
    return ops.full_like(p.mean, math.inf)


_FINITE: dict[type, tuple[type, ...]] = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (Exponential, Normal, Uniform),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel,),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto),
}
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for _table, _formula in ((_FINITE, _cross), (_INFINITE, _infinite)):
    for _a, _kinds in _table.items():  # type: ignore[assignment]
        for _kind in _kinds:
            register_kl(_a, _kind)(_formula)
for _kind in (Beta, ContinuousBernoulli, Exponential, Gamma):
    register_kl(_kind, _kind)(_cross)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    made = ((q.high - q.low) / (p.high - p.low)).log()
    return ops.where((q.low > p.low) | (q.high < p.high), math.inf, made)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    apart = (p.loc - q.loc) / p.scale
    bell = math.sqrt(2 / math.pi) * (-0.5 * apart.square()).exp()
    distance = p.scale * (bell + apart * (apart * math.sqrt(0.5)).erf())  # E |x - q.loc|
    return distance / q.scale + (2 * q.scale).log() - p.entropy()
