"""Losses of class indices: a row kernel forward, which finds what every target needs, and a kernel backward.

The graph of a cross entropy has torch's two nodes, log_softmax below nll_loss, but log-probabilities are never in
memory. The gradient that passes between the nodes is never computed either: the lower node recognises it and makes its
own from the logits and the sum of their exponentials. If something else arrives in its place (from a hook, or for a
second derivative), the plain formulas are used. Shapes are checked in losses.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from math import prod
from typing import Any

from ... import dtypes, layouts
from ...autograd import record as graph
from ...autograd.anomaly import STATE as ANOMALY
from ...autograd.mode import GRAD
from ...codegen.checks import checking
from ...codegen.reduce import row_kinds as kinds
from ...codegen.reduce import rowwise as family
from ...runtime import get_backend
from .. import core
from ..composite import at_once, placed, plain, present
from ..core import Tensor
from ..reduce import sum
from ..selection import where
from . import rowwise
from .softmax import log_softmax

ONCE = 1 << 15  # for gradients of this many elements or more, rows' factors are computed first


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore: int,
    reduction: str,
    dim: int,
    smoothing: float,
) -> Tensor:
    """Compute minus the log-probability of each target along `dim`, and its reduction. IndexError for a target that is no class.

    `smoothing`: the share of a target's probability that is spread over all classes.
    """
    own = _own(input, weight, dim)
    if not input.shape[dim]:
        return _without_classes(input, target, ignore, reduction, dim)
    recorded = graph.needs_grad(input)
    found = _values(input, own, target, ignore, reduction, dim, smoothing, recorded)
    if not recorded:
        return found[0]
    value, total, top, over, *more, hit = found
    factor = more[0] if more else None
    saved = {"hit": hit, "factor": factor, "total_weight": total, "dim": dim, "dtype": input.dtype}
    below = {"top": top, "over": over, "hit": hit, "dim": dim}
    if smoothing:
        saved |= below | {
            "self": input,
            "own": own,
            "spread": more[-1] if more else None,
            "smoothing": smoothing,
        }
        graph.record("AddBackward0", (input,), value, _smooth_back, saved)
    else:
        _record(input, value, below, saved)
    return value


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore: int,
    reduction: str,
    dim: int,
) -> Tensor:
    """Compute minus the number at each target along `dim`, and its reduction. IndexError for a target that is no class."""
    own = _own(input, weight, dim)
    if not input.shape[dim]:
        return _without_classes(input, target, ignore, reduction, dim)
    recorded = graph.needs_grad(input)
    value, *numbers = _values(input, own, target, ignore, reduction, dim, None, recorded)
    if recorded:
        total, *more, hit = numbers
        factor = more[0] if more else None
        saved = {"target": target, "weight": weight, "ignore_index": ignore, "reduction": reduction}
        saved |= {"hit": hit, "factor": factor, "total_weight": total, "dim": dim, "dtype": input.dtype, "handed": None}  # fmt: skip
        node = "NllLossBackward0" if input.ndim <= 2 else "NllLoss2DBackward0"
        graph.record(node, (input,), value, _nll_back, saved)
    return value


def _without_classes(
    input: Tensor, target: Tensor, ignore: int, reduction: str, dim: int
) -> Tensor:
    """The loss where every target has to be ignored."""
    counted = target[target != ignore]
    if counted.numel():
        raise _wrong(int(counted.reshape(-1)[0]), 0)
    value = input.sum(dim)
    if reduction == "none":
        return value.reshape(target.shape)
    return value.sum() if reduction == "sum" else value.sum() / 0


def _values(
    input: Tensor,
    own: Tensor | None,
    target: Tensor,
    ignore: int,
    reduction: str,
    dim: int,
    smoothing: float | None,
    recorded: bool,
) -> list[Any]:
    """Return the reduced loss and, if `recorded`, for the gradient what a mean was divided by (else None) and the other
    numbers of each row.

    smoothing: None for an `input` of log-probabilities.
    """
    given = (input, target) if own is None else (input, target, own)
    settings = ignore, reduction, dim, smoothing, recorded
    if reduction == "none" or input._storage.waits or not plain(given):
        return _rows_and_sum(given, *settings)
    return _values_at_once(given, *settings)


def _rows_and_sum(
    given: Sequence[Tensor], ignore: int, reduction: str, dim: int, smoothing: float | None, recorded: bool
) -> list[Any]:  # fmt: skip
    """Compute what `_values` returns, of the input, the target and, if there are any, the classes' weights."""
    input, target, *more = given
    own = more[0] if more else None
    if smoothing is None:
        first, kind = 0, kinds.picked(own is not None)
    else:
        first, kind = 2, kinds.nll(own is not None, smoothing > 0)
    rows = _rows(kind, input, own, target, ignore, dim, smoothing or 0.0)
    loss, hit = rows.pop(first), rows[-1]
    factor = rows[first] if len(rows) > first + 1 else None
    value, total = _reduced(loss, factor, hit, reduction, input, target)
    return [value, total, *rows] if recorded else [value]


