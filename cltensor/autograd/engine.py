"""The engine: walks the graph backward, iteratively, and accumulates gradients.

Owns `backward`, `grad` and the loop under them. Knows no formula, and of tensors only their methods.

Note [Whose gradient is it]
    A gradient may be changed in place, or become some leaf's `.grad` as it is, only if nobody else can see it: the
    tensor object is referenced from the engine's buffer alone, and its storage from that tensor alone. Reference counts
    say so. Otherwise it is copied or added out of place.

Note [Order]
    Nodes run by falling sequence number as soon as everything that feeds them has run; leaves run first. A node's
    inputs are always older than itself, so no other order is needed for correctness.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from sys import getrefcount
from typing import Any

from . import anomaly
from .anomaly import STATE as ANOMALY
from .hooks import run_post_hooks, run_pre_hooks, run_tensor_hooks
from .mode import GRAD
from .node import AccumulateGrad, Extra, Node
from .views import gradient_edge, requires

_LOCK = threading.RLock()


class Task:
    """One running backward pass.

    `wanted`: the nodes whose gradients are asked for, None for all. `reached`: all nodes of the pass. `node`: a node
    that is running Python code. `seed`: some tensor to make zeros from.
    """

    __slots__ = ("callbacks", "node", "reached", "seed", "wanted")

    def __init__(self) -> None:
        self.wanted: Any = None
        self.node: Any = None
        self.seed: Any = None
        self.reached: Any = ()
        self.callbacks: list[Any] | None = None


def _owned(box: list[Any], i: int) -> bool:
    """Return True if nobody but `box[i]` can see the tensor there or its memory."""
    if getrefcount(box[i]) != 2:
        return False
    t = box[i]
    if t._node is not None or t._requires:
        return False
    view = t._view
    if view is None:
        return getrefcount(t._storage) == 2
    # A temporary view whose base lives on in the view's record only.
    return getrefcount(t._storage) == 3 and getrefcount(view) == 3 and getrefcount(view.base) == 2


def accumulate(variable: Any, box: list[Any], create_graph: bool) -> None:
    """Add the gradient in `box[0]` to `variable.grad`, in place unless a graph is being made."""
    with _LOCK:
        old = variable._grad
        if old is None:
            if not create_graph and _owned(box, 0) and box[0].stride() == variable.stride():
                new = box[0]
                if new._view is not None:
                    new._view = None
                variable._grad = new
            else:
                variable._grad = _clone_like(box[0], variable)
        elif not create_graph:
            old.add_(box[0])
        else:
            variable._grad = old + box[0]
    hooks = variable._post_hooks
    if hooks:
        for hook in list(hooks.values()):
            hook(variable)


def _clone_like(g: Any, variable: Any) -> Any:
    """Copy a gradient into the layout its leaf has, contiguous where that has holes."""
    if not GRAD.enabled and g._node is not None:
        g = g.detach()
    if g.stride() == variable.stride():
        return g.clone()
    if variable.is_contiguous():
        dense = g.contiguous()
        return dense if dense is not g else g.clone()
    out = g.new_empty_strided(variable.shape, variable.stride())
    return out.copy_(g) if _dense(variable) else g.contiguous().clone()


def _dense(t: Any) -> bool:
    """Return True if the tensor's elements fill a stretch of memory without holes or overlaps."""
    expect = 1
    for stride, size in sorted(zip(t.stride(), t.shape)):
        if size != 1:
            if stride != expect:
                return False
            expect *= size
    return True


def _fit(g: Any, meta: Any, node: Node, i: int, grad_output: bool = False) -> Any:
    """Return a gradient in the shape, dtype and device its receiver wants; RuntimeError if it cannot be."""
    shape, dtype, device = meta
    if not hasattr(g, "_vc"):
        raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
    have = g.shape
    if have != shape:
        lead = len(have) - len(shape)
        if lead < 0 or any(w not in (1, h) for w, h in zip(shape, have[lead:])):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {i} - got {list(have)} but expected "
                f"shape compatible with {list(shape)}"
            )
        dims = [d for d in range(len(have)) if d < lead or (shape[d - lead] == 1 and have[d] != 1)]
        if dims:
            g = g.sum(dims, keepdim=True)
        if lead:
            g = g.reshape(shape)
    if g.dtype is not dtype:
        if g.dtype.category == 3 and dtype.category != 3:
            g = g.real
        if g.dtype is not dtype:
            g = g.to(dtype)
    if g.device is not device and g.device != device:
        if g.dim() != 0:
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {i} - expected device {device} but got "
                f"{g.device}"
            )
        g = g.to(device)
    return g


