"""Cross entropy with class indices without log-probabilities in memory: a kernel forward, a kernel backward.

The graph has torch's two nodes, log_softmax below nll_loss. What passes between them is a gradient that nobody computes: the
lower node recognises it and makes its own from the logits and their log-sum-exp. Whoever puts something else in its place (a hook,
a second derivative) gets the plain formulas. Knows no checks of shapes; losses.py has them.
"""

from __future__ import annotations

import weakref
from math import prod
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.anomaly import STATE as ANOMALY
from ..autograd.mode import GRAD
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
        kind, counted = ("hit_ratio", hit) if factor is None else ("ratio", factor)
        value, total = rowwise.sums(kind, (value, counted), ("value", "second"), input.dtype)
    elif reduction == "sum":
        value = sum(value)
    else:
        value = value.reshape(target.shape if input.ndim > 1 else ())
    if value.dtype is not input.dtype:
        value = value.to(input.dtype)
    if graph.needs_grad(input):
        saved = {"hit": hit, "factor": factor, "total_weight": total, "dim": dim}
        _record(input, value, {"top": top, "log_sum": log_sum, "hit": hit, "dim": dim}, saved)
    return value


def _rows(input: Tensor, target: Tensor, ignore: int, dim: int) -> list[Tensor]:
    """Of each row the largest value, the log-sum-exp relative to it, the loss, and the target as int32: -1 where it is ignored."""
    if target.dtype is not dtypes.int64 or not target._contig:
        target = target.detach().long().contiguous()
    if target.device is not input.device:
        input, target = core.on_one_device((input.detach(), target.detach()))
    with checking(get_backend(input.device), _wrong) as slot:
        at = target._storage.buffer()
        targets = family.Targets(at, target._offset, ignore, slot.buffer, slot.offset)
        return rowwise.run(kinds.NLL, (input,), (dim,), input.dtype, targets=targets)[1]


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

    def give(self, g: Tensor, factor: Tensor, unseen: bool) -> None:
        """Remember a gradient as it is now; what is `unseen` nobody can change."""
        self.storage, self.factor = weakref.ref(g._storage), factor
        self.value = None if unseen else g._storage.value

    def take(self, g: Tensor) -> Tensor | None:
        """Return the factor if `g` is still what was given; forgets it."""
        same = self.storage is not None and self.storage() is g._storage
        same = same and (self.value is None or g._storage.value is self.value)
        factor = self.factor if same else None
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
    if g.shape:
        g = g.reshape(hit.shape)
    if ctx.total_weight is not None:
        g = g / ctx.total_weight
    if ctx.factor is not None:
        g = g * ctx.factor
    each = g.unsqueeze(dim) if g.shape else g
    unseen = _unseen(ctx)
    if unseen:
        strides = layouts.expand_strides(each.shape, each._strides, shape)
        hot = core.make(each._storage, shape, g.dtype, g.device, strides, each._offset)
    else:
        at, inner = core.pending(core.index_expression(shape), g.device), prod(shape[dim + 1 :])
        at = (at // inner if inner > 1 else at) % shape[dim]
        hot = graph.tie(ctx, where(hit.unsqueeze(dim) == at, -each, 0.0))
    if not graph.needs_grad(hot):
        ctx.handed.give(hot, g, unseen)
    return (hot,)


def _along(v: Tensor, dim: int) -> Tensor:
    """A number for each row with the rows' dim, without history; what is one number for all stays it."""
    if not v.shape:
        return v
    shape, strides, offset = layouts.unsqueeze(v.shape, v._strides, v._offset, dim)
    return core.make(v._storage, shape, v.dtype, v.device, strides, offset)


def _unseen(ctx: Any) -> bool:
    """Whether the lower node alone gets to see the gradient made for it, so that anything of its shape will do."""
    lower, task = ctx._edges[0][0], GRAD.task
    hooked = lower._extra is not None
    return not (hooked or GRAD.enabled or ANOMALY.enabled or task is None or task.wanted)


def _log_softmax_back(ctx: Any, g: Tensor) -> Tensor:
    x, dim = ctx.self, ctx.dim
    factor = ctx.handed.take(g)
    if factor is None or graph.needs_grad(x, g):
        return g - log_softmax(x, dim).exp() * sum(g, dim, True)
    if prod(factor.shape) == 1 or factor._storage.nbytes < 1 << 20:
        factor._storage.buffer()  # once here instead of at every element
    rows = [_along(v, dim) for v in (ctx.top, ctx.log_sum, ctx.hit, factor)]
    return rowwise.run(kinds.NLL_BACK, (x, *rows), (dim,), x.dtype)[0]
