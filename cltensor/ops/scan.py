"""Running sums, products and extremes along a dim, with their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..autograd import record as graph
from ..codegen.operand import Operand
from ..codegen.order import scan as family
from ..dtypes import dtype
from ..runtime import get_backend
from ..storage import Storage
from . import core, return_types, writes
from .composite import in_one
from .core import Tensor
from .dims import one_dim, refuse
from .operands import refuse_bool
from .reduce import summed
from .replay import Replayed
from .row import FUNCTIONS, public, with_inplace
from .selection import where
from .values import check_out_dtype, conj, result_dtype


def _run(x: Tensor, dim: int, kind: str, dt: dtype | None = None, back: bool = False) -> Any:
    found = _scanned((x,), dim, kind, dt, back)
    return found[0] if len(found) == 1 else tuple(found)


@Replayed.of_memory
def _scanned(
    xs: Sequence[Tensor], dim: int, kind: str, dt: dtype | None, back: bool
) -> list[Tensor]:
    (x,) = xs
    backend = get_backend(x.device)
    with backend.lock:
        found = family.scan(backend, core.kernel_operand(x), dim, kind, dt, back)
    return [core.result(f, x.device) for f in ([found] if isinstance(found, Operand) else found)]


def _backwards(x: Tensor, dim: int) -> Tensor:
    """Return running sums from the end, in one scan.

    torch computes them as flip, cumsum, flip: the node has the name of the last flip's.
    """
    if not x.ndim:
        return x
    if x._storage.__class__ is not Storage:
        return x.flip(dim).cumsum(dim).flip(dim)
    value = _run(x, dim, "cumsum", summed(x), back=True)
    if graph.needs_grad(x):
        graph.record("FlipBackward0", (x,), value, lambda ctx, g: g.cumsum(ctx.dim), {"dim": dim})
    return value


def _cumsum_back(ctx: Any, g: Tensor) -> Tensor:
    return _backwards(g, ctx.dim)


@public()
def cumsum(
    input: Tensor, dim: int, *, dtype: dtype | None = None, out: Tensor | None = None
) -> Tensor:
    """Running sums along `dim`; integers and bool add up to int64."""
    refuse(input, "cumsum")
    at = one_dim("cumsum", dim, input.ndim)
    dt = result_dtype("cumsum", dtype, out, summed(input))
    refuse_bool(dt, "cumsum_out_cpu")
    value = _run(input, at, "cumsum", dt)
    if graph.needs_grad(input):
        graph.record("CumsumBackward0", (input,), value, _cumsum_back, {"dim": at})
    return writes.deliver(value, out, "cumsum", (input,))


def _cumprod_back(ctx: Any, g: Tensor) -> Tensor:
    x, dim = ctx.self, ctx.dim
    if not x.ndim:
        return g
    if graph.needs_grad(g, x) and (x == 0).any().item():
        return _cumprod_back_over_zeros(x, g, dim)
    return _cumprod_slope((g, x, ctx.result), dim)[0]


@in_one
def _cumprod_slope(given: Sequence[Tensor], dim: int) -> list[Tensor]:
    g, x, result = given
    zero = x == 0
    seen = zero.cumsum(dim)
    first = zero & (seen == 1)
    # Before a row's first zero, the products are divided by x; at the first zero, products without it are used; after
    # it the gradient is 0.
    without = where(first, 1.0, x).cumprod(dim)
    if x.dtype.is_complex:
        before = _backwards(g * result.conj(), dim)
        at_zero = _backwards(g * without.conj(), dim)
        quotient = before / where(zero, 1.0, x).conj()
    else:
        before, at_zero = _backwards(g * result, dim), _backwards(g * without, dim)
        quotient = before / where(zero, 1.0, x)
    return [where(seen == 0, quotient, where(first, at_zero, 0.0))]


def _cumprod_back_over_zeros(x: Tensor, g: Tensor, dim: int) -> Tensor:
    """Return `cumprod`'s gradient without a division, so that it can be differentiated again at zeros.

    It builds the matrix of the products between any two positions.
    """
    x, g = x.movedim(dim, -1), g.movedim(dim, -1)
    n = x.shape[-1]
    later = x.new_ones((n, n)).triu(1) != 0
    between = where(later, x.unsqueeze(-2), 1.0).cumprod(-1)
    behind = (conj(between).triu() * g.unsqueeze(-2)).sum(-1)
    first = x.new_ones((*x.shape[:-1], 1))
    before = FUNCTIONS["cat"]([first, x.narrow(-1, 0, n - 1)], -1).cumprod(-1)
    return (conj(before) * behind).movedim(-1, dim)


@public()
def cumprod(
    input: Tensor, dim: int, *, dtype: dtype | None = None, out: Tensor | None = None
) -> Tensor:
    """Running products along `dim`; integers and bool give int64."""
    refuse(input, "cumprod")
    at = one_dim("cumprod", dim, input.ndim)
    dt = result_dtype("cumprod", dtype, out, summed(input))
    refuse_bool(dt, "cumprod_out_cpu")
    value = _run(input, at, "cumprod", dt)
    if graph.needs_grad(input):
        graph.record(
            "CumprodBackward0",
            (input,),
            value,
            _cumprod_back,
            {"self": input, "result": value, "dim": at},
        )
    return writes.deliver(value, out, "cumprod", (input,))


def _ranked_back(ctx: Any, g: Tensor, _: Any = None) -> Tensor:
    shape = ctx.shapes[0]
    return g.new_zeros(shape).scatter_add(ctx.dim, ctx.indices, g) if len(shape) else g


def _delivered(made: Tensor, out: Any, name: str, input: Tensor) -> Tensor:
    if out is not None:
        found = f"expected scalar_type {made.dtype.scalar_name} but found {out.dtype.scalar_name}"
        check_out_dtype(made.dtype, out, found)
    return writes.deliver(made, out, name, (input,))


def _ranked(name: str, input: Tensor, dim: int, out: Any) -> Any:
    refuse(input, name)
    if not input.ndim and dim not in (0, -1) and dim.__class__ is int:
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    at = one_dim(name, dim, input.ndim)
    values, indices = _run(input, at, name)
    if graph.needs_grad(input):
        graph.record(
            f"{name.title()}Backward0",
            (input,),
            (values, indices),
            _ranked_back,
            {"indices": indices, "dim": at},
        )
    if out is not None:
        values, indices = (
            _delivered(made, given, name, input)
            for made, given in writes.each((values, indices), out)
        )
    return getattr(return_types, name)((values, indices))


@public()
def cummax(input: Tensor, dim: int, *, out: Sequence[Tensor] | None = None) -> Any:
    """Running maxima along `dim` and where they are."""
    return _ranked("cummax", input, dim, out)


@public()
def cummin(input: Tensor, dim: int, *, out: Sequence[Tensor] | None = None) -> Any:
    """Running minima along `dim` and where they are."""
    return _ranked("cummin", input, dim, out)


def _logs_backwards(x: Tensor, dim: int) -> Tensor:
    """Return running logsumexps from the end: in one scan, or where it has to be recorded, by a scan between two flips."""
    if graph.needs_grad(x) or x._storage.__class__ is not Storage:
        return x.flip(dim).logcumsumexp(dim).flip(dim)
    return _run(x, dim, "logcumsumexp", back=True)


def _logcumsumexp_back(ctx: Any, g: Tensor) -> Tensor:
    x, result, dim = ctx.self, ctx.result, ctx.dim
    if not x.ndim or not x.numel():
        return g
    # Only x - result matters, so both are shifted by x's maximum: added to values far from zero, the logarithms of the
    # shares would lose digits.
    top = x.detach().real.amax(dim, keepdim=True)
    # Near zero, the shift would only add rounding errors.
    top = where(top.isfinite() & (top.abs() > 64), top, 0.0)
    x, result = x - top, result - top
    if x.dtype.is_complex:
        shares = _complex_pairs if graph.needs_grad(g, x) else _complex_part
        return shares(g.conj(), x, result, dim).conj()

    def part(share: Tensor) -> Tensor:
        """Return the gradient for non-negative `share`s of g, summed as logarithms."""
        return (_logs_backwards(share.log() - result, dim) + x).exp()

    positive, negative = where(g > 0, g, 0.0), where(g < 0, -g, 0.0)
    grad = part(positive) - part(negative)
    return where(result == -math.inf, 0.0, grad)


def _logcumsumexp_push(ctx: Any, out: Tensor, t: Tensor) -> Tensor:
    """Return running means of the tangent, weighted by exp(x).

    They are computed with logarithms, of the tangent plus a constant that makes it positive.
    """
    x, dim = ctx.self, ctx.dim
    if not x.ndim or not x.numel():
        return t
    if x.dtype.is_complex:
        x, result, t = x.movedim(dim, -1), out.movedim(dim, -1), t.movedim(dim, -1)
        n = x.shape[-1]
        seen = x.new_ones((n, n)).real.tril() != 0
        powers = where(seen, x.unsqueeze(-2) - result.unsqueeze(-1), 0.0)
        return (where(seen, powers.exp(), 0.0) * t.unsqueeze(-2)).sum(-1).movedim(-1, dim)
    more = t.detach().abs().amax() * 2 + 1
    found = ((x + (t + more).log()).logcumsumexp(dim) - out).exp() - more
    return where(out == -math.inf, 0.0, found)


def _complex_part(g: Tensor, x: Tensor, result: Tensor, dim: int) -> Tensor:
    """Return the gradient as `part` in `_logcumsumexp_back` does for real numbers, but with a finite logarithm for
    zeros.

    With an infinite one, differences of complex numbers would be NaN.
    """
    zero = g == 0
    logs = where(zero, -1e30, where(zero, 1.0, g).log()) - result
    return (_logs_backwards(logs, dim) + x).exp()


def _complex_pairs(g: Tensor, x: Tensor, result: Tensor, dim: int) -> Tensor:
    """Return the gradient by sums over pairs of positions, without logarithms, so that it can be differentiated again.

    Complex shares may cancel to a sum of 0, whose logarithm is infinite.
    """
    x, result, g = x.movedim(dim, -1), result.movedim(dim, -1), g.movedim(dim, -1)
    n = x.shape[-1]
    before = x.new_ones((n, n)).triu() != 0
    powers = where(before, x.unsqueeze(-1) - result.unsqueeze(-2), 0.0)
    return (where(before, powers.exp(), 0.0) * g.unsqueeze(-2)).sum(-1).movedim(-1, dim)


@public()
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """Logarithms of the running sums of exponentials along `dim`."""
    refuse(input, "logcumsumexp")
    at = one_dim("logcumsumexp", dim, input.ndim)
    value = _run(input, at, "logcumsumexp")
    if graph.needs_grad(input):
        graph.record(
            "LogcumsumexpBackward0",
            (input,),
            value,
            _logcumsumexp_back,
            {"self": input, "result": value, "dim": at},
            _logcumsumexp_push,
        )
    return _delivered(value, out, "logcumsumexp", input)


with_inplace("cumsum", cumsum)
with_inplace("cumprod", cumprod)