def _run_extras(extra: Extra, grads: list[Any]) -> list[Any]:
    """Run what is attached to a node's outputs: tensor hooks, then retained gradients."""
    if extra.tensor_hooks is not None:
        for nr, hooks in list(extra.tensor_hooks.items()):
            if hooks:
                grads[nr] = run_tensor_hooks(hooks, grads[nr])
    if extra.retain is not None:
        for nr, ref in extra.retain.items():
            t = ref()
            g = grads[nr]
            if t is not None and g is not None:
                if t._grad is None:
                    t._grad = g if GRAD.enabled else g.clone()
                elif GRAD.enabled:
                    t._grad = t._grad + g
                else:
                    t._grad.add_(g)
    return grads


def _zeros(task: Task, meta: Any) -> Any:
    return task.seed.new_zeros(meta[0], dtype=meta[1], device=meta[2])


def _run_node(task: Task, node: Node, grads: list[Any]) -> Any:
    """Run one node's formula, pre-hooks and all; None stands for "no gradient anywhere"."""
    extra = node._extra
    if extra is not None and extra.pre:
        grads = run_pre_hooks(extra.pre, grads)
    fn = node._fn
    if fn is None:
        task.node = node
        return node._apply(grads)
    if len(grads) == 1:
        if grads[0] is None:
            return None
        return fn(node, grads[0])
    some = False
    for g in grads:
        if g is not None:
            some = True
            break
    if not some:
        return None
    for i, meta in enumerate(node._meta):
        if grads[i] is None and meta is not None:
            grads[i] = _zeros(task, meta)
    return fn(node, *grads)


def execute(
    roots: Sequence[tuple[Any, int]],
    grads: Sequence[Any],
    keep_graph: bool,
    create_graph: bool,
    targets: Sequence[tuple[Any, int]] | None = None,
    capture: bool = False,
) -> list[Any]:
    """Run backward from `roots` with these gradients.

    `targets` limits the pass to what they need; with `capture` their gradients are returned and not accumulated.
    """
    # How many edges of this pass lead into each node.
    deps: dict[Any, int] = {}
    for node, _ in roots:
        deps[node] = 0
    stack = list(deps)
    while stack:
        for nxt, _ in stack.pop()._edges:
            if nxt is not None:
                n = deps.get(nxt)
                if n is None:
                    deps[nxt] = 1
                    stack.append(nxt)
                else:
                    deps[nxt] = n + 1

    task = Task()
    task.reached = deps
    captured: list[Any] = []
    run: Any = None  # nodes to run, None for all
    wanted: Any = None  # nodes to feed, None for all
    catch: dict[Any, list[tuple[int, int]]] = {}
    if targets is not None:
        captured = [None] * len(targets)
        wanted = set()
        run = set()
        for i, (node, nr) in enumerate(targets):
            wanted.add(node)
            if capture:
                catch.setdefault(node, []).append((i, nr))
            else:
                run.add(node)
        older_first = sorted([n for n in deps if n._edges], key=_sequence, reverse=True)
        for node in older_first:
            for nxt, _ in node._edges:
                if nxt in wanted:
                    run.add(node)
                    wanted.add(node)
                    break
        task.wanted = wanted

    buffers: dict[Any, list[Any]] = {}
    for (node, nr), g in zip(roots, grads):
        box = buffers.get(node)
        if box is None:
            box = buffers[node] = [None] * len(node._meta)
        box[nr] = g if box[nr] is None else box[nr] + g
        if task.seed is None:
            task.seed = g
    ready = [(node._key, node) for node in buffers if not deps[node]]
    heapify(ready)
    g = box = None
    del grads

    outer_task, outer_mode = GRAD.task, GRAD.enabled
    GRAD.task = task
    GRAD.enabled = create_graph
    watch = ANOMALY.enabled
    node = None
    try:
        while ready:
            node = heappop(ready)[1]
            box = buffers.pop(node)
            extra = node._extra
            if type(node) is AccumulateGrad:
                leaf = node.variable
                if leaf._hooks:
                    box[0] = run_tensor_hooks(leaf._hooks, box[0])
                if catch and node in catch:
                    for i, _ in catch[node]:
                        captured[i] = box[0]
                if run is not None and node not in run:
                    continue
                if extra is not None and extra.pre:
                    box = run_pre_hooks(extra.pre, box)
                if box[0] is not None:
                    given = tuple(box) if extra is not None and extra.post else None
                    accumulate(leaf, box, create_graph)
                    if given is not None:
                        run_post_hooks(extra.post, (), given)
                continue
            if extra is not None:
                box = _run_extras(extra, box)
            if catch and node in catch:
                for i, nr in catch[node]:
                    captured[i] = box[nr]
            if run is not None and node not in run:
                continue
            if watch:
                task.node = node
            if extra is None and len(box) == 1 and node._fn is not None:
                outs = None if box[0] is None else node._fn(node, box[0])
                given = None
            else:
                given = tuple(box) if extra is not None and extra.post else None
                outs = _run_node(task, node, box)
            box = None
            if not keep_graph:
                node._release()
            edges = node._edges
            if outs is None:
                outs = (None,) * len(edges)
            elif type(outs) is not tuple:
                outs = (outs,) if type(outs) is not list else tuple(outs)
            if len(outs) != len(edges):
                raise RuntimeError(
                    f"Function {node.name()} returned an invalid number of gradients "
                    f"(got {len(outs)}, but expected {len(edges)})"
                )
            if given is not None:
                outs = tuple(
                    _fit(o, e[0]._meta[e[1]], node, i) if o is not None and e[0] is not None else o
                    for i, (o, e) in enumerate(zip(outs, edges))
                )
                outs = run_post_hooks(extra.post, outs, given)
                given = None
            if watch and ANOMALY.check_nan:
                _check_nan(node, outs)
            i = 0
            for nxt, nr in edges:
                if nxt is not None and (wanted is None or nxt in wanted):
                    g = outs[i]
                    box = buffers.get(nxt)
                    if box is None:
                        box = buffers[nxt] = [None] * len(nxt._meta)
                    if g is not None:
                        meta = nxt._meta[nr]
                        if g.shape != meta[0] or g.dtype is not meta[1] or g.device is not meta[2]:
                            g = _fit(g, meta, node, i)
                        if box[nr] is None:
                            box[nr] = g
                        elif not create_graph and _owned(box, nr):
                            box[nr].add_(g)
                        else:
                            box[nr] = box[nr] + g
                    n = deps[nxt] - 1
                    if n:
                        deps[nxt] = n
                    else:
                        deps[nxt] = 0
                        heappush(ready, (nxt._key, nxt))
                i += 1
            outs = g = box = None
        if task.callbacks:
            for callback in task.callbacks:
                callback()
    except BaseException:
        if watch and node is not None:
            anomaly.report(node)
        raise
    finally:
        GRAD.task = outer_task
        GRAD.enabled = outer_mode
    return captured


