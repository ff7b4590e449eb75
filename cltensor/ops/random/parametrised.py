"""Random tensors whose parameters are tensors: bernoulli, normal, poisson, multinomial.

Their gradients with respect to the parameters are zero, as in torch. Expressions come from
`draws.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...codegen.pointwise import IDENTITY, PointOp
from ...dtypes import dtype as DType
from ...layouts import broadcast_shapes
from ...lazy import Expr, Leaf, Scalar
from ...runtime import device
from ...size import Size
from .. import convert, core, selection, writes
from ..composite import at_once, in_one, plain
from ..core import Tensor
from ..refusals import no_kernel
from ..row import BOOL, FUNCTIONS, Row, public
from .draws import (
    coins,
    coins_by,
    drawn,
    drawn_floating,
    exponential,
    hand_over,
    parse_size,
    uniform,
    wanted,
    wide_of,
)
from .generator import Generator, choose

_POISSON = PointOp("poisson", "poisson(x, y, z, w)")
_POISSON64 = PointOp("poisson", "poisson_double(x, y, z, w)")


def zeros(shape: Size, dt: DType, dev: device) -> Tensor:
    """A lazy tensor of zeros: the gradient of a draw with respect to its parameters."""
    return core.pending(Expr(IDENTITY, dt, dt, Size(shape), (Scalar(0),)), dev)


def no_gradient(ctx: Any, g: Tensor) -> tuple:
    """Return zeros for every input that needs a gradient."""
    return tuple(
        zeros(shape, g.dtype, g.device) if wanted else None
        for shape, wanted in zip(ctx.shapes, ctx.needs, strict=True)
    )


def on_host(dev: device) -> bool:
    """Return whether a check of values may wait for the device: on "cpu" only, where torch checks values, too."""
    return dev.type == "cpu"


_IN_UNIT = Row("in_unit", {"f": "x >= 0 and x <= 1"}, promote=BOOL, public=False)


@at_once
def _probable(given: Sequence[Tensor]) -> list[Tensor]:
    return [_IN_UNIT(given[0]).all()]


@at_once
def _not_negative(given: Sequence[Tensor]) -> list[Tensor]:
    return [(given[0] >= 0).all()]


def check_probability(p: Tensor) -> None:
    """RuntimeError unless all probabilities lie in [0, 1]."""
    if not on_host(p.device) or not p.numel():
        return
    # Large pending probabilities are not materialised: this check and the draw each compute them as their prologue,
    # instead of writing them once and reading them twice.
    (fine,) = _probable((p,)) if plain((p,)) else [_IN_UNIT(p).all()]
    if not bool(fine):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


def _has_no_negative(x: Tensor) -> bool:
    (fine,) = _not_negative((x,)) if plain((x,)) else [(x >= 0).all()]  # as in `check_probability`
    return bool(fine)


@public()
def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw 0 or 1, with the input's elements as probabilities, or with `p` for all. RuntimeError
    outside [0, 1]."""
    shape, dt, dev = Size(input.shape), input.dtype, input.device
    source = choose(generator, dev)
    if p is not None:
        check_p(p)
        t = core.pending(coins(shape, dt, source.take(input.numel()), float(p)), dev)
    else:
        if dt.category != 2:
            raise no_kernel("bernoulli_tensor_cpu_p_", dt)
        check_probability(input.detach())
        t = core.pending(coins_by(input, shape, dt, source.take(input.numel())), dev)
    if out is None:
        graph.record("BernoulliBackward0", (input,), t, no_gradient)
        return t
    writes.check_out(out, out.dtype, dev, "bernoulli", (input,))
    writes.check_overlap(out, ())
    if out.shape != shape:
        out.resize_(shape)
    writes.overwrite(out, t, fresh=True)
    return out


def check_p(p: float) -> None:
    """RuntimeError unless a probability lies in [0, 1]."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def check_std(std: Any) -> None:
    """RuntimeError for a negative standard deviation. That `std` is a number or a tensor is for the caller to check."""
    if core.is_tensor(std):
        if std.is_complex():
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if on_host(std.device) and std.numel() and not _has_no_negative(std.detach()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


_NORMAL = "normal", "normal_kernel_cpu"


@public("normal", method=False)
def normal_(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Draw normal numbers; mean and std are tensors, broadcast together, or numbers, then with a
    `size`.

    RuntimeError for a negative std.
    """
    parameters = [x for x in (mean, std) if core.is_tensor(x)]
    check_std(std)
    if not parameters:
        if size is None:
            raise TypeError(
                "normal() received an invalid combination of arguments: two numbers need a size"
            )
        shape = parse_size("normal", (), size)
        dt, dev = wanted("normal", out, dtype, layout, device)
        source = choose(generator, dev)
        made = drawn_floating(*_NORMAL, shape, dt, dev, source, float(mean), float(std))
        return hand_over(made, out, requires_grad)
    dev = core.common_device(parameters)
    dt = parameters[0].dtype
    shape = Size(broadcast_shapes(*[x.shape for x in parameters]))
    noise = drawn_floating(*_NORMAL, shape, dt, dev, choose(generator, dev))
    location, scale = [x.detach() if core.is_tensor(x) else x for x in (mean, std)]
    t = noise * scale + location
    if out is not None:
        return writes.deliver(t, out, "normal", parameters)
    which = 3 if len(parameters) == 2 else 1 if core.is_tensor(mean) else 2
    graph.record(f"NormalBackward{which}", tuple(parameters), t, no_gradient)
    return t


