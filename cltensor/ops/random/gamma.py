"""Random tensors drawn by rejection from two-parameter families: gamma, Dirichlet and binomial numbers.

A gamma number can be differentiated by its shape at a fixed quantile (implicit reparameterization); a binomial one cannot.
The device functions are in cl_kernels/random/gamma.cl.
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...codegen.pointwise import IDENTITY, PointOp
from ...layouts import broadcast_shapes
from ...lazy import Expr, Leaf, Scalar
from ...size import Size
from .. import convert, core
from ..core import Tensor
from ..refusals import no_kernel
from ..row import Row, public
from .draws import wide_of
from .generator import Generator, choose
from .parametrised import no_gradient, on_host

_GAMMA = PointOp("gamma_draw", "gamma_draw(x, y, z, w)")
_GAMMA64 = PointOp("gamma_draw", "gamma_draw_double(x, y, z, w)")
_BINOMIAL = PointOp("binomial_draw", "binomial_draw(x, y, z, w, u)")
_BINOMIAL64 = PointOp("binomial_draw", "binomial_draw_double(x, y, z, w, u)")

gamma_slope = Row(
    "_standard_gamma_grad", {"f": "gamma_slope(y, x)"}, args=("input", "output"), inplace=False, domain=(0.5, 4.0),
    underivable="_standard_gamma_grad", doc="Differentiate gamma numbers `output` by their shapes `input`.",
)  # fmt: skip

beta_slope = Row(
    "_dirichlet_grad", {"f": "beta_slope(x, y, z)"}, args=("x", "alpha", "total"), inplace=False, domain=(0.1, 0.9),
    underivable="_dirichlet_grad",
    doc="Differentiate beta numbers `x` of shapes `alpha` and `total - alpha` by `alpha`, over 1 - x.",
)  # fmt: skip


def _bits(t: Tensor) -> Leaf:
    """Return an operand that reads a tensor's elements as integers, their bit patterns, for nodes that compute in
    integers.
    """
    t = t.contiguous()
    memory = core.kernel_operand(t)
    t._storage.reads += 1
    kind = dtypes.int64 if t.dtype is dtypes.float64 else dtypes.int32
    return Leaf(memory.buffer, kind, None, memory.offset)


def _draw(op: PointOp, parameters: list[Tensor], generator: Generator | None) -> Expr:
    """Return the expression of a device function of index, seed, counter and parameters (all of one shape), with 64-bit
    results.
    """
    first = parameters[0]
    shape, i64 = Size(first.shape), dtypes.int64
    seed, counter = choose(generator, first.device).take(first.numel())
    operands = (
        core.index_expression(shape),
        Scalar(seed),
        Scalar(counter),
        *[_bits(t) for t in parameters],
    )
    return Expr(op, i64, i64, shape, operands)


@public(method=False)
def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw gamma numbers of rate 1, with the input's elements as shapes; differentiable by the shape."""
    dt = input.dtype
    if dt.category != 2:
        raise no_kernel("gamma_cpu", dt)
    wide = wide_of(dt)
    shape = input.detach()
    shape = shape if dt is wide else convert.cast(shape, wide)
    double = wide is dtypes.float64
    bits = _draw(_GAMMA64 if double else _GAMMA, [shape], generator)
    if not double:
        bits = Expr(IDENTITY, dtypes.int32, dtypes.int32, bits.shape, (bits,))
    t = core.pending(bits, input.device).view(wide)
    t = t if dt is wide else convert.cast(t, dt)
    graph.record(
        "StandardGammaBackward0",
        (input,),
        t,
        lambda ctx, g: g * gamma_slope(ctx.input, ctx.result),
        {"input": input, "result": t},
    )
    return t


@public(method=False)
def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw points of the simplex, with the last dimension's elements as concentrations; differentiable by them.

    Gamma numbers of small concentrations underflow in float32, so they are drawn as float64 where the device has it. As
    in torch, a point's elements are neither 0 nor 1.
    """
    dt, double = input.dtype, input._storage.backend.info.fp64 and input.dtype.category == 2
    shapes = input.detach()
    shapes = convert.cast(shapes, dtypes.float64) if double else shapes
    drawn = _standard_gamma(shapes, generator)
    point = drawn / drawn.sum(-1, keepdim=True)
    point = point if point.dtype is dt else convert.cast(point, dt)
    limits = dtypes.finfo(dt)
    point = point.clamp(limits.tiny, 1 - limits.eps / 2)
    graph.record("_DirichletBackward", (input,), point, _push, {"input": input, "result": point})
    return point


def _push(ctx: Any, g: Tensor) -> Tensor:
    """Return the gradient by the concentrations (implicit reparameterization).

    With concentration i, element i of the point moves at a fixed quantile of its beta distribution, and the point on
    the line through corner i of the simplex.
    """
    shapes, point = ctx.input, ctx.result
    wide = dtypes.float64 if point._storage.backend.info.fp64 else point.dtype
    a, x = convert.cast(shapes, wide), convert.cast(point, wide)
    slope = beta_slope(x, a, a.sum(-1, keepdim=True).expand(a.shape))
    return convert.cast(slope, point.dtype) * (g - (point * g).sum(-1, keepdim=True))


@public(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw the numbers of successes of `count` trials of probability `prob`, broadcast together. RuntimeError for dtypes that differ."""
    dt, dev = count.dtype, core.common_device([count, prob])
    if dt.category != 2:
        raise no_kernel("binomial_cpu", dt)
    if prob.dtype is not dt:
        raise RuntimeError(f"Found dtype {prob.dtype.scalar_name} but expected {dt.scalar_name}")
    shape = Size(broadcast_shapes(count.shape, prob.shape))
    wide = wide_of(dt)
    n, p = (
        (t if dt is wide else convert.cast(t, wide)).expand(shape)
        for t in (count.detach(), prob.detach())
    )
    if on_host(dev) and n.numel() and not bool((n >= 0).all()):
        raise RuntimeError("Expected count >= 0 to be true, but got false.")
    op = _BINOMIAL64 if wide is dtypes.float64 else _BINOMIAL
    t = core.pending(Expr(IDENTITY, dt, dt, shape, (_draw(op, [n, p], generator),)), dev)
    graph.record("BinomialBackward0", (count, prob), t, no_gradient)
    return t