def _sequence(node: Node) -> int:
    return node._key


def _check_nan(node: Node, outs: tuple[Any, ...]) -> None:
    for i, g in enumerate(outs):
        if g is not None and hasattr(g, "isnan"):
            prev, GRAD.enabled = GRAD.enabled, False
            try:
                bad = bool(g.detach().isnan().any())
            finally:
                GRAD.enabled = prev
            if bad:
                raise RuntimeError(
                    f"Function '{node.name()}' returned nan values in its {i}th output."
                )


def queue_callback(callback: Any) -> None:
    """Call `callback()` when the running backward pass ends. RuntimeError outside of one."""
    task = GRAD.task
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if task.callbacks is None:
        task.callbacks = []
    task.callbacks.append(callback)


class GradientEdge(tuple):
    """Where a gradient flows: a node and the number of its output."""

    __slots__ = ()

    def __new__(cls, node: Any, output_nr: int, ownership_token: Any = None) -> GradientEdge:
        return tuple.__new__(cls, (node, output_nr, ownership_token))

    node = property(lambda self: self[0])
    output_nr = property(lambda self: self[1])
    ownership_token = property(lambda self: self[2])

    def __repr__(self) -> str:
        return f"GradientEdge(node={self[0]!r}, output_nr={self[1]}, ownership_token={self[2]!r})"


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the node and output number that `tensor`'s gradient flows to. RuntimeError if it needs none."""
    if not requires(tensor):
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    return GradientEdge(*gradient_edge(tensor))


def _tuple(items: Any) -> tuple[Any, ...]:
    if items is None:
        return ()
    if isinstance(items, GradientEdge) or hasattr(items, "_vc"):
        return (items,)
    return tuple(items)


def _shape_text(t: Any) -> str:
    return f"torch.Size({list(t.shape)})"


