"""Small functions of several ops, replayed as one call.

A recurrent cell is two matrix products and a few pointwise ops, and the Python code of each takes longer than the
kernel it launches. A `Composite` wraps a function written with differentiable ops. With small operands, the function is
one replayed call (Note [Replay]) that makes no grad nodes inside and records a single node. That node's gradient, which
the engine computes over the same ops, is another replayed call. With large operands, or while something observes single
ops (`FOLLOWED`, `CASTING`), the ops are called one by one. Functions without a gradient, such as a check of values or a
count, use `at_once`; the values of functions that record a node of their own are computed by an `in_one` function.
Knows no op.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import dual, engine
from ..autograd import record as graph
from ..autograd.mode import enable_grad, is_grad_enabled, unrecorded
from ..storage import Storage
from ..symbols import WORKING
from .core import Tensor, make
from .replay import Replayed

SMALL = 1 << 18  # total elements of the operands above which kernels take longer than Python

# Observers of single ops: while there are any, no function of several ops is replayed as one call.
FOLLOWED: list[Any] = []
# Functions that return whether something besides the operands now decides the dtypes that ops compute in (autocast).
# While one returns True, too, no function of several ops is replayed as one call.
CASTING: list[Callable[[], bool]] = []

# The classes of settings that may be part of a replay's key, compared by their `repr`. Objects of other classes may be
# equal without meaning the same, or print alike without being equal.
_SETTINGS = {int, float, bool, str, type(None)}


class Composite:
    """`fn(*tensors, *settings)`, which returns a tuple of new tensors, as one replayed call.

    Tensors may be None. All have the first one's dtype, but for those of integers and bool. name: the name of the node
    recorded. The gradient runs `fn` again, so all tensors are saved.
    most: total elements of the tensors above which the ops are called one by one. copied: the indices of tensors that
    torch's nodes do not save, and which users therefore may write in place before the gradient is computed; of these,
    copies are saved.
    """

    def __init__(
        self,
        name: str,
        fn: Callable[..., tuple[Tensor, ...]],
        most: int = SMALL,
        copied: Sequence[int] = (),
    ) -> None:
        self._name, self._fn, self._most, self._copied = name, fn, most, copied
        # Each pair is the replay for calls without settings, and the one for calls with settings. Only the latter
        # compares settings exactly (0.0 is not -0.0), which costs a little.
        self._values, self._slopes = [
            [Replayed(step, memory=True, exact=exact) for exact in (False, True)]
            for step in (self._forward, self._back)
        ]

    def __call__(self, tensors: Sequence[Tensor | None], *settings: Any) -> tuple[Tensor, ...]:
        """Return `fn(*tensors, *settings)`."""
        given, there = present(tensors)
        if not plain(given, self._most) or not _is_setting(settings):
            return self._fn(*tensors, *settings)
        dt, dev = given[0].dtype, given[0].device
        if any((t.dtype is not dt and t.dtype.category > 1) or t.device != dev for t in given):
            return self._fn(*tensors, *settings)
        run = self._values[bool(settings)]
        if not graph.needs_grad(*given):
            return tuple(run(given, there, settings, ()))
        copied = tuple([i for i in self._copied if there[i]])
        found = tuple(run(given, there, settings, copied))
        count = len(found) - len(copied)
        results, inputs = found[:count], list(tensors)
        for i, copy in zip(copied, found[count:], strict=True):
            inputs[i] = _with_history(copy, tensors[i])
        saved: dict[str, Any] = {f"input{i}": t for i, t in enumerate(inputs)}
        saved |= {"count": len(tensors), "settings": settings}
        result = results if len(results) > 1 else results[0]
        graph.record(self._name, tensors, result, self._node_back, saved)
        return results

    def _forward(
        self,
        given: Sequence[Tensor],
        there: tuple[bool, ...],
        settings: tuple,
        copied: tuple[int, ...],
    ) -> list[Tensor]:
        """Return the results of `fn`, followed by copies of the tensors whose indices are in `copied`."""
        tensors = placed(given, there)
        with unrecorded():
            results = self._fn(*tensors, *settings)
            return _apart([*results, *[tensors[i] for i in copied]], given)

    def _node_back(self, ctx: Any, *grads: Tensor) -> tuple:
        inputs = [getattr(ctx, f"input{i}") for i in range(ctx.count)]
        if graph.needs_grad(*inputs, *grads):
            own = [dual.again(t) if _has_slope(t) else t for t in inputs]
            return tuple(self._gradients(own, grads, ctx.needs, ctx.settings, is_grad_enabled()))
        (given, there), needs = present(inputs), tuple(ctx.needs)
        run = self._slopes[bool(ctx.settings)]
        found = iter(run([*given, *grads], there, needs, ctx.settings))
        return tuple([next(found) if need else None for need in needs])

    def _back(
        self,
        given: Sequence[Tensor],
        there: tuple[bool, ...],
        needs: tuple[bool, ...],
        settings: tuple,
    ) -> list[Tensor]:
        inputs = placed(given, there)
        own = [dual.leaf(t) if _has_slope(t) else t for t in inputs]
        found = self._gradients(own, given[sum(there) :], needs, settings, False)
        return _apart([g for g, need in zip(found, needs, strict=True) if need], given)

    def _gradients(
        self,
        own: Sequence[Any],
        grads: Sequence[Tensor],
        needs: Sequence[bool],
        settings: tuple,
        again: bool,
    ) -> list[Any]:
        """Return the gradients with respect to `own`, aliases of the inputs; None where `needs` is False.

        again: record a graph of this computation, for higher derivatives.
        """
        wanted = [t for t, need in zip(own, needs, strict=True) if need]
        with enable_grad():
            results = self._fn(*own, *settings)
        found = iter(
            engine.grad(results, wanted, grads, create_graph=again, materialize_grads=True)
        )
        return [next(found) if need else None for need in needs]


def _has_slope(t: Any) -> bool:
    """Return whether derivatives can be taken with respect to `t`: it is a tensor, and not of integers or bool."""
    return t is not None and t.dtype.category > 1


def _with_history(copy: Tensor, t: Any) -> Tensor:
    """Record `copy`, which has the values of `t`, as an alias of `t`, so that derivatives reach `t`; return it."""
    if graph.needs_grad(t):
        graph.record("AliasBackward0", (t,), copy, lambda ctx, g: g)
    return copy


def _is_setting(x: Any) -> bool:
    if x.__class__ in _SETTINGS:
        return True
    return isinstance(x, (tuple, list)) and (
        _SETTINGS.issuperset(map(type, x)) or all(map(_is_setting, x))
    )


def plain(tensors: Sequence[Any], most: int = SMALL) -> bool:
    """Return whether ops on these operands, of at most `most` elements in total, may be replayed as one call."""
    return replayable(tensors) and sum([t.numel() for t in tensors]) <= most


def replayable(tensors: Sequence[Any]) -> bool:
    """As `plain`, for operands of any size: all are tensors on a `Storage` (not a subclass); nothing observes single ops."""
    for t in tensors:
        if getattr(t, "_storage", None).__class__ is not Storage:
            return False
    return not FOLLOWED and not any(casting() for casting in CASTING)


def at_once(fn: Callable[..., Sequence[Tensor]]) -> Replayed:
    """Make `fn(tensors, *settings)`, several ops that return new tensors, one replayed call without grad nodes."""

    @functools.wraps(fn)
    def run(given: Sequence[Tensor], *numbers: Any) -> list[Tensor]:
        with unrecorded():
            return settled(fn(given, *numbers))

    return Replayed(run, memory=True, exact=True)


def in_one(fn: Callable[..., Sequence[Tensor]]) -> Callable[..., list[Tensor]]:
    """Decorator: compute `fn(tensors, *settings)`, several ops whose results are new tensors, as one replayed call if
    the tensors are small.

    If one of the tensors needs a gradient, `fn` is called as it is, and its ops record their nodes.
    """
    run = at_once(fn)

    @functools.wraps(fn)
    def computed(given: Sequence[Tensor], *settings: Any) -> list[Tensor]:
        # While an outer call is being traced for replay, `fn` becomes part of that trace: its results may stay pending
        # and fuse with what follows.
        alone = not WORKING and plain(given) and not graph.needs_grad(*given)
        return (
            run(given, *settings) if alone and _is_setting(settings) else list(fn(given, *settings))
        )

    return computed


def named(node: str, x: Tensor) -> Tensor:
    """Return `x` behind a grad node with torch's name, `node`; `x` itself if it has no node or one of that name."""
    if x._node is None or x._node.name() == node:
        return x
    out = make(x._storage, x.shape, x.dtype, x.device, None if x._contig else x._strides, x._offset)
    graph.record(node, (x,), out, lambda ctx, g: g)
    return out


def present(tensors: Sequence[Tensor | None]) -> tuple[list[Tensor], tuple[bool, ...]]:
    """Return the tensors that are not None, and for each index whether a tensor was there."""
    return [t for t in tensors if t is not None], tuple([t is not None for t in tensors])


def placed(given: Sequence[Tensor], there: tuple[bool, ...]) -> list[Any]:
    """Undo `present`: return the tensors with Nones between them. Items of `given` beyond those tensors are ignored."""
    tensors = iter(given)
    return [next(tensors) if t else None for t in there]


def settled(results: Sequence[Tensor | None]) -> list[Any]:
    """Materialise the pending ones among the results; return all results as a list."""
    for t in results:
        if t is not None:
            t._storage.buffer()
    return list(results)


def _apart(results: Sequence[Tensor], given: Sequence[Tensor]) -> list[Tensor]:
    """Return the results detached and materialised, each on a storage shared with no operand and no other result."""
    taken = {id(t._storage) for t in given}
    found = []
    for t in results:
        own = t.detach()
        if id(own._storage) in taken:
            own = own.clone()
        taken.add(id(own._storage))
        found.append(own)
    return settled(found)
