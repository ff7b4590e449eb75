"""The engine's entry points, `backward` and `grad`: their arguments and the checks before the graph is walked.

Owns the arguments' meaning and torch's errors about them. The walk itself is in loop.py.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import warn_once
from . import dual
from .loop import execute, queue_callback
from .node import AccumulateGrad
from .views import gradient_edge, requires

__all__ = [
    "GradientEdge",
    "backward",
    "get_gradient_edge",
    "grad",
    "grad_or_none",
    "queue_callback",
    "stack",
]


class GradientEdge(tuple):
    """The place in the graph to which a gradient flows: a node and the number of its output."""

    __slots__ = ()

    def __new__(cls, node: Any, output_nr: int, ownership_token: Any = None) -> GradientEdge:
        return tuple.__new__(cls, (node, output_nr, ownership_token))

    node = property(lambda self: self[0])
    output_nr = property(lambda self: self[1])
    ownership_token = property(lambda self: self[2])

    def __repr__(self) -> str:
        return f"GradientEdge(node={self[0]!r}, output_nr={self[1]}, ownership_token={self[2]!r})"


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the node and output number that `tensor`'s gradient flows to. RuntimeError if it needs
    none.
    """
    if not requires(tensor):
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(*gradient_edge(tensor))


def _tuple(items: Any) -> tuple[Any, ...]:
    """Return a sequence, None (no items), or a single tensor or GradientEdge as a tuple."""
    if items is None:
        return ()
    if isinstance(items, GradientEdge) or hasattr(items, "_vc"):
        return (items,)
    return tuple(items)


def _shape_text(t: Any) -> str:
    return f"torch.Size({list(t.shape)})"


class _Described:
    """Shape, dtype and device of an output given as a GradientEdge, as its node describes it."""

    def __init__(self, shape: Any, dtype: Any, device: Any) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)


def _check_scalar(out: Any) -> None:
    if out.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if out.dtype.category != 2:
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {out.dtype}"
        )


def _leaf(node: Any) -> Any:
    """Return some leaf tensor to which a node's gradients flow."""
    seen, waiting = {node}, [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, AccumulateGrad):
            return node.variable
        for after, _ in node._edges:
            if after is not None and after not in seen:
                seen.add(after)
                waiting.append(after)
    raise RuntimeError("no tensor receives a gradient from here")


def _make_grads(outputs: tuple[Any, ...], grads: tuple[Any, ...]) -> list[Any]:
    """Check the given output gradients and fill in 1 where a scalar has none."""
    made: list[Any] = []
    for i, (out, g) in enumerate(zip(outputs, grads)):
        edge = isinstance(out, GradientEdge)
        if edge:  # the node's description of its output stands in for the output
            out = _Described(*out.node._meta[out.output_nr])
        if g is None:
            if edge:
                _check_scalar(out)
                ones = _leaf(outputs[i].node).new_ones
                made.append(ones(out.shape, dtype=out.dtype, device=out.device))
                continue
            if not requires(out):
                made.append(None)
                continue
            _check_scalar(out)
            made.append(out.new_ones(out.shape))
            continue
        if not hasattr(g, "_vc"):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        if g.shape != out.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {_shape_text(g)} and output[{i}] has a shape of {_shape_text(out)}."
            )
        if (out.dtype.category == 3) != (g.dtype.category == 3):
            raise RuntimeError(
                f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {out.dtype}."
            )
        made.append(g)
    return made


def _root_edges(outputs: tuple[Any, ...]) -> list[tuple[Any, int]]:
    """Return the edges at which a pass starts; RuntimeError for an output that requires no grad."""
    roots = []
    for i, out in enumerate(outputs):
        if isinstance(out, GradientEdge):
            roots.append((out.node, out.output_nr))
            continue
        edge = gradient_edge(out)
        if edge[0] is None:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn"
            )
        roots.append(edge)
    return roots


def _seed(outputs: tuple[Any, ...], grads: list[Any]) -> Any:
    """Return some tensor of the backward pass for `new_zeros` to be called on; if possible an output, which is computed
    already.
    """
    for out in outputs:
        if not isinstance(out, GradientEdge):
            return out
    return grads[0] if grads else None


_CYCLE_TEXT = "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak."


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add to every leaf's `.grad` the gradient of `tensors`, weighted by `grad_tensors` (1 for
    scalars).

    `inputs` limits the accumulation to these tensors. RuntimeError if one of `tensors` needs no
    gradient, or is not a scalar and has no weight, or if an earlier pass has freed the graph.
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _tuple(tensors)
    grads = (None,) * len(outputs) if grad_tensors is None else _tuple(grad_tensors)
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    made = _make_grads(outputs, grads)
    roots = _root_edges(outputs)
    if create_graph:
        warn_once(_CYCLE_TEXT)
    targets: list[tuple[Any, int]] | None = None
    if inputs is not None:
        targets = [_target(t) for t in inputs]
        for t, (node, _) in zip(inputs, targets):
            if not isinstance(t, GradientEdge) and not isinstance(node, AccumulateGrad):
                t.retain_grad()
    keep = create_graph if retain_graph is None else retain_graph
    del grads, grad_tensors
    execute(roots, made, keep, create_graph, targets, seed=_seed(outputs, made))


