"""Rows of one operand: signs, rounding, exponentials, logarithms, trigonometry, hyperbolics, special functions."""

from __future__ import annotations

import builtins
import math

import numpy as np

from .. import dtypes
from . import writes
from .core import Tensor
from .dims import whole
from .operands import refuse_numbers
from .refusals import no_kernel
from .row import FLOAT, METHODS, REAL, Row, public
from .selection import where
from .slopes import slope
from .values import conj

# ------------------------------------------------------------------------------------------- signs and parts

neg = Row(
    "neg",
    {"ifc": "-x"},
    aliases=("negative",),
    reference=np.negative,
    grad={"x": lambda g: -g},
    doc="Each element with the other sign; unsigned integers wrap around.",
)
abs_row = Row(
    "abs", {"if": "abs(x)", "c": "cplx(cabs(x), 0)"}, promote=REAL, public=False, reference=np.abs,
    grad={"x": lambda g, x: g * x.sgn()},
)  # fmt: skip
sign = Row(
    "sign",
    {
        "b": "x",
        "i": "where(x > 0, 1, 0) - where(x < 0, 1, 0)",
        "f": "where(x > 0, 1, 0) - where(x < 0, 1, 0)",
    },
    reference=np.sign,
    grad={"x": lambda g: writes.nothing(g)},
    doc="-1, 0 or 1 by the sign of each element.",
)
sgn = Row(
    "sgn", {"b": "x", "if": "where(x > 0, 1, 0) - where(x < 0, 1, 0)", "c": "csgn(x)"}, reference=np.sign,
    grad={"x": lambda g, x, result: _sgn_grad(g, x, result)},
    doc="The sign of each element; of a complex one x / abs(x), or 0.",
)  # fmt: skip
positive_row = Row("positive", {"ifc": "x"}, public=False, inplace=False)
real_row = Row("real", {"c": "x"}, promote=REAL, public=False)


def _sgn_grad(g: Tensor, x: Tensor, result: Tensor) -> Tensor:
    if not x.dtype.is_complex:
        return writes.nothing(g)
    size = x.abs()
    return where(
        size == 0, 0.0, (g - (result * conj(g)).real * result) / where(size == 0, 1.0, size)
    )


def _refuse_bool(x: Tensor) -> None:
    if x.dtype is dtypes.bool:
        raise NotImplementedError("\"abs_cpu\" not implemented for 'Bool'")


@public(aliases=("absolute",))
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Magnitude; real for complex input."""
    refuse_numbers("abs", ("input",), (input,), (False,))
    _refuse_bool(input)
    value = abs_row(input)
    name = "absolute" if input.is_complex() else "abs"  # which of them takes other dtypes
    return value if out is None else writes.deliver(value, out, name, (input,))


def abs_(t: Tensor) -> Tensor:
    """In-place form of `abs`; RuntimeError for complex tensors."""
    if t.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    _refuse_bool(t)
    return writes.assign(t, abs_row)


METHODS["abs_"] = METHODS["absolute_"] = abs_
METHODS["neg_"] = METHODS["negative_"]


@public()
def positive(input: Tensor) -> Tensor:
    """Return the input itself; bool tensors are refused."""
    if input.dtype is dtypes.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# ------------------------------------------------------------------------------------------- rounding

_ZERO = {"x": lambda g: writes.nothing(g)}
ceil = Row(
    "ceil",
    {"i": "x", "f": "ceil(x)"},
    reference=np.ceil,
    grad=_ZERO,
    doc="The least integer not below each element.",
)
floor = Row(
    "floor",
    {"i": "x", "f": "floor(x)"},
    reference=np.floor,
    grad=_ZERO,
    doc="The greatest integer not above each element.",
)
trunc = Row(
    "trunc",
    {"i": "x", "f": "trunc(x)"},
    aliases=("fix",),
    reference=np.trunc,
    grad=_ZERO,
    doc="The integer part of each element, rounded towards 0.",
)
round_row = Row("round", {"i": "x", "f": "rint(x)"}, public=False, reference=np.round, grad=_ZERO)
round_decimals, round_places = (
    Row(
        name, {"f": formula}, exact=True, args=("input", "power"), public=False, node="RoundBackward1", graph_inputs=1, grad=_ZERO,
    )
    for name, formula in (("round_decimals", "rint(x * y) / y"), ("round_places", "rint(x / y) * y"))
)  # fmt: skip
frac = Row(
    "frac",
    {"f": "x - trunc(x)"},
    grad={"x": lambda g: g},
    doc="What `trunc` takes off: x - trunc(x), with the sign of x.",
)


@public()
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Round half to even, optionally to a number of decimals."""
    decimals = whole("round", "decimals", decimals)
    if decimals == 0:
        value = round_row(input)
    elif input.dtype.category == 2:
        row = round_decimals if decimals > 0 else round_places
        value = row(input, float(f"1e{builtins.abs(decimals)}"))
    else:
        raise no_kernel("round_cpu", input.dtype)
    return value if out is None else writes.deliver(value, out, "round", (input,))


