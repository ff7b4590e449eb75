"""Cross entropy with class indices without log-probabilities in memory: a kernel forward, a kernel backward.

The graph has torch's two nodes, log_softmax below nll_loss. What passes between them is a gradient that nobody computes: the
lower node recognises it and makes its own from the logits and their log-sum-exp. Whoever puts something else in its place (a hook,
a second derivative) gets the plain formulas. Knows no checks of shapes; losses.py has them.
"""

from __future__ import annotations

import weakref
from math import prod
from typing import Any

from ..autograd import record as graph
from ..codegen import row_kinds as kinds
from ..codegen import rowwise as family
from ..codegen.checks import checking
from ..runtime import get_backend
from . import core, rowwise
from .core import Tensor
from .reduce import sum
from .selection import where
from .softmax import log_softmax


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str, dim: int
) -> Tensor:
    """Compute minus the log-probability of each target along `dim`, and its reduction. IndexError for a target that is no class."""
    top, log_sum, loss, hit = _rows(input, target, ignore, dim)
    factor = None if weight is None else _of_targets(weight.detach(), hit)
    value, total = loss if factor is None else loss * factor, None
    if reduction == "mean":
        value, total = rowwise.sums(
            "ratio",
            (value, hit >= 0 if factor is None else factor),
            ("value", "second"),
            input.dtype,
        )
    elif reduction == "sum":
        value = sum(value)
    else:
        value = value.reshape(target.shape if input.ndim > 1 else ())
    value = value.to(input.dtype)
    if graph.needs_grad(input):
        saved = {"hit": hit, "factor": factor, "total_weight": total, "dim": dim}
        _record(input, value, {"top": top, "log_sum": log_sum, "hit": hit, "dim": dim}, saved)
    return value


def _rows(input: Tensor, target: Tensor, ignore: int, dim: int) -> list[Tensor]:
    """Of each row the largest value, the log-sum-exp relative to it, the loss, and the target as int32: -1 where it is ignored."""
    x, target = core.on_one_device((input.detach(), target.detach().long().contiguous()))
    with checking(get_backend(x.device), _wrong) as slot:
        at = core.kernel_operand(target)
        targets = family.Targets(at.buffer, at.offset, ignore, slot.buffer, slot.offset)
        return rowwise.run(kinds.NLL, (x,), (dim,), x.dtype, targets=targets)[1]


def _wrong(value: int, ordinal: int) -> Exception:
    return IndexError(f"Target {value} is out of bounds.")


def _of_targets(weight: Tensor, hit: Tensor) -> Tensor:
    found = weight.gather(0, hit.clamp_min(0).long().reshape(-1)).reshape(hit.shape)
    return where(hit >= 0, found, 0.0)


class _Handed:
    """The gradient that the upper node gave to the lower one, and the factor of each row in it."""

    def __init__(self) -> None:
        self.storage: Any = None
        self.value: Any = None
        self.factor: Any = None

    def give(self, g: Tensor, factor: Tensor) -> None:
        """Remember a gradient as it is now."""
        self.storage, self.value, self.factor = weakref.ref(g._storage), g._storage.value, factor

    def take(self, g: Tensor) -> Tensor | None:
        """Return the factor if `g` is still what was given; forgets it."""
        same = self.storage is not None and self.storage() is g._storage
        factor = self.factor if same and g._storage.value is self.value else None
        self.storage = self.value = self.factor = None
        return factor


def _record(input: Tensor, value: Tensor, below: dict[str, Any], saved: dict[str, Any]) -> None:
    logs, handed = input.detach(), _Handed()  # logs stands for log-probabilities that nobody reads
    below = {**below, "self": input, "handed": handed}
    graph.record("LogSoftmaxBackward0", (input,), logs, _log_softmax_back, below)
    node = "NllLossBackward0" if input.ndim <= 2 else "NllLoss2DBackward0"
    graph.record(node, (logs,), value, _nll_back, {**saved, "handed": handed})


def _nll_back(ctx: Any, g: Tensor) -> tuple:
    shape, dim, hit = ctx.shapes[0], ctx.dim, ctx.hit
    if g.ndim:
        g = g.reshape(hit.shape)
    if ctx.total_weight is not None:
        g = g / ctx.total_weight
    if ctx.factor is not None:
        g = g * ctx.factor
    each = g.unsqueeze(dim) if g.ndim else g
    at, inner = core.pending(core.index_expression(shape), g.device), prod(shape[dim + 1 :])
    at = (at // inner if inner > 1 else at) % shape[dim]
    hot = where(hit.unsqueeze(dim) == at, -each, 0.0)
    hot = graph.tie(ctx, hot)
    if not graph.needs_grad(hot):
        ctx.handed.give(hot, g)
    return (hot,)


def _log_softmax_back(ctx: Any, g: Tensor) -> Tensor:
    x, dim = ctx.self, ctx.dim
    factor = ctx.handed.take(g)
    if factor is None or graph.needs_grad(x, g):
        return g - log_softmax(x, dim).exp() * sum(g, dim, True)
    if factor.numel() == 1 or factor._storage.nbytes < 1 << 20:
        factor._storage.buffer()  # once here instead of at every element
    rows = [v.unsqueeze(dim) if v.ndim else v for v in (ctx.top, ctx.log_sum, ctx.hit, factor)]
    return rowwise.run(kinds.NLL_BACK, (x.detach(), *rows), (dim,), x.dtype)[0]
