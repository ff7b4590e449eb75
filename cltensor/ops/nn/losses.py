"""Losses: a pointwise expression reduced at once, recorded as the one node torch records."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ... import dtypes, layouts
from ...autograd import record as graph
from ...errors import caller_level
from ..arithmetic import div_number
from ..composite import in_one, placed, present
from ..core import Tensor, result_type
from ..operands import check_sized, check_tensors, same_dtype
from ..reduce import mean, sum
from ..row import FLOAT, Row
from ..selection import where
from ..shape import broadcast_tensors
from ..values import real
from . import class_loss
from .activation import log_sigmoid
from .reductions import reduction_of
from .softmax import log_softmax


def reduced(value: Tensor, reduction: str) -> Tensor:
    return value if reduction == "none" else mean(value) if reduction == "mean" else sum(value)


def _scaled(g: Tensor, n: int, reduction: str) -> Tensor:
    """Return the gradient of each of n elements' losses, given the gradient of the reduced loss."""
    return g / n if reduction == "mean" else g


def _paired(input: Any, target: Any) -> tuple[Tensor, Tensor]:
    """Broadcast input and target, warning as torch does when they differ."""
    try:
        same = input.shape == target.shape
    except AttributeError:
        check_sized(target, input)
        raise
    if not same:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead to incorrect "
            "results due to broadcasting. Please ensure they have the same size.",
            stacklevel=caller_level(),
        )
        input, target = broadcast_tensors(input, target)
    return input, target


def _computed(kernel: str, input: Tensor, target: Tensor, into: Tensor | None = None) -> None:
    """Raise torch's errors for operands whose joint dtype has no loss kernel, or cannot be cast to that of `into`."""
    if input.dtype is target.dtype and input.dtype.category == 2:  # most calls
        return
    dt = result_type((input, target))
    if into is not None and not dtypes.can_cast(dt, into.dtype):
        raise RuntimeError(
            f"result type {dt.scalar_name} can't be cast to the desired output type {into.dtype.scalar_name}"
        )
    if dt.category != 2:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")


# Each loss has two rows: one computes the value of each element, the other (…_BACK) the incoming gradient times the
# derivative by the input; that row is differentiable itself. With input and target exchanged, it gives the derivative
# by the target. Each computation is a single row, so that one node runs before the mean.
_SQUARED = Row("squared_difference", {"f": "(x - y) * (x - y)"}, args=("input", "target"), promote=FLOAT, public=False)  # fmt: skip
_SMOOTH = Row("smooth_l1", {"f": "where(abs(x - y) < z, 0.5 * abs(x - y) * abs(x - y) / z, abs(x - y) - 0.5 * z)"}, args=("input", "target", "beta"), numbers="z", promote=FLOAT, public=False)  # fmt: skip
_HUBER = Row("huber", {"f": "where(abs(x - y) <= z, 0.5 * abs(x - y) * abs(x - y), z * (abs(x - y) - 0.5 * z))"}, args=("input", "target", "delta"), numbers="z", promote=FLOAT, public=False)  # fmt: skip


def _near(value: Any, y: Tensor, z: Tensor, w: float) -> Tensor:
    """Return `value` where |y - z| < w, that is where the loss is a square, and 0 elsewhere."""
    return where((y - z).abs() < w, value, 0.0)


_SQUARED_BACK = Row(
    "squared_difference_back", {"f": "(y - z) * 2 * x"}, args=("grad", "input", "target"), promote=FLOAT, public=False, node="MseLossBackwardBackward0",
    grad={"x": lambda g, y, z: _SQUARED_BACK(g, y, z), "y": lambda g, x: g * 2 * x, "z": lambda g, x: g * -2 * x},
)  # fmt: skip
_SMOOTH_BACK = Row(
    "smooth_l1_back", {"f": "where(y - z > w, 1, where(y - z < -w, -1, (y - z) / w)) * x"}, args=("grad", "input", "target", "beta"), numbers="w", promote=FLOAT,
    public=False, node="SmoothL1LossBackwardBackward0", graph_inputs=3,
    grad={
        "x": lambda g, y, z, w: _SMOOTH_BACK(g, y, z, w), "y": lambda g, x, y, z, w: _near(g * x / w, y, z, w),
        "z": lambda g, x, y, z, w: _near(-g * x / w, y, z, w),
    },
)  # fmt: skip
_HUBER_BACK = Row(
    "huber_back", {"f": "where(y - z > w, w, where(y - z < -w, -w, y - z)) * x"}, args=("grad", "input", "target", "delta"), numbers="w", promote=FLOAT,
    public=False, node="HuberLossBackwardBackward0", graph_inputs=3,
    grad={
        "x": lambda g, y, z, w: _HUBER_BACK(g, y, z, w), "y": lambda g, x, y, z, w: _near(g * x, y, z, w),
        "z": lambda g, x, y, z, w: _near(-g * x, y, z, w),
    },
)  # fmt: skip