METHODS["round_"] = lambda t, *, decimals=0: writes.assign(t, lambda x: round(x, decimals=decimals))

# ------------------------------------------------------------------------------------------- exponentials and logarithms

exp = Row(
    "exp",
    {"f": "exp(x)", "c": "cexp(x)"},
    promote=FLOAT,
    reference=np.exp,
    grad={"x": lambda g, result: g * conj(result)},
    doc="e to the power of each element.",
)
exp2 = Row(
    "exp2",
    {"f": "exp2(x)", "c": "cexp(cplx(re(x) * 0.6931471805599453, im(x) * 0.6931471805599453))"},
    promote=FLOAT,
    reference=np.exp2,
    grad={"x": lambda g, result: g * conj(result) * math.log(2)},
    doc="2 to the power of each element.",
)
expm1 = Row(
    "expm1",
    {"f": "expm1(x)", "c": "cexpm1(x)"},
    promote=FLOAT,
    reference=np.expm1,
    grad={"x": lambda g, result: g * conj(result + 1)},
    doc="exp(x) - 1, exact for small x, too.",
)
log = Row(
    "log",
    {"f": "log(x)", "c": "clog(x)"},
    promote=FLOAT,
    reference=np.log,
    domain=(0.1, 3.0),
    grad={"x": lambda g, x: g / conj(x)},
    doc="The natural logarithm; nan below 0, -inf at 0.",
)
log2 = Row(
    "log2",
    {"f": "log2(x)", "c": "clog2(x)"},
    promote=FLOAT,
    reference=np.log2,
    domain=(0.1, 3.0),
    grad={"x": lambda g, x: g / (conj(x) * math.log(2))},
    doc="The logarithm to base 2; nan below 0, -inf at 0.",
)
log10 = Row(
    "log10",
    {"f": "log10(x)", "c": "clog10(x)"},
    promote=FLOAT,
    reference=np.log10,
    domain=(0.1, 3.0),
    grad={"x": lambda g, x: g / (conj(x) * math.log(10))},
    doc="The logarithm to base 10; nan below 0, -inf at 0.",
)
log1p = Row(
    "log1p",
    {"f": "log1p(x)", "c": "clog1p(x)"},
    promote=FLOAT,
    reference=np.log1p,
    domain=(-0.9, 3.0),
    grad={"x": lambda g, x: g / conj(x + 1)},
    doc="log(1 + x), exact for small x, too; nan below -1, -inf at -1.",
)
sqrt = Row(
    "sqrt",
    {"f": "sqrt(x)", "c": "csqrt(x)"},
    promote=FLOAT,
    reference=np.sqrt,
    domain=(0.1, 3.0),
    grad={"x": slope("sqrt_slope", "x / (2 * y)", lambda g, result: g / conj(2 * result))},
    doc="The square root; nan below 0.",
)
rsqrt = Row(
    "rsqrt",
    {"f": "1 / sqrt(x)", "c": "crsqrt(x)"},
    promote=FLOAT,
    reference=lambda x: 1 / np.sqrt(x),
    domain=(0.1, 3.0),
    grad={
        "x": slope(
            "rsqrt_slope",
            "x * (y * y * y) * -0.5",
            lambda g, result: g * conj(result * result * result) * -0.5,
        )
    },
    doc="1 / sqrt(x); nan below 0, inf at 0.",
)
reciprocal = Row(
    "reciprocal",
    {"f": "1 / x", "c": "crecip(x)"},
    promote=FLOAT,
    reference=np.reciprocal,
    domain=(0.3, 3.0),
    grad={
        "x": slope("reciprocal_slope", "-x * (y * y)", lambda g, result: -g * conj(result * result))
    },
    doc="1 / x; infinite at 0.",
)
square_row = Row(
    "square",
    {"b": "x", "ifc": "x * x"},
    public=False,
    reference=np.square,
    node="PowBackward0",
    grad={"x": slope("square_slope", "x * (y * 2)", lambda g, x: g * conj(x * 2))},
)


