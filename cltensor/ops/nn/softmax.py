"""softmax, log_softmax and softmin, each one kernel forward and one backward."""

from __future__ import annotations

from typing import Any

from ...autograd import record as graph
from ...codegen.reduce import row_kinds as family
from ...dtypes import asked, dtype
from ..core import Tensor
from ..dims import one_dim, refuse
from ..reduce import sum
from ..reducing import accumulator, run
from ..refusals import no_kernel
from ..row import Row, public
from ..values import into
from . import rowwise


def _in_steps(g: Tensor, result: Tensor, dim: int) -> bool:
    """Return whether the gradient is computed by a sum and a pointwise chain instead of one row kernel.

    That is so where it will itself be differentiated, and where rows do not stay in a cache or are few.
    """
    if graph.needs_grad(g, result) or g.shape != result.shape:
        return True
    return result.ndim > 0 and _by_sums(result, (dim,))


def _by_sums(x: Tensor, dims: tuple[int, ...]) -> bool:
    """Return whether a reduction and a pointwise chain are faster than a row kernel."""
    return rowwise.spread_out(x, dims) or rowwise.in_parts(x, dims)


def softmax_back(ctx: Any, g: Tensor) -> Tensor:
    """Return the gradient of softmax: y (g - sum(g y)), along its dim."""
    y, dim = ctx.result, ctx.dim
    if _in_steps(g, y, dim):
        weighted = g * y
        return weighted - y * sum(weighted, dim, True)
    return rowwise.run(family.SOFTMAX_BACK, (y, g), (dim,), y.dtype)[0]


def log_softmax_back(ctx: Any, g: Tensor) -> Tensor:
    """Return the gradient of log_softmax: g - exp(y) sum(g), along its dim."""
    y, dim = ctx.result, ctx.dim
    if _in_steps(g, y, dim):
        return g - y.exp() * sum(g, dim, True)
    return rowwise.run(family.LOG_SOFTMAX_BACK, (y, g), (dim,), y.dtype)[0]


_SCALED = Row("softmax_scaled", {"f": "exp_neg(x - y) * z"}, args=("input", "top", "factor"), public=False)  # fmt: skip
_LOWERED = Row("softmax_lowered", {"f": "(x - y) - z"}, args=("input", "top", "log"), public=False)


def _by_outputs(kind: str, input: Tensor, dims: tuple[int, ...], out: dtype) -> Tensor:
    """Reduce each row with one running state, then compute the elements by a pointwise chain in memory order.

    For rows that are interleaved in memory, and for few long ones.
    """
    x, compute = input.detach(), accumulator(out)
    x = x if x.dtype is compute else x.to(compute)
    row, name = (_SCALED, "factor") if kind == "softmax" else (_LOWERED, "log")
    asked = [("top", compute), (name, compute)]
    return row(x, *run("logsumexp", x, dims, compute, asked, keepdim=True)).to(out)


def _forward(kind: str, input: Tensor, dim: Any, dt: dtype | None, back: Any, node: str) -> Tensor:
    refuse(input, kind)
    at = one_dim(kind, dim, input.ndim)
    out = asked(dt, kind) or input.dtype
    if out.category != 2:
        raise no_kernel(
            f"{'log_' if kind == 'log_softmax' else ''}softmax{'_lastdim' if at >= input.ndim - 1 else ''}_kernel_impl",
            out,
        )
    dims = (at,) if input.ndim else ()
    if dims and _by_sums(input, dims):
        value = _by_outputs(kind, input, dims, out)
    else:
        rows = family.SOFTMAX if kind == "softmax" else family.LOG_SOFTMAX
        value, _ = rowwise.run(rows, (input,), dims, out)
    if graph.needs_grad(input):
        graph.record(node, (input,), value, back, {"result": value, "dim": at})
    return value


@public()
def softmax(
    input: Tensor, dim: int, dtype: dtype | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Exponentials along `dim`, divided by their sum."""
    return into(
        _forward("softmax", input, dim, dtype, softmax_back, "SoftmaxBackward0"),
        out,
        "softmax",
        (input,),
    )


@public()
def log_softmax(
    input: Tensor, dim: int, dtype: dtype | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Logarithm of `softmax`, accurate for small probabilities."""
    return into(
        _forward("log_softmax", input, dim, dtype, log_softmax_back, "LogSoftmaxBackward0"),
        out,
        "log_softmax",
        (input,),
    )


def softmin(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """`softmax` of the negated input."""
    return softmax(-input, dim, dtype)
