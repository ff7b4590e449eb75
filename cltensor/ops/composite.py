"""Small functions of several ops, replayed as one call.

A recurrent cell is two products and a few rows, and Python's way through each of them takes longer than what they
launch. A `Composite` is written with differentiable ops. Where its operands are small, it is one replayed call
(Note [Replay]) without grad nodes inside, and records a single node, whose gradient, computed by the engine over the
same ops, is another replayed call. Where the operands are large, or somebody wants to see each step, the ops are called
one by one. Functions without a gradient, such as a check of values or a count, use `at_once`, and functions that record
a node of their own are computed `in_one`. Knows no op.
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

SMALL = 1 << 18  # total elements of the operands from which on kernels take longer than Python

# Observers of single ops: while there are any, no function of several ops is replayed as one call.
FOLLOWED: list[Any] = []
# Each tells whether ops now choose their dtypes by more than their operands (autocast): then, too, they are called one by one.
CASTING: list[Callable[[], bool]] = []

# Settings of other classes may be equal without meaning the same, or look the same without being equal.
_SETTINGS = {int, float, bool, str, type(None)}


class Composite:
    """`fn(*tensors, *settings)`, which returns a tuple of new tensors, as one replayed call.

    Tensors may be None. name: that of the node recorded. Gradients are computed from the tensors' values, so they all
    are saved. most: total elements of the tensors from which on the ops are called one by one. copied: places of
    tensors that torch's nodes do not save, so that they may be written in place before the gradient is computed: of
    these, copies are saved.
    """

    def __init__(
        self,
        name: str,
        fn: Callable[..., tuple[Tensor, ...]],
        most: int = SMALL,
        copied: Sequence[int] = (),
    ) -> None:
        self._name, self._fn, self._most, self._copied = name, fn, most, copied
        # Without settings, and with them: these are compared exactly, which costs a little.
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
        if any(t.dtype is not dt or t.device != dev for t in given):
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
        """Return the results, then copies of the tensors in the places `copied`."""
        tensors = placed(given, there)
        with unrecorded():
            results = self._fn(*tensors, *settings)
            return _apart([*results, *[tensors[i] for i in copied]], given)

    def _node_back(self, ctx: Any, *grads: Tensor) -> tuple:
        inputs = [getattr(ctx, f"input{i}") for i in range(ctx.count)]
        if graph.needs_grad(*inputs, *grads):
            own = [None if t is None else dual.again(t) for t in inputs]
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
        own = [None if t is None else t.detach().requires_grad_() for t in inputs]
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
        """Return the gradients for `own`, aliases of the inputs; None where not needed."""
        wanted = [t for t, need in zip(own, needs, strict=True) if need]
        with enable_grad():
            results = self._fn(*own, *settings)
        found = iter(
            engine.grad(results, wanted, grads, create_graph=again, materialize_grads=True)
        )
        return [next(found) if need else None for need in needs]


def _with_history(copy: Tensor, t: Any) -> Tensor:
    """Return a copy of `t` through which derivatives reach `t`."""
    if graph.needs_grad(t):
        graph.record("AliasBackward0", (t,), copy, lambda ctx, g: g)
    return copy


def _is_setting(x: Any) -> bool:
    return x.__class__ in _SETTINGS or (isinstance(x, tuple | list) and all(map(_is_setting, x)))


def plain(tensors: Sequence[Any], most: int = SMALL) -> bool:
    """Return whether all are tensors on plain storages, small together, with nobody observing single ops."""
    size = 0
    for t in tensors:
        if getattr(t, "_storage", None).__class__ is not Storage:
            return False
        size += t.numel()
    return size <= most and not FOLLOWED and not any(casting() for casting in CASTING)


def at_once(fn: Callable[..., Sequence[Tensor]]) -> Replayed:
    """Make `fn(tensors, *settings)`, several ops that return fresh tensors, one replayed call without grad nodes."""

    @functools.wraps(fn)
    def run(given: Sequence[Tensor], *numbers: Any) -> list[Tensor]:
        with unrecorded():
            return settled(fn(given, *numbers))

    return Replayed(run, memory=True, exact=True)


def in_one(fn: Callable[..., Sequence[Tensor]]) -> Callable[..., list[Tensor]]:
    """Decorator: compute `fn(tensors, *settings)`, several ops that return fresh tensors, as one replayed call if it is small.

    Where a history is wanted, the ops record it.
    """
    run = at_once(fn)

    @functools.wraps(fn)
    def computed(given: Sequence[Tensor], *settings: Any) -> list[Tensor]:
        # A call within one that is being noted: what follows may fuse with it.
        if WORKING or not plain(given) or graph.needs_grad(*given):
            return list(fn(given, *settings))
        if not all(map(_is_setting, settings)):
            return list(fn(given, *settings))
        return run(given, *settings)

    return computed


def named(node: str, x: Tensor) -> Tensor:
    """Return the values of `x` with a grad node of the name that torch's has."""
    if x._node is None or x._node.name() == node:
        return x
    out = make(x._storage, x.shape, x.dtype, x.device, None if x._contig else x._strides, x._offset)
    graph.record(node, (x,), out, lambda ctx, g: g)
    return out


def present(tensors: Sequence[Tensor | None]) -> tuple[list[Tensor], tuple[bool, ...]]:
    """Return the tensors that are not None, and for every place whether there is one."""
    return [t for t in tensors if t is not None], tuple([t is not None for t in tensors])


def placed(given: Sequence[Tensor], there: tuple[bool, ...]) -> list[Any]:
    """Undo `present`: return tensors and Nones in their places. Further items of `given` are ignored."""
    tensors = iter(given)
    return [next(tensors) if t else None for t in there]


def settled(results: Sequence[Tensor | None]) -> list[Any]:
    """Run the results that are pending; return all."""
    for t in results:
        if t is not None:
            t._storage.buffer()
    return list(results)


def _apart(results: Sequence[Tensor], given: Sequence[Tensor]) -> list[Tensor]:
    """Return the results detached and computed, each on a storage that no operand and no other result has."""
    taken = {id(t._storage) for t in given}
    found = []
    for t in results:
        own = t.detach()
        if id(own._storage) in taken:
            own = own.clone()
        taken.add(id(own._storage))
        found.append(own)
    return settled(found)