@public(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw Poisson numbers, with the input's elements as rates. RuntimeError for a negative
    rate."""
    dt, dev, shape = input.dtype, input.device, Size(input.shape)
    if dt.category != 2:
        raise no_kernel("poisson_cpu", dt)
    rate = input.detach()
    if on_host(dev) and rate.numel() and not _has_no_negative(rate):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    wide = wide_of(dt)
    rate = (rate if dt is wide else convert.cast(rate, wide)).contiguous()
    seed, first = choose(generator, dev).take(rate.numel())
    # The rate is passed as its bit pattern, because all operands of a node have the node's compute
    # type, which is an integer here.
    memory = core.kernel_operand(rate)
    rate._storage.reads += 1
    leaf = Leaf(
        memory.buffer, dtypes.int64 if dt is dtypes.float64 else dtypes.int32, None, memory.offset
    )
    i64 = dtypes.int64
    expr = Expr(
        _POISSON64 if dt is dtypes.float64 else _POISSON,
        i64,
        i64,
        shape,
        (core.index_expression(shape), Scalar(seed), Scalar(first), leaf),
    )
    t = core.pending(Expr(IDENTITY, dt, dt, shape, (expr,)), dev)
    graph.record("PoissonBackward0", (input,), t, no_gradient)
    return t


@at_once
def _weights_fault(given: Sequence[Tensor]) -> list[Tensor]:
    """Return a code: 1 if any weight is negative or not finite, 2 if a row has no positive weight, else 0."""
    p = given[0]
    sound, some = ((p >= 0) & (p < math.inf)).all(), (p.sum(-1) > 0).all()
    return [selection.where(sound, selection.where(some, 0, 2), 1)]


@at_once
def _first(given: Sequence[Tensor]) -> list[Tensor]:
    return [(given[0] / given[1]).argmax(-1, keepdim=True)]


@in_one
def _chosen(given: Sequence[Tensor]) -> list[Tensor]:
    """Return classes by their weights, for uniform numbers in [0, 1)."""
    p, u = given
    ladder = p.cumsum(-1)
    places = FUNCTIONS["searchsorted"](ladder, u * ladder[..., -1:], right=True)
    return [places.clamp(max=p.shape[-1] - 1)]


@public()
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw indices of classes, whose weights are a row (or each row) of the input: int64,
    `num_samples` per row.

    RuntimeError for weights that are negative, not finite or all zero, and for more samples than
    classes without replacement.
    """
    dt, dev = input.dtype, input.device
    if dt.category != 2:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {dt.scalar_name}"
        )
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    classes = input.shape[-1]
    if not replacement and num_samples > classes:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if classes > 2**24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    p = input.detach()
    wide = wide_of(dt)
    p = p if dt is wide else convert.cast(p, wide)
    if not p.numel():
        return writes.deliver(
            zeros(Size((*input.shape[:-1], num_samples)), dtypes.int64, dev),
            out,
            "multinomial",
            (input,),
        )
    fault = int(_weights_fault((p,))[0]) if on_host(dev) else 0
    if fault == 1:
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if fault:
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    source = choose(generator, dev)
    if replacement and num_samples > 1:
        shape = Size((*p.shape[:-1], num_samples))
        (t,) = _chosen((p, drawn(uniform, shape, wide, dev, source)))
    else:
        # With q exponential, the class of the largest p / q is drawn with probability proportional
        # to p, the next largest is the next draw without replacement, and so on.
        q = drawn(exponential, Size(p.shape), wide, dev, source, 1.0)
        if num_samples == 1 and not q._storage.waits:
            (t,) = _first((p, q))
        else:
            t = (p / q).argmax(-1, True) if num_samples == 1 else (p / q).topk(num_samples, -1)[1]
    return writes.deliver(t, out, "multinomial", (input,), differentiable=False)