@public()
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply by itself; bool tensors give int64."""
    value = square_row(input if input.dtype.category else input.to(dtypes.int64))
    return value if out is None else writes.deliver(value, out, "square", (input,))


METHODS["square_"] = lambda t: writes.assign(t, square)

# ------------------------------------------------------------------------------------------- trigonometry and hyperbolics

sin = Row(
    "sin",
    {"f": "sin(x)", "c": "csin(x)"},
    promote=FLOAT,
    reference=np.sin,
    grad={"x": slope("sin_slope", "x * cos(y)", lambda g, x: g * conj(x.cos()))},
    doc="The sine, of radians.",
)
cos = Row(
    "cos",
    {"f": "cos(x)", "c": "ccos(x)"},
    promote=FLOAT,
    reference=np.cos,
    grad={"x": slope("cos_slope", "-x * sin(y)", lambda g, x: g * conj(-x.sin()))},
    doc="The cosine, of radians.",
)
tan = Row(
    "tan",
    {"f": "tan(x)", "c": "ctan(x)"},
    promote=FLOAT,
    reference=np.tan,
    domain=(-1.2, 1.2),
    grad={"x": lambda g, result: g * conj(1 + result * result)},
    doc="The tangent, of radians.",
)
asin = Row(
    "asin",
    {"f": "asin(x)", "c": "casin(x)"},
    promote=FLOAT,
    aliases=("arcsin",),
    reference=np.arcsin,
    domain=(-0.9, 0.9),
    grad={"x": lambda g, x: g * conj((1 - x * x).rsqrt())},
    doc="The angle in [-pi/2, pi/2] whose sine is each element; nan beyond 1.",
)
acos = Row(
    "acos",
    {"f": "acos(x)", "c": "cacos(x)"},
    promote=FLOAT,
    aliases=("arccos",),
    reference=np.arccos,
    domain=(-0.9, 0.9),
    grad={"x": lambda g, x: g * conj(-(1 - x * x).rsqrt())},
    doc="The angle in [0, pi] whose cosine is each element; nan beyond 1.",
)
atan = Row(
    "atan",
    {"f": "atan(x)", "c": "catan(x)"},
    promote=FLOAT,
    aliases=("arctan",),
    reference=np.arctan,
    grad={"x": lambda g, x: g / conj(x * x + 1)},
    doc="The angle in [-pi/2, pi/2] whose tangent is each element.",
)
sinh = Row(
    "sinh",
    {"f": "sinh(x)", "c": "csinh(x)"},
    promote=FLOAT,
    reference=np.sinh,
    grad={"x": lambda g, x: g * conj(x.cosh())},
    doc="The hyperbolic sine, (exp(x) - exp(-x)) / 2.",
)
cosh = Row(
    "cosh",
    {"f": "cosh(x)", "c": "ccosh(x)"},
    promote=FLOAT,
    reference=np.cosh,
    grad={"x": lambda g, x: g * conj(x.sinh())},
    doc="The hyperbolic cosine, (exp(x) + exp(-x)) / 2.",
)
tanh = Row(
    "tanh",
    {"f": "tanh(x)", "c": "ctanh(x)"},
    promote=FLOAT,
    reference=np.tanh,
    grad={
        "x": slope("tanh_slope", "x * (1 - y * y)", lambda g, result: g * conj(1 - result * result))
    },
    doc="The hyperbolic tangent, sinh(x) / cosh(x).",
)
asinh = Row(
    "asinh",
    {"f": "asinh(x)", "c": "casinh(x)"},
    promote=FLOAT,
    inplace_nodes=("AsinhBackward1",),
    aliases=("arcsinh",),
    reference=np.arcsinh,
    grad={"x": lambda g, x: g * conj((x * x + 1).rsqrt())},
    doc="The number whose hyperbolic sine is each element, log(x + sqrt(x^2 + 1)).",
)
acosh = Row(
    "acosh",
    {"f": "acosh(x)", "c": "cacosh(x)"},
    promote=FLOAT,
    inplace_nodes=("AcoshBackward1",),
    aliases=("arccosh",),
    reference=np.arccosh,
    domain=(1.1, 3.0),
    grad={"x": lambda g, x: g * conj((x - 1).rsqrt() * (x + 1).rsqrt())},
    doc="The number, 0 or greater, whose hyperbolic cosine is each element; nan below 1.",
)
atanh = Row(
    "atanh",
    {"f": "atanh(x)", "c": "catanh(x)"},
    promote=FLOAT,
    inplace_nodes=("AtanhBackward1",),
    aliases=("arctanh",),
    reference=np.arctanh,
    domain=(-0.9, 0.9),
    grad={"x": lambda g, x: g / conj(1 - x * x)},
    doc="The number whose hyperbolic tangent is each element, log((1 + x) / (1 - x)) / 2; nan beyond 1.",
)


def _over_squares(x: Tensor, y: Tensor) -> Tensor:
    """Return 1 / (x² + y²), and 0 at the origin."""
    squares = x * x + y * y
    return where(squares == 0, 0.0, squares.reciprocal())


atan2 = Row(
    "atan2", {"f": "atan2(x, y)"}, promote=FLOAT, args=("input", "other"), aliases=("arctan2",), reference=np.arctan2,
    grad={"x": lambda g, x, y: g * (y * _over_squares(x, y)), "y": lambda g, x, y: g * (-x * _over_squares(x, y))},
    doc="The angle in [-pi, pi] from the x axis to the point (x, y) = (`other`, `input`).",
)  # fmt: skip
hypot = Row(
    "hypot", {"f": "hypot(x, y)"}, args=("input", "other"), reference=np.hypot,
    grad={"x": lambda g, x, result: g * (x / result), "y": lambda g, y, result: g * (y / result)},
    doc="sqrt(`input`^2 + `other`^2), without overflow on the way.",
)  # fmt: skip
deg2rad = Row(
    "deg2rad",
    {"f": "x * (pi / 180)"},
    promote=FLOAT,
    reference=np.deg2rad,
    grad={"x": lambda g: g * (math.pi / 180)},
    doc="Degrees in radians: x * pi / 180.",
)
rad2deg = Row(
    "rad2deg",
    {"f": "x * (180 / pi)"},
    promote=FLOAT,
    reference=np.rad2deg,
    grad={"x": lambda g: g * (180 / math.pi)},
    doc="Radians in degrees: x * 180 / pi.",
)


def _sinc_slope(x: Tensor) -> Tensor:
    """Return the derivative of sinc: by its power series near zero, where the closed form loses digits by cancellation."""
    near = x.abs() < 0.1
    small, z = math.pi * where(near, x, 0.0), math.pi * where(near, 1.0, x)
    q = small * small
    series = small * (-1 / 3 + q * (1 / 30 + q * (-1 / 840 + q * (1 / 45360 - q / 3991680))))
    return math.pi * where(near, series, (z.cos() * z - z.sin()) / (z * z))


_SINC = "where(x == 0, 1, sin(pi * x) / where(x == 0, 1, pi * x))"
sinc = Row(
    "sinc", {"f": _SINC, "c": "where(x == 0, 1, csin(pi * x) / where(x == 0, 1, pi * x))"}, promote=FLOAT, reference=np.sinc,
    grad={"x": lambda g, x: g * conj(_sinc_slope(x))},
    doc="sin(pi x) / (pi x), 1 at 0.",
)  # fmt: skip

# ------------------------------------------------------------------------------------------- special functions

erf = Row(
    "erf",
    {"f": "erf(x)"},
    promote=FLOAT,
    grad={
        "x": slope(
            "erf_slope",
            f"x * {2 / math.sqrt(math.pi)!r} * exp(-(y * y))",
            lambda g, x: g * (2 / math.sqrt(math.pi)) * (-(x * x)).exp(),
        )
    },
    doc="The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x (DLMF 7.2.1).",
)
erfc = Row(
    "erfc",
    {"f": "erfc(x)"},
    promote=FLOAT,
    grad={"x": lambda g, x: g * (-2 / math.sqrt(math.pi)) * (-(x * x)).exp()},
    doc="1 - erf(x), exact where that is small, too (DLMF 7.2.2).",
)
erfinv = Row(
    "erfinv",
    {"f": "erfinv(x)"},
    promote=FLOAT,
    domain=(-0.9, 0.9),
    # The operand is saved, as in torch, not the result: writes that follow `erfinv_` must not invalidate the gradient.
    grad={"x": lambda g, x: g * (math.sqrt(math.pi) / 2) * x.erfinv().square().exp()},
    doc="The number whose `erf` is each element; infinite at -1 and 1, nan beyond.",
)
lgamma = Row(
    "lgamma",
    {"f": "lgamma(x)"},
    promote=FLOAT,
    domain=(0.3, 5.0),
    grad={"x": lambda g, x: g * x.digamma()},
    doc="The logarithm of the magnitude of the gamma function (DLMF 5.2.1).",
)
digamma = Row(
    "digamma",
    {"f": "digamma(x)"},
    promote=FLOAT,
    domain=(0.3, 5.0),
    grad={"x": lambda g, x: g * trigamma(x)},
    doc="The logarithmic derivative of the gamma function (DLMF 5.2.2); `special.psi`.",
)
trigamma = Row(
    "trigamma",
    {"f": "trigamma(x)"},
    promote=FLOAT,
    domain=(0.3, 5.0),
    public=False,
    node="PolygammaBackward0",
    inplace_nodes=("PolygammaBackward1",),
    grad={"x": lambda g, x: g * polygamma(2, x)},
)


logit_row = Row(
    "logit",
    {"f": "log(x / (1 - x))"},
    promote=FLOAT,
    public=False,
    domain=(0.1, 0.9),
    grad={"x": lambda g, x: where((x < 0) | (x > 1), math.nan, g / (x * (1 - x)))},
)


@public()
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Log of the odds x / (1 - x); `eps` clamps the input to [eps, 1 - eps]. Integers give floats."""
    value = logit_row(input if eps is None else input.clamp(eps, 1 - eps))
    return value if out is None else writes.deliver(value, out, "logit", (input,))


