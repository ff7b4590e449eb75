"""Angles around a direction: the von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes, special
from ..autograd import no_grad
from ..size import Size
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, ops

__all__ = ["VonMises"]

_special: Any = special


class VonMises(Distribution):
    """Angles in (-pi, pi], of density proportional to exp(concentration * cos(x - loc))."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: Any = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        k = self.concentration
        # log I0(k) = log(I0(k) exp(-k)) + k
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - _special.i0e(k).log() - k

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw angles: Best and Fisher's rejection from a wrapped Cauchy distribution, in float64."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, k = (
                v.detach().to(dtypes.float64).expand(shape) for v in (self.loc, self.concentration)
            )
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = ops.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))
            found, open_ = ops.zeros_like(k), ops.ones(shape, dtype=dtypes.bool, device=k.device)
            while bool(open_.any()):
                u1, u2, u3 = (ops.rand(shape, dtype=k.dtype, device=k.device) for _ in range(3))
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = open_ & ((c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0))
                found = ops.where(accepted, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), found)
                open_ = open_ & ~accepted
            turned = (found + math.pi + loc) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Any:
        """The circular variance."""
        k = self.concentration
        return 1 - _special.i1e(k) / _special.i0e(k)
