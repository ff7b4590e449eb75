"""Losses by margins and likelihoods: compositions of pointwise ops and a reduction, which fuse; small ones are replayed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from . import norms
from .composite import Composite, in_one, placed, present
from .core import Tensor, is_tensor
from .nn.activation import log_sigmoid
from .nn.losses import check_weight, reduced
from .nn.reductions import INVALID, reduction_of
from .refusals import need_float
from .row import FUNCTIONS
from .selection import where


def _in_one_node(
    elements: str, fn: Callable[..., tuple[Tensor]], copied: Sequence[int]
) -> dict[str, Composite]:
    """Return `fn(*tensors, …, reduction)` for each reduction, recorded as the last of torch's nodes, which for "none" is
    named `elements`. copied: as for a `Composite`.
    """
    names = {"mean": "MeanBackward0", "sum": "SumBackward0", "none": elements}
    return {way: Composite(name, fn, copied=copied) for way, name in names.items()}


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin), target 1 or -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    if input1.ndim != input2.ndim or input1.ndim != target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return margin_ranking(input1, input2, target, float(margin), reduction)


def margin_ranking(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str
) -> Tensor:
    """The loss of operands that broadcast, as `torch.margin_ranking_loss` takes them."""
    return _RANKED[reduction]((input1, input2, target), margin, reduction)[0]


def _ranked(x: Tensor, y: Tensor, target: Tensor, margin: float, reduction: str) -> tuple[Tensor]:
    return (reduced((-target * (x - y) + margin).clamp_min(0), reduction),)


_RANKED = _in_one_node("ClampMinBackward0", _ranked, (0, 1, 2))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The input where the target is 1, max(0, margin - input) where it is -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    return _HINGE[reduction]((input, target), margin, reduction)[0]


def _hinge(x: Tensor, target: Tensor, margin: float, reduction: str) -> tuple[Tensor]:
    apart = (x.new_full((), margin) - x).clamp_min(0)  # integers stay integers
    return (reduced(where(target == 1, 0, apart) + where(target == -1, 0, x), reduction),)


_HINGE = _in_one_node("AddBackward0", _hinge, (0, 1))


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), target 1 or -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    if input.dtype.category < 2:
        name = (
            (-target).dtype.scalar_name if target.dtype.category == 0 else input.dtype.scalar_name
        )
        raise RuntimeError(f"result type Float can't be cast to the desired output type {name}")
    return _SOFT((input, target), reduction)[0]


def _soft(x: Tensor, target: Tensor, reduction: str) -> tuple[Tensor]:
    product = x * target
    if product.shape != x.shape:
        raise RuntimeError(
            f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(product.shape)}"
        )
    # log1p(exp(.)) overflows for large margins, and its second derivative cancels.
    return (reduced(-log_sigmoid(product), reduction).to(x.dtype),)


_SOFT = Composite("SoftMarginLossBackward0", _soft)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(input1, input2) where the target is 1, max(0, cos - margin) where it is -1; the last dim is that of vectors."""
    reduction = reduction_of(size_average, reduce, reduction)
    ndim = target.ndim
    if ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.ndim == input2.ndim == ndim + 1:
        raise RuntimeError(
            f"{ndim}D target tensor expects {ndim + 1}D input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    return _BY_ANGLES[reduction]((input1, input2, target), margin, reduction)[0]


def _by_angles(
    x: Tensor, y: Tensor, target: Tensor, margin: float, reduction: str
) -> tuple[Tensor]:
    eps = 1e-12
    cos = (x * y).sum(-1) / (((x * x).sum(-1) + eps) * ((y * y).sum(-1) + eps)).sqrt()
    near = where(target == 1, 1 - cos, 0.0)
    return (reduced(near + where(target == -1, (cos - margin).clamp_min(0), 0.0), reduction),)


_BY_ANGLES = _in_one_node("AddBackward0", _by_angles, (2,))


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-06, swap: bool = False,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-distance along the last dim."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")

    reduction = reduction_of(size_average, reduce, reduction)
    tensors = anchor, positive, negative
    return _BY_DISTANCES[reduction](tensors, margin, p, eps, swap, reduction)[0]


def _by_distances(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool, reduction: str
) -> tuple[Tensor]:  # fmt: skip
    def distance(a: Tensor, b: Tensor) -> Tensor:
        return norms.vector_norm(a - b + eps, p, -1, node="NormBackward1")

    value = triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=distance,
        margin=margin,
        swap=swap,
        reduction=reduction,
    )
    return (value,)


_BY_DISTANCES = _in_one_node("ClampMinBackward0", _by_distances, (0, 1, 2))


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance; `swap` also takes the distance of positive and negative."""
    reduction = reduction_of(None, None, reduction, INVALID)
    if distance_function is None:
        return triplet_margin_loss(
            anchor, positive, negative, margin, swap=swap, reduction=reduction
        )
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = FUNCTIONS["minimum"](far, distance_function(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-08,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """exp(input) - target * input (or of log(input), without `log_input`); `full` adds Stirling's approximation of log target!."""
    reduction = reduction_of(size_average, reduce, reduction, INVALID)
    return _counted((input, target), log_input, full, eps, reduction)[0]


