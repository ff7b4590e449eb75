"""Transforms of whole vectors and matrices: to simplices, to Cholesky factors, and of consecutive parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..nn import functional
from ..size import Size
from . import constraints
from .elementwise_transforms import clipped_sigmoid
from .transform import PlainTransform, Transform
from .utils import _sum_rightmost, linalg, ops, tril_matrix_to_vec, vec_to_tril_matrix

softplus, logsigmoid, pad = functional.softplus, functional.logsigmoid, functional.pad


class CorrCholeskyTransform(Transform):
    """Vectors of length D (D - 1) / 2 to Cholesky factors of D × D correlation matrices, by stick-breaking of squared rows."""

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x: Any) -> Any:
        eps = dtypes.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - r.square()).sqrt().cumprod(-1)
        r = r + ops.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        rest = pad(1 - y.square().cumsum(-1)[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        rest = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2)
        slope = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * rest.log().sum(-1) + slope

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], d, d))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class SoftmaxTransform(PlainTransform):
    """Scores to probabilities. Not injective: the inverse returns one of many arguments."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(PlainTransform):
    """Vectors of length D to probabilities of D + 1 classes: each element breaks off a part of the probability left."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    @staticmethod
    def _offset(x: Any) -> Any:
        n = x.shape[-1]
        return ops.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Any) -> Any:
        z = clipped_sigmoid(x - self._offset(x))
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        rest = (1 - head.cumsum(-1)).clamp(min=dtypes.finfo(y.dtype).tiny)
        return head.log() - rest.log() + self._offset(head)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._offset(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] - 1))


def _with_diagonal(x: Any, diagonal: Any) -> Any:
    return x.tril(-1) + diagonal.diag_embed()


class LowerCholeskyTransform(PlainTransform):
    """Square matrices to lower triangular ones with positive diagonals."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return _with_diagonal(x, x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Any) -> Any:
        return _with_diagonal(y, y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(PlainTransform):
    """Square matrices to positive definite ones."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class _Side(Transform):
    """Base of transforms that apply a transform of its own to each part of a tensor along a dim."""

    def __init__(self, tseq: Sequence[Any], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _parts(self, x: Any) -> Any:
        raise NotImplementedError

    def _join(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _check(self, x: Any, size: int, what: str) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for tensor with {x.dim()} dimensions"
            )
        if x.size(self.dim) != size:
            raise AssertionError(
                f"x.size({self.dim}) = {x.size(self.dim)} must equal {what} {size}"
            )

    def _call(self, x: Any) -> Any:
        return self._join([t(v) for t, v in zip(self.transforms, self._parts(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        return self._join([t.inv(v) for t, v in zip(self.transforms, self._parts(y), strict=True)])


class CatTransform(_Side):
    """Each transform takes `lengths[i]` elements along a dimension."""

    _arguments = ("transforms", "dim", "lengths")

    def __init__(
        self,
        tseq: Sequence[Any],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    domain = property(
        lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)
    )
    codomain = property(
        lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
    )

    def _parts(self, x: Any) -> Any:
        self._check(x, self.length, "length")
        return x.split(self.lengths, self.dim)

    def _join(self, parts: list[Any]) -> Any:
        return ops.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        depth, terms = self.event_dim, []
        for t, a, b in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            term = t.log_abs_det_jacobian(a, b)
            terms.append(_sum_rightmost(term, depth - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += depth
        return ops.cat(terms, dim) if dim < 0 else sum(terms)


class StackTransform(_Side):
    """Each transform takes one slice along a dimension."""

    _arguments = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(
        lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim)
    )

    def _parts(self, x: Any) -> Any:
        self._check(x, len(self.transforms), "len(transforms)")
        return x.unbind(self.dim)

    def _join(self, parts: list[Any]) -> Any:
        return ops.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        triples = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return self._join([t.log_abs_det_jacobian(a, b) for t, a, b in triples])


class CumulativeDistributionTransform(Transform):
    """A distribution's values to their cumulative probabilities."""

    bijective, codomain, sign = True, constraints.unit_interval, +1
    _arguments = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
