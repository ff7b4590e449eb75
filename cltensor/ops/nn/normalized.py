"""Normalisation by mean and variance, recorded as one node: its values and gradients, and which kernels compute them.

Where values that share a mean fit a cache, row kernels run: one launch forward, one or two backward. For larger sets
reductions compute the statistics, and a fused pointwise chain of Tensor ops the rest; second derivatives always use it.
Calls on small tensors are replayed as one. Knows nothing of the arguments of layer norm and its like (normalization.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import layouts
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...codegen.reduce import row_kinds as rows
from ...size import Size
from .. import core, formats
from ..composite import at_once, placed, plain, present, settled
from ..convert import wide
from ..core import Tensor
from ..replay import SMALL, Replayed
from ..row import FUNCTIONS, Row
from . import norm_last, rowwise


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


def seen(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the tensor in `shape` for a kernel to read: no grad node, and no view op if it is contiguous."""
    if x.shape == shape:
        return x
    x = x if x._contig else x.detach().reshape(shape)
    steps = None if x._contig else x._strides
    return core.make(x._storage, Size(shape), x.dtype, x.device, steps, x._offset)


class Plan(NamedTuple):
    """What values and gradients are computed from, beside tensors."""

    grouped: tuple[int, ...]  # the shape in which the input is averaged
    dims: tuple[int, ...]  # over which it is averaged
    scaled: tuple[int, ...]  # the shape in which weight and bias broadcast to `grouped`
    eps: float
    images: bool = True  # keep channels last; else results are row-major
    batch: bool = False  # lay the result out as batch norm does
    fixed: bool = False  # mean and variance were given

    def strides(self, x: Tensor) -> tuple[int, ...] | None:
        """Return the strides in which the shape `grouped` of a tensor like the input is written; None if row-major."""
        steps = formats.images(x, x.shape) if self.images else None
        return None if steps is None else layouts.view_strides(tuple(x.shape), steps, self.grouped)


class _Saved(NamedTuple):
    """What a gradient reads from its node, for a call that is replayed."""

    input: Tensor
    weight: Tensor | None
    result1: Tensor
    result2: Tensor
    plan: Plan
    shapes: tuple[Any, ...]
    needs: tuple[bool, ...]


def normalized(
    node: str, input: Tensor, weight: Tensor | None, bias: Tensor | None, plan: Plan
) -> list[Tensor]:
    """Return (x - mean) * rstd * weight + bias, mean, variance, rstd."""
    given, there = present((input, weight, bias))
    if _is_small(given, plan):
        found = _values_at_once(given, there, plan)
    else:
        found = _values(input, weight, bias, plan)
    if graph.needs_grad(input, weight, bias):
        out, mean, _, rstd = found
        saved = {"input": input, "weight": weight, "result1": mean, "result2": rstd}
        saved |= {"eps": plan.eps, "plan": plan}
        graph.record(node, (input, weight, bias), out, _back, saved)
    return found


def _is_small(given: Sequence[Tensor], plan: Plan) -> bool:
    """Return whether a call is replayed as one.

    It runs pending operands first, where large ones should stay pending until the row kernel reads them; and its results
    are not pending, where those of channels-last images should wait for what follows.
    """
    if not plain(given):
        return False
    for x in given:
        if plan.images and not x._contig:
            return False
        if x._storage.waits and x._storage.nbytes > SMALL:
            return False
    return True


@Replayed.of_memory
def _values_at_once(given: Sequence[Tensor], there: tuple[bool, ...], plan: Plan) -> list[Tensor]:
    input, weight, bias = placed(given, there)
    with unrecorded():
        return settled(_values(input, weight, bias, plan))


