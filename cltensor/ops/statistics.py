"""Covariance, quantiles, counts and histograms, integrals along a dimension, slices kept to a norm."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.order.count import count
from ..errors import caller_level
from ..runtime import get_backend
from . import core, norms, writes
from .arguments import invalid_combination
from .arithmetic import div_number, mul_number
from .composite import at_once, in_one
from .core import Tensor, is_tensor
from .dims import whole
from .extremes import span
from .reducing import accumulator
from .refusals import no_kernel
from .replay import Replayed
from .row import FUNCTIONS, public, titled, with_inplace
from .selection import where
from .values import number

# ------------------------------------------------------------------------------------------- covariance


def _weights(name: str, w: Tensor | None, n: int, integral: bool) -> Tensor | None:
    if w is None:
        return None
    if w.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim} dimensions"
        )
    if integral != (w.dtype.category == 1):
        raise RuntimeError(
            f"cov(): expected {name} to have {'integral' if integral else 'floating point'} dtype but got {name} with {w.dtype.scalar_name} dtype"
        )
    if w.numel() != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got {w.numel()} != {n}"
        )
    if w.numel() and bool((w < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return w


@public()
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of variables (rows) over observations (columns), divided by their number minus `correction`."""
    if input.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input.dtype is dtypes.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    correction = whole("cov", "correction", correction)
    x = input.view(1, -1) if input.ndim < 2 else input
    n = x.shape[1]
    f, a = _weights("fweights", fweights, n, True), _weights("aweights", aweights, n, False)
    w = f if a is None else a if f is None else f * a
    total: Any = n if w is None else w.sum()
    if w is None or a is None or correction == 0:
        factor: Any = total - correction
    else:
        factor = total - correction * (w * a).sum() / total
    if (factor if not is_tensor(factor) else factor.item()) <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=caller_level(),
        )
        factor = 0
    if w is None:
        return _covariances((x,), n, factor)[0]
    centred = x - ((x * w).sum(1) / total).unsqueeze(1)
    return (centred.matmul((centred * w).t().conj()) / factor).squeeze()


@in_one
def _covariances(xs: Sequence[Tensor], n: int, factor: int) -> list[Tensor]:
    (x,) = xs
    centred = x - (x.sum(1) / n).unsqueeze(1)
    return [(centred.matmul(centred.t().conj()) / factor).squeeze()]


@public()
def corrcoef(input: Tensor) -> Tensor:
    """The matrix of Pearson's correlations of variables (rows), clipped to [-1, 1]."""
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    c = cov(input)
    return c / c if c.ndim == 0 else _correlations((c,))[0]


@in_one
def _correlations(cs: Sequence[Tensor]) -> list[Tensor]:
    (c,) = cs
    d = c.diagonal()
    deviation = (d.real if c.dtype.is_complex else d).sqrt()
    c = c / deviation.view(-1, 1) / deviation.view(1, -1)
    if c.dtype.is_complex:
        return [FUNCTIONS["complex"](c.real.clip(-1, 1), c.imag.clip(-1, 1))]
    return [c.clip(-1, 1)]


# ------------------------------------------------------------------------------------------- quantiles

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name: str, input: Tensor, q: Any, interpolation: str) -> Tensor:
    """Return `q` as a tensor of the input's dtype, of 0 or 1 dims; RuntimeError in torch's words."""
    if input.dtype is not dtypes.float32 and input.dtype is not dtypes.float64:
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if not input.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if is_tensor(q):
        if q.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q.dtype is not input.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        if q.numel() and not bool(((q >= 0) & (q <= 1)).all()):
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
        return q
    if not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    return input.new_full((), q)


