"""The engine's loop: walks the graph backward, iteratively, and accumulates gradients.

Owns the order of nodes, the gradients in flight, when hooks run, and the leaves' `.grad`. Knows no
formula, and of tensors only their methods.

Note [Whose gradient is it]
    A gradient may be changed in place, or become a leaf's `.grad` without a copy, only if nothing
    else can see it: the tensor object is referenced from the engine's buffer alone, and its storage
    from that tensor alone. Reference counts tell. Otherwise the gradient is copied or added out of
    place.

Note [Order]
    A node becomes ready when all nodes that feed it have run. Of the ready nodes, leaves run first,
    the others by falling sequence number. The numbers only choose among ready nodes, for they need not
    agree with the edges: a custom function's number is lower than that of a view re-derived for it,
    and users may set numbers.

Note [Parts]
    The gradient of a view of a part (a `PartFormula`) is zeros with that part in them. If another gradient of the whole has
    arrived and nothing else can see it, the part is added to it in place instead: many parts of a tensor then cost as
    much memory traffic as the tensor has, not that for each.

Note [Noughts]
    The derivative of a step function is zero, but its inputs still get a gradient. Such a zero gradient is passed on as
    None, with its edge in the pass's set `nought`: formulas are linear, so a node that gets only such gradients is not
    run. Zeros are made only where they become visible: at leaves, targets, hooks and custom functions.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from sys import getrefcount
from typing import Any

from ..layouts import contiguous_strides, is_non_overlapping_and_dense
from ..symbols import remembered
from . import anomaly
from .anomaly import STATE as ANOMALY
from .hooks import run_post_hooks, run_pre_hooks, run_tensor_hooks
from .mode import FORWARD, GRAD, set_enabled
from .nesting import call_at_depth
from .node import AccumulateGrad, Extra, Node, PartFormula

_LOCK = threading.RLock()


class Task:
    """One running backward pass.

    `wanted`: the nodes whose gradients are needed, None for all. `reached`: all nodes of the pass.
    `node`: the node that runs Python code now. `seed`: some tensor to make zeros from. `unpacking`:
    the node whose saved tensors unpack hooks returned last; `unpacked` are those tensors. `nought`:
    the edges at which a zero gradient arrived as None; see Note [Noughts]. `depth`: the number of
    passes that wait for this one, and itself.
    """

    __slots__ = (
        "callbacks", "depth", "node", "nought", "reached", "seed", "unpacked", "unpacking", "wanted",
    )  # fmt: skip

    def __init__(self, seed: Any) -> None:
        self.seed = seed
        self.wanted: Any = None
        self.node: Any = None
        self.reached: Any = ()
        self.callbacks: list[Any] | None = None
        self.nought: set[tuple[Node, int]] = set()
        self.unpacking: Any = None
        self.unpacked: dict[Any, Any] = {}
        self.depth = 1

    def comes_to(self, node: Node) -> bool:
        """Return whether gradients arrive at a node in this pass."""
        return node in self.reached and (self.wanted is None or node in self.wanted)


# Note [References]
# `getrefcount` shows whether nobody else holds an object. Its argument has to come straight out of a container or a slot,
# as `box[i]` and `t._storage` do: then there is one reference there and one from the argument. An object in a local
# variable counts differently: CPython 3.14 and later lend such a reference to the call instead of making another.


def _owned(box: list[Any], i: int) -> bool:
    """Return whether the tensor in `box[i]` and its memory are referenced from nowhere else (Note [References])."""
    if getrefcount(box[i]) != 2:
        return False
    t = box[i]
    if t._node is not None or t._requires:
        return False
    if not (t._contig or is_non_overlapping_and_dense(t.shape, t._strides)):
        return False
    if t._view is None:
        return getrefcount(t._storage) == 2
    # A view of a temporary tensor, which only the view's ViewMeta keeps alive.
    return (
        getrefcount(t._storage) == 3
        and getrefcount(t._view) == 2
        and getrefcount(t._view.base) == 2
    )


def accumulate(variable: Any, box: list[Any], create_graph: bool) -> None:
    """Add the gradient in `box[0]` to `variable.grad`, in place unless a graph is being made."""
    if not variable._requires:
        return  # the leaf has been frozen or detached since the graph was made
    with _LOCK:
        old = variable._grad
        sparse = not (box[0]._strided and variable._strided)
        if sparse or (old is not None and not old._strided):
            variable._grad = _accumulated(old, box)
        elif old is None:
            if not create_graph and _owned(box, 0) and box[0]._strides == variable._strides:
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
            answer = hook(variable)
            if answer is not None and not hasattr(answer, "_vc"):
                raise TypeError(f"expected Variable, but hook returned '{type(answer).__name__}'")
            if answer is not None and answer is not variable:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def _accumulated(old: Any, box: list[Any]) -> Any:
    """Return a leaf's new gradient where the old or the new one is sparse.

    A sparse one is added into a dense one in place.
    """
    mine = getrefcount(box[0]) == 2
    g = box[0]
    if old is None:
        return g.clone() if g._strided else g._kept(mine)
    if GRAD.enabled or (g._strided and not old._strided):
        return add(old, g)
    return old.add_(g)


def add(a: Any, b: Any) -> Any:
    """Return the sum of two gradients; if one is dense and one sparse, the dense one is the left operand."""
    return a + b if a._strided or not b._strided else b + a


def _clone_like(g: Any, variable: Any) -> Any:
    """Return a copy of a gradient in its leaf's layout; contiguous if that layout has gaps or overlaps."""
    if not GRAD.enabled and g._node is not None:
        g = g.detach()
    if g._strides == variable._strides:
        return g.clone()
    if variable._strides == contiguous_strides(variable.shape):
        dense = g.contiguous()
        return dense if dense is not g else g.clone()
    if not is_non_overlapping_and_dense(variable.shape, variable._strides):
        return g.contiguous().clone()
    return g.new_empty_strided(variable.shape, variable.stride()).copy_(g)


