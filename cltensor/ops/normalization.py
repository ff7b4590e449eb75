"""Layer, group, batch, instance and RMS normalisation: statistics by the reductions, the rest one fused pointwise chain.

Each records the one node torch records; the gradient formula is written with Tensor ops, so it can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .. import dtypes
from ..autograd import record as graph
from ..autograd.mode import no_grad
from .core import Tensor
from .row import FUNCTIONS, public


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype.itemsize == 2 else x


def _statistics(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Mean and reciprocal deviation over `dims`, which stay as 1."""
    var, mean = FUNCTIONS["var_mean"](x, dims, correction=0, keepdim=True)
    return mean, (var + eps).rsqrt()


def _check_float(name: str, x: Tensor) -> None:
    if x.dtype.category != 2:
        raise RuntimeError(f"\"{name}\" not implemented for '{x.dtype.scalar_name}'")


def _normalized(
    node: str,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    grouped: tuple[int, ...],
    dims: tuple[int, ...],
    scaled: tuple[int, ...],
    eps: float,
    stats: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """(x - mean) * rstd * weight + bias, statistics taken over `dims` of x in the shape `grouped`, or given.

    `scaled` is the shape in which weight and bias broadcast to x.
    """
    x = _wide(input.detach()).reshape(grouped)
    mean, rstd = _statistics(x, dims, eps) if stats is None else stats
    out = ((x - mean) * rstd).reshape(input.shape)
    if weight is not None:
        out = out * weight.detach().reshape(scaled)
    if bias is not None:
        out = out + bias.detach().reshape(scaled)
    out = out.to(input.dtype)
    if graph.needs_grad(input, weight, bias):
        saved = {"input": input, "weight": weight, "result1": mean, "result2": rstd}
        saved |= {
            "grouped": grouped,
            "dim": dims,
            "scaled": scaled,
            "eps": eps,
            "fixed": stats is not None,
        }
        graph.record(node, (input, weight, bias), out, _back, saved)
    return out


def _back(ctx: Any, g: Tensor) -> tuple:
    x, g = _wide(ctx.input).reshape(ctx.grouped), _wide(g)
    # A gradient that will be differentiated itself needs the statistics as functions of the input.
    again = graph.needs_grad(ctx.input, g) and not ctx.fixed
    mean, rstd = _statistics(x, ctx.dim, ctx.eps) if again else (ctx.result1, ctx.result2)
    hat = (x - mean) * rstd
    by_x = by_weight = by_bias = None
    if ctx.needs[0]:
        inner = (g if ctx.weight is None else g * ctx.weight.reshape(ctx.scaled)).reshape(
            ctx.grouped
        )
        if ctx.fixed:
            by_x = inner * rstd
        else:
            by_x = rstd * (
                inner - inner.mean(ctx.dim, True) - hat * (inner * hat).mean(ctx.dim, True)
            )
        by_x = by_x.reshape(ctx.shapes[0])
    if ctx.needs[1]:
        by_weight = _summed(g * hat.reshape(g.shape), ctx.scaled, ctx.shapes[1])
    if ctx.needs[2]:
        by_bias = _summed(g, ctx.scaled, ctx.shapes[2])
    return by_x, by_weight, by_bias


def _summed(g: Tensor, scaled: tuple[int, ...], shape: Any) -> Tensor:
    """Sum over the dimensions along which the weight was repeated."""
    lead = g.ndim - len(scaled)
    dims = tuple(d for d in range(g.ndim) if d < lead or scaled[d - lead] == 1)
    return (g.sum(dims, True) if dims else g).reshape(shape)


@public(method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Normalise over the last dimensions, which are `normalized_shape` (Ba et al., arXiv 1607.06450)."""
    shape = _normal_shape(input, normalized_shape, weight, bias)
    _check_float("LayerNormKernelImpl", input)
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    return _normalized(
        "NativeLayerNormBackward0", input, weight, bias, tuple(input.shape), dims, shape, eps
    )


def _normal_shape(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None = None,
) -> tuple[int, ...]:
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = {list(shape)}"
        )
    for name, v in (("weight", weight), ("bias", bias)):
        if v is not None and tuple(v.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(v.shape)} and normalized_shape = {list(shape)}"
            )
    if input.ndim < len(shape) or tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
        )
    return shape


@public(method=False)
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root mean square over the last dimensions (Zhang and Sennrich, arXiv 1910.07467)."""
    shape = _normal_shape(input, normalized_shape, weight)
    x = _wide(input)
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    small = dtypes.finfo(x.dtype).eps if eps is None else eps
    out = (x * ((x * x).mean(dims, True) + small).rsqrt()).to(input.dtype)
    return out if weight is None else out * weight


@public(method=False)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalise each of `num_groups` groups of channels of each sample (Wu and He, arXiv 1803.08494)."""
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    n, c = input.shape[:2]
    if c % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(input.shape)} and num_groups={num_groups}"
        )
    for name, v in (("weight", weight), ("bias", bias)):
        if v is not None and tuple(v.shape) != (c,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {list(v.shape)} and input of shape {list(input.shape)}"
            )
    _check_float("GroupNormKernelImpl", input)
    grouped = (n, num_groups, prod(input.shape[2:]) * (c // num_groups))
    return _normalized(
        "NativeGroupNormBackward0", input, weight, bias, grouped, (2,), _channels(input), eps
    )


def _channels(x: Tensor) -> tuple[int, ...]:
    return (x.shape[1], *[1] * (x.ndim - 2))


@public(method=False)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalise each channel over the batch (Ioffe and Szegedy, arXiv 1502.03167); in training, update the running statistics."""
    if training:
        _check_several(input)
    elif running_mean is None or running_var is None:
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    channels = input.shape[1] if input.ndim > 1 else 0
    for name, v in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        if v is not None and v.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {v.numel()}")
    _check_float("batch_norm", input)
    if input.ndim < 2:
        if input.numel():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-max(input.ndim, 1)}, {max(input.ndim - 1, 0)}], but got 1)"
            )
        return input.clone()
    dims, scaled = (0, *range(2, input.ndim)), _channels(input)
    if training:
        if running_mean is not None or running_var is not None:
            _update(input, running_mean, running_var, dims, momentum)
        return _normalized(
            "NativeBatchNormBackward0", input, weight, bias, tuple(input.shape), dims, scaled, eps
        )
    stats = (
        running_mean.detach().reshape(scaled),
        (running_var.detach() + eps).rsqrt().reshape(scaled),
    )
    return _normalized(
        "NativeBatchNormBackward0",
        input,
        weight,
        bias,
        tuple(input.shape),
        dims,
        scaled,
        eps,
        stats,
    )


def _check_several(x: Tensor) -> None:
    if x.shape[0] * prod(x.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {x.shape}"
        )


def _update(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    dims: tuple[int, ...],
    momentum: float,
) -> None:
    if x.numel() == 0:
        return
    with no_grad():
        var, mean = FUNCTIONS["var_mean"](_wide(x.detach()), dims, correction=1)
        for running, value in ((running_mean, mean), (running_var, var)):
            if running is not None:
                running.copy_((1 - momentum) * running + momentum * value)


@public(method=False)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalise each channel of each sample (Ulyanov et al., arXiv 1607.08022)."""
    if use_input_stats:
        if prod(input.shape[2:]) == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.shape}"
            )
    elif running_mean is None or running_var is None:
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, c = input.shape[:2]
    flat = input.reshape(1, n * c, *input.shape[2:])
    repeated = [
        None if v is None else v.repeat(n) for v in (running_mean, running_var, weight, bias)
    ]
    out = batch_norm(flat, *repeated, use_input_stats, momentum, eps)
    with no_grad():
        for own, many in zip((running_mean, running_var), repeated, strict=False):
            if own is not None and use_input_stats:
                own.copy_(many.view(n, c).mean(0))
    return out.view(input.shape)
