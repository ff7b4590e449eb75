"""softmax, log_softmax and softmin, each one kernel forward and one backward."""

from __future__ import annotations

from typing import Any

from .. import layouts
from ..autograd import record as graph
from ..autograd.mode import GRAD
from ..codegen import softmax as family
from ..dtypes import dtype
from ..runtime import get_backend
from . import core
from .core import Tensor
from .reduce import refuse, sum
from .reducing import accumulator, needs, source
from .row import public


def _run(kind: str, xs: tuple[Tensor, ...], dim: int, out: dtype) -> Tensor:
    x = xs[0]
    backend = get_backend(x.device)
    with backend.lock:
        found = family.softmax(backend, kind, source(*xs), dim, accumulator(out), out)
    return core.result(found, x.device)


def _twice(g: Tensor, result: Tensor) -> bool:
    """Whether the gradient itself will be differentiated."""
    return GRAD.enabled and graph.needs_grad(g, result)


def _softmax_back(ctx: Any, g: Tensor) -> Tensor:
    y, dim = ctx.result, ctx.dim
    if _twice(g, y) or g.shape != y.shape:
        weighted = g * y
        return weighted - y * sum(weighted, dim, True)
    return _run("softmax_back", (y, g), dim, y.dtype)


def _log_softmax_back(ctx: Any, g: Tensor) -> Tensor:
    y, dim = ctx.result, ctx.dim
    if _twice(g, y) or g.shape != y.shape:
        return g - y.exp() * sum(g, dim, True)
    return _run("log_softmax_back", (y, g), dim, y.dtype)


def _forward(kind: str, input: Tensor, dim: Any, dt: dtype | None, back: Any, node: str) -> Tensor:
    refuse(input, kind)
    at = layouts.wrap_dim(dim.__index__(), input.ndim)
    out = dt or input.dtype
    if out.category != 2:
        raise NotImplementedError(
            f"\"{'log_' if kind == 'log_softmax' else ''}softmax{'_lastdim' if at == input.ndim - 1 and kind != 'softmax' else ''}_kernel_impl\" not implemented for '{out.scalar_name}'"
        )
    value = _run(kind, (input,), at, out)
    if needs(input):
        graph.record(node, (input,), value, back, {"result": value, "dim": at})
    return value


@public()
def softmax(
    input: Tensor, dim: int, dtype: dtype | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Exponentials along `dim`, divided by their sum."""
    return core.deliver(
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
    return core.deliver(
        _forward("log_softmax", input, dim, dtype, _log_softmax_back, "LogSoftmaxBackward0"),
        out,
        "log_softmax",
        (input,),
    )


def softmin(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """`softmax` of the negated input."""
    return softmax(-input, dim, dtype)
