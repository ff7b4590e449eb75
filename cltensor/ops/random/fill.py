"""Methods that fill an existing tensor with random numbers: `uniform_`, `normal_`, `random_` and
their kin.

Distributions are in `draws.py`. In the graph a filled tensor no longer depends on its former value:
the gradient of that is zero.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd import views
from ...dtypes import C_NAMES
from ...dtypes import dtype as DType
from ...errors import caller_level
from ...lazy import Expr
from .. import core, writes
from ..core import Tensor
from ..refusals import no_kernel
from ..row import public
from ..values import largest, real
from . import draws, parametrised
from .generator import Generator, choose

_MANTISSA = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


def _fill(
    t: Tensor,
    node: str,
    generator: Generator | None,
    write: Callable[[Tensor, Generator], None],
) -> Tensor:
    """Overwrite the tensor by `write(t, generator)`, and record the node `node`, whose gradient is zero."""
    views.check_inplace(t)
    writes.check_overlap(t, ())
    recorded = graph.needs_grad(t)
    write(t, choose(generator, t.device))
    t._vc.value += 1
    if recorded:
        views.rebase(t, node, (t,), parametrised.no_gradient)
    return t


def _by(make: Callable[..., Expr], *params: Any) -> Callable[[Tensor, Generator], None]:
    """Return the function that overwrites a tensor by a distribution's expression."""
    return lambda t, source: draws.fill(t, make, source, *params)


def _by_floating(kind: str, function: str, *params: float) -> Callable[[Tensor, Generator], None]:
    """Return the function that overwrites a tensor by a floating distribution; a complex one by components."""

    def write(t: Tensor, source: Generator) -> None:
        make, shape, dt, given = draws.floating(kind, function, t.shape, t.dtype, *params)
        if dt is not t.dtype:
            strides = (*(2 * s for s in t._strides), 1)
            t = core.make(t._storage, shape, dt, t.device, strides, 2 * t._offset)
        draws.fill(t, make, source, *given)

    return write


@public(function=False)
def uniform_(
    self: Tensor,
    from_: float = 0.0,
    to: float = 1.0,
    *,
    generator: Generator | None = None,
    **named: Any,
) -> Tensor:
    """Fill with numbers uniform in [from, to)."""
    low, high = real("uniform_", "from", named.pop("from", from_)), real("uniform_", "to", to)
    limit = largest(self.dtype) if self.dtype.category == 2 else math.inf
    for name, value in (("from", low), ("to", high)):
        if abs(value) > limit:
            raise RuntimeError(f"{name} is out of bounds for {dtypes.C_NAMES[self.dtype.name]}")
    if low > high and self.dtype.category >= 2:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{self.dtype.scalar_name}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )
    return _fill(
        self,
        "UniformBackward0",
        generator,
        _by_floating("uniform", "check_uniform_bounds", low, high),
    )


@public(function=False)
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal numbers. RuntimeError for a negative `std`, NotImplementedError for integers."""
    mean, std = real("normal_", "mean", mean), real("normal_", "std", std)
    parametrised.check_std(std)
    return _fill(
        self,
        "NormalBackward0",
        generator,
        _by_floating("normal", "normal_kernel_cpu", mean, std),
    )


def _exact(dt: DType, name: str, value: int) -> int:
    limit = 2 ** _MANTISSA[dt]
    if not -limit <= value <= limit:
        warnings.warn(
            f"{name} is out of bounds [-(2^{_MANTISSA[dt]}), 2^{_MANTISSA[dt]}]: {dt!r} does not "
            "hold every integer of the range",
            UserWarning,
            stacklevel=caller_level(),
        )
    return value


@public(function=False)
def random_(
    self: Tensor, *bounds: Any, generator: Generator | None = None, to: Any = None, **named: Any
) -> Tensor:
    """Fill with integers: `random_(from, to)` of [from, to), `random_(to)` of [0, to), `random_()`
    of all that the dtype holds from 0 on.

    `random_(from, None)` takes all integers that the dtype holds from `from` on.
    """
    low: Any = named.pop("from", None)
    if named or len(bounds) > 2:
        raise TypeError(f"random_() got an unexpected argument {next(iter(named), bounds[-1:])!r}")
    open_end = low is not None or len(bounds) == 2
    if len(bounds) == 2:
        low, to = bounds
    elif bounds:
        low, to = (low, bounds[0]) if to is None else (bounds[0], to)
    dt = self.dtype
    if dt.is_complex:
        raise no_kernel("random_", dt)
    if low is None and to is None:
        top = (
            2
            if dt is dtypes.bool
            else 2 ** _MANTISSA[dt] + 1
            if dt.category == 2
            else dtypes.iinfo(dt).max + 1
        )
        low, high, node = 0, top, "RandomBackward2"
    else:
        node = "RandomBackward1" if low is None else "RandomBackward0"
        low, high = 0 if low is None else low, to
        if high is None and open_end:
            high = (
                2
                if dt is dtypes.bool
                else 2 ** _MANTISSA[dt] + 1
                if dt.category == 2
                else dtypes.iinfo(dt).max + 1
            )
        low, high = int(low), int(high)
        draws.check_range(dt, low, high)
        if dt.category == 2:
            _exact(dt, "from", low), _exact(dt, "to - 1", high - 1)
    return _fill(self, node, generator, _by(draws.integers, low, high))


@public(function=False)
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 at probability `p`, else 0; `p` is a number or a tensor that can be expanded to
    self's shape."""
    if not core.is_tensor(p):
        p = real("bernoulli_", "p", p)
        parametrised.check_p(p)
        return _fill(
            self,
            "BernoulliBackward2",
            generator,
            _by(draws.coins, p),
        )
    if p.dtype.category != 2:
        raise RuntimeError(
            f"expected probabilities tensor to have floating type, got {p.dtype.scalar_name}"
        )
    parametrised.check_probability(p.detach())
    wide = p.expand(self.shape)
    return _fill(
        self,
        "BernoulliBackward1",
        generator,
        lambda t, source: writes.write(
            t, draws.coins_by(wide, t.shape, t.dtype, source.take(t.numel()))
        ),
    )


def _real(function: str, dt: DType) -> None:
    if dt.category != 2:
        raise no_kernel(function, dt)


@public(function=False)
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponential numbers of rate `lambd`."""
    lambd = real("exponential_", "lambd", lambd)
    if not self.dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {self.dtype.scalar_name}"
        )
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return _fill(
        self,
        "ExponentialBackward0",
        generator,
        _by(draws.exponential, lambd),
    )


@public(function=False)
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with Cauchy numbers."""
    median, sigma = real("cauchy_", "median", median), real("cauchy_", "sigma", sigma)
    if self.dtype.category != 2:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {C_NAMES[self.dtype.name]}"
        )
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return _fill(
        self,
        "CauchyBackward0",
        generator,
        _by(draws.cauchy, median, sigma),
    )


@public(function=False)
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exponentials of normal numbers."""
    mean, std = real("log_normal_", "mean", mean), real("log_normal_", "std", std)
    _real("log_normal_", self.dtype)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    return _fill(
        self,
        "LogNormalBackward0",
        generator,
        _by(draws.log_normal, mean, std),
    )


@public(function=False)
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials up to the first success of probability `p` in (0, 1)."""
    p = real("geometric_", "p", p)
    if self.dtype.is_complex or self.dtype is dtypes.bool:
        raise no_kernel("geometric_", self.dtype)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return _fill(
        self,
        "GeometricBackward0",
        generator,
        _by(draws.geometric, p),
    )
