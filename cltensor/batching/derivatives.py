"""Derivatives inside and around `vmap`: reverse and forward mode act on the underlying tensors of batched ones.

Owns the rules of autograd's own functions. The graph is always that of the underlying tensors (`Batched.value`).
"""

from __future__ import annotations

from typing import Any

from ..autograd import loop
from .batched import Batched, NoRule, hide, is_batched, restore, strip, top
from .calls import Call, rule, sliced
from .levels import STACK, level_of


@rule("autograd.record.record autograd.record.rebase")
def recorded(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Refuse to record a node on batched tensors: the function that asked has to be run for each slice."""
    raise NoRule(args[0])


@rule("autograd.record.tie")
def tied(call: Call, node: Any, gradient: Any) -> Any:
    """Return the gradient as it is: no node can be recorded for batched tensors, so none ties the gradient to `node`."""
    return gradient


def _tuple(items: Any) -> tuple[Any, ...]:
    """Return a tensor or a sequence of tensors as a tuple; () for None."""
    if items is None:
        return ()
    return (items,) if hasattr(items, "_vc") else tuple(items)


@rule("autograd.engine.grad")
def grad(
    call: Call, outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Any = None,
    create_graph: bool = False, *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    """Return the gradients of batched outputs with respect to batched inputs, by the graph of the underlying tensors.

    Slices are independent, so the gradient of the sum over slices consists of each slice's own gradient.
    """
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
    leaves = [t.value if is_batched(t, number) else t for t in ins]
    got = call.f(shown, leaves, along, retain_graph, create_graph, *args, **kwargs)
    return tuple(
        [
            g if g is None or not is_batched(t, number) else _hidden(g, t.bdim, number)
            for g, t in zip(got, ins, strict=True)
        ]
    )


def _hidden(g: Any, dim: int, number: int) -> Any:
    """Hide a dimension of a gradient at a level; if inner levels already hide dims of the gradient, below those."""
    if g.__class__ is Batched and g.level > number:
        return restore(g.movedim(dim, 0) if dim else g, number)
    return hide(g, dim, number)


# ------------------------------------------------------------------------------------------- forward mode


@rule("autograd.dual.tangent")
def tangent(call: Call, t: Any, level: Any) -> Any:
    """Return the tangent of the underlying tensor, with the same dimension hidden."""
    found = call.f(t.value, level)
    return None if found is None else _hidden(found, t.bdim, t.level)


@rule("autograd.forward_ad.pair")
def pair(call: Call, tensor: Any, along: Any, level: Any) -> Any:
    """Attach a tangent to the underlying tensor, both with the batch dimension first."""
    primal = strip(tensor, call.level, call.size)
    if not call.here(tensor):  # expanded: a tangent cannot have strides of 0
        primal = primal.contiguous()
    return hide(call.f(primal, strip(along, call.level, call.size), level), 0, call.level)


@rule("autograd.forward_ad.parts")
def parts(call: Call, tensor: Any, level: Any) -> Any:
    """Return primal and tangent of the underlying tensor, each with the same dimension hidden."""
    primal, along = call.f(tensor.value, level)
    found = None if along is None else _hidden(along, tensor.bdim, tensor.level)
    from ..autograd.forward_ad import UnpackedDualTensor

    return UnpackedDualTensor(_hidden(primal, tensor.bdim, tensor.level), found)


@rule("autograd.dual.carry autograd.dual.keep autograd.dual.take")
def carried(call: Call, made: Any, source: Any, *args: Any) -> Any:
    """Transfer tangents between the underlying tensors of two batched ones."""
    beneath = [t.value if t.__class__ is Batched else t for t in (made, source)]
    call.f(*beneath, *args)
    return made


@rule("autograd.dual.drop")
def dropped(call: Call, t: Any) -> None:
    """Remove the tangents of the underlying tensor."""
    call.f(t.value)


# ------------------------------------------------------------------------------------------- batched gradients

_before: Any = None  # the engine's own `_run_node`, while this module's replaces it


def _run_node(task: Any, node: Any, grads: list[Any]) -> Any:
    """Run a node's formula on batched gradients; if the formula reads their memory, run it for each slice."""
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
    """Make the engine run nodes through `_run_node` of this module while functions are intercepted."""
    global _before
    _before = loop._run_node
    loop._run_node = _run_node


def remove() -> None:
    """Restore the engine's own `_run_node`."""
    if loop._run_node is _run_node:
        loop._run_node = _before
