"""`cltensor.nn.functional`: activations, softmax, losses, linear layers as functions."""

from __future__ import annotations

from typing import Any

from ..ops import activation
from ..ops.activation import gelu, hardshrink, prelu, softplus
from ..ops.join import pad
from ..ops.losses import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, huber_loss, kl_div, l1_loss, mse_loss, nll_loss, smooth_l1_loss,
)  # fmt: skip
from ..ops.mask import one_hot
from ..ops.matmul import linear
from ..ops.softmax import log_softmax, softmax, softmin
from ..tensor import Tensor


def _choose(row: Any, inplace: bool, *xs: Any) -> Tensor:
    return row.inplace(*xs) if inplace else row(*xs)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Replace negative elements by zero."""
    return _choose(activation.relu, inplace, input)


def sigmoid(input: Tensor) -> Tensor:
    """Compute 1 / (1 + exp(-x))."""
    return activation.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Compute the hyperbolic tangent."""
    return input.tanh()


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute x * sigmoid(x)."""
    return _choose(activation.silu, inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute x * tanh(softplus(x))."""
    return _choose(activation.mish, inplace, input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Scale negative elements by the slope."""
    return _choose(activation.leaky_relu_row, inplace, input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute x for positive x, else alpha * (exp(x) - 1)."""
    return _choose(activation.elu_row, inplace, input, alpha, 1.0, 1.0)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Self-normalising exponential unit (Klambauer et al., arXiv 1706.02515)."""
    return _choose(activation.elu_row, inplace, input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Continuously differentiable exponential unit."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _choose(activation.celu_row, inplace, input, alpha)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Limit to [0, 6]."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Limit to [min_val, max_val]."""
    return _choose(activation.hardtanh_row, inplace, input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Piecewise linear sigmoid."""
    return _choose(activation.hardsigmoid, inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute x * hardsigmoid(x)."""
    return _choose(activation.hardswish, inplace, input)


def logsigmoid(input: Tensor) -> Tensor:
    """Compute log(sigmoid(x))."""
    return activation.log_sigmoid(input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Move towards zero by lambd."""
    return activation.softshrink_row(input, lambd)


def softsign(input: Tensor) -> Tensor:
    """Compute x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """Compute x - tanh(x)."""
    return input - input.tanh()


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Replace elements up to the threshold by a value."""
    return _choose(activation.threshold_row, inplace, input, threshold, value)


__all__ = [name for name in dir() if not name.startswith("_") and name not in ("Any", "Tensor", "activation", "annotations")]