METHODS["logit_"] = lambda t, eps=None: writes.assign(t, lambda x: logit(x, eps))


# The derivatives of digamma of order 0 and 1 have formulas of their own; `polygamma_row`, for all others, takes the
# order as an operand.
_FIRST = (
    Row(
        "psi",
        {"f": "digamma(x)"},
        promote=FLOAT,
        domain=(0.3, 5.0),
        public=False,
        node="PolygammaBackward0",
        inplace_nodes=("PolygammaBackward1",),
        grad={"x": lambda g, x: g * trigamma(x)},
    ),
    trigamma,
)
polygamma_row = Row(
    "polygamma", {"f": "z * zeta(y + 1, x)"}, promote=FLOAT, args=("input", "n", "factor"), public=False, node="PolygammaBackward0", graph_inputs=1,
    inplace_nodes=("PolygammaBackward1",), grad={"x": lambda g, x, y: g * polygamma(int(y) + 1, x)},
)  # fmt: skip


def _polygamma(n: int) -> tuple[Row, tuple[float, ...]]:
    n = whole("polygamma", "n", n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n < len(_FIRST):
        return _FIRST[n], ()
    # (-1)^(n + 1) n! zeta(n + 1, x): DLMF 25.11.12.
    size = math.gamma(n + 1) if n < 171 else math.inf
    return polygamma_row, (float(n), size if n % 2 else -size)


@public(method=False)
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma."""
    row, rest = _polygamma(n)
    value = row(input, *rest)
    return value if out is None else writes.deliver(value, out, "polygamma", (input,))


@public(function=False)
def polygamma_(self: Tensor, n: int) -> Tensor:
    """In-place form of `polygamma`."""
    row, rest = _polygamma(n)
    return row.inplace(self, *rest)


METHODS["polygamma"] = lambda self, n: polygamma(n, self)

xlogy = Row(
    "xlogy", {"f": "where(y != y, y, where(x == 0, 0, x * log(y)))"}, promote=FLOAT, args=("input", "other"), domain=(0.1, 3.0), numbers="xy", number_nodes={"x": "XlogyBackward1", "y": "XlogyBackward2"},
    grad={"x": lambda g, x, y: where((x == 0) & (y <= 0), 0.0, g * y.to(g.dtype).log()) if not isinstance(y, float | int) else g * math.log(y), "y": lambda g, x, y: g * x / y},
    doc="`input` * log(`other`), 0 where `input` is 0 and `other` is not nan.",
)  # fmt: skip
logaddexp = Row(
    "logaddexp", {"f": "where(x == y, x, where(x > y, x, y)) + where(x == y, 0.6931471805599453, log1p_exp(-abs(x - y)))",
    "c": "where(re(x) < re(y), y, x) + where(x == y, 0.6931471805599453, clog1p(cexp(where(re(x) < re(y), x - y, y - x))))"}, args=("input", "other"),
    reference=np.logaddexp, inplace=False, grad={"x": lambda g, x, y: g / (1 + conj((y - x).exp())), "y": lambda g, x, y: g / (1 + conj((x - y).exp()))},
    doc="log(exp(`input`) + exp(`other`)), without overflow on the way.",
)  # fmt: skip
logaddexp2 = Row(
    "logaddexp2", {"f": "where(x == y, x, where(x > y, x, y)) + where(x == y, 1, log1p(exp2(-abs(x - y))) * 1.4426950408889634)"}, args=("input", "other"),
    reference=np.logaddexp2, inplace=False, grad={"x": lambda g, x, y: g / (1 + (y - x).exp2()), "y": lambda g, x, y: g / (1 + (x - y).exp2())},
    doc="The logarithm to base 2 of 2^`input` + 2^`other`, without overflow on the way.",
)  # fmt: skip
