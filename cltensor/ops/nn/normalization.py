"""Layer, group, batch, instance and RMS normalisation: their arguments, torch's checks, and running statistics.

Each is recorded as the one node that torch records; normalized.py computes values and gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd import views
from ...autograd.mode import unrecorded
from ...codegen.reduce import row_kinds as rows
from .. import formats, multi
from ..convert import wide
from ..core import Tensor
from ..refusals import need_float
from ..row import public
from . import rowwise
from .norm_dtypes import check_parameters
from .normalized import Plan, by_given, channels, normalized, seen, summed


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
    return layer_parts(input, normalized_shape, weight, bias, eps)[0]


def layer_parts(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> list[Tensor]:  # fmt: skip
    """Return what `layer_norm` gives, and mean, variance and reciprocal deviation."""
    shape = _normal_shape(input, normalized_shape, weight, bias)
    need_float("LayerNormKernelImpl", input.dtype)
    check_parameters(input, weight, bias)
    grouped = tuple(input.shape)
    dims = tuple(range(len(grouped) - len(shape), len(grouped)))
    plan = Plan(grouped, dims, shape, eps, images=False)
    return normalized("NativeLayerNormBackward0", input, weight, bias, plan)


def _normal_shape(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None = None,
    rms: bool = False,
) -> tuple[int, ...]:
    """Return `normalized_shape` as a tuple, or raise torch's errors of layer_norm, or with `rms` of rms_norm."""
    if not isinstance(normalized_shape, Sequence) or isinstance(normalized_shape, str):
        raise TypeError(
            f"{'rms' if rms else 'layer'}_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, "
            f"not {type(normalized_shape).__name__}"
        )
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
    if rms and input.ndim < len(shape):
        raise ValueError(
            f"Input tensor must have at least {len(shape)} dimensions, but got {input.ndim}"
        )
    whole = tuple(input.shape)
    if len(whole) < len(shape) or whole[len(whole) - len(shape) :] != shape:
        leading = "*" if rms else "*, "
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{leading}{', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
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
    shape = _normal_shape(input, normalized_shape, weight, rms=True)
    need_float("rms_norm", input.dtype, 3)
    x = wide(input)
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    small = dtypes.finfo(x.dtype).eps if eps is None else eps
    same = weight is None or weight.dtype is input.dtype
    if same and input.dtype.category == 2 and rowwise.worth(input, dims):
        return _rms_by_rows(input, weight, dims, small)
    out = x * ((x * x).mean(dims, True) + small).rsqrt()
    return (out if weight is None else out * weight).to(input.dtype)


def _rms_by_rows(input: Tensor, weight: Tensor | None, dims: tuple[int, ...], eps: float) -> Tensor:
    x = input.detach()
    given = [x] if weight is None else [x, weight.detach()]
    kind = rows.rms(weight is not None)
    to = formats.images(x, x.shape)
    out, (rstd,) = rowwise.run(kind, given, dims, x.dtype, strides=to, eps=eps)
    if graph.needs_grad(input, weight):
        saved = {"self": input, "other": weight, "rstd": rstd, "dim": dims, "eps": eps}
        graph.record("MulBackward0", (input, weight), out, _rms_back, saved)
    return out


def _rms_back(ctx: Any, g: Tensor) -> tuple:
    x, weight, dims = ctx.self, ctx.other, ctx.dim
    again = graph.needs_grad(x, weight, g)
    rstd = ctx.rstd.reshape([1 if d in dims else n for d, n in enumerate(x.shape)])
    if again:
        rstd = ((wide(x) * wide(x)).mean(dims, True) + ctx.eps).rsqrt()
    by_x = by_weight = None
    if ctx.needs[0] and again:
        inner, hat = wide(g if weight is None else g * weight), wide(x) * rstd
        by_x = rstd * (inner - hat * (inner * hat).mean(dims, True))
    elif ctx.needs[0]:
        given = [x.detach(), g, rstd]
        if weight is not None:
            given.append(weight.detach())
        shared = ctx.needs[1] and rowwise.by_columns(x, dims)
        kind = rows.rms_back(weight is not None, shared)
        steps = formats.images(x, x.shape)
        by_x, parts = rowwise.run(kind, given, dims, x.dtype, strides=steps)
        if shared:
            (by_weight,) = rowwise.columns(parts, tuple(weight.shape))
            by_weight = seen(by_weight, ctx.shapes[1])
    if ctx.needs[1] and by_weight is None:
        by_weight = summed(wide(g) * wide(x) * rstd, weight.shape, ctx.shapes[1])
    return by_x, by_weight


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
    return group_parts(input, num_groups, weight, bias, eps)[0]


def group_parts(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> list[Tensor]:
    """Return what `group_norm` gives, and mean, variance and reciprocal deviation."""
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
    need_float("GroupNormKernelImpl", input.dtype)
    check_parameters(input, weight, bias)
    grouped = (n, num_groups, c // num_groups, prod(input.shape[2:]))
    plan = Plan(grouped, (2, 3), (*grouped[1:3], 1), eps)
    return normalized("NativeGroupNormBackward0", input, weight, bias, plan)


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
    return batch_parts(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


def _refuse_gradient(running: Sequence[Tensor | None], others: Sequence[Tensor | None]) -> None:
    """Raise torch's RuntimeError for running statistics that require grad, or have tangents as other inputs do."""
    graph.refuse_gradient("native_batch_norm", running_mean=running[0], running_var=running[1])
    if graph.needs_grad(*running) and graph.needs_grad(*others):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )


def batch_parts(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Sequence[Tensor]:
    """Return what `batch_norm` gives, and in training mean, variance and reciprocal deviation."""
    _refuse_gradient((running_mean, running_var), (input, weight, bias))
    whole = tuple(input.shape)
    if training:
        check_several(input.shape)
    elif running_mean is None or running_var is None:
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    _check_channels(input, (running_mean, running_var, weight, bias))
    need_float("batch_norm", input.dtype)
    check_parameters(input, weight, bias, running_mean, running_var)
    if len(whole) < 2:
        if input.numel():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-max(input.ndim, 1)}, {max(input.ndim - 1, 0)}], but got 1)"
            )
        return (input.clone(),)
    node = "NativeBatchNormBackward0"
    if not training:
        return (by_given(node, input, (running_mean, running_var), weight, bias, float(eps)),)
    dims = (0, *range(2, len(whole)))
    plan = Plan(whole, dims, channels(input), eps, batch=True)
    out, mean, var, rstd = normalized(node, input, weight, bias, plan)
    if count := prod(whole):
        _update((running_mean, running_var), (mean, var), count // whole[1], momentum)
    return out, mean, var, rstd


def _check_channels(input: Tensor, given: Sequence[Tensor | None], times: int = 1) -> None:
    """Raise torch's error, with sizes times `times`, for tensors that do not have one element for each channel."""
    channels = input.shape[1] if input.ndim > 1 else 0
    for name, v in zip(("running_mean", "running_var", "weight", "bias"), given, strict=True):
        if v is not None and prod(v.shape) != channels:
            raise RuntimeError(
                f"{name} should contain {times * channels} elements not {times * v.numel()}"
            )


def check_several(shape: Sequence[int]) -> None:
    """Raise torch's ValueError where a channel of (N, C, …) has a single value, whose variance would be meaningless."""
    sizes = tuple(shape)
    if sizes[0] * prod(sizes[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {shape}"
        )


_RUNNING = multi.chain(
    "running", "m = keep * m + part * x\nv = keep * v + unbiased * y", "m v", "x y"
)


def _update(
    running: tuple[Tensor | None, Tensor | None],
    batch: tuple[Tensor, Tensor],
    n: int,
    momentum: float,
) -> None:
    """Move the running mean and variance towards a batch's, of n values per channel; the variance unbiased."""
    written: list[list[Tensor]] = []
    read: list[list[Tensor]] = []
    shape = next((x.shape for x in running if x is not None), None)
    if shape is None:
        return
    with unrecorded():
        for kept, value in zip(running, batch, strict=True):
            fresh = rowwise.fresh(value, shape)
            if kept is not None:
                views.check_inplace(kept)
            written.append([fresh.clone() if kept is None else kept])
            read.append([fresh])
        parts = {"keep": 1 - momentum, "part": momentum, "unbiased": momentum * n / (n - 1)}
        multi.apply(_RUNNING, [*written, *read], parts)


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
    running = running_mean, running_var
    _check_channels(input, (*running, weight, bias), input.shape[0])
    _refuse_gradient((running_mean, running_var), (input, weight, bias))
    need_float("batch_norm", input.dtype)
    check_parameters(input, weight, bias)  # running statistics may have any dtype
    node = "NativeBatchNormBackward0"  # torch makes one image of all samples and calls batch norm
    if not use_input_stats:
        return by_given(node, input.contiguous(), running, weight, bias, float(eps))
    n, c = input.shape[:2]
    grouped = (n, c, 1, prod(input.shape[2:]))  # each channel is a group
    plan = Plan(grouped, (2, 3), (c, 1, 1), eps, images=False)
    out, *found, _ = normalized(node, input, weight, bias, plan)
    if input.numel() and any(v is not None for v in running):
        mean, var = [v.mean(0) for v in found]
        _update(running, (mean, var), grouped[3], momentum)
    return out.view(input.shape)