def _target(t: Any) -> tuple[Any, int]:
    """Return the edge at which the gradient with respect to `t`, a tensor or a GradientEdge, arrives."""
    if isinstance(t, GradientEdge):
        return t.node, t.output_nr
    if not requires(t):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    node, number = gradient_edge(t)
    # No edge leads to a view made in no_grad mode, so this new node is never reached, and its gradient is None.
    return (AccumulateGrad(t), 0) if node is None else (node, number)


# Holds a function that returns `vmap`, which is on a higher floor; set when the package is imported.
VMAP: list[Callable[[], Callable]] = []


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, weighted by `grad_outputs`,
    accumulating nothing.

    With `is_grads_batched` the weights have a leading dimension, and so has every gradient. An
    input that the outputs do not depend on is an error unless `allow_unused` (its gradient is None)
    or `materialize_grads` (it is zeros).
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    outs, ins = _tuple(outputs), _tuple(inputs)
    if not ins:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    weights = (None,) * len(outs) if grad_outputs is None else _tuple(grad_outputs)
    if len(weights) != len(outs):
        raise RuntimeError(f"got {len(outs)} tensors and {len(weights)} gradients")
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _grad_batched(
            outs, ins, weights, keep, create_graph, allow_unused, materialize_grads
        )
    made = _make_grads(outs, weights)
    roots = _root_edges(outs)
    targets = [_target(t) for t in ins]
    results = execute(roots, made, keep, create_graph, targets, True, seed=_seed(outs, made))
    for i, g in enumerate(results):
        if g is not None:
            if not create_graph and g._node is not None:
                results[i] = dual.carry(g.detach(), g)
            continue
        if materialize_grads:
            t = ins[i]
            if isinstance(t, GradientEdge):
                raise RuntimeError(
                    "materialize_grads cannot be used when the given input is a GradientEdge"
                )
            results[i] = t.new_zeros(t.shape, requires_grad=create_graph)
        elif not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
            )
    return tuple(results)


def grad_or_none(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    weights: Sequence[Any] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[Any, ...]:
    """As `grad`, but outputs that require no grad are left out, and inputs that are not reached get None."""
    if weights is None:
        weights = (None,) * len(outputs)
    kept = [(o, w) for o, w in zip(outputs, weights) if o is not None and requires(o)]
    if not kept:
        return (None,) * len(inputs)
    return grad(
        [o for o, _ in kept],
        inputs,
        [w for _, w in kept],
        create_graph=create_graph,
        retain_graph=retain_graph,
        allow_unused=True,
    )


def _grad_batched(
    outs: tuple[Any, ...],
    ins: tuple[Any, ...],
    weights: tuple[Any, ...],
    keep: bool,
    create: bool,
    allow_unused: bool,
    materialize: bool,
) -> tuple[Any, ...]:
    """`grad` for all weights along the leading dimension in one pass, by `vmap`."""
    counts = {int(w.shape[0]) for w in weights if w is not None}
    if len(counts) != 1:
        raise RuntimeError(
            "is_grads_batched=True expects grad_outputs with one common leading dimension"
        )
    for i, (out, w) in enumerate(zip(outs, weights)):
        if w is not None and not isinstance(out, GradientEdge) and w.shape[1:] != out.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                "match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {_shape_text(w[0])} and output[{i}] has a shape "
                f"of {_shape_text(out)}. If you only want some tensors in `grad_output` to be "
                "considered batched, consider using vmap."
            )
    count = counts.pop()
    if not count:
        return tuple(t.new_empty((0, *t.shape)) for t in ins)
    there: list[bool] = []

    def pull(*given: Any) -> tuple[Any, ...]:
        rest = iter(given)
        row = [None if w is None else next(rest) for w in weights]
        found = grad(outs, ins, row, keep, create, True, allow_unused)
        there[:] = [g is not None for g in found]
        return tuple(g for g in found if g is not None)

    found = iter(VMAP[0]()(pull, randomness="same")(*[w for w in weights if w is not None]))
    return tuple(
        next(found)
        if reached
        else t.new_zeros(t.shape, requires_grad=create)
        if materialize
        else None
        for t, reached in zip(ins, there)
    )


def stack(tensors: Sequence[Any]) -> Any:
    """Stack equally shaped tensors along a new leading dimension, differentiably."""
    first = tensors[0]
    out = first.new_empty((len(tensors), *first.shape))
    for i, t in enumerate(tensors):
        out[i].copy_(t)
    return out