def _values(input: Tensor, weight: Tensor | None, bias: Tensor | None, plan: Plan) -> list[Tensor]:
    grouped, dims, scaled = plan.grouped, plan.dims, plan.scaled
    to = formats.images(input, input.shape) if plan.images else None
    steps = plan.strides(input)
    if plan.batch:
        to = formats.batch_strides(input)
        steps = None if to is None else layouts.view_strides(tuple(input.shape), to, grouped)
    operands = [seen(input, grouped)]
    for v in (weight, bias):
        if v is not None:
            operands.append(seen(v, scaled))
    last = norm_last.seen(input, grouped, dims, plan.images)
    if last is not None:
        out, *numbers = norm_last.forward(last, grouped[1], weight, bias, plan.eps)
        mean, var, rstd = [seen(v, layouts.reduced_shape(grouped, dims, True)) for v in numbers]
    elif rowwise.worth(operands[0], dims, norm=True):
        kind = rows.norm(weight is not None, bias is not None)
        out, (mean, var, rstd) = rowwise.run(
            kind, operands, dims, input.dtype, strides=steps, eps=plan.eps, keepdim=True
        )
    else:
        x, *factors = [v.detach() for v in operands]
        x = wide(x)
        mean, var, rstd = statistics(x, dims, plan.eps)
        out = (x - mean) * rstd
        if weight is not None:
            out = out * factors[0]
        if bias is not None:
            out = out + factors[-1]
        out = out.to(input.dtype)
    # `seen` and not `view`: the result owns its values, so that it may be written to in place.
    out = out if out.shape == input.shape else seen(out, tuple(input.shape))
    return [formats.settled(out, to), mean, var, rstd]


# Elements up to which what is normalised by given statistics does not stay pending for what follows.
FEW = 1 << 15
_RSTD = Row("norm_rstd", {"f": "rsqrt(x + y)"}, public=False)
_SCALE = Row("norm_scale", {"f": "rsqrt(x + y) * z"}, args=("input", "eps", "weight"), public=False)
_SHIFT = Row("norm_shift", {"f": "-x * y"}, args=("input", "scale"), public=False)
_BIASED = Row("norm_biased", {"f": "z - x * y"}, args=("input", "scale", "bias"), public=False)
_MAPPED = Row("norm_mapped", {"f": "x * y + z"}, args=("input", "scale", "shift"), public=False)


def channels(x: Tensor) -> tuple[int, ...]:
    """Return the shape in which one number per channel broadcasts to `x`."""
    return (x.shape[1], *[1] * (x.ndim - 2))