def _make_grads(
    outputs: tuple[Any, ...], grads: tuple[Any, ...], batched: bool = False
) -> list[Any]:
    """Check the given output gradients and fill in 1 where a scalar has none."""
    made: list[Any] = []
    for i, (out, g) in enumerate(zip(outputs, grads)):
        edge = isinstance(out, GradientEdge)
        if g is None:
            if edge:
                shape, dtype, device = out.node._meta[out.output_nr]
                count = 1
                for n in shape:
                    count *= n
                if count != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                raise RuntimeError(
                    "grad can be implicitly created only for tensors, not for a GradientEdge"
                )
            if not requires(out):
                made.append(None)
                continue
            if out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if out.dtype.category != 2:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {out.dtype}"
                )
            made.append(out.new_ones(out.shape))
            continue
        if not hasattr(g, "_vc"):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        if edge:
            made.append(_fit(g, out.node._meta[out.output_nr], out.node, i))
            continue
        if not batched and g.shape != out.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {_shape_text(g)} and output[{i}] has a shape of "
                f"{_shape_text(out)}."
            )
        if (out.dtype.category == 3) != (g.dtype.category == 3):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {out.dtype}."
            )
        made.append(g)
    return made


def _root_edges(outputs: tuple[Any, ...]) -> list[tuple[Any, int]]:
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


_CYCLE_TEXT = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
    "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the "
    "cycle and avoid the leak."
)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add to every leaf's `.grad` the gradient of `tensors`, weighted by `grad_tensors` (1 for scalars).

    `inputs` limits it to these tensors. RuntimeError if a root needs no gradient, is not a scalar and has no weight, or
    if the graph was used up by an earlier pass.
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
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
        warnings.warn(_CYCLE_TEXT, stacklevel=3)
    targets: list[tuple[Any, int]] | None = None
    if inputs is not None:
        targets = []
        for t in inputs:
            if isinstance(t, GradientEdge):
                targets.append((t.node, t.output_nr))
                continue
            if not requires(t):
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            edge = gradient_edge(t)
            if not isinstance(edge[0], AccumulateGrad):
                t.retain_grad()
            targets.append(edge)
    keep = create_graph if retain_graph is None else retain_graph
    del grads, grad_tensors
    execute(roots, made, keep, create_graph, targets)


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
    """Return the gradients of `outputs` with respect to `inputs`, weighted by `grad_outputs`, accumulating nothing.

    With `is_grads_batched` the weights have a leading dimension, and so has every gradient. An input that the outputs
    do not depend on is an error unless `allow_unused` (its gradient is None) or `materialize_grads` (it is zeros).
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other "
            "parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    outs, ins = _tuple(outputs), _tuple(inputs)
    if not ins:
        raise ValueError("grad requires non-empty inputs.")
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
    targets = []
    for t in ins:
        if isinstance(t, GradientEdge):
            targets.append((t.node, t.output_nr))
            continue
        if not requires(t):
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        targets.append(gradient_edge(t))
    results = execute(roots, made, keep, create_graph, targets, True)
    for i, g in enumerate(results):
        if g is not None:
            if not create_graph and g._node is not None:
                results[i] = g.detach()
            continue
        if materialize_grads:
            t = ins[i]
            results[i] = t.new_zeros(t.shape)
        elif not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )
    return tuple(results)


def _grad_batched(
    outs: tuple[Any, ...],
    ins: tuple[Any, ...],
    weights: tuple[Any, ...],
    keep: bool,
    create: bool,
    allow_unused: bool,
    materialize: bool,
) -> tuple[Any, ...]:
    """One pass for every weight along the leading dimension, stacked."""
    counts = {int(w.shape[0]) for w in weights if w is not None}
    if len(counts) != 1:
        raise RuntimeError(
            "is_grads_batched=True expects grad_outputs with one common leading dimension"
        )
    count = counts.pop()
    rows = []
    for k in range(count):
        row = [None if w is None else w[k] for w in weights]
        more = keep or k + 1 < count
        rows.append(grad(outs, ins, row, more, create, True, allow_unused, False, materialize))
    if not rows:
        return tuple(t.new_empty((0, *t.shape)) for t in ins)
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows))


def stack(tensors: Sequence[Any]) -> Any:
    """Stack equally shaped tensors along a new leading dimension, differentiably."""
    first = tensors[0]
    out = first.new_empty((len(tensors), *first.shape))
    for i, t in enumerate(tensors):
        out[i].copy_(t)
    return out