@remembered(1024)
def _summed(have: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the dims over which a gradient of shape `have` is to be summed to get `shape`.

    None if the shapes are incompatible.
    """
    lead = len(have) - len(shape)
    if lead < 0 or any(w not in (1, h) for w, h in zip(shape, have[lead:])):
        return None
    return tuple(d for d, h in enumerate(have) if d < lead or (shape[d - lead] == 1 and h != 1))


def fit(g: Any, meta: Any, node: Node, i: int) -> Any:
    """Return a gradient with the shape, dtype and device of `meta`; RuntimeError if they are not compatible.

    `node` computed the gradient as its number `i`: for the error's text.
    """
    shape, dtype, device = meta
    if not hasattr(g, "_vc"):
        raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
    have = g.shape
    if have != shape:
        over = _summed(have, shape)
        if over is None:
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {i} - got {list(have)} but expected shape compatible with {list(shape)}"
            )
        lead = len(have) - len(shape)
        if len(over) == lead:
            g = g.sum(over)
        else:
            g = g.sum(over, keepdim=True)
            if lead:
                g = g.reshape(shape)
    if g.dtype is not dtype and dtype is not None:
        if g.dtype.category == 3 and dtype.category != 3:
            g = g.real
        if g.dtype is not dtype:
            g = g.to(dtype)
    if g.device is not device and g.device != device:
        if g.dim() != 0:
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {i} - expected device {device} but got {g.device}"
            )
        g = g.to(device)
    return g


def _run_extras(extra: Extra, grads: list[Any]) -> list[Any]:
    """Run the tensor hooks on a node's outputs, then store retained gradients; return the gradients."""
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
                    t._grad = add(t._grad, g)
                elif t._grad._strided:
                    t._grad.add_(g)
                else:
                    t._grad = add(t._grad, g)
    return grads


def _zeros(task: Task, meta: Any) -> Any:
    return task.seed.new_zeros(meta[0], dtype=meta[1], device=meta[2])


def _nothing(task: Task, node: Node) -> Any:
    """Return None for a node that got no gradient and so is not run.

    Zero gradients that it got are passed on to its edges.
    """
    if task.nought and any((node, nr) in task.nought for nr in range(len(node._meta))):
        task.nought.update([edge for edge in node._edges if edge[0] is not None])
    return None


def _materialise(task: Task, node: Node, grads: list[Any]) -> None:
    """Replace the zero gradients that arrived at a node as None by tensors of zeros."""
    for nr, g in enumerate(grads):
        if g is None and (node, nr) in task.nought:
            grads[nr] = _zeros(task, node._meta[nr])


def _run_node(task: Task, node: Node, grads: list[Any]) -> Any:
    """Run one node's formula and return its result; None if the node got no gradient at all."""
    fn = node._fn
    if fn is None:
        task.node = node
        if task.nought:
            _materialise(task, node, grads)
        return node._apply(grads)
    if len(grads) == 1:
        if grads[0] is None:
            return _nothing(task, node)
        return fn(node, grads[0])
    some = False
    for g in grads:
        if g is not None:
            some = True
            break
    if not some:
        return _nothing(task, node)
    for i, meta in enumerate(node._meta):
        if grads[i] is None and meta is not None:
            grads[i] = _zeros(task, meta)
    return fn(node, *grads)


_RUN_NODE = _run_node  # the original: a profiler replaces `_run_node`


def _edges_into(roots: Sequence[tuple[Any, int]]) -> dict[Any, int]:
    """Return the number of edges into each node that the roots reach."""
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
    return deps


def _on_the_way(
    targets: Sequence[tuple[Any, int]], deps: dict[Any, int], capture: bool
) -> tuple[set[Any], set[Any]]:
    """Return the nodes to run, and the nodes that need gradients, for a pass that ends at `targets`."""
    before: dict[Any, list[Any]] = {}  # node -> the nodes with an edge to it
    for node in deps:
        for nxt, _ in node._edges:
            if nxt is not None:
                before.setdefault(nxt, []).append(node)
    ends = {node for node, _ in targets}
    run: set[Any] = set() if capture else set(ends)
    wanted, stack = set(ends), list(ends)
    while stack:
        for node in before.get(stack.pop(), ()):
            run.add(node)
            if node not in wanted:
                wanted.add(node)
                stack.append(node)
    return run, wanted


def _first_gradients(roots: Sequence[tuple[Any, int]], grads: Sequence[Any]) -> dict[Any, Any]:
    """Return the initial gradients of a pass: for each root node, the list of its outputs' gradients."""
    buffers: dict[Any, Any] = {}
    for (node, nr), g in zip(roots, grads):
        box = buffers.get(node)
        if box is None:
            box = buffers[node] = [None] * len(node._meta)
        box[nr] = g if box[nr] is None else add(box[nr], g)
    return buffers


class _Targets:
    """What a limited pass must do: nodes to run, nodes that need gradients (`wanted`), gradients to capture.

    Only at the `ends` of the pass, its roots and targets, is there a gradient to capture or a node not to be run.
    """

    __slots__ = ("_places", "captured", "ends", "run", "wanted")

    def __init__(
        self,
        targets: Sequence[tuple[Any, int]],
        roots: Sequence[tuple[Any, int]],
        deps: dict[Any, int],
        capture: bool,
    ) -> None:
        self.ends = {node for node, _ in (*targets, *roots)}
        self.run, self.wanted = _on_the_way(targets, deps, capture)
        self.captured: list[Any] = [None] * len(targets)
        self._places: dict[Any, list[tuple[int, int]]] = {}
        if capture:
            for i, (node, nr) in enumerate(targets):
                self._places.setdefault(node, []).append((i, nr))

    def take(self, node: Node, box: list[Any]) -> None:
        """Capture the gradients of this node's outputs that are among the targets."""
        for i, nr in self._places.get(node, ()):
            self.captured[i] = box[nr]


def execute(
    roots: Sequence[tuple[Any, int]],
    grads: list[Any],
    keep_graph: bool,
    create_graph: bool,
    targets: Sequence[tuple[Any, int]] | None = None,
    capture: bool = False,
    *,
    seed: Any,
) -> list[Any]:
    """Run backward from `roots` with the gradients `grads`; the list is emptied.

    `targets` limits the pass to the nodes on the way to them; with `capture` their gradients are
    returned, not accumulated. `seed` is any tensor, to make zeros from.
    """
    deps = _edges_into(roots)
    task = Task(seed if seed is None or seed._strided else seed._values())
    task.reached = deps
    asked = None if targets is None else _Targets(targets, roots, deps, capture)
    task.wanted = None if asked is None else asked.wanted
    buffers = _first_gradients(roots, grads)
    grads.clear()  # a reference to a pending gradient would force it to be written to memory

    outer_task, outer_mode, outer_pack = GRAD.task, GRAD.enabled, GRAD.pack
    if outer_task is not None:
        task.depth = outer_task.depth + 1
    GRAD.task = task
    set_enabled(create_graph)
    try:
        call_at_depth(task.depth, _walk, task, asked, deps, buffers, keep_graph, create_graph)
        for callback in task.callbacks or ():
            callback()
    finally:
        GRAD.task = outer_task
        set_enabled(outer_mode)
        GRAD.pack = outer_pack  # code run by the pass may have entered hooks and not left them
    return [] if asked is None else asked.captured


def _walk(
    task: Task,
    asked: _Targets | None,
    deps: dict[Any, int],
    buffers: dict[Any, Any],
    keep_graph: bool,
    create_graph: bool,
) -> None:
    """Run the nodes in order, each when the gradients of its outputs (in `buffers`) are complete.

    Most nodes have one output and no hooks: they are run inline here, unless a profiler or anomaly detection is active.
    """
    ready = [(node._key, node) for node in buffers if not deps[node]]
    heapify(ready)
    wanted, ends = task.wanted, () if asked is None else asked.ends
    plain = not ANOMALY.enabled and _run_node is _RUN_NODE
    node = None
    try:
        while ready:
            node = heappop(ready)[1]
            box = buffers.pop(node)
            if type(node) is AccumulateGrad:
                if box[0] is None and task.nought:
                    _materialise(task, node, box)
                _end_at_leaf(node, box, asked, create_graph)
                continue
            extra = node._extra
            if extra is not None or node in ends:
                if task.nought:
                    _materialise(task, node, box)
                box = _arrived(node, box, asked)
                if box is None:
                    continue
            if plain and extra is None and len(box) == 1 and node._fn is not None:
                if box[0] is None:
                    outs = _nothing(task, node)
                elif node._fn.__class__ is PartFormula and _adds_to_part(
                    node, box[0], buffers, wanted, create_graph
                ):
                    outs = (None,)
                else:
                    outs = node._fn(node, box[0])
                if not keep_graph:
                    node._release()
                if type(outs) is not tuple or len(outs) != len(node._edges):
                    outs = _one_for_each_edge(node, outs)
            else:
                outs = _run_attended(task, node, box, keep_graph)
            box = None
            for i, (nxt, nr) in enumerate(node._edges):
                if nxt is not None and (wanted is None or nxt in wanted):
                    g = outs[i]
                    box = buffers.get(nxt)
                    if box is None:
                        box = buffers[nxt] = [None] * len(nxt._meta)
                    if g is not None:
                        meta = nxt._meta[nr]
                        if g.shape != meta[0] or g.dtype is not meta[1] or g.device is not meta[2]:
                            g = fit(g, meta, node, i)
                        if box[nr] is None:
                            box[nr] = g
                        else:
                            _add_into(box, nr, g, create_graph)
                    n = deps[nxt] = deps[nxt] - 1
                    if not n:
                        heappush(ready, (nxt._key, nxt))
            outs = g = box = None
    except BaseException:
        if ANOMALY.enabled and node is not None:
            anomaly.report(node)
        raise


def _end_at_leaf(
    node: AccumulateGrad, box: list[Any], asked: _Targets | None, create_graph: bool
) -> None:
    """Add the gradient that arrived at a leaf to its `.grad`, or capture it if it is a target."""
    leaf, extra = node.variable, node._extra
    if leaf._hooks:
        box[0] = run_tensor_hooks(leaf._hooks, box[0])
    if asked is not None:
        asked.take(node, box)
        if node not in asked.run:
            return
    if extra is not None and extra.pre:
        box = run_pre_hooks(extra.pre, box)
    if box[0] is not None:
        accumulate(leaf, box, create_graph)
        if extra is not None and extra.post:
            run_post_hooks(extra.post, (), tuple(box))


def _arrived(node: Node, box: list[Any], asked: _Targets | None) -> list[Any] | None:
    """Capture targets' gradients at a node and run the hooks on its outputs.

    Return the gradients, None if the node is not to be run.
    """
    goes_on = asked is None or node in asked.run
    if asked is not None and goes_on:  # captured before the hooks if the pass goes on from here
        asked.take(node, box)
    if node._extra is not None:
        box = _run_extras(node._extra, box)
    if asked is not None and not goes_on:
        asked.take(node, box)
    return box if goes_on else None


def _run_attended(task: Task, node: Node, box: list[Any], keep_graph: bool) -> tuple[Any, ...]:
    """Run a node the general way: several outputs, no formula, hooks, a profiler, or anomaly detection."""
    extra, watch = node._extra, ANOMALY.enabled
    pre, post = (None, None) if extra is None else (extra.pre, extra.post)
    if watch:
        task.node = node
    if pre:
        box = run_pre_hooks(pre, box)
    given = tuple(box) if post else ()
    outs = _run_node(task, node, box)
    if not keep_graph:
        node._release()
    outs = _one_for_each_edge(node, outs)
    if post:
        outs = tuple(
            fit(o, e[0]._meta[e[1]], node, i) if o is not None and e[0] is not None else o
            for i, (o, e) in enumerate(zip(outs, node._edges))
        )
        outs = run_post_hooks(post, outs, given)
    if watch and ANOMALY.check_nan:
        _check_nan(node, outs)
    return outs


def _one_for_each_edge(node: Node, outs: Any) -> tuple[Any, ...]:
    """Return a formula's result as a tuple with one gradient for each edge; RuntimeError if their number is wrong."""
    if outs is None:
        return (None,) * len(node._edges)
    if type(outs) is not tuple:
        outs = tuple(outs) if type(outs) is list else (outs,)
    if len(outs) != len(node._edges):
        raise RuntimeError(
            f"Function {node.name()} returned an invalid number of gradients "
            f"(got {len(outs)}, but expected {len(node._edges)})"
        )
    return outs


def _add_into(box: list[Any], nr: int, g: Any, create_graph: bool) -> None:
    """Add a gradient to the one in `box[nr]`, in place if nothing else can see that one."""
    if not (box[nr]._strided and g._strided):
        box[nr] = add(box[nr], g)
    elif not (create_graph or box[nr]._storage.waits) and _owned(box, nr):
        box[nr].add_(g)  # not pending and not shared: its memory can be reused
    else:
        box[nr] = box[nr] + g


def _adds_to_part(
    node: Node, g: Any, buffers: dict[Any, Any], wanted: Any, create_graph: bool
) -> bool:
    """Add the gradient of a part to the gradient of the whole, if that has one nothing else can see; return whether."""
    nxt, nr = node._edges[0]
    box = buffers.get(nxt)
    if box is None or box[nr] is None or create_graph or FORWARD.open:
        return False
    if wanted is not None and nxt not in wanted:
        return False
    plain = box[nr]._strided and g._strided and box[nr].dtype is g.dtype
    if not plain or box[nr]._storage.waits or not _owned(box, nr):
        return False
    node._fn.add(node, g, box[nr])
    return True


def _check_nan(node: Node, outs: tuple[Any, ...]) -> None:
    for i, g in enumerate(outs):
        if g is not None and hasattr(g, "isnan"):
            prev = GRAD.enabled
            set_enabled(False)
            try:
                bad = bool(g.detach().isnan().any())
            finally:
                set_enabled(prev)
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
