"""Recording ops: `record` adds an op's node to the autograd graph.

Owns `needs_grad` and `record`, for ops that return new tensors; for those that write in place see
views.py. Knows no formula and nothing of the engine. This runs on every op, so it is written for
speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import anomaly, dual
from .anomaly import STATE as ANOMALY
from .mode import FORWARD, GRAD, OFF
from .node import CLASSES, OpNode, TensorBase, next_sequence, op_class
from .saved import save_dict
from .views import gradient_edge, input_edges, rebase

__all__ = ["TensorBase", "needs_grad", "rebase", "record", "tie"]

Formula = Callable[..., Any]


def refuse_gradient(function: str, **given: Any) -> None:
    """Raise torch's RuntimeError if one of the `given` inputs requires grad, because `function` has no
    gradient for it.
    """
    for name, t in given.items():
        if GRAD.enabled and needs_grad(t) and requires_grad(t):
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot have requires_grad True."
            )


def needs_grad(*tensors: Any) -> bool:
    """Return whether an op on these inputs has to be recorded; inputs that are no tensors are ignored.

    True also if an input has a tangent (see dual.py), even where grad mode is off.
    """
    if OFF and not GRAD.enabled:
        return FORWARD.open and dual.flows(tensors)
    for t in tensors:
        if isinstance(t, TensorBase):
            if t._node is not None or t._requires:
                return True
            view = t._view
            if view is not None:
                base = view.base
                if base._node is not None or base._requires:
                    return True
    return FORWARD.open and dual.flows(tensors)


def requires_grad(*tensors: Any) -> bool:
    """As `needs_grad`, but for gradients alone, ignoring tangents."""
    with dual.only(()):
        return needs_grad(*tensors)


def differentiating() -> bool:
    """Return whether derivatives of a result made now may be taken: grad mode or a forward-mode level is on."""
    return not OFF or GRAD.enabled or FORWARD.open


def record(
    name: str,
    inputs: Sequence[Any],
    outputs: Any,
    backward: Formula,
    saved: dict[str, Any] | None = None,
    push: Formula | None = None,
) -> OpNode | None:
    """Make `outputs` (a tensor, or a tuple) the results of a node called `name` (torch's:
    "MulBackward0").

    Does nothing and returns None where no input requires grad or grad mode is off. `backward(ctx,
    *grads)` returns a tuple of one gradient (or None) for every input; the gradient of a single input
    need not be in a tuple. In `backward`, `ctx.x` is the saved value called x (a tensor is checked to
    be unmodified), `ctx.needs[i]` says whether input i's gradient is wanted, `ctx.shapes[i]` is the
    shape of input i. Gradients need not be summed back to the inputs' shapes or cast to their dtypes:
    the engine does that. With several differentiable outputs, missing gradients arrive as zeros; those
    of integer outputs arrive as None. The node keeps the dict `saved` itself, not a copy. An output
    that was marked as a view inside the op loses that mark; an op that returns views marks them after
    this call. `push` is the op's own rule for tangents (see dual.py).
    """
    if FORWARD.open and push is not dual.VIEW and dual.flows(inputs):
        plain = dict(saved) if saved else {}
        with dual.only(()):
            made = record(name, inputs, outputs, backward, saved)
        dual.propagate(name, inputs, outputs, backward, plain, push)
        dual.remember(made, plain, outputs)
        return made
    if OFF and not GRAD.enabled:
        return None
    edges, shapes, found = input_edges(inputs)
    if not found:
        return None
    cls = CLASSES.get(name)
    if cls is None:
        cls = op_class(name)
    node = cls()
    node._edges = tuple(edges)
    node.shapes = tuple(shapes)
    node._fn = backward
    node._key = -next_sequence()
    node._extra = None
    if outputs.__class__ is tuple or outputs.__class__ is list:
        metas: list[Any] = []
        some = False
        for i, out in enumerate(outputs):
            if out is not None and out.dtype.category >= 2:
                metas.append((out.shape, out.dtype, out.device))
                out._node = node
                out._nr = i
                if out._view is not None:
                    out._view = None
                some = True
            else:
                metas.append(None)
        if not some:
            return None
        node._meta = tuple(metas)
        if saved:
            save_dict(saved, outputs)
    else:
        dtype = outputs.dtype
        if dtype.category < 2:
            return None
        node._meta = ((outputs.shape, dtype, outputs.device),)
        outputs._node = node
        if outputs._nr:
            outputs._nr = 0
        if outputs._view is not None:
            outputs._view = None
        if saved:
            save_dict(saved, outputs)
    node._saved = saved
    if ANOMALY.enabled:
        anomaly.remember(node._extras(), GRAD.task.node if GRAD.task is not None else None)
    return node


def tie(node: Any, gradient: Any) -> Any:
    """Return `gradient`, a new tensor computed by `node`'s formula, recorded as depending on the inputs of `node`.

    The derivative recorded is zero. This is for formulas that are step functions of the inputs: torch has their second
    derivatives, as zeros.
    """
    if GRAD.enabled:
        made = op_class("StepBackward0")()
        made._edges = (*node._edges, gradient_edge(gradient))
        made.shapes, made._fn = (*node.shapes, gradient.shape), _noughts
        made._meta = ((gradient.shape, gradient.dtype, gradient.device),)
        made._key, made._extra, made._saved = -next_sequence(), None, None
        gradient._node, gradient._nr = made, 0
    return gradient


def _noughts(ctx: Any, g: Any) -> tuple[Any, ...]:
    """The formula of `tie`'s node: pass `g` to the tied gradient, and zeros (Note [Noughts]) to the inputs."""
    for edge in ctx._edges[:-1]:
        GRAD.task.nought.add(edge)
    return (*[None] * (len(ctx._edges) - 1), g)