def _interpolated(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """Read sorted rows (..., n) at places between their elements (..., k)."""
    if interpolation == "lower":
        ranks = ranks.floor()
    elif interpolation == "higher":
        ranks = ranks.ceil()
    elif interpolation == "nearest":
        ranks = ranks.round()
    below = ranks.floor()
    if interpolation not in ("linear", "midpoint"):
        return ordered.gather(-1, below.long())
    weight = ranks - below if interpolation == "linear" else FUNCTIONS["full_like"](ranks, 0.5)
    # One gather, because a replay checks indices once.
    places = FUNCTIONS["stack"]([below, ranks.ceil()]).long()
    low, high = ordered.expand(2, *ordered.shape).gather(-1, places).unbind()
    return low.lerp(high, weight.to(low.dtype))


@in_one
def _of_rows(given: Sequence[Tensor], interpolation: str, skip_nan: bool) -> list[Tensor]:
    """Return the quantiles `q` (k) of rows (..., n) as (..., k)."""
    rows, q = given
    ordered = rows.sort(-1).values
    last = ordered.shape[-1] - 1
    nans = ordered.isnan()
    if skip_nan:
        ranks = (q * ((~nans).sum(-1, keepdim=True) - 1)).clamp(min=0)
    else:  # a row with a NaN, which is sorted last, gives that
        ranks = where(nans.any(-1, keepdim=True), float(last), q * last)
    return [_interpolated(ordered, ranks, interpolation)]


def _quantile(
    name: str,
    input: Tensor,
    q: Any,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    skip_nan: bool,
    out: Tensor | None,
) -> Tensor:
    q = _check_quantile(name, input, q, interpolation)
    if out is not None and out.dtype is not input.dtype:
        raise RuntimeError(f"{name}() out tensor must be same dtype as the input tensor")
    at = 0 if dim is None else layouts.wrap_dim(dim, input.ndim)
    rows = input.reshape(-1) if dim is None or not input.ndim else input.movedim(at, -1)
    (found,) = _of_rows((rows, q.reshape(-1)), interpolation, skip_nan)
    if keepdim and input.ndim:
        found = found.reshape(*[1] * input.ndim, -1) if dim is None else found.unsqueeze(at)
    value = found.movedim(-1, 0) if q.ndim else found.squeeze(-1)
    return writes.deliver(value, out, name, (input, q))


def _quantiles(name: str, skip_nan: bool, doc: str) -> Callable[..., Tensor]:
    @public(name)
    def quantiles(
        input: Tensor,
        q: Tensor | float,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        out: Tensor | None = None,
    ) -> Tensor:
        return _quantile(name, input, q, dim, keepdim, interpolation, skip_nan, out)

    return titled(quantiles, name, doc)


quantile = _quantiles(
    "quantile",
    False,
    "The q-quantiles along `dim` (of all elements by default); a 1-D q adds a first dimension. NaN where there is one.",
)
nanquantile = _quantiles("nanquantile", True, "`quantile` of what is not NaN.")

# ------------------------------------------------------------------------------------------- counts


@public()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, 2, … occurs in a 1-D integer tensor, or the sum of the weights where it does."""
    if input.dtype.category != 1:
        raise no_kernel("bincount_cpu", input.dtype)
    minlength = whole("bincount", "minlength", minlength)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.ndim != 1:
        raise RuntimeError(_NEGATIVE)
    if not input.numel():
        return input.new_zeros(minlength, dtype=dtypes.int64)
    if weights is not None and weights.shape != input.shape:
        _least_and_most(input)
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is None and minlength:
        counts, others = _count((input,), minlength)
        if not int(others):
            return counts
    n = max(minlength, _least_and_most(input)[1] + 1)
    if weights is None:
        return _count((input,), n)[0]
    floats = weights.dtype.category == 2 and weights.dtype.itemsize >= 4
    what = weights.detach() if floats else weights.detach().double()
    return what.new_zeros(n).index_add(0, input.long(), what)


_NEGATIVE = "bincount only supports 1-d non-negative integral inputs."


def _least_and_most(places: Tensor) -> tuple[int, int]:
    """Return the least and largest of the integers given to bincount; RuntimeError if one is negative."""
    low, high = span(places)
    if low < 0:
        raise RuntimeError(_NEGATIVE)
    return low, high


@Replayed.of_memory
def _count(given: Sequence[Tensor], bins: int) -> list[Tensor]:
    """Return how often each of 0, 1, … bins - 1 occurs among integers, and how many lie outside of these (int64)."""
    places = given[0]
    backend = get_backend(places.device)
    with backend.lock:
        found = count(backend, core.kernel_operand(places), bins)
    return [core.result(x, places.device) for x in found]


def counted(places: Tensor, inside: Tensor, bins: int, what: Tensor | None = None) -> Tensor:
    """Sum `what` per bin (or count elements).

    Elements not `inside` go into an additional last bin, which is dropped.
    """
    flat = where(inside, places, bins).reshape(-1)
    if what is None:
        return _count((flat,), bins)[0]
    return what.new_zeros(bins + 1).index_add(0, flat, what.reshape(-1))[:bins]


def value_range(
    what: str, x: Tensor, given: tuple[float, float] | None, widen: float = 1.0
) -> tuple[float, float]:
    """Return the given range, else that of the data, which must be finite; widened where both ends are equal."""
    low, high = given or (span(x) if x.numel() else (0.0, 0.0))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{what} [{low:g}, {high:g}] is not finite")
    return (low - widen, high + widen) if low == high else (low, high)


@public()
def histc(
    input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None
) -> Tensor:
    """Count elements in equal bins between min and max (those of the data if equal); others are left out."""
    if input.dtype.category != 2:
        raise no_kernel("histogram_cpu", input.dtype)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if max < min:
        raise RuntimeError("torch.histc: max must be larger than min")
    x = input.detach()
    low, high = value_range("torch.histc: range of", x, (min, max) if min != max else None)
    (counts,) = _histogram((x,), bins, low, high)
    return writes.deliver(counts, out, "histc", (input,), differentiable=False)


@at_once
def _histogram(given: Sequence[Tensor], bins: int, low: float, high: float) -> list[Tensor]:
    x = given[0]
    places = ((x - low) * bins / (high - low)).long().clamp(0, bins - 1)
    return [counted(places, (x >= low) & (x <= high), bins).to(x.dtype)]


# ------------------------------------------------------------------------------------------- differences and integrals


@public()
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The n-th difference of neighbours along `dim`, after joining what is to precede and follow."""
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for x in (prepend, append):
        if x is not None and x.ndim != input.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    if n == 0:  # `prepend` and `append` have no effect then
        return writes.deliver(input.clone(), out, "diff", (input,))
    at = layouts.wrap_dim(dim, input.ndim)
    for x in (prepend, append):
        if x is None:
            continue
        for d in range(input.ndim):
            if d != at and x.shape[d] != input.shape[d]:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; "
                    f"input.size({d}) = {input.shape[d]}, but got tensor.size({d}) = {x.shape[d]}"
                )
    parts = [x for x in (prepend, input, append) if x is not None]
    (value,) = _differences(parts, n, at)
    return writes.deliver(value, out, "sub", (value,))


