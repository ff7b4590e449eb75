"""Rows of activations, and the functions of `nn.functional` that are rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import layouts
from ...autograd import record as graph
from .. import writes
from ..composite import in_one
from ..core import Number, Tensor
from ..formats import RowMajor
from ..operands import check_tensor, check_tensors
from ..refusals import refusal
from ..row import FLOAT, FUNCTIONS, Row, public
from ..selection import where
from ..slopes import slope
from ..values import check_value, conj, largest, number

relu_slope = Row(
    "relu_slope",
    {"f": "where(x <= 0, 0, y)"},
    args=("result", "grad"),
    public=False,
    graph_from=1,
    node="ThresholdBackwardBackward0",
    grad={"y": lambda g, x: relu_slope(x, g)},
)
relu = Row(
    "relu",
    {"if": "where(x < 0, 0, x)"},
    grad={"x": lambda g, result: relu_slope(result, g)},
    node="ReluBackward0",
    step=True,
    doc="The larger of each element and 0.",
)
sigmoid = Row(
    "sigmoid", {"f": "sigmoid(x)", "c": "crecip(1 + cexp(-x))"}, promote=FLOAT,
    grad={"x": slope("sigmoid_slope", "x * (y * (1 - y))", lambda g, result: g * conj(result * (1 - result)))},
    doc="The logistic function, 1 / (1 + exp(-x)); `special.expit`.",
)  # fmt: skip
silu = Row(
    "silu", {"f": "x / (1 + exp(-x))", "c": "x * crecip(1 + cexp(-x))"}, public=False, node="SiluBackward0",
    grad={
        "x": slope(
            "silu_slope", "x * (sigmoid(y) * (1 + y * (1 - sigmoid(y))))",
            lambda g, x: (lambda s: g * conj(s * (1 + x * (1 - s))))(x.sigmoid()),
        )
    },
)  # fmt: skip
_K = math.sqrt(2 / math.pi)
gelu_erf = Row(
    "gelu", {"f": "gelu(x)"}, public=False, node="GeluBackward0",
    grad={"x": slope("gelu_erf_slope", "x * gelu_slope(y)", lambda g, x: g * gelu_slope(x))},
)  # fmt: skip
gelu_slope = Row(
    "gelu_slope", {"f": "gelu_slope(x)"}, public=False, node="GeluBackwardBackward0",
    grad={"x": lambda g, x: g * (2 - x * x) * ((x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi)))},
)  # fmt: skip


def _gelu_tanh_grad(g: Tensor, x: Tensor) -> Tensor:
    t = (_K * (x + 0.044715 * x * x * x)).tanh()
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (_K * (1 + 3 * 0.044715 * x * x)))


# gelu_tanh(x) = x s for s = sigmoid(u); its derivative is s + x s (1 - s) u'.
_U = f"({2 * _K!r} * (y + 0.044715 * y * y * y))"
gelu_tanh = Row(
    "gelu_tanh", {"f": f"x / (1 + exp({-2 * _K!r} * (x + 0.044715 * x * x * x)))"}, public=False, node="GeluBackward0",
    grad={
        "x": slope(
            "gelu_tanh_slope",
            f"x * (sigmoid({_U}) * (1 + y * (1 - sigmoid({_U})) * ({2 * _K!r} * (1 + {3 * 0.044715!r} * y * y))))",
            _gelu_tanh_grad,
        )
    },
)  # fmt: skip


# Each gradient is one op of the incoming gradient and the input, in the order torch has them, because operand order
# decides the result's memory layout.
softplus_slope = Row(
    "softplus_slope", {"f": "where(y * z > w, x, x * sigmoid(y * z))"}, exact=True, args=("grad", "input", "beta", "threshold"), public=False,
    graph_inputs=2, node="SoftplusBackwardBackward0",
    grad={"x": lambda g, y, z, w: softplus_slope(g, y, z, w), "y": lambda g, x, y, z, w: _softplus_curve(g * x, y, z, w)},
)  # fmt: skip
softplus_row = Row(
    "softplus", {"f": "where(x * y > z, x, log1p(exp(x * y)) / y)"}, exact=True, args=("input", "beta", "threshold"), public=False, graph_inputs=1,
    grad={"x": lambda g, x, y, z: softplus_slope(g, x, y, z)},
)  # fmt: skip


def _softplus_curve(g: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    s = (x * beta).sigmoid()
    return where(x * beta > threshold, 0.0, g * beta * s * (1 - s))


log_sigmoid = RowMajor(
    "log_sigmoid", {"f": "where(x < 0, x, 0) - log1p_exp(-abs(x))"}, public=False, node="LogSigmoidBackward0",
    grad={"x": slope("log_sigmoid_slope", "x * sigmoid(-y)", lambda g, x: g * (-x).sigmoid())},
)  # fmt: skip
_NEGATIVE = (
    "In-place {} backward calculation is triggered with a negative slope which is not supported. "
    "This is caused by calling in-place forward function with a negative slope, please call out-of-place version instead."
)
_REPORT = (
    " File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place leakRelu backward calculation "
    "with negative slope"
)


def _steep(slope: float) -> str:
    return _NEGATIVE.format("leakyReLu") + _REPORT if slope < 0 else ""


leaky_relu_slope = Row(
    "leaky_relu_slope", {"f": "where(x > 0, y, y * z)"}, exact=True, args=("input", "grad", "negative_slope"), public=False,
    graph_from=1, graph_inputs=2, node="LeakyReluBackwardBackward0",
    grad={"y": lambda g, x, z: leaky_relu_slope(x, g, z)},
)  # fmt: skip
leaky_relu_row = Row(
    "leaky_relu", {"f": "where(x > 0, x, x * y)"}, exact=True, final=_steep, args=("input", "negative_slope"), public=False, step=True, graph_inputs=1,
    grad={"x": lambda g, x, y: leaky_relu_slope(x, g, y)},
)  # fmt: skip
rrelu_row = RowMajor(
    "rrelu", {"f": "where(x > 0, x, x * y)"}, exact=True, final=_steep, args=("input", "slope"), public=False, step=True, graph_inputs=1, node="RreluWithNoiseBackward0",
    grad={"x": lambda g, x, y: leaky_relu_slope(x, g, y)},
)  # fmt: skip
rrelu_noisy = RowMajor(
    "rrelu", {"f": "x * y"}, args=("input", "noise"), public=False, step=True, graph_inputs=1, node="RreluWithNoiseBackward0",
    grad={"x": lambda g, y: y * g},
)  # fmt: skip
elu_slope = Row(
    "elu_slope", {"f": "where(y <= 0, x * z * exp(y), x * w)"}, exact=True, args=("grad", "input", "negative", "positive"), public=False,
    graph_inputs=2, node="EluBackwardBackward0",
    grad={"x": lambda g, y, z, w: elu_slope(g, y, z, w), "y": lambda g, x, y, z: elu_slope(g * x, y, z, 0.0)},
)  # fmt: skip
elu_row = Row(
    "elu", {"f": "where(x > 0, x * z, y * z * expm1(x))"}, exact=True, final=lambda alpha, *_: _NEGATIVE.format("elu") if alpha < 0 else "", args=("input", "alpha", "scale"), public=False, graph_inputs=1,
    grad={"x": lambda g, x, y, z: elu_slope(g, x, y * z, z)},
)  # fmt: skip
celu_row = Row(
    "celu", {"f": "where(x > 0, x, y * expm1(x / y))"}, exact=True, final=lambda alpha: _NEGATIVE.format("elu") if alpha < 0 else "", args=("input", "alpha"), public=False, graph_inputs=1,
    grad={"x": lambda g, x, y: celu_slope(g, x, y)},
)  # fmt: skip
celu_slope = Row(
    "celu_slope", {"f": "where(y <= 0, x * exp(y / z), x)"}, exact=True, args=("grad", "input", "alpha"), public=False,
    graph_inputs=2, node="EluBackwardBackward0",
    grad={"x": lambda g, y, z: celu_slope(g, y, z), "y": lambda g, x, y, z: where(y > 0, 0.0, celu_slope(g * x, y, z) / z)},
)  # fmt: skip
hardtanh_slope = Row(
    "hardtanh_slope", {"f": "where(y <= z or y >= w, 0, x)"}, args=("grad", "input", "min_val", "max_val"), public=False,
    graph_inputs=1, node="HardtanhBackwardBackward0",
    grad={"x": lambda g, y, z, w: hardtanh_slope(g, y, z, w)},
)  # fmt: skip
hardtanh_row = Row(
    "hardtanh", {"if": "where(x < y, y, where(x > z, z, x))"}, args=("input", "min_val", "max_val"), public=False, step=True, graph_inputs=1,
    grad={"x": lambda g, x, y, z: hardtanh_slope(g, x, y, z)},
)  # fmt: skip
hardsigmoid_slope = Row(
    "hardsigmoid_slope", {"f": "where(y > -3 and y < 3, x / 6, 0)"}, args=("grad", "input"), public=False,
    graph_inputs=1, node="HardsigmoidBackwardBackward0",
    grad={"x": lambda g, y: hardsigmoid_slope(g, y)},
)  # fmt: skip
hardsigmoid = Row(
    "hardsigmoid", {"f": "where(x <= -3, 0, where(x >= 3, 1, x / 6 + 0.5))"}, public=False,
    grad={"x": lambda g, x: hardsigmoid_slope(g, x)},
)  # fmt: skip
hardswish_slope = Row(
    "hardswish_slope", {"f": "where(y <= -3, 0, where(y < 3, x * (y / 3 + 0.5), x))"}, args=("grad", "input"), public=False,
    node="HardswishBackwardBackward0",
    grad={"x": lambda g, y: hardswish_slope(g, y), "y": lambda g, x, y: where((y > -3) & (y < 3), g * x / 3, 0.0)},
)  # fmt: skip
hardswish = Row(
    "hardswish", {"f": "where(x <= -3, 0, where(x >= 3, x, x * (x + 3) / 6))"}, public=False,
    grad={"x": lambda g, x: hardswish_slope(g, x)},
)  # fmt: skip


def _mish_grad(g: Tensor, x: Tensor) -> Tensor:
    below = x < 0
    e = where(below, x, -x).exp()  # everything in terms of exp(-|x|), which cannot overflow
    top = where(below, e * e, 1) + 2 * e
    t = top / (top + where(below, 2, 2 * e * e))  # tanh(log(1 + exp(x)))
    return g * (t + x * (where(below, e, 1) / (1 + e)) * (1 - t * t))


_E = "exp(where(y < 0, y, -y))"
_TOP = f"(where(y < 0, {_E} * {_E}, 1) + 2 * {_E})"
_T = f"({_TOP} / ({_TOP} + where(y < 0, 2, 2 * {_E} * {_E})))"
_S = f"(where(y < 0, {_E}, 1) / (1 + {_E}))"
mish = Row(
    "mish", {"f": "mish(x)"}, public=False,
    grad={"x": slope("mish_slope", f"x * ({_T} + y * {_S} * (1 - {_T} * {_T}))", _mish_grad)},
)  # fmt: skip

shrink_slope = Row(
    "shrink_slope", {"f": "where(y >= -z and y <= z, 0, x)"}, exact=True, args=("grad", "input", "lambd"), public=False,
    graph_inputs=1, node="HardshrinkBackwardBackward0",
    grad={"x": lambda g, y, z: shrink_slope(g, y, z)},
)  # fmt: skip
hardshrink_row = Row(
    "hardshrink", {"f": "where(x >= -y and x <= y, 0, x)"}, args=("input", "lambd"), public=False, step=True, graph_inputs=1,
    grad={"x": lambda g, x, y: shrink_slope(g, x, y)},
)  # fmt: skip
softshrink_row = Row(
    "softshrink", {"f": "where(x > y, x - y, where(x < -y, x + y, x * 0))"}, exact=True, args=("input", "lambd"), public=False, step=True, graph_inputs=1,
    grad={"x": lambda g, x, y: shrink_slope(g, x, y)},
)  # fmt: skip
threshold_row = Row(
    "threshold", {"if": "where(x <= y, z, x)"}, exact=True, args=("input", "threshold", "value"), public=False, step=True, graph_inputs=1,
    grad={"x": lambda g, x, y: where(x <= y, 0.0, g)},
)  # fmt: skip
prelu_row = Row(
    "prelu", {"f": "where(x > 0, x, x * y)"}, args=("input", "weight"), public=False, step=True, node="PreluKernelBackward0",
    grad={"x": lambda g, x, y: where(x > 0, g, g * y), "y": lambda g, x: where(x > 0, 0.0, g * x)},
)  # fmt: skip


def _check_floats(name: str, input: Any) -> None:
    """Refuse an input that is no tensor, and integers, which the numbers beside them would make floats."""
    check_tensor(name, "input", 1, input)
    if input.dtype.category < 2:
        raise refusal(name, input.dtype)


def softplus(
    input: Tensor, beta: Number = 1.0, threshold: Number = 20.0, *, out: Tensor | None = None
) -> Tensor:
    """Smooth approximation of relu: log(1 + exp(beta * x)) / beta, linear above the threshold."""
    beta = number("softplus", "beta", beta, 2)
    threshold = number("softplus", "threshold", threshold, 3)
    _check_floats("softplus", input)
    return writes.deliver(softplus_row(input, beta, threshold), out, "softplus", (input,))


def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """Gaussian error linear unit, exact or by tanh (Hendrycks and Gimpel, arXiv 1606.08415)."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    value = gelu_tanh(input) if approximate == "tanh" else gelu_erf(input)
    return writes.deliver(value, out, "gelu", (input,))


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute log(sigmoid(x))."""
    return writes.deliver(log_sigmoid(input), out, "log_sigmoid", (input,))


logsigmoid.__name__ = "log_sigmoid"  # as torch's function calls itself


@public()
def hardshrink(input: Tensor, lambd: Number = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Zero within [-lambd, lambd], identity outside."""
    lambd = number("hardshrink", "lambd", lambd, 2)
    _check_floats("hardshrink", input)
    check_value(lambd, input.dtype)
    return writes.deliver(hardshrink_row(input, lambd), out, "hardshrink", (input,))


