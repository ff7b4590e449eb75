"""Rows of `torch.special`: functions of that namespace only, or with another name elsewhere (`lgamma`, `igamma`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from . import writes
from .core import Tensor
from .row import FLOAT, FUNCTIONS, METHODS, Row, refused, with_inplace
from .selection import where
from .unary import digamma, lgamma

SPECIAL: dict[str, object] = {}  # name -> function: what `torch.special` exports


def _row(
    name: str,
    formula: str,
    *,
    doc: str,
    args: tuple[str, ...] = ("input",),
    grad: dict | None = None,
    domain: tuple[float, float] = (0.3, 3.0),
) -> Row:
    node = f"Special{name.title().replace('_', '')}Backward"
    row = Row(
        f"special_{name}",
        {"f": formula},
        promote=FLOAT,
        args=args,
        numbers="xy" if len(args) == 2 else "",
        grad=grad,
        domain=domain,
        inplace=False,
        node=f"{node}0",
        number_nodes={"x": f"{node}1", "y": f"{node}2"} if len(args) == 2 else None,
        doc=doc,
    )
    SPECIAL[name] = FUNCTIONS.pop(f"special_{name}")
    del METHODS[f"special_{name}"]
    return row


def _tiny(x: Tensor) -> Tensor:
    """Return a mask of the x that are so close to 0 that a quotient by x, or its derivative, would not be finite."""
    return x.abs() <= dtypes.finfo(x.dtype).eps


i0 = Row(
    "i0",
    {"f": "i0(x)"},
    promote=FLOAT,
    reference=np.i0,
    grad={"x": lambda g, x: g * i1(x)},
    doc="The modified Bessel function of the first kind of order 0 (DLMF 10.25.2).",
)
i1 = _row(
    "i1",
    "i1(x)",
    grad={
        "x": lambda g, x, result: g * where(_tiny(x), 0.5, i0(x) - result / where(_tiny(x), 1.0, x))
    },
    doc="The modified Bessel function of the first kind of order 1 (DLMF 10.25.2).",
)
i0e = _row(
    "i0e",
    "i0e(x)",
    grad={"x": lambda g, x, result: g * (i1e(x) - x.sgn() * result)},
    doc="exp(-abs(x)) * i0(x), which does not overflow.",
)
i1e = _row(
    "i1e",
    "i1e(x)",
    grad={
        "x": lambda g, x, result: (
            g * where(_tiny(x), 0.5, i0e(x) - result * (x.sgn() + 1 / where(_tiny(x), 1.0, x)))
        )
    },
    doc="exp(-abs(x)) * i1(x), which does not overflow.",
)
entr = _row(
    "entr",
    "where(x != x, x, where(x > 0, -x * log(x), where(x == 0, 0, -inf)))",
    grad={"x": lambda g, x: g * -(x.log() + 1)},
    doc="-x * log(x), 0 at 0, -inf below.",
)
erfcx = _row(
    "erfcx",
    "erfcx(x)",
    grad={"x": lambda g, x, result: g * (2 * x * result - 2 / math.sqrt(math.pi))},
    doc="exp(x^2) * erfc(x), which does not underflow.",
)
ndtr = _row(
    "ndtr",
    "0.5 * erfc(x * -0.7071067811865476)",
    grad={"x": lambda g, x: g * (x * x * -0.5).exp() / math.sqrt(2 * math.pi)},
    doc="The normal distribution's integral up to x, (1 + erf(x / sqrt(2))) / 2.",
)
ndtri = _row(
    "ndtri",
    "ndtri(x)",
    domain=(0.1, 0.9),
    grad={"x": lambda g, result: g * math.sqrt(2 * math.pi) * (result * result * 0.5).exp()},
    doc="The number up to which the normal distribution's integral is x; infinite at 0 and 1.",
)


def _log_ndtr_slope(x: Tensor) -> Tensor:
    """Return the derivative of `log_ndtr`: the normal density over its integral.

    Below zero it is computed from erfcx, which stays exact far below; far above zero erfcx would be infinite.
    """
    low, high = x.clamp(max=0), x.clamp(min=0)
    above = (high * high * -0.5).exp() / (ndtr(high) * math.sqrt(2 * math.pi))
    return where(x > 0, above, math.sqrt(2 / math.pi) / erfcx(low * -math.sqrt(0.5)))


log_ndtr = _row(
    "log_ndtr",
    "log_ndtr(x)",
    grad={"x": lambda g, x: g * _log_ndtr_slope(x)},
    doc="The logarithm of `special.ndtr`, exact far below 0, too.",
)
xlog1py = _row(
    "xlog1py", "where(y != y, y, where(x == 0, 0, x * log1p(y)))", args=("input", "other"),
    grad={"x": lambda g, x, y: where((x == 0) & (y <= -1), 0.0, g * FUNCTIONS["log1p"](y)), "y": lambda g, x, y: g * x / (y + 1)},
    doc="`input` * log1p(`other`), 0 where `input` is 0 and `other` is not nan.",
)  # fmt: skip
zeta = _row(
    "zeta",
    "zeta(x, y)",
    args=("input", "other"),
    grad={"x": refused("zeta"), "y": lambda g, x, y: g * -x * zeta(x + 1, y)},
    doc="The Hurwitz zeta function, the sum of (k + `other`)^-`input` over k = 0, 1, ... (DLMF 25.11.1).",
)
bessel_j0 = _row(
    "bessel_j0", "j0(x)", doc="The Bessel function of the first kind of order 0 (DLMF 10.2.2)."
)
bessel_j1 = _row(
    "bessel_j1", "j1(x)", doc="The Bessel function of the first kind of order 1 (DLMF 10.2.2)."
)
bessel_y0 = _row(
    "bessel_y0",
    "y0(x)",
    doc="The Bessel function of the second kind of order 0 (DLMF 10.2.3); nan below 0.",
)
bessel_y1 = _row(
    "bessel_y1",
    "y1(x)",
    doc="The Bessel function of the second kind of order 1 (DLMF 10.2.3); nan below 0.",
)
modified_bessel_i0 = _row(
    "modified_bessel_i0",
    "i0(x)",
    doc="The modified Bessel function of the first kind of order 0 (DLMF 10.25.2).",
)
modified_bessel_i1 = _row(
    "modified_bessel_i1",
    "i1(x)",
    doc="The modified Bessel function of the first kind of order 1 (DLMF 10.25.2).",
)
modified_bessel_k0 = _row(
    "modified_bessel_k0",
    "k0(x)",
    doc="The modified Bessel function of the second kind of order 0 (DLMF 10.25.3); nan below 0.",
)
modified_bessel_k1 = _row(
    "modified_bessel_k1",
    "k1(x)",
    doc="The modified Bessel function of the second kind of order 1 (DLMF 10.25.3); nan below 0.",
)
scaled_modified_bessel_k0 = _row(
    "scaled_modified_bessel_k0",
    "k0e(x)",
    doc="exp(x) * modified_bessel_k0(x), which does not underflow.",
)
scaled_modified_bessel_k1 = _row(
    "scaled_modified_bessel_k1",
    "k1e(x)",
    doc="exp(x) * modified_bessel_k1(x), which does not underflow.",
)
spherical_bessel_j0 = _row(
    "spherical_bessel_j0",
    "sj0(x)",
    doc="The spherical Bessel function of the first kind of order 0, sin(x) / x (DLMF 10.49.3), 1 at 0.",
)
airy_ai = _row("airy_ai", "airy(x)", doc="The Airy function Ai (DLMF 9.2.2).")
gammainc = Row(
    "igamma",
    {"f": "igamma(x, y)"},
    args=("input", "other"),
    domain=(0.3, 3.0),
    grad={
        "x": refused("igamma: input"),
        "y": lambda g, x, y: g * ((x - 1) * y.log() - y - lgamma(x)).exp(),
    },
    doc="The regularised lower incomplete gamma function P(`input`, `other`) (DLMF 8.2.4).",
)
gammaincc = Row(
    "igammac",
    {"f": "igammac(x, y)"},
    args=("input", "other"),
    domain=(0.3, 3.0),
    grad={
        "x": refused("igammac: input"),
        "y": lambda g, x, y: -g * ((x - 1) * y.log() - y - lgamma(x)).exp(),
    },
    doc="The regularised upper incomplete gamma function Q(`input`, `other`) (DLMF 8.2.4).",
)


def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension p, for inputs above (p - 1) / 2."""
    if p.__class__ is int and p >= 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    with unrecorded():
        total = p * (p - 1) / 4 * math.log(math.pi)
        value = sum((lgamma(input - j / 2) for j in range(1, p)), lgamma(input)) + total
    if graph.needs_grad(input):
        graph.record("MvlgammaBackward0", (input,), value, _mvlgamma_back, {"x": input, "p": p})
    return value if out is None else writes.deliver(value, out, "mvlgamma", (input,))


def _mvlgamma_back(ctx: Any, g: Tensor) -> Tensor:
    x = ctx.x
    return g * sum((digamma(x - j / 2) for j in range(1, ctx.p)), digamma(x))


FUNCTIONS["mvlgamma"] = METHODS["mvlgamma"] = mvlgamma
with_inplace("mvlgamma", mvlgamma)
SPECIAL["multigammaln"] = mvlgamma
for _name, _other in {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expit": "sigmoid", "expm1": "expm1", "gammaln": "lgamma", "digamma": "digamma", "psi": "digamma",
    "i0": "i0", "log1p": "log1p", "logit": "logit", "polygamma": "polygamma", "round": "round", "sinc": "sinc", "xlogy": "xlogy", "gammainc": "igamma", "gammaincc": "igammac",
}.items():  # fmt: skip
    SPECIAL[_name] = FUNCTIONS[_other]
for _name in ("softmax", "log_softmax", "logsumexp"):
    SPECIAL[_name] = FUNCTIONS[_name]