@in_one
def _differences(parts: Sequence[Tensor], n: int, dim: int) -> list[Tensor]:
    """Return the n-th differences along `dim` of tensors joined there."""
    value = FUNCTIONS["cat"](parts, dim) if len(parts) > 1 else parts[0]
    for _ in range(min(n, value.shape[dim])):
        size = value.shape[dim]
        later = value.narrow(dim, 1, size - 1) if size else value
        earlier = value.narrow(dim, 0, max(size - 1, 0))
        value = (
            FUNCTIONS["logical_xor"](later, earlier)
            if value.dtype is dtypes.bool
            else later - earlier
        )
    return [value]


def _spacing(name: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Any:
    if x is None:
        return 1 if dx is None else number(name, "dx", dx)
    if dx is not None or not is_tensor(x):
        raise invalid_combination(name, (y, x) if dx is None else (y, x, dx))
    at = layouts.wrap_dim(dim, y.ndim)
    if x.ndim == 1:
        if x.shape[0] != y.shape[at]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        later, earlier = _neighbours(x.view(-1, *[1] * (y.ndim - at - 1)), 0)
    else:
        x = x.expand(layouts.broadcast_shapes(x.shape, y.shape)) if x.ndim < y.ndim else x
        later, earlier = _neighbours(x, at)
    return later - earlier


def _neighbours(y: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    n = max(y.shape[dim] - 1, 0)
    return y.narrow(dim, min(n, 1), n), y.narrow(dim, 0, n)


def _pairs(y: Tensor, dim: int) -> Tensor:
    later, earlier = _neighbours(y, dim)
    return later + earlier


@public("trapezoid", method=False, aliases=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Integrate along `dim` by the trapezoidal rule, with spacing `dx` (1) or at the places `x`."""
    if y.dtype is dtypes.bool:
        raise RuntimeError("trapezoid: received a bool input for `y`, but bool is not supported")
    if not y.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not y.shape[dim := layouts.wrap_dim(dim, y.ndim)]:
        return y.new_zeros(
            y.shape[:dim] + y.shape[dim + 1 :]
        )  # a value without history, as torch's
    step = _spacing("trapezoid", y, x, dx, dim)
    if is_tensor(step):
        return div_number((_pairs(y, dim) * step).sum(dim), 2.0)
    return _evenly((y,), step, dim)[0]


@in_one
def _evenly(ys: Sequence[Tensor], step: float, dim: int) -> list[Tensor]:
    (y,) = ys
    ends = y.select(dim, 0) + y.select(dim, -1)
    return [mul_number(y.sum(dim) - mul_number(ends, 0.5), step)]


@public(method=False)
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1
) -> Tensor:
    """The running sums of what `trapezoid` adds up."""
    if not y.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if y.dtype is dtypes.bool:
        raise RuntimeError(
            "cumulative_trapezoid: received a bool input for `y`, but bool is not supported"
        )
    dim = layouts.wrap_dim(dim, y.ndim)
    pairs, step = _pairs(y, dim), _spacing("cumulative_trapezoid", y, x, dx, dim)
    if is_tensor(step):
        return div_number((pairs * step).cumsum(dim), 2.0)
    return mul_number(pairs, step / 2).cumsum(dim)


# ------------------------------------------------------------------------------------------- slices of a norm


@public()
def renorm(
    input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None
) -> Tensor:
    """Scale the slices along `dim` down whose p-norm exceeds `maxnorm`."""
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    at = layouts.wrap_dim(dim, input.ndim)
    dims = tuple([d for d in range(input.ndim) if d != at])
    with unrecorded():
        x = _widened(input)
        size = norms.vector_norm(x, p, dims, True)
        scaled = x * where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)
        value = scaled.to(input.dtype).contiguous()
    if graph.needs_grad(input):
        saved = {"self": input, "p": float(p), "dim": dims, "maxnorm": maxnorm}
        graph.record("RenormBackward0", (input,), value, _renorm_back, saved)
    return writes.deliver(value, out, "renorm", (input,))


def _widened(x: Tensor) -> Tensor:
    """Return a tensor whose floats have 16 bits in float32, where their norms are finite, any other as it is."""
    return x.to(accumulator(x.dtype)) if x.dtype.category > 1 else x


def _renorm_back(ctx: Any, g: Tensor) -> Tensor:
    given, dims = g.dtype, ctx.dim
    x, g = _widened(ctx.self), _widened(g)
    size = norms.vector_norm(x, ctx.p, dims, True)
    over, rest = size > ctx.maxnorm, size + 1e-7
    inner = (g * x.conj()).sum(dims, True)
    inner = inner.real if inner.is_complex() else inner
    scaled = g * (ctx.maxnorm / rest)
    by_size = -ctx.maxnorm * inner / rest**2
    slope = scaled + norms.gradient(x, by_size, size, ctx.p, dims)
    return where(over, slope, g).to(given)


with_inplace("renorm", renorm)