def softshrink(input: Tensor, lambd: Number = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Move towards zero by lambd. RuntimeError for a negative one, and for one that the dtype does not hold."""
    lambd = number("softshrink", "lambd", lambd, 2)
    _check_floats("softshrink", input)
    most = largest(input.dtype) if input.dtype.category == 2 else math.inf
    if not 0 <= lambd <= most:
        raise RuntimeError(
            f"lambda must be in range [0, {most:g}] for input dtype {input.dtype.scalar_name}, but found {lambd:g}"
        )
    return writes.deliver(softshrink_row(input, lambd), out, "softshrink", (input,))


@public()
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Leaky relu with a learnt slope per channel (dimension 1) or one slope."""
    check_tensors("prelu", ("input", "weight"), input, weight)
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.scalar_name} and {weight.dtype.scalar_name}"
        )
    if input.ndim == 0 and weight.numel() != 1:
        raise RuntimeError("Not allow zero-dim input tensor.")
    if weight.numel() != 1:
        if (input.shape[1] if input.ndim > 1 else 1) != weight.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and channel size = {input.shape[1] if input.ndim > 1 else 1}."
            )
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if weight.numel() != 1:
        weight = weight.view(-1, *([1] * (input.ndim - 2))) if input.ndim > 1 else weight
    elif input.ndim == 0:
        weight = weight.reshape(())
    return prelu_row(input, weight)


