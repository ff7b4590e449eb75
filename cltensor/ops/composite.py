"""Small functions of several steps, replayed as one: a recurrent cell is two products and a few rows, and Python's way through
each of them takes longer than what they launch.

A `Composite` is written with differentiable ops. Where its operands are small it is one call to replay (Note [Replay]) without
history, and records one node whose gradient, run by the engine over the same ops, is another such call. Where they are large,
and where somebody follows the steps, the ops are called one by one. What needs no history at all, a check of values or a count,
is `at_once`. Knows no op.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import dual, engine
from ..autograd import record as graph
from ..autograd.mode import enable_grad, is_grad_enabled, unrecorded
from ..storage import Storage
from .core import Tensor
from .replay import Replayed

SMALL = 1 << 18  # elements of all operands: from there on kernels take longer than Python

FOLLOWED: list[Any] = []  # who wants to see each step


class Composite:
    """`fn(*tensors, *settings)`, whose tensors may be None, and which returns a tuple of new tensors; settings are hashable.

    name: of the node that is recorded.
    """

    def __init__(self, name: str, fn: Callable[..., tuple[Tensor, ...]]) -> None:
        self._name, self._fn = name, fn
        self._values = Replayed.of_memory(self._forward)
        self._slopes = Replayed.of_memory(self._back)

    def __call__(self, tensors: Sequence[Tensor | None], *settings: Any) -> tuple[Tensor, ...]:
        """Return what the function does."""
        given, there = present(tensors)
        size = 0
        for t in given:
            if t._storage.__class__ is not Storage:
                return self._fn(*tensors, *settings)
            size += t.numel()
        dt, dev = given[0].dtype, given[0].device
        if size > SMALL or FOLLOWED or any(t.dtype is not dt or t.device != dev for t in given):
            return self._fn(*tensors, *settings)
        results = tuple(self._values(given, there, settings))
        if graph.needs_grad(*given):
            saved: dict[str, Any] = {f"input{i}": t for i, t in enumerate(tensors)}
            saved |= {"count": len(tensors), "settings": settings}
            graph.record(
                self._name,
                tensors,
                results if len(results) > 1 else results[0],
                self._node_back,
                saved,
            )
        return results

    def _forward(
        self, given: Sequence[Tensor], there: tuple[bool, ...], settings: tuple
    ) -> list[Tensor]:
        with unrecorded():
            return _apart(self._fn(*placed(given, there), *settings), given)

    def _node_back(self, ctx: Any, *grads: Tensor) -> tuple:
        inputs = [getattr(ctx, f"input{i}") for i in range(ctx.count)]
        if graph.needs_grad(*inputs, *grads):
            own = [None if t is None else dual.again(t) for t in inputs]
            return tuple(self._gradients(own, grads, ctx.needs, ctx.settings, is_grad_enabled()))
        (given, there), needs = present(inputs), tuple(ctx.needs)
        found = iter(self._slopes([*given, *grads], there, needs, ctx.settings))
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
        """The gradients of aliases of the inputs, None where none is wanted."""
        wanted = [t for t, need in zip(own, needs, strict=True) if need]
        with enable_grad():
            results = self._fn(*own, *settings)
        found = iter(
            engine.grad(results, wanted, grads, create_graph=again, materialize_grads=True)
        )
        return [next(found) if need else None for need in needs]


def plain(tensors: Sequence[Any]) -> bool:
    """Whether all are tensors with memory of their own, small, and nobody follows what is done to them."""
    size = 0
    for t in tensors:
        if getattr(t, "_storage", None).__class__ is not Storage:
            return False
        size += t.numel()
    return size <= SMALL and not FOLLOWED


def at_once(fn: Callable[..., Sequence[Tensor]]) -> Replayed:
    """Make one call to replay, without history, of `fn(tensors, *settings)`, several ops that return fresh tensors."""

    @functools.wraps(fn)
    def run(given: Sequence[Tensor], *numbers: Any) -> list[Tensor]:
        with unrecorded():
            return settled(fn(given, *numbers))

    return Replayed(run, memory=True, exact=True)


def present(tensors: Sequence[Tensor | None]) -> tuple[list[Tensor], tuple[bool, ...]]:
    """The tensors among Nones, and where they are."""
    return [t for t in tensors if t is not None], tuple([t is not None for t in tensors])


def placed(given: Sequence[Tensor], there: tuple[bool, ...]) -> list[Any]:
    """Put Nones back in their places; what follows the tensors is left."""
    tensors = iter(given)
    return [next(tensors) if t else None for t in there]


def settled(results: Sequence[Tensor | None]) -> list[Any]:
    """Run what is pending."""
    for t in results:
        if t is not None:
            t._storage.buffer()
    return list(results)


def _apart(results: Sequence[Tensor], given: Sequence[Tensor]) -> list[Tensor]:
    """Have each result in memory of its own, without history."""
    taken = {id(t._storage) for t in given}
    found = []
    for t in results:
        own = t.detach()
        if id(own._storage) in taken:
            own = own.clone()
        taken.add(id(own._storage))
        found.append(own)
    return settled(found)