def _loss(
    node: str, input: Tensor, target: Tensor, reduction: str, value: Row, back: Row, *numbers: float
) -> Tensor:
    """Return a loss, recorded as one node: the row `value`, reduced; the row `back` computes its derivative."""
    recorded = graph.needs_grad(input, target)
    x, y = (input.detach(), target.detach()) if recorded else (input, target)
    out = reduced(value(x, y, *numbers), reduction)

    def backward(ctx: Any, g: Tensor) -> tuple:
        x, y = ctx.self, ctx.target
        each = _scaled(g, x.numel(), reduction)
        by_x = back(each, x, y, *numbers) if ctx.needs[0] else None
        return by_x, back(each, y, x, *numbers) if ctx.needs[1] else None

    if recorded:
        graph.record(node, (input, target), out, backward, {"self": input, "target": target})
    return out


_NO_MODE = "Invalid reduction mode: {}. Expected one of 'none', 'mean', 'sum'."


def _weighted(value: Tensor, weight: Tensor, shape: Any, reduction: str) -> Tensor:
    if weight.shape != shape:
        raise ValueError("Weights and input must have the same size.")
    value = value * weight
    return sum(value) / sum(weight) if reduction == "mean" else reduced(value, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared differences: their mean, sum, or each."""
    shape, refusal = (None, "") if weight is None else (input.shape, _NO_MODE)
    reduction = reduction_of(size_average, reduce, reduction, refusal)
    input, target = _paired(input, target)
    _computed("mse_cpu", input, target)
    way = reduction if weight is None else "none"
    out = _loss("MseLossBackward0", input, target, way, _SQUARED, _SQUARED_BACK)
    return out if weight is None else _weighted(out, weight, shape, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Absolute differences: their mean, sum, or each."""
    shape, refusal = (None, "") if weight is None else (input.shape, _NO_MODE)
    reduction = reduction_of(size_average, reduce, reduction, refusal)
    input, target = _paired(input, target)
    value = (input - target).abs()
    return (
        reduced(value, reduction) if weight is None else _weighted(value, weight, shape, reduction)
    )


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Squared below `beta`, absolute above: 0.5 d² / beta, or |d| - 0.5 beta."""
    reduction = reduction_of(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    input, target = _paired(input, target)
    _computed("smooth_l1_cpu", input, target)
    rows = _SMOOTH, _SMOOTH_BACK
    return _loss("SmoothL1LossBackward0", input, target, reduction, *rows, float(beta))


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Squared below `delta`, linear above: 0.5 d², or delta (|d| - 0.5 delta). A mean is not divided by the weights."""
    shape, refusal = (None, "") if weight is None else (input.shape, _NO_MODE)
    reduction = reduction_of(None, None, reduction, refusal)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    input, target = _paired(input, target)
    _computed("huber_cpu", input, target, into=input)
    own = input.dtype is target.dtype  # else each loss is rounded to the input's dtype
    way = reduction if own and weight is None else "none"
    out = _loss("HuberLossBackward0", input, target, way, _HUBER, _HUBER_BACK, float(delta))
    if own and weight is None:
        return out
    out = out if own else out.to(input.dtype)
    return reduced(out if weight is None else _weighted(out, weight, shape, "none"), reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log target - input), where `input` holds log-probabilities."""
    batch = reduction == "batchmean"
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the batch size, "
            "and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=caller_level(),
        )
    way = reduction_of(size_average, reduce, "sum" if batch else reduction)
    out = kl_divergence(input, target, way, log_target)
    return out / input.shape[0] if batch and input.ndim else out


def kl_divergence(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    """`kl_div` with a plain reduction ("none", "mean" or "sum") and without its warnings."""
    kinds = input.dtype.category, target.dtype.category
    if max(kinds) == 3:
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if min(kinds) < 2:
        raise RuntimeError("kl_div: Integral inputs not supported.")
    return _divergence((input, target), reduction, log_target)[0]


@in_one
def _divergence(given: Sequence[Tensor], reduction: str, log_target: bool) -> list[Tensor]:
    x, target = given
    if log_target:
        value = target.exp() * (target - x)
    else:
        value = target.xlogy(target) - target * x
    return [reduced(value, reduction)]


# ------------------------------------------------------------------------------------------- binary


@in_one
def _is_between_0_and_1(given: Sequence[Tensor]) -> list[Tensor]:
    (x,) = given
    return [((x >= 0) & (x <= 1)).all()]


@in_one
def _binary(given: Sequence[Tensor], reduction: str) -> list[Tensor]:
    x, y, *weight = given
    value = -(y * x.log().clamp_min(-100.0) + (1 - y) * (-x).log1p().clamp_min(-100.0))
    return [reduced(value * weight[0] if weight else value, reduction)]


@in_one
def _binary_back(given: Sequence[Tensor], reduction: str, needs: tuple[bool, bool]) -> list[Tensor]:
    """Return the gradients with respect to those of input and target that need one."""
    g, x, y, *weight = given
    g = _scaled(g, x.numel(), reduction)
    if weight:
        g = g * weight[0]
    by_x = [g * (x - y) / ((1 - x) * x).clamp_min(1e-12)] if needs[0] else []
    by_y = [g * ((-x).log1p() - x.log())] if needs[1] else []
    return by_x + by_y


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(t log p + (1 - t) log(1 - p)) for probabilities p; logarithms are kept above -100."""
    reduction = reduction_of(size_average, reduce, reduction)
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(
            f"Found dtype {target.dtype.scalar_name} but expected {input.dtype.scalar_name}"
        )
    _computed("binary_cross_entropy", input, target)
    graph.refuse_gradient("binary_cross_entropy", weight=weight)
    if weight is not None and graph.needs_grad(
        weight
    ):  # it has a tangent: the node below has none for it
        return reduced(binary_cross_entropy(input, target, reduction="none") * weight, reduction)
    x, y, weighting = input.detach(), target.detach(), () if weight is None else (weight,)
    if not _is_between_0_and_1((x,))[0].item():
        raise RuntimeError("all elements of input should be between 0 and 1")
    (out,) = _binary((x, y, *weighting), reduction)

    def backward(ctx: Any, g: Tensor) -> tuple:
        weighting = () if ctx.weight is None else (ctx.weight,)
        needs = tuple(ctx.needs)
        found = _binary_back((g, ctx.self, ctx.target, *weighting), reduction, needs)
        return tuple(placed(found, needs))

    if graph.needs_grad(input, target):
        graph.record(
            "BinaryCrossEntropyBackward0",
            (input, target),
            out,
            backward,
            {"self": input, "target": target, "weight": weight},
        )
    return out


def _value_of_logits(
    x: Tensor, y: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: str
) -> Tensor:
    """Return the loss by operations that each record their own derivative."""
    factor = None if pos_weight is None else (pos_weight - 1) * y + 1
    value = (1 - y) * x - (log_sigmoid(x) if factor is None else log_sigmoid(x) * factor)
    value = value if weight is None else value * weight
    if value.dtype is not y.dtype and y.dtype.category == 2:
        # torch computes the value in place, in the tensor 1 - target, and so in the target's dtype.
        value = value.to(y.dtype)
    return reduced(value, reduction)


@in_one
def _binary_of_logits(
    given: Sequence[Tensor], there: tuple[bool, ...], reduction: str
) -> list[Tensor]:
    x, y, weight, pos_weight = placed(given, there)
    constant = None if pos_weight is None else pos_weight.detach()
    return [_value_of_logits(x, y, weight, constant, reduction)]


@in_one
def _binary_of_logits_back(
    given: Sequence[Tensor], there: tuple[bool, ...], divisor: int, needs: tuple[bool, bool]
) -> list[Tensor]:
    """Return the gradients with respect to those of input and target that need one."""
    g, x, y, weight, p = placed(given, there)
    g = g / divisor if divisor != 1 else g
    g = g if weight is None else g * weight
    found = []
    if needs[0]:
        found.append(
            (x.sigmoid() - y) * g if p is None else ((p * y + 1 - y) * x.sigmoid() - p * y) * g
        )
    if needs[1]:
        found.append(-x * g if p is None else (log_sigmoid(-x) - p * log_sigmoid(x)) * g)
    return found


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of sigmoid(input), without overflow; `pos_weight` multiplies the positive part."""
    reduction = reduction_of(size_average, reduce, reduction)
    if input.shape != target.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    if target.dtype.category == 1 and input.dtype.category > 1:
        _computed("log_sigmoid_cpu", input, target, into=target)
    graph.refuse_gradient("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    if graph.needs_grad(weight, pos_weight):  # they have tangents: the node below has none for them
        return _value_of_logits(input, target, weight, pos_weight, reduction)
    operands, there = present((input.detach(), target.detach(), weight, pos_weight))
    (out,) = _binary_of_logits(operands, there, reduction)

    def backward(ctx: Any, g: Tensor) -> tuple:
        operands, there = present((g, ctx.self, ctx.target, ctx.weight, ctx.pos_weight))
        needs = tuple(ctx.needs)
        found = _binary_of_logits_back(
            operands, there, elements if reduction == "mean" else 1, needs
        )
        return tuple(placed(found, needs))

    elements = layouts.numel(layouts.broadcast_shapes(*[t.shape for t in operands]))
    if graph.needs_grad(input, target):
        saved = {"self": input, "target": target, "weight": weight, "pos_weight": pos_weight}
        graph.record("BinaryCrossEntropyWithLogitsBackward0", (input, target), out, backward, saved)
    return out


# ------------------------------------------------------------------------------------------- classes


def _check_classes(input: Tensor, target: Tensor, weight: Tensor | None) -> int:
    """Return the dim of the classes. Errors in torch's words."""
    shape, wanted = tuple(input.shape), tuple(target.shape)
    if not shape:
        raise ValueError(f"Expected 1 or more dimensions (got {len(shape)})")
    if len(shape) == 1 and len(wanted) == 1 and wanted[0] != 1:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: {wanted[0]}"
        )
    if len(shape) != 1 and (not wanted or shape[0] != wanted[0]):
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({wanted[0] if wanted else 0})."
        )
    _check_target_shape(shape, wanted)
    if target.dtype is not dtypes.int64 and target.dtype is not dtypes.uint8:
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}"
        )
    dim = 0 if len(shape) == 1 else 1
    if weight is not None and tuple(weight.shape) != (shape[dim],):
        raise RuntimeError(
            f"weight tensor should be defined either for all {shape[dim]} classes or no classes but got weight tensor of shape: {list(weight.shape)}"
        )
    check_weight(input, weight)
    return dim


