"""Rules for normalisations.

Functions that normalise over the last dims are called with the hidden dimension as one more leading dim. In functions
that normalise channels, the slices become further entries of the batch or further channels.
"""

from __future__ import annotations

from typing import Any

from ..calls import Call, named_rule, rule
from .images import fold, unfold

_STATISTICS = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not "
    "batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be False.If you are using a "
    "prebuilt module and do not need eval mode, please see the functorch website for resources on how to patch your module to work "
    "with vmap"
)


@rule("layer_norm rms_norm")
def last_dims(
    call: Call, input: Any, normalized_shape: Any, weight: Any = None, *rest: Any, **kwargs: Any
) -> Any:
    """Normalise over the last dims; batched weights and biases are applied afterwards, slice by slice, by broadcasting."""
    weight = kwargs.pop("weight", weight)
    if call.name == "rms_norm":
        if not call.here(weight):
            return call.hide(call.f(call.front(input), normalized_shape, weight, *rest, **kwargs))
        return _call(call, input, normalized_shape, None, *rest, **kwargs) * weight
    rest_ = list(rest)
    bias = kwargs.pop("bias", rest_.pop(0) if rest_ else None)
    if not call.here(weight) and not call.here(bias):
        return call.hide(
            call.f(call.front(input), normalized_shape, weight, bias, *rest_, **kwargs)
        )
    out = _call(call, input, normalized_shape, None, None, *rest_, **kwargs)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def _call(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the function with the hidden dimension of `input` in front, if `input` is batched."""
    if not call.here(input):
        return call.f(input, *args, **kwargs)
    return call.hide(call.f(call.front(input), *args, **kwargs))


@rule("group_norm")
def group_norm(call: Call, input: Any, num_groups: int, weight: Any = None, bias: Any = None, *rest: Any, **kwargs: Any) -> Any:  # fmt: skip
    """Normalise groups of channels: slices are batch entries; a batched weight or bias is applied afterwards."""
    if len(input.shape) < 2:
        return call.fallback()
    apart = call.here(weight) or call.here(bias)
    own = (None, None) if apart else (weight, bias)
    if call.here(input):
        x, lead = fold(call, input, len(input.shape) - 1)
        out = unfold(call, call.f(x, num_groups, *own, *rest, **kwargs), lead)
    else:
        out = call.f(input, num_groups, *own, *rest, **kwargs)
    return _affine(out, weight, bias) if apart else out


def _affine(out: Any, weight: Any, bias: Any) -> Any:
    """Scale and shift each channel (dim 1) of a normalised tensor."""
    ones = (1,) * (len(out.shape) - 2)
    if weight is not None:
        out = out * weight.reshape(-1, *ones)
    return out if bias is None else out + bias.reshape(-1, *ones)


@named_rule("batch_norm instance_norm")
def channels(call: Call, given: dict[str, Any]) -> Any:
    """Normalise each channel over the batch (batch_norm) or over each image (instance_norm).

    Slices become further entries of the batch if no statistic is computed over the images of a slice, and none that is
    given is batched; otherwise they become further channels, each with its own statistics, weight and bias.
    """
    x, mean, var = given["input"], given["running_mean"], given["running_var"]
    weight, bias = given["weight"], given["bias"]
    batch = call.name == "batch_norm"
    flag = "training" if batch else "use_input_stats"
    training = given.get(flag, given.get("train", True))
    if len(x.shape) < 2:
        return call.fallback()
    if (
        training
        and mean is not None
        and (call.here(x) or call.here(mean))
        and not (call.here(mean) and call.here(var))
    ):
        raise RuntimeError(
            _STATISTICS.replace("Batch norm", "Batch norm" if batch else "Instance norm")
        )
    others = [t for t in (mean, var, weight, bias) if t is not None]
    if not any(call.here(t) for t in others) and (not batch or not training) and call.here(x):
        given["input"], lead = fold(call, x, len(x.shape) - 1)
        return unfold(call, call.again(given), lead)
    if not batch and mean is None:
        given["weight"] = given["bias"] = None
        out = x
        if call.here(x):
            given["input"], lead = fold(call, x, len(x.shape) - 1)
            out = unfold(call, call.again(given), lead)
        else:
            out = call.again(given)
        return _affine(out, weight, bias)
    size, value = call.size, call.full(x)
    given["input"] = value.movedim(0, 1).flatten(1, 2)
    for name in ("running_mean", "running_var"):
        t = given[name]
        if t is None:
            continue
        flat = call.full(t)
        if training and not flat.is_contiguous():
            given[name + "_of"] = flat
        given[name] = flat.reshape(-1)
    for name in ("weight", "bias"):
        if given[name] is not None:
            given[name] = call.full(given[name]).reshape(-1)
    later = {k: given.pop(k) for k in list(given) if k.endswith("_of")}
    out = call.again(given)
    # The function updated a flattened copy of these running statistics.
    for name, where in later.items():
        where.copy_(given[name.removesuffix("_of")].reshape(where.shape))
    return call.hide(out.reshape(out.shape[0], size, -1, *out.shape[2:]), 1)
