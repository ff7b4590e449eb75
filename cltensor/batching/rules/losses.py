"""Rules for losses: a loss is computed with `reduction="none"`, then each slice is reduced by itself."""

from __future__ import annotations

from typing import Any

from ...ops.row import FUNCTIONS
from ..calls import Call, named_rule
from .pointwise import aligned


def _reduction(given: dict[str, Any]) -> str:
    """Return the reduction that torch's deprecated flags, set to None in `given`, or else `reduction` asks for."""
    average, reduce = given.get("size_average"), given.get("reduce")
    for name in ("size_average", "reduce"):
        if name in given:
            given[name] = None
    if average is None and reduce is None:
        return given["reduction"]
    if reduce is False:
        return "none"
    return "sum" if average is False else "mean"


def _total(call: Call, out: Any, reduction: str) -> Any:
    """Reduce unreduced losses over all dims but the first, the batch dimension, and hide that."""
    if reduction == "none":
        return call.hide(out)
    if out.ndim == 1:
        return call.hide(out)
    dims = tuple(range(1, out.ndim))
    return call.hide(out.sum(dims) if reduction == "sum" else out.mean(dims))


@named_rule(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div soft_margin_loss poisson_nll_loss"
)
def elements(call: Call, given: dict[str, Any]) -> Any:
    """Compute a loss that is a pointwise function of input and target."""
    reduction = _reduction(given)
    if reduction not in ("none", "mean", "sum", "batchmean"):
        return call.fallback()
    names = [n for n in ("input", "target", "weight", "pos_weight") if given.get(n) is not None]
    made = aligned(call, [given[n] for n in names])
    size = given["input"].shape
    ndim = max(t.ndim for t in made)
    # Weights are aligned and passed on: the loss function applies them. Input and target get one shape here, because
    # the loss functions warn about different shapes or refuse them.
    given |= zip(names, made, strict=True)
    if any(t.ndim != ndim for t in made[:2]):
        whole = FUNCTIONS["broadcast_tensors"](*made[:2])
        given[names[0]], given[names[1]] = whole
    elif made[0].shape != made[1].shape:
        given[names[0]], given[names[1]] = FUNCTIONS["broadcast_tensors"](*made[:2])
    given["reduction"] = "none"
    out = call.again(given)
    if reduction == "batchmean":
        return _total(call, out, "sum") / (size[0] if len(size) else 1)
    if (
        reduction == "mean"
        and call.name in ("mse_loss", "l1_loss")
        and given.get("weight") is not None
    ):
        return call.fallback()
    return _total(call, out, reduction)


@named_rule("cross_entropy nll_loss")
def classes(call: Call, given: dict[str, Any]) -> Any:
    """Compute a classification loss of scores and target classes (indices or probabilities).

    The batch dimension is merged into the scores' own batch. A mean is computed here, because each slice has its own
    divisor: the number, or the sum of the weights, of its targets that are not `ignore_index`.
    """
    reduction = _reduction(given)
    x, target, weight = given["input"], given["target"], given["weight"]
    probabilities = target.dtype.category >= 2
    if call.here(weight) or (
        weight is not None
        and reduction == "mean"
        and (probabilities or given.get("label_smoothing"))
    ):
        return call.loop()
    if not len(x.shape):
        return call.fallback()
    single = len(x.shape) == 1
    values, labels = call.full(x), call.full(target)
    lead = tuple(labels.shape[: labels.ndim - probabilities]) if single else tuple(labels.shape)
    if probabilities:
        lead = tuple(values.shape[:1]) if single else (*values.shape[:2], *values.shape[3:])
    if not single:
        values, labels = values.flatten(0, 1), labels.flatten(0, 1)
    given["input"], given["target"], given["reduction"] = values, labels, "none"
    out = call.again(given).reshape(lead)
    if reduction == "none":
        return call.hide(out)
    dims = tuple(range(1, out.ndim))
    total = out.sum(dims) if dims else out
    if reduction == "sum" or (single and weight is None and probabilities):
        return call.hide(total)
    if probabilities:
        count = 1
        for n in lead[1:]:
            count *= n
        return call.hide(total / count)
    labels = labels.reshape(lead)
    kept = labels != given["ignore_index"]
    if weight is None:
        share = kept.to(out.dtype)
    else:
        share = weight[labels.where(kept, labels * 0)] * kept
    return call.hide(total / (share.sum(dims) if dims else share))
