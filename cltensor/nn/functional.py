"""`cltensor.nn.functional`: activations, softmax, losses, linear layers as functions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..dtypes import promote_types as _promote_types
from ..errors import caller_level as _caller_level
from ..ops import norms
from ..ops import passed as _passed
from ..ops.composite import Composite as _Composite
from ..ops.composite import in_one as _in_one
from ..ops.dims import whole as _whole
from ..ops.mask import one_hot
from ..ops.matmul import bilinear, linear
from ..ops.nn import activation, multihead, normalization
from ..ops.nn import dropout as dropping
from ..ops.nn import embedding as table
from ..ops.nn.activation import gelu, glu, hardshrink, logsigmoid, prelu, softplus, softshrink
from ..ops.nn.attention import scaled_dot_product_attention
from ..ops.nn.average_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
)
from ..ops.nn.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ..ops.nn.ctc import ctc_loss
from ..ops.nn.embedding_bag import embedding_bag
from ..ops.nn.fold import fold, unfold
from ..ops.nn.grid import affine_grid, grid_sample
from ..ops.nn.interpolate import interpolate, upsample, upsample_bilinear, upsample_nearest
from ..ops.nn.local_norm import local_response_norm
from ..ops.nn.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from ..ops.nn.max_pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ..ops.nn.multihead import multi_head_attention_forward
from ..ops.nn.normalization import rms_norm
from ..ops.nn.padding import pad
from ..ops.nn.pixel import channel_shuffle, pixel_shuffle, pixel_unshuffle
from ..ops.nn.pixel import channel_shuffle as native_channel_shuffle
from ..ops.nn.softmax import log_softmax as _log_softmax
from ..ops.nn.softmax import softmax as _softmax
from ..ops.numpy_names import answered as _answered
from ..ops.operands import check_tensor as _check_tensor
from ..ops.operands import check_tensors as _check_tensors
from ..ops.random.gumbel import gumbel_softmax
from ..ops.ranking import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ..ops.refusals import refusal as _refusal
from ..ops.row import FLOAT as _FLOAT
from ..ops.row import FUNCTIONS
from ..ops.values import number as _number
from ..tensor import Tensor
from ..types import Number
from . import _reduction as _Reduction
from . import grad
from .grouped_mm import grouped_mm
from .linear_cross_entropy import linear_cross_entropy

pdist = FUNCTIONS["pdist"]


def _choose(row: Any, inplace: bool, input: Tensor, *numbers: Any) -> Tensor:
    """Apply an activation; TypeError for what is no tensor, NotImplementedError for integers where they would be promoted."""
    try:
        op = row.ops[input.dtype.category]
    except AttributeError:
        _check_tensor(row.name, "input", 1, input)
        raise
    if op is None and row.promote is not _FLOAT:
        raise _refusal(row.name, input.dtype)
    xs = [_number(row.name, row.args[i], v, i + 1) for i, v in enumerate(numbers, 1)]
    return row.inplace(input, *xs) if inplace else row(input, *xs)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Replace negative elements by zero."""
    return activation.relu.inplace(input) if inplace else activation.relu(input)


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
    return _choose(activation.elu_row, inplace, input, alpha, 1.0)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Self-normalising exponential unit (Klambauer et al., arXiv 1706.02515)."""
    return _choose(
        activation.elu_row,
        inplace,
        input,
        1.6732632423543772848170429916717,
        1.0507009873554804934193349852946,
    )


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Continuously differentiable exponential unit."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _choose(activation.celu_row, inplace, input, alpha)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Limit to [0, 6]."""
    _check_tensor("relu6", "input", 1, input)
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Limit to [min_val, max_val]; for integers, bounds lose their fractions."""
    _check_tensor("hardtanh", "input", 1, input)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _limit(input, min_val, max_val, inplace)


def _limit(input: Tensor, min_val: float, max_val: float, inplace: bool) -> Tensor:
    if input.dtype.category < 2:
        if input.dtype.category == 0:
            raise RuntimeError("Bool inputs not supported for hardtanh")
        if not input.dtype.is_signed and (min_val < 0 or max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
        min_val, max_val = activation.of_kind(input, min_val, max_val)
    return _choose(activation.hardtanh_row, inplace, input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Piecewise linear sigmoid."""
    return _choose(activation.hardsigmoid, inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute x * hardsigmoid(x)."""
    return _choose(activation.hardswish, inplace, input)


def softsign(input: Tensor) -> Tensor:
    """Compute x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """Compute x - tanh(x)."""
    return input - input.tanh()


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Replace elements up to the threshold by a value."""
    return _choose(
        activation.threshold_row, inplace, input, *activation.of_kind(input, threshold, value)
    )


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky relu with a random slope from [lower, upper] per element in training, their mean otherwise."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return _choose(activation.rrelu_row, inplace, input, (lower + upper) / 2)
    values = input.detach().contiguous()
    slope = FUNCTIONS["rand_like"](values) * (upper - lower) + lower
    noise = FUNCTIONS["where"](values > 0, 1.0, slope)
    row = activation.rrelu_noisy
    return row.inplace(input, noise) if inplace else row(input, noise)


def relu_(input: Tensor) -> Tensor:
    """In-place form of `relu`."""
    return activation.relu.inplace(input)


def leaky_relu_(input: Tensor, negative_slope: Number = 0.01) -> Tensor:
    """In-place form of `leaky_relu`."""
    return leaky_relu(input, negative_slope, True)


def elu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """In-place form of `elu`."""
    return elu(input, alpha, True)


def selu_(input: Tensor) -> Tensor:
    """In-place form of `selu`."""
    return selu(input, True)


def celu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    """In-place form of `celu`."""
    return celu(input, alpha, True)


def threshold_(input: Tensor, threshold: Number, value: Number) -> Tensor:
    """In-place form of `threshold`."""
    return _choose(
        activation.threshold_row, True, input, *activation.of_kind(input, threshold, value)
    )


def rrelu_(
    input: Tensor, lower: Number = 1.0 / 8, upper: Number = 1.0 / 3, training: bool = False
) -> Tensor:
    """In-place form of `rrelu`."""
    return rrelu(input, lower, upper, training, True)


def hardtanh_(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
    """In-place form of `hardtanh`. Every element becomes `max_val` if that is less than `min_val`."""
    return _limit(input, min(min_val, max_val), max_val, True)


# ------------------------------------------------------------------------------------------- softmax


def _implicit_dim(name: str, input: Tensor) -> int:
    ndim = input.dim()
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=_caller_level(),
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Exponentials along `dim`, divided by their sum."""
    dim = _implicit_dim("softmax", input) if dim is None else dim
    try:
        return _softmax(input, dim, dtype)
    except TypeError:
        _whole("softmax", "dim", dim, 1)
        raise


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """`softmax` of the negated input."""
    dim = _implicit_dim("softmin", input) if dim is None else dim
    return softmax(-input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Logarithm of `softmax`, accurate for small probabilities."""
    dim = _implicit_dim("log_softmax", input) if dim is None else dim
    try:
        return _log_softmax(input, dim, dtype)
    except TypeError:
        _whole("log_softmax", "dim", dim, 1)
        raise


# ------------------------------------------------------------------------------------------- dropout


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability p and scale the others by 1 / (1 - p) (Hinton et al., arXiv 1207.0580)."""
    return dropping.apply(input, p, training, inplace)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (N, C, L) or (C, L)."""
    return dropping.by_channel(input, p, training, inplace, 1)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (N, C, H, W)."""
    return dropping.by_channel(input, p, training, inplace, 2)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return dropping.by_channel(input, p, training, inplace, 3)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of SELU networks."""
    return dropping.alpha(input, p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels."""
    return dropping.alpha(input, p, training, inplace, True)


# ------------------------------------------------------------------------------------------- normalisation and distances


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise over the last dimensions, which are `normalized_shape`."""
    _check_tensor("layer_norm", "input", 1, input)
    return normalization.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise each group of channels of each sample."""
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    n, c, *rest = input.shape
    normalization.check_several([n * c // num_groups, num_groups, *rest])
    return normalization.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Normalise each channel over the batch; in training, update the running statistics."""
    if eps < 0 or (training and eps == 0):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    return normalization.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Normalise each channel of each sample."""
    return normalization.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide by the p-norm over `dim`, which is taken to be at least eps."""
    if out is None:
        return _NORMALIZED((input,), p, dim, eps)[0]
    return FUNCTIONS["div"](input, _lengths(input, p, dim, eps), out=out)


def _lengths(input: Tensor, p: float, dim: Any, eps: float) -> Tensor:
    return input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)


_NORMALIZED = _Composite("DivBackward0", lambda x, p, dim, eps: (x / _lengths(x, p, dim, eps),))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Cosine of the angle between vectors along `dim`; their norms are taken to be at least eps."""
    common = _promote_types(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {common.scalar_name}"
        )
    return _COSINE((x1.to(common), x2.to(common)), dim, eps)[0]


def _cosine(x1: Tensor, x2: Tensor, dim: int, eps: float) -> tuple[Tensor]:
    x1, x2 = FUNCTIONS["broadcast_tensors"](x1, x2)
    sizes = [FUNCTIONS["norm"](x, 2, dim, True).clamp_min(eps) for x in (x1, x2)]
    # One expression: nothing of it has to be kept.
    return ((x1 / sizes[0] * (x2 / sizes[1])).sum(dim),)


_COSINE = _Composite("SumBackward1", _cosine, copied=(0, 1))


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    _check_tensors("pairwise_distance", ("x1", "x2"), x1, x2)
    return _distance((x1, x2), p, eps, keepdim)[0]


@_in_one
def _distance(given: Sequence[Tensor], p: float, eps: float, keepdim: bool) -> list[Tensor]:
    x1, x2 = given
    return [norms.vector_norm(x1 - x2 + eps, p, -1, keepdim, node="NormBackward1")]


# ------------------------------------------------------------------------------------------- tables


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Look up rows of `weight` (V, D) by indices of any shape (…); result (…, D). The row `padding_idx` gets no gradient."""
    if padding_idx is None:
        padding_idx = -1
    elif not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += weight.shape[0]
    if max_norm is not None:
        table.renormalize(weight, input, max_norm, norm_type)
    return table.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _own(fn: Any) -> Any:
    """Let a function be pickled by its name here."""
    fn.__module__ = __name__
    return fn


# What torch says of arguments of the wrong kind: of compiled functions, then of functions written in Python.
for _name in (
    *("adaptive_avg_pool1d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "channel_shuffle", "conv1d", "conv2d", "conv3d"),
    *("conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink", "logsigmoid"),
    *("native_channel_shuffle", "one_hot", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "prelu"),
    *("scaled_dot_product_attention", "softplus", "softshrink"),
    *("celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_"),
):  # fmt: skip
    _said = "log_sigmoid" if _name == "logsigmoid" else _name
    globals()[_name] = FUNCTIONS.get(_name) or _own(_answered(globals()[_name], _said))
# These have names of their own in Python's errors of their calls: in torch each is chosen from two functions.
_CHOSEN = (
    *("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d"),
    *("max_pool1d", "max_pool2d", "max_pool3d", "threshold"),
)  # fmt: skip
for _name in _CHOSEN:
    _own(globals()[_name]).__qualname__ = f"_{_name}"
for _name in _passed.NAMES:
    globals()[_name] = _own(_answered(globals()[_name], passed=True))
for _name in _CHOSEN:
    globals()[f"_{_name}"] = globals()[_name]

# torch's private names, which programs with a multi-head attention of their own import.
_canonical_mask, _none_or_dtype = multihead.canonical_mask, multihead.none_or_dtype
_in_projection_packed, _mha_shape_check = multihead.project_packed, multihead.check_ranks

__all__ = [
    name
    for name in dir()
    if not name.startswith("_")
    and name
    not in (
        "Any",
        "Sequence",
        "Tensor",
        "FUNCTIONS",
        "Number",
        "activation",
        "annotations",
        "dropping",
        "multihead",
        "normalization",
        "norms",
        "table",
        "warnings",
    )
]
