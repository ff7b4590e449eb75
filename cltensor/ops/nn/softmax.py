"""softmax, log_softmax and softmin, each one kernel forward and one backward."""

from __future__ import annotations

from typing import Any

from ...autograd import record as graph
from ...codegen import row_kinds as family
from ...dtypes import asked, dtype
from ..core import Tensor
from ..dims import one_dim, refuse
from ..reduce import sum
from ..reducing import needs
from ..row import public
from ..values import into
from . import rowwise


def _twice(g: Tensor, result: Tensor) -> bool:
    """Whether the gradient itself will be differentiated."""
    return graph.needs_grad(g, result)


def _softmax_back(ctx: Any, g: Tensor) -> Tensor:
    y, dim = ctx.result, ctx.dim
    if _twice(g, y) or g.shape != y.shape:
        weighted = g * y
        return weighted - y * sum(weighted, dim, True)
    return rowwise.run(family.SOFTMAX_BACK, (y, g), (dim,), y.dtype)[0]


def _log_softmax_back(ctx: Any, g: Tensor) -> Tensor:
    y, dim = ctx.result, ctx.dim
    if _twice(g, y) or g.shape != y.shape:
        return g - y.exp() * sum(g, dim, True)
    return rowwise.run(family.LOG_SOFTMAX_BACK, (y, g), (dim,), y.dtype)[0]


def _forward(kind: str, input: Tensor, dim: Any, dt: dtype | None, back: Any, node: str) -> Tensor:
    refuse(input, kind)
    at = one_dim(kind, dim, input.ndim)
    out = asked(dt, kind) or input.dtype
    if out.category != 2:
        raise NotImplementedError(
            f"\"{'log_' if kind == 'log_softmax' else ''}softmax{'_lastdim' if at == input.ndim - 1 and kind != 'softmax' else ''}_kernel_impl\" not implemented for '{out.scalar_name}'"
        )
    value, _ = rowwise.run(
        family.SOFTMAX if kind == "softmax" else family.LOG_SOFTMAX,
        (input,),
        (at,) if input.ndim else (),
        out,
    )
    if needs(input):
        graph.record(node, (input,), value, back, {"result": value, "dim": at})
    return value


@public()
def softmax(
    input: Tensor, dim: int, dtype: dtype | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Exponentials along `dim`, divided by their sum."""
    return into(
        _forward("softmax", input, dim, dtype, _softmax_back, "SoftmaxBackward0"),
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
        _forward("log_softmax", input, dim, dtype, _log_softmax_back, "LogSoftmaxBackward0"),
        out,
        "log_softmax",
        (input,),
    )


def softmin(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """`softmax` of the negated input."""
    return softmax(-input, dim, dtype)