@in_one
def _counted(
    given: Sequence[Tensor], log_input: bool, full: bool, eps: float, reduction: str
) -> list[Tensor]:
    x, target = given
    value = x.exp() - target * x if log_input else x - target * (x + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        value = value + where(target > 1, stirling, 0.0)
    return [reduced(value, reduction)]


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-06,
    reduction: str = "mean",
) -> Tensor:
    """0.5 (log var + (input - target)² / var), the variance taken to be at least eps; `full` adds the constant."""
    if not is_tensor(var):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = input.new_full(input.shape, var)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif (
            input.ndim != var.ndim
            or sum(n for m, n in zip(input.shape, var.shape, strict=True) if m != n) != 1
        ):  # the sizes must differ in a single dim
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return _normal((input, target, var), full, eps, reduction)[0]


@in_one
def _normal(given: Sequence[Tensor], full: bool, eps: float, reduction: str) -> list[Tensor]:
    x, target, var = given
    # The variance is bounded in value only: its gradient is that of the unbounded variance, as in torch.
    bounded = var + (var.detach().clamp_min(eps) - var.detach())
    value = 0.5 * (bounded.log() + (x - target) ** 2 / bounded)
    if full:
        value = value + 0.5 * math.log(2 * math.pi)
    return [reduced(value, reduction)]


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes (the input's last dim) of the binary cross entropy with logits."""
    reduction = reduction_of(size_average, reduce, reduction, "{} is not valid")
    given, there = present((input, target, weight))
    return _of_labels(given, there, reduction)[0]


@in_one
def _of_labels(given: Sequence[Tensor], there: tuple[bool, ...], reduction: str) -> list[Tensor]:
    x, target, weight = placed(given, there)
    value = -(target * log_sigmoid(x) + (1 - target) * log_sigmoid(-x))
    if weight is not None:
        value = value * weight
    if not x.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    return [reduced(value.sum(x.ndim - 1) / x.shape[-1], reduction)]


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over other classes of max(0, margin - input[target] + input)^p; input (C) or (N, C)."""
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _check_classes(input)
    samples = input.shape[0] if input.ndim == 2 else 1
    if target.ndim > 1 or target.numel() != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{samples}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")
    need_float("multi_margin_loss_cpu_kernel", input.dtype)
    check_weight(input, weight)
    classes = input.shape[-1] if input.ndim else 1
    if weight is not None and weight.shape[0] != classes:
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(weight.shape)}"
        )
    if samples == 1:  # the target says whether the result is one of a batch
        input = input.reshape(*target.shape, -1)
    try:
        return _MULTI((input, target, weight), p, margin, reduction)[0]
    except RuntimeError as error:
        if "out of bounds" in str(error):
            raise RuntimeError("target out of range") from None
        raise


def _by_margins(
    x: Tensor, target: Tensor, weight: Tensor | None, p: int, margin: float, reduction: str
) -> tuple[Tensor]:
    y, classes = target.reshape(*x.shape[:-1], 1), x.shape[-1]
    x.detach().gather(-1, y)  # RuntimeError for a class that there is not
    other = FUNCTIONS["arange"](classes, device=x.device) != y
    # Sums of single elements, because a replay checks indices once.
    value = _exceeded(margin - where(other, 0.0, x).sum(-1, True) + x)
    if p == 2:
        value = value * value
    if weight is not None:
        value = value * where(other, 0.0, weight).sum(-1, True)
    return (reduced(where(other, value, 0.0).sum(-1) / classes, reduction),)


_MULTI = Composite("MultiMarginLossBackward0", _by_margins)


def _exceeded(gap: Tensor) -> Tensor:
    """Return max(gap, 0), with 0 for NaN, and a gradient of 0 where the gap is 0."""
    return where(gap > 0, gap, 0.0)


def _check_classes(input: Tensor) -> None:
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, 1 - (input[y] - input[i])) over labels y, listed up to the first negative, and classes i that are no label; divided by C."""
    reduction = reduction_of(size_average, reduce, reduction)
    _check_classes(input)
    vector = input.ndim < 2
    if (
        target.ndim > 1 or target.numel() != input.numel()
        if vector
        else target.shape != input.shape
    ):
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    if vector:
        input, target = input.reshape(-1), target.reshape(-1)
    need_float("multilabel_margin_loss_forward_out_frame", input.dtype)
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")
    x, y = (input, target) if input.ndim == 2 else (input.unsqueeze(0), target.unsqueeze(0))
    listed = (y < 0).to(dtypes.int64).cumsum(1) == 0
    safe = where(listed, y, 0)
    label = (
        x.new_zeros(x.shape, dtype=dtypes.int64).scatter_add(1, safe, listed.to(dtypes.int64)) > 0
    )
    gap = _exceeded(1 - x.gather(1, safe).unsqueeze(2) + x.unsqueeze(1))
    counted = listed.unsqueeze(2) & ~label.unsqueeze(1)
    value = where(counted, gap, 0.0).sum((1, 2)) / x.shape[1]
    return reduced(value if input.ndim == 2 else value.squeeze(0), reduction)
