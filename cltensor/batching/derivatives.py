"""Derivatives inside of `vmap` and around it: reverse and forward mode meet what hides beneath batched tensors.

Owns the rules of autograd's own functions. The graph is always that of the tensors beneath.
"""

from __future__ import annotations

from typing import Any

from ..autograd import loop
from .batched import Batched, NoRule, hide, restore, strip, top
from .calls import Call, rule, sliced
from .levels import STACK, level_of


@rule("autograd.record.record autograd.record.rebase")
def recorded(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Something that computes with what is beneath would record itself: it has to be run for each slice."""
    raise NoRule(args[0])


@rule("autograd.record.tie")
def tied(call: Call, node: Any, gradient: Any) -> Any:
    """A gradient that counts as depending on a node's inputs: beneath, there is no node of its own."""
    return gradient


def _tuple(items: Any) -> tuple[Any, ...]:
    if items is None:
        return ()
    return (items,) if hasattr(items, "_vc") else tuple(items)


@rule("autograd.engine.grad")
def grad(
    call: Call, outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Any = None,
    create_graph: bool = False, *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    """Gradients of what is beneath: samples do not depend on each other, so that of their sum is each one's own."""
    outs, ins = _tuple(outputs), _tuple(inputs)
    number = top((*outs, *ins))
    if not number:
        return call.entry.original(
            outputs, inputs, grad_outputs, retain_graph, create_graph, *args, **kwargs
        )
    found = level_of(number)
    assert found is not None
    size = found.size
    weights = (None,) * len(outs) if grad_outputs is None else _tuple(grad_outputs)
    shown, along = [], []
    for out, w in zip(outs, weights, strict=True):
        beneath = strip(out, number, size)
        if w is None:
            if out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if out.dtype.category != 2:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {out.dtype}"
                )
            w = beneath.new_ones(beneath.shape)
        else:
            w = strip(w, number, size)
        shown.append(beneath)
        along.append(w)
    leaves = [t.value if _at(t, number) else t for t in ins]
    got = call.f(shown, leaves, along, retain_graph, create_graph, *args, **kwargs)
    return tuple(
        [
            g if g is None or not _at(t, number) else _hidden(g, t.bdim, number)
            for g, t in zip(got, ins, strict=True)
        ]
    )


def _at(t: Any, number: int) -> bool:
    return t.__class__ is Batched and t.level == number


def _hidden(g: Any, dim: int, number: int) -> Any:
    """Hide a dimension of a gradient, beneath those of inner levels."""
    if g.__class__ is Batched and g.level > number:
        return restore(g.movedim(dim, 0) if dim else g, number)
    return hide(g, dim, number)


# ------------------------------------------------------------------------------------------- forward mode


@rule("autograd.dual.tangent")
def tangent(call: Call, t: Any, level: Any) -> Any:
    """The tangent of what is beneath."""
    found = call.f(t.value, level)
    return None if found is None else _hidden(found, t.bdim, t.level)


@rule("autograd.forward_ad.pair")
def pair(call: Call, tensor: Any, along: Any, level: Any) -> Any:
    """Give what is beneath its tangent."""
    primal = strip(tensor, call.level, call.size)
    if not call.here(tensor):  # a tangent cannot lie as what is repeated does
        primal = primal.contiguous()
    return hide(call.f(primal, strip(along, call.level, call.size), level), 0, call.level)


@rule("autograd.forward_ad.parts")
def parts(call: Call, tensor: Any, level: Any) -> Any:
    """Value and tangent of what is beneath."""
    primal, along = call.f(tensor.value, level)
    found = None if along is None else _hidden(along, tensor.bdim, tensor.level)
    from ..autograd.forward_ad import UnpackedDualTensor

    return UnpackedDualTensor(_hidden(primal, tensor.bdim, tensor.level), found)


@rule("autograd.dual.carry autograd.dual.keep autograd.dual.take")
def carried(call: Call, made: Any, source: Any, *args: Any) -> Any:
    """Give what is beneath the tangents of what is beneath another."""
    beneath = [t.value if t.__class__ is Batched else t for t in (made, source)]
    call.f(*beneath, *args)
    return made


@rule("autograd.dual.drop")
def dropped(call: Call, t: Any) -> None:
    """Take the tangents from what is beneath."""
    call.f(t.value)


# ------------------------------------------------------------------------------------------- batched gradients

_before: Any = None


def _run_node(task: Any, node: Any, grads: list[Any]) -> Any:
    """Run a node's formula on batched gradients, or for each slice where it reads their memory."""
    level = top(grads)
    if not level:
        return _before(task, node, grads)
    if not getattr(node._fn, "_by_slice", False):
        STACK.inside += 1
        try:
            return _before(task, node, list(grads))
        except NoRule:
            pass
        finally:
            STACK.inside -= 1
    run = _before
    return sliced(node.name(), lambda *each: run(task, node, list(each)), level, tuple(grads), {})


def install() -> None:
    """Have nodes run here while functions stand aside."""
    global _before
    _before = loop._run_node
    loop._run_node = _run_node


def remove() -> None:
    """Give nodes back."""
    if loop._run_node is _run_node:
        loop._run_node = _before
