"""Layer, group, batch, instance and RMS normalisation, each recorded as the one node that torch records.

Where values that share a mean fit a cache, row kernels run: one launch forward, one or two backward. For larger sets
reductions compute the statistics, and a fused pointwise chain of Tensor ops the rest; second derivatives always use it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ... import dtypes, layouts
from ...autograd import record as graph
from ...autograd import views
from ...autograd.mode import unrecorded
from ...codegen.reduce import row_kinds as rows
from ...size import Size
from .. import core, formats, multi
from ..composite import placed, present, settled
from ..convert import wide
from ..core import Tensor
from ..refusals import need_float
from ..replay import Replayed
from ..row import FUNCTIONS, Row, public
from . import norm_last, rowwise
from .norm_dtypes import check_parameters


def statistics(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return mean, variance and reciprocal standard deviation over `dims`, which are kept with size 1."""
    if x.numel():
        var, mean = FUNCTIONS["var_mean"](x, dims, correction=0, keepdim=True)
    else:
        var = mean = x.mean(dims, True)  # NaN, which `var_mean` would warn of
    return mean, var, (var + eps).rsqrt()


def _shaped(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the tensor in `shape`: itself where it already has that shape, which saves making a view."""
    return x if x.shape == tuple(shape) else x.reshape(shape)


def _seen(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the tensor in `shape` for a kernel to read: no grad node, and no view op if it is contiguous."""
    if x.shape == shape:
        return x
    x = x if x._contig else x.detach().reshape(shape)
    steps = None if x._contig else x._strides
    return core.make(x._storage, Size(shape), x.dtype, x.device, steps, x._offset)


def _normalized(
    node: str,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    grouped: tuple[int, ...],
    dims: tuple[int, ...],
    scaled: tuple[int, ...],
    eps: float,
    *,
    images: bool = True,
    batch: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return (x - mean) * rstd * weight + bias, mean, variance, rstd; x in the shape `grouped` is averaged over `dims`.

    `scaled`: the shape in which weight and bias broadcast to `grouped`. `images`: keep channels last, else row-major.
    """
    to = back = formats.images(input, input.shape) if images else None
    if batch:
        to = formats.batch_strides(input)
    steps, back = [
        None if s is None else layouts.view_strides(tuple(input.shape), s, grouped)
        for s in (to, back)
    ]
    operands = [_seen(input, grouped)]
    for v in (weight, bias):
        if v is not None:
            operands.append(_seen(v, scaled))
    seen = norm_last.seen(input, grouped, dims, images)
    if seen is not None:
        out, *numbers = norm_last.forward(seen, grouped[1], weight, bias, eps)
        mean, var, rstd = [_seen(v, layouts.reduced_shape(grouped, dims, True)) for v in numbers]
    elif rowwise.worth(operands[0], dims, norm=True):
        kind = rows.norm(weight is not None, bias is not None)
        out, (mean, var, rstd) = rowwise.run(
            kind, operands, dims, input.dtype, strides=steps, eps=eps, keepdim=True
        )
    else:
        x, *factors = [v.detach() for v in operands]
        x = wide(x)
        mean, var, rstd = statistics(x, dims, eps)
        out = (x - mean) * rstd
        if weight is not None:
            out = out * factors[0]
        if bias is not None:
            out = out + factors[-1]
        out = out.to(input.dtype)
    # `_seen` and not `view`: the result owns its values, so that it may be written to in place.
    out = out if out.shape == input.shape else _seen(out, tuple(input.shape))
    out = formats.settled(out, to)
    if graph.needs_grad(input, weight, bias):
        saved = {"input": input, "weight": weight, "result1": mean, "result2": rstd}
        saved |= {"grouped": grouped, "dim": dims, "scaled": scaled, "eps": eps, "fixed": False, "steps": back, "images": images}  # fmt: skip
        graph.record(node, (input, weight, bias), out, _back, saved)
    return out, mean, var, rstd


_RSTD = Row("norm_rstd", {"f": "rsqrt(x + y)"}, public=False)
_SCALE = Row("norm_scale", {"f": "rsqrt(x + y) * z"}, args=("input", "eps", "weight"), public=False)
_SHIFT = Row("norm_shift", {"f": "-x * y"}, args=("input", "scale"), public=False)
_BIASED = Row("norm_biased", {"f": "z - x * y"}, args=("input", "scale", "bias"), public=False)
_MAPPED = Row("norm_mapped", {"f": "x * y + z"}, args=("input", "scale", "shift"), public=False)


def _fixed(
    node: str,
    input: Tensor,
    stats: tuple[Tensor, Tensor],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """Normalise each channel by a given mean and variance: x * scale + shift, both computed once per channel."""
    scaled, to = _channels(input), formats.batch_strides(input)
    recorded = graph.needs_grad(input, weight, bias)
    given, there = present((*stats, weight, bias))
    scale, shift, *kept = _scales(given, there, scaled, eps, recorded)
    out = _MAPPED(wide(input.detach()), scale, shift)
    out = formats.settled(out.to(input.dtype), to)
    if recorded:
        shape, dims = tuple(input.shape), (0, *range(2, input.ndim))
        saved = {"input": input, "weight": weight, "result1": kept[0], "result2": kept[1]}
        saved |= {"grouped": shape, "dim": dims, "scaled": scaled, "eps": eps, "fixed": True, "steps": to, "images": True}  # fmt: skip
        graph.record(node, (input, weight, bias), out, _back, saved)
    return out


@Replayed.of_memory
def _scales(
    given: Sequence[Tensor], there: tuple[bool, ...], scaled: tuple[int, ...], eps: float, recorded: bool
) -> list[Tensor]:  # fmt: skip
    """Return each channel's scale and shift; if `recorded` also its mean and reciprocal deviation, for the gradient."""
    with unrecorded():
        mean, var, factor, offset = [None if v is None else wide(v) for v in placed(given, there)]
        scale = _RSTD(var, eps) if factor is None else _SCALE(var, eps, factor)
        shift = _SHIFT(mean, scale) if offset is None else _BIASED(mean, scale, offset)
        found = [scale, shift, mean.clone(), _RSTD(var, eps)] if recorded else [scale, shift]
        return settled([_seen(v, scaled) for v in found])


def _back(ctx: Any, g: Tensor) -> tuple:
    x, dims = ctx.input, ctx.dim
    if g.shape != ctx.shapes[0]:
        g = g.expand(ctx.shapes[0])
    if not ctx.fixed and not graph.needs_grad(x, g):
        seen = norm_last.seen(x, ctx.grouped, dims, ctx.images, 2 * rowwise.COLUMNS)
        if seen is not None:
            return _back_by_sums(ctx, seen, g)
    plain = _seen(x, ctx.grouped)
    rows = rowwise.worth(plain, dims, 2 * rowwise.COLUMNS, norm=True)
    if rows and not ctx.fixed and not graph.needs_grad(x, g):
        return _back_by_rows(ctx, plain, _seen(g, ctx.grouped))
    if ctx.fixed and not graph.needs_grad(x, g):
        return _back_fixed(ctx, plain, g)
    x, g = _shaped(wide(x), ctx.grouped), wide(_shaped(g, ctx.grouped))
    # A gradient that will be differentiated itself needs the statistics as functions of the input.
    again = graph.needs_grad(ctx.input, g) and not ctx.fixed
    mean, _, rstd = statistics(x, dims, ctx.eps) if again else (ctx.result1, None, ctx.result2)
    hat = (x - mean) * rstd
    by_x = None
    if ctx.needs[0]:
        by_x = g if ctx.weight is None else g * ctx.weight.reshape(ctx.scaled)
        if not ctx.fixed:
            by_x = by_x - by_x.mean(dims, True) - hat * (by_x * hat).mean(dims, True)
        by_x = (by_x * rstd).reshape(ctx.shapes[0])
        if ctx.images and by_x._node is None:
            by_x = formats.like_images(ctx.input, by_x)
    by_weight = _summed(g * hat, ctx.scaled, ctx.shapes[1]) if ctx.needs[1] else None
    by_bias = _summed(g, ctx.scaled, ctx.shapes[2]) if ctx.needs[2] else None
    return by_x, by_weight, by_bias


def _back_by_sums(ctx: Any, seen: norm_last.Seen, g: Tensor) -> tuple:
    """Return the gradients from two sums per channel (norm_last.py), in the memory order of input and result."""
    g = formats.settled(g.detach(), ctx.input._strides)
    groups = seen.samples, ctx.grouped[1]
    mean, rstd = [_seen(v, groups) for v in (ctx.result1, ctx.result2)]
    by_x, *others = norm_last.backward(seen, g, mean, rstd, ctx.weight, ctx.needs)
    return by_x, *[
        None if v is None else _seen(v, tuple(shape))
        for v, shape in zip(others, ctx.shapes[1:3], strict=True)
    ]


def _back_fixed(ctx: Any, x: Tensor, g: Tensor) -> tuple:
    """Return the gradients where mean and variance were given: a pointwise chain for x, one reduction for the others."""
    mean, rstd, weight = ctx.result1, ctx.result2, ctx.weight
    by_x = by_weight = by_bias = None
    if ctx.needs[0]:
        scale = rstd if weight is None else rstd * _seen(weight, ctx.scaled)
        by_x = formats.like_images(ctx.input, (wide(g) * scale).to(x.dtype))
    if ctx.needs[1] or ctx.needs[2]:
        four = (x, g, mean, rstd)
        by_weight, by_bias = rowwise.sums(
            "norm_sums", four, ("first", "second"), rstd.dtype, _repeated(ctx.scaled, x.ndim)
        )
    found = zip((by_weight, by_bias), ctx.shapes[1:3], ctx.needs[1:3], strict=True)
    return by_x, *[
        _seen(v, tuple(shape)) if need and v is not None else None for v, shape, need in found
    ]


def _back_by_rows(ctx: Any, x: Tensor, g: Tensor) -> tuple:
    """Return the gradients from one row kernel that also leaves (parts of) those of weight and bias, or from two."""
    weight = None if ctx.weight is None else _seen(ctx.weight, ctx.scaled)
    given = [x, g, ctx.result1, ctx.result2]
    if weight is not None:
        given.append(weight)
    # Pending operands stay pending until the kernel reads them. Without any, everything is replayed as one call.
    pending = any(v._storage.waits for v in given)
    found = (_by_rows if pending else _noted)(
        given, weight is not None, ctx.dim, ctx.scaled, ctx.steps, tuple(ctx.needs)
    )
    return tuple(
        [
            _seen(v, tuple(shape)) if need and v is not None else None
            for v, shape, need in zip(found, ctx.shapes, ctx.needs, strict=True)
        ]
    )


def _by_rows(
    given: list[Tensor],
    weight: bool,
    dims: tuple[int, ...],
    scaled: tuple[int, ...],
    steps: tuple[int, ...] | None,
    needs: tuple[bool, ...],
) -> list[Tensor | None]:
    """Return the gradients for x, weight and bias. `given`: x, its result's gradient, mean, rstd and, if there is one, weight."""
    x, rstd = given[0], given[3]
    kind, join = _way_back(x, weight, dims, scaled, needs)
    by_x = by_weight = by_bias = None
    if needs[0] or join is not None:
        by_x, numbers = rowwise.run(kind, given, dims, x.dtype, strides=steps)
        if join is not None:
            by_weight, by_bias = join(numbers)
    if join is None and (needs[1] or needs[2]):
        by_weight, by_bias = rowwise.sums(
            "norm_sums", given[:4], ("first", "second"), rstd.dtype, _repeated(scaled, x.ndim)
        )
    return [by_x, by_weight, by_bias]


_noted = Replayed.of_memory(_by_rows)


def _way_back(
    x: Tensor,
    weight: bool,
    dims: tuple[int, ...],
    scaled: tuple[int, ...],
    needs: tuple[bool, ...],
) -> tuple[rows.Kind, Callable[[list[Tensor]], Any] | None]:
    """Return the row kernel's kind, and what makes the gradients of weight and bias from its numbers, if it leaves any."""
    if set(_repeated(scaled, x.ndim)) == set(dims):  # one weight per row
        return rows.channel_back(weight), tuple
    if needs[0] and (needs[1] or needs[2]):
        if scaled == tuple([x.shape[d] for d in dims]) and rowwise.by_columns(x, dims):
            return rows.norm_back(weight, True), functools.partial(rowwise.columns, shape=scaled)
        if weight and scaled[-1] == 1 and rowwise.by_runs(x):  # one weight per run
            return rows.GROUP_BACK, _over_batch
    return rows.norm_back(weight), None


def _over_batch(numbers: list[Tensor]) -> list[Tensor]:
    return rowwise.sums("sums", numbers, ("first", "second"), numbers[0].dtype, (0,))


def _repeated(scaled: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """The dims along which a weight of shape `scaled` is repeated."""
    lead = ndim - len(scaled)
    return tuple([d for d in range(ndim) if d < lead or scaled[d - lead] == 1])


def _summed(g: Tensor, scaled: tuple[int, ...], shape: Any) -> Tensor:
    """Sum over the dimensions along which the weight was repeated."""
    dims = _repeated(scaled, g.ndim)
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
    return layer_parts(input, normalized_shape, weight, bias, eps)[0]


def layer_parts(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return what `layer_norm` gives, and mean, variance and reciprocal deviation."""
    shape = _normal_shape(input, normalized_shape, weight, bias)
    need_float("LayerNormKernelImpl", input.dtype)
    check_parameters(input, weight, bias)
    node, grouped = "NativeLayerNormBackward0", tuple(input.shape)
    dims = tuple(range(len(grouped) - len(shape), len(grouped)))
    return _normalized(node, input, weight, bias, grouped, dims, shape, eps, images=False)


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
            by_weight = _seen(by_weight, ctx.shapes[1])
    if ctx.needs[1] and by_weight is None:
        by_weight = _summed(wide(g) * wide(x) * rstd, weight.shape, ctx.shapes[1])
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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
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
    node, scaled = "NativeGroupNormBackward0", (*grouped[1:3], 1)
    return _normalized(node, input, weight, bias, grouped, (2, 3), scaled, eps)


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
    return batch_parts(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


def batch_parts(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Return what `batch_norm` gives, and in training mean, variance and reciprocal deviation."""
    graph.refuse_gradient("native_batch_norm", running_mean=running_mean, running_var=running_var)
    whole = tuple(input.shape)
    if training:
        check_several(input.shape)
    elif running_mean is None or running_var is None:
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    channels = _check_channels(input, (running_mean, running_var, weight, bias))
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
        return (_fixed(node, input, (running_mean, running_var), weight, bias, float(eps)),)
    dims = (0, *range(2, len(whole)))
    out, mean, var, rstd = _normalized(
        node, input, weight, bias, whole, dims, _channels(input), eps, batch=True
    )
    if count := prod(whole):
        _update((running_mean, running_var), (mean, var), count // channels, momentum)
    return out, mean, var, rstd


def _check_channels(input: Tensor, given: Sequence[Tensor | None], times: int = 1) -> int:
    """Return the number of channels; raise torch's error, with sizes times `times`, for tensors of another size."""
    channels = input.shape[1] if input.ndim > 1 else 0
    for name, v in zip(("running_mean", "running_var", "weight", "bias"), given, strict=True):
        if v is not None and prod(v.shape) != channels:
            raise RuntimeError(
                f"{name} should contain {times * channels} elements not {times * v.numel()}"
            )
    return channels


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
    graph.refuse_gradient("native_batch_norm", running_mean=running_mean, running_var=running_var)
    need_float("batch_norm", input.dtype)
    check_parameters(input, weight, bias)  # running statistics may have any dtype
    node = "NativeBatchNormBackward0"  # torch makes one image of all samples and calls batch norm
    if not use_input_stats:
        return _fixed(node, input.contiguous(), running, weight, bias, float(eps))
    n, c = input.shape[:2]
    grouped = (n, c, 1, prod(input.shape[2:]))  # each channel is a group
    out, *found, _ = _normalized(
        node, input, weight, bias, grouped, (2, 3), (c, 1, 1), eps, images=False
    )
    if input.numel() and any(v is not None for v in running):
        mean, var = [v.mean(0) for v in found]
        _update(running, (mean, var), grouped[3], momentum)
    return out.view(input.shape)