def by_given(
    node: str,
    input: Tensor,
    stats: tuple[Tensor, Tensor],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """Normalise each channel by a given mean and variance: x * scale + shift, both computed once per channel."""
    scaled, to = channels(input), formats.batch_strides(input)
    recorded = graph.needs_grad(input, weight, bias)
    given, there = present((*stats, weight, bias))
    if not recorded and to is None and plain((input, *given), FEW):
        return _mapped_at_once((input, *given), there, scaled, eps)[0]
    scale, shift, *kept = _scales(given, there, scaled, eps, recorded)
    out = _MAPPED(wide(input.detach()), scale, shift)
    out = formats.settled(out.to(input.dtype), to)
    if recorded:
        shape, dims = tuple(input.shape), (0, *range(2, input.ndim))
        saved = {"input": input, "weight": weight, "result1": kept[0], "result2": kept[1]}
        saved |= {"eps": eps, "plan": Plan(shape, dims, scaled, eps, fixed=True)}
        graph.record(node, (input, weight, bias), out, _back, saved)
    return out


@at_once
def _mapped_at_once(
    given: Sequence[Tensor], there: tuple[bool, ...], scaled: tuple[int, ...], eps: float
) -> list[Tensor]:
    input, *others = given
    scale, shift = _scales(others, there, scaled, eps, False)
    return [formats.settled(_MAPPED(wide(input), scale, shift).to(input.dtype), None)]


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
        return settled([seen(v, scaled) for v in found])


def _back(ctx: Any, g: Tensor) -> tuple:
    given, there = present((g, ctx.input, ctx.weight, ctx.result1, ctx.result2))
    if _is_small(given, ctx.plan) and not graph.needs_grad(*given[:2]):
        return tuple(_slopes_at_once(given, there, ctx.plan, ctx.shapes, ctx.needs))
    return _slopes(ctx, g)


@Replayed.of_memory
def _slopes_at_once(
    given: Sequence[Tensor],
    there: tuple[bool, ...],
    plan: Plan,
    shapes: tuple[Any, ...],
    needs: tuple[bool, ...],
) -> list[Any]:
    g, x, weight, mean, rstd = placed(given, there)
    with unrecorded():
        return settled(_slopes(_Saved(x, weight, mean, rstd, plan, shapes, needs), g))


def _slopes(ctx: Any, g: Tensor) -> tuple:
    """Return the gradients of input, weight and bias. ctx: the node, or what it saved."""
    x, plan = ctx.input, ctx.plan
    grouped, dims, scaled, fixed = plan.grouped, plan.dims, plan.scaled, plan.fixed
    if g.shape != ctx.shapes[0]:
        g = g.expand(ctx.shapes[0])
    again = graph.needs_grad(x, g)
    laid = seen(x, grouped)
    if not again:
        if fixed:
            return _back_fixed(ctx, laid, g)
        last = norm_last.seen(x, grouped, dims, plan.images, 2 * rowwise.COLUMNS)
        if last is not None:
            return _back_by_sums(ctx, last, g)
        if rowwise.worth(laid, dims, 2 * rowwise.COLUMNS, norm=True):
            return _back_by_rows(ctx, laid, seen(g, grouped))
    x, g = _shaped(wide(x), grouped), wide(_shaped(g, grouped))
    # A gradient that will be differentiated itself needs the statistics as functions of the input.
    mean, _, rstd = (
        statistics(x, dims, plan.eps) if again and not fixed else (ctx.result1, None, ctx.result2)
    )
    hat = (x - mean) * rstd
    by_x = None
    if ctx.needs[0]:
        by_x = g if ctx.weight is None else g * ctx.weight.reshape(scaled)
        if not fixed:
            by_x = by_x - by_x.mean(dims, True) - hat * (by_x * hat).mean(dims, True)
        by_x = (by_x * rstd).reshape(ctx.shapes[0])
        if plan.images and by_x._node is None:
            by_x = formats.like_images(ctx.input, by_x)
    by_weight = summed(g * hat, scaled, ctx.shapes[1]) if ctx.needs[1] else None
    by_bias = summed(g, scaled, ctx.shapes[2]) if ctx.needs[2] else None
    return by_x, by_weight, by_bias


def _back_by_sums(ctx: Any, last: norm_last.Seen, g: Tensor) -> tuple:
    """Return the gradients from two sums per channel (norm_last.py), in the memory order of input and result."""
    g = formats.settled(g.detach(), ctx.input._strides)
    groups = last.samples, ctx.plan.grouped[1]
    mean, rstd = [seen(v, groups) for v in (ctx.result1, ctx.result2)]
    by_x, *others = norm_last.backward(last, g, mean, rstd, ctx.weight, ctx.needs)
    return by_x, *[
        None if v is None else seen(v, tuple(shape))
        for v, shape in zip(others, ctx.shapes[1:3], strict=True)
    ]


def _back_fixed(ctx: Any, x: Tensor, g: Tensor) -> tuple:
    """Return the gradients where mean and variance were given: a pointwise chain for x, one reduction for the others."""
    mean, rstd, weight, scaled = ctx.result1, ctx.result2, ctx.weight, ctx.plan.scaled
    by_x = by_weight = by_bias = None
    if ctx.needs[0]:
        scale = rstd if weight is None else rstd * seen(weight, scaled)
        by_x = formats.like_images(ctx.input, (wide(g) * scale).to(x.dtype))
    if ctx.needs[1] or ctx.needs[2]:
        four = (x, g, mean, rstd)
        by_weight, by_bias = rowwise.sums(
            "norm_sums", four, ("first", "second"), rstd.dtype, _repeated(scaled, x.ndim)
        )
    found = zip((by_weight, by_bias), ctx.shapes[1:3], ctx.needs[1:3], strict=True)
    return by_x, *[
        seen(v, tuple(shape)) if need and v is not None else None for v, shape, need in found
    ]


def _back_by_rows(ctx: Any, x: Tensor, g: Tensor) -> tuple:
    """Return the gradients from one row kernel that also leaves (parts of) those of weight and bias, or from two."""
    plan = ctx.plan
    given = [x, g, ctx.result1, ctx.result2]
    if ctx.weight is not None:
        given.append(seen(ctx.weight, plan.scaled))
    found = _by_rows(
        given, ctx.weight is not None, plan.dims, plan.scaled, plan.strides(ctx.input), ctx.needs
    )
    return tuple(
        [
            seen(v, tuple(shape)) if need and v is not None else None
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


def summed(g: Tensor, scaled: tuple[int, ...], shape: Any) -> Tensor:
    """Sum over the dimensions along which the weight was repeated."""
    dims = _repeated(scaled, g.ndim)
    return (g.sum(dims, True) if dims else g).reshape(shape)