_values_at_once = at_once(_rows_and_sum)


def _reduced(
    value: Tensor,
    factor: Tensor | None,
    hit: Tensor,
    reduction: str,
    input: Tensor,
    target: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Reduce the rows' losses; return the result and, for a mean, what it was divided by."""
    total = None
    if reduction == "mean":
        kind, counted = ("hit_ratio", hit) if factor is None else ("ratio", factor)
        value, total = rowwise.sums(kind, (value, counted), ("value", "second"), input.dtype)
    elif reduction == "sum":
        value = sum(value)
    else:
        value = value.reshape(target.shape if input.ndim > 1 else ())
    return value if value.dtype is input.dtype else value.to(input.dtype), total


def _own(input: Tensor, weight: Tensor | None, dim: int) -> Tensor | None:
    if weight is None:
        return None
    graph.refuse_gradient(f"nll_loss{'2d' * (input.ndim > 2)}_forward", weight=weight)
    return along_classes(weight.detach(), input.ndim, dim)


def along_classes(weight: Tensor, ndim: int, dim: int) -> Tensor:
    """Return the classes' weights as a tensor of `ndim` dims, along the classes' dim."""
    return weight.reshape([-1 if d == dim else 1 for d in range(ndim)])


def _rows(
    kind: kinds.Kind,
    input: Tensor,
    weight: Tensor | None,
    target: Tensor,
    ignore: int,
    dim: int,
    eps: float = 0.0,
) -> list[Tensor]:
    """Return the numbers that the row kernel `kind` computes for each row and its target.

    The last tensor is the target as int32, -1 where it is ignored.
    """
    if target.dtype is not dtypes.int64 or not target._contig:
        target = target.detach().long().contiguous()
    if target.device is not input.device:
        input, target = core.on_one_device((input.detach(), target.detach()))
    xs = (input,) if weight is None else (input, weight)
    with checking(get_backend(input.device), _wrong) as slot:
        at = target._storage.buffer()
        targets = family.Targets(at, target._offset, ignore, slot.buffer, slot.offset)
        return rowwise.run(kind, xs, (dim,), input.dtype, eps=eps, targets=targets)[1]


def _wrong(value: int, ordinal: int) -> Exception:
    return IndexError(f"Target {value} is out of bounds.")


class _Handed:
    """What nll_loss's node tells log_softmax's about the gradient that it passes down: which tensor it is, and the
    parts of each row's factor (see `_factor`), from which the lower node computes the gradient of the logits without
    reading the tensor.
    """

    def __init__(self) -> None:
        self.storage: Any = None
        self.value: Any = None
        self.parts: Any = None

    def give(self, g: Tensor, parts: tuple[Any, ...], unseen: bool) -> None:
        """Remember a gradient, so that `take` can tell whether it arrives unchanged.

        unseen: nothing else sees the gradient or could change it, so that its storage's value need not be compared.
        """
        self.storage, self.parts = weakref.ref(g._storage), parts
        self.value = None if unseen else g._storage.value

    def take(self, g: Tensor) -> tuple[Any, ...] | None:
        """Return the parts if `g` is the remembered gradient, unchanged, else None; forget them in either case."""
        same = self.storage is not None and self.storage() is g._storage
        same = same and (self.value is None or g._storage.value is self.value)
        parts = self.parts if same else None
        self.storage = self.value = self.parts = None
        return parts


def _record(input: Tensor, value: Tensor, below: dict[str, Any], saved: dict[str, Any]) -> None:
    # `logs` stands for the log-probabilities: a tensor between the two nodes, whose values nothing reads.
    logs, handed = input.detach(), _Handed()
    below = {**below, "self": input, "handed": handed}
    graph.record("LogSoftmaxBackward0", (input,), logs, _log_softmax_back, below)
    node = "NllLossBackward0" if input.ndim <= 2 else "NllLoss2DBackward0"
    graph.record(node, (logs,), value, _nll_back, {**saved, "handed": handed})


def _each(ctx: Any, g: Tensor) -> Tensor:
    """Return the gradient of each row's loss, without its target's weight; 0-dim if all rows have the same."""
    return _factor(g.reshape(ctx.hit.shape) if g.shape else g, ctx.total_weight, None)


def _factor(g: Tensor, total: Tensor | None, weights: Tensor | None) -> Tensor:
    """Return the gradient of each row's picked number: of the loss, through the division of a mean and the weights."""
    g = g if total is None else g / total
    return g if weights is None else g * weights


def _nll_back(ctx: Any, g: Tensor) -> tuple:
    shape, dim, hit = ctx.shapes[0], ctx.dim, ctx.hit
    if g.shape:
        g = g.reshape(hit.shape)
    parts = g, ctx.total_weight, ctx.factor
    if ctx.handed is not None and _unseen(ctx):
        # For 16-bit inputs the factor is float32, but the tensor gets the input's dtype: else the engine would cast it,
        # and the lower node would not recognise it.
        hot = core.make(g._storage, shape, ctx.dtype, g.device, (0,) * len(shape), g._offset)
        ctx.handed.give(hot, parts, True)
        return (hot,)
    g = _factor(*parts)
    if ctx.handed is None and not graph.needs_grad(g):
        whole = core.make(
            hit._storage, shape, hit.dtype, hit.device, (0,) * len(shape), hit._offset
        )
        rows = [_along(v, dim) for v in (hit, _once(g, shape))]
        return (
            graph.tie(ctx, rowwise.run(kinds.PICKED_BACK, (whole, *rows), (dim,), ctx.dtype)[0]),
        )
    each = g.unsqueeze(dim) if g.shape else g
    hot = graph.tie(ctx, where(_hot(hit, shape, dim), -each, 0.0))
    hot = hot if hot.dtype is ctx.dtype else hot.to(ctx.dtype)
    if ctx.handed is not None and not graph.needs_grad(hot):
        ctx.handed.give(hot, (g, None, None), False)
    return (hot,)


def _hot(hit: Tensor, shape: Any, dim: int) -> Tensor:
    """Return a mask of `shape` that is true at each row's target."""
    at, inner = core.pending(core.index_expression(shape), hit.device), prod(shape[dim + 1 :])
    at = (at // inner if inner > 1 else at) % shape[dim]
    return hit.unsqueeze(dim) == at


def _smooth_back(ctx: Any, g: Tensor) -> Tensor:
    x, own, hit, dim, share = ctx.self, ctx.own, ctx.hit, ctx.dim, ctx.smoothing
    factor = _each(ctx, g)
    weights = [] if own is None else [ctx.spread, ctx.factor]
    if graph.needs_grad(x, factor):
        each = factor.unsqueeze(dim) if factor.shape else factor
        spread, picked = [v.unsqueeze(dim) for v in weights] or (1.0, 1.0)
        even = share / x.shape[dim]
        slope = log_softmax(x, dim).exp() * spread - (even if own is None else even * own)
        slope = slope - _hot(hit, x.shape, dim).to(x.dtype) * ((1 - share) * picked)
        return slope * where(hit.unsqueeze(dim) < 0, 0.0, each)
    numbers = (ctx.top, ctx.over, ctx.hit, _once(factor, x.shape), *weights)
    rows = [_along(v, dim) for v in numbers]
    kind = kinds.nll_back(own is not None, True)
    return rowwise.run(kind, (x, *rows, own) if weights else (x, *rows), (dim,), x.dtype, eps=share)[0]  # fmt: skip


def _once(factor: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the rows' factors, run first if small and pending: the kernel would recompute them for each element."""
    few = prod(factor.shape) == 1 or factor._storage.nbytes < 1 << 20
    if few and prod(shape) >= ONCE:
        factor._storage.buffer()
    return factor


def _along(v: Tensor, dim: int) -> Tensor:
    """Return a tensor of one number per row with the rows' dim inserted, without a grad node; 0-dim ones stay so."""
    if not v.shape:
        return v
    shape, strides, offset = layouts.unsqueeze(v.shape, v._strides, v._offset, dim)
    return core.make(v._storage, shape, v.dtype, v.device, strides, offset)


def _unseen(ctx: Any) -> bool:
    """Return whether only the lower node sees the gradient that is passed to it, so that any tensor of that shape can
    stand for it.

    False with a hook on that node, in anomaly mode, for a second derivative, or if the caller of backward asks for
    gradients of single tensors.
    """
    lower, task = ctx._edges[0][0], GRAD.task
    hooked = lower._extra is not None
    watched = hooked or graph.differentiating() or ANOMALY.enabled
    return not (watched or task is None or task.wanted)


def _log_softmax_back(ctx: Any, g: Tensor) -> Tensor:
    x, dim = ctx.self, ctx.dim
    parts = ctx.handed.take(g)
    if parts is None or graph.needs_grad(x, g):
        return g - log_softmax(x, dim).exp() * sum(g, dim, True)
    if parts[0]._storage.waits:  # one launch computes it and the factor
        parts = _factor(*parts), None, None
    given, there = present((x, ctx.top, ctx.over, ctx.hit, *parts))
    run = _slope_at_once if plain(given) else _slope
    return run(given, there, dim)[0]


def _slope(given: Sequence[Tensor], there: tuple[bool, ...], dim: int) -> list[Tensor]:
    """Compute the gradient of the logits from these, what their row kernel found, and the parts of the rows' factor."""
    x, top, over, hit, *parts = placed(given, there)
    rows = [_along(v, dim) for v in (top, over, hit, _once(_factor(*parts), x.shape))]
    return [rowwise.run(kinds.nll_back(False, False), (x, *rows), (dim,), x.dtype)[0]]


_slope_at_once = at_once(_slope)