def check_weight(input: Tensor, weight: Tensor | None) -> None:
    """Raise torch's error for weights of classes that have another dtype than the input."""
    if weight is not None:
        same_dtype(input, weight)


def _check_target_shape(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Raise for targets that are not the input's shape without its class dim; torch words it by rank."""
    if len(shape) <= 2 and len(target) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    wanted = (*shape[:1], *shape[2:])
    if len(shape) == 1 or target == wanted:
        return
    if len(shape) != 4:
        raise RuntimeError(f"Expected target size {list(wanted)}, got {list(target)}")
    if len(target) != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(target)}"
        )
    raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(target)}")


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood: minus the input at each target's class.

    input (C), (N, C) or (N, C, d1, …); target without the class dim. `mean` divides by the sum of the weights.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    dim = _check_classes(input, target, weight)
    if input.dtype.category != 2:
        raise NotImplementedError(
            f"\"nll_loss{'' if input.ndim <= 2 else '2d_forward'}_out_frame\" not implemented for '{input.dtype.scalar_name}'"
        )
    return class_loss.nll_loss(input, target, weight, ignore_index, reduction, dim)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of softmax(input) along the class dim with class indices, or with probabilities of input's shape."""
    reduction = reduction_of(size_average, reduce, reduction)
    if label_smoothing.__class__ is not float:
        label_smoothing = real("cross_entropy_loss", "label_smoothing", label_smoothing)
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if not label_smoothing > 0.0:  # negative, NaN
        label_smoothing = 0.0
    try:
        dim = 0 if len(input.shape) == 1 else 1
        soft = input.shape == target.shape
    except AttributeError:
        check_tensors("cross_entropy_loss", ("input", "target"), input, target)
        raise
    if soft:
        _check_soft(input, target, weight, ignore_index, dim)
        return _soft_targets(input, target, weight, reduction, label_smoothing, dim)
    _check_classes(input, target, weight)
    if input.dtype.category != 2:
        log_softmax(input, dim)  # raises torch's error
    return class_loss.cross_entropy(
        input, target, weight, ignore_index, reduction, dim, label_smoothing
    )


def _check_soft(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, dim: int
) -> None:
    """Raise torch's errors for arguments that do not fit a target of class probabilities."""
    if target.dtype.category != 2:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.scalar_name}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    classes = input.shape[dim]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
            f"{list(weight.shape)}"
        )


def _soft_targets(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, dim: int
) -> Tensor:
    classes = input.shape[dim]
    logs = log_softmax(input, dim)
    if smoothing > 0.0:
        target = target * (1 - smoothing) + smoothing / max(classes, 1)
    value = logs * target
    if weight is not None:
        value = value * class_loss.along_classes(weight, logs.ndim, dim)
    if reduction == "none":
        return -sum(value, dim)
    if reduction == "sum":
        return -sum(value)
    return div_number(-sum(value), input.numel() / classes if classes else 0)