def of_kind(input: Tensor, *numbers: float) -> tuple:
    """Return numbers to compare elements of `input` with or to replace them by, as ints for an integer input."""
    return numbers if input.dtype.category > 1 else tuple([int(n) for n in numbers])


@public(method=False)
def threshold(
    input: Tensor, threshold: Number, value: Number, *, out: Tensor | None = None
) -> Tensor:
    """Replace elements up to the threshold by a value."""
    limits = number("threshold", "threshold", threshold, 2), number("threshold", "value", value, 3)
    found = threshold_row(input, *of_kind(input, *limits))
    return writes.deliver(found, out, "threshold", (input,))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Gated linear unit: the first half along `dim` times the sigmoid of the second (Dauphin et al., arXiv 1612.08083)."""
    _check_floats("glu", input)
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = layouts.wrap_dim(dim, input.ndim)
    if input.shape[dim] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}"
        )
    wanted = graph.needs_grad(input)
    (out,) = _gated((input.detach() if wanted else input,), dim)
    if wanted:
        graph.record("GluBackward0", (input,), out, _glu_back, {"self": input, "dim": dim})
    return out


@in_one
def _gated(given: Sequence[Tensor], dim: int) -> list[Tensor]:
    a, b = given[0].chunk(2, dim)
    return [a * b.sigmoid()]


def _glu_back(ctx: Any, g: Tensor) -> Tensor:
    return _gated_back((ctx.self, g), ctx.dim)[0]


@in_one
def _gated_back(given: Sequence[Tensor], dim: int) -> list[Tensor]:
    x, g = given
    a, b = x.chunk(2, dim)
    s = b.sigmoid()
    return [FUNCTIONS["cat"]((g * s, g * a * s * (1 - s)), dim).contiguous()]
