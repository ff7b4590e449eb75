"""The graph: its nodes, edges and names, what they hold, and that nothing holds them."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import pytest
from support import close, leaf
from support import ct as torch


def test_saved_operands_have_torchs_names() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    node = (x * y).grad_fn
    assert node._saved_self is x
    assert node._saved_other is y
    assert {"_saved_self", "_raw_saved_other"} <= set(dir(node))
    with pytest.raises(AttributeError):
        _ = node._raw_saved_result


def test_a_very_deep_graph_runs_and_is_destroyed() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(3000):
        y = y + 1
        y = y * 1.0
    node = weakref.ref(y.grad_fn)
    y.sum().backward()
    close(x.grad, [1])
    del y
    assert node() is None
    y = x
    for _ in range(12000):
        y = y.view(1)
    del y  # destroying the graph must not recurse either


def test_no_reference_cycles() -> None:
    x = leaf(1.0, 2.0)

    def step() -> None:
        y = x.exp() * x
        y[0:1].mul_(2.0)
        y.tanh_()
        (y * y).sum().backward()
        x.grad = None
        y = x * 1
        y.mul_(y)  # saves what it writes
        for several in (torch.aminmax, torch.sort, lambda t: t.max(0), lambda t: t.cummax(0)):
            several(x * 1)  # saves results; no backward pass frees them

    step()
    gc.collect()
    gc.disable()
    try:
        step()
        found = [
            o
            for o in gc.get_objects()
            if isinstance(o, torch.autograd.graph.Node) and o.next_functions
        ]
    finally:
        gc.enable()
    assert found == []


def test_a_graph_is_freed_with_its_root() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    node = weakref.ref(y.grad_fn)
    z = y + 1
    del y
    assert node() is not None
    del z
    assert node() is None


def test_node_names_and_links() -> None:
    x = leaf(1.0, 2.0)
    y = (x * 3).sum()
    fn = y.grad_fn
    assert fn.name() == "SumBackward0"
    assert repr(fn).startswith("<SumBackward0 object at 0x")
    ((mul, nr),) = fn.next_functions
    assert (type(mul).__name__, nr) == ("MulBackward0", 0)
    acc, number = mul.next_functions[0]
    assert (type(acc).__name__, acc.variable is x, number) == ("AccumulateGrad", True, 0)
    assert acc.name() == "torch::autograd::AccumulateGrad"
    assert mul.next_functions[1] == (None, 0)
    assert (x * 1).grad_fn.next_functions[0][0] is acc
    assert isinstance(fn, torch.autograd.graph.Node)
    assert torch.autograd.graph.get_gradient_edge(x).node is acc
    fn.metadata["key"] = 1
    assert y.grad_fn.metadata == {"key": 1}


def test_gradient_edges_as_arguments() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    edge = torch.autograd.graph.get_gradient_edge(y)
    z = (y * y).sum()
    (g,) = torch.autograd.grad(z, edge)
    close(g, [6, 12])


def test_input_metadata_of_a_node() -> None:
    first = (leaf(1.0, 2.0) * 2).grad_fn._input_metadata[0]
    assert (first.shape, first.dtype, first.is_nested_tensor) == ((2,), torch.float32, False)


def test_a_batch_of_gradients_of_an_edge_and_of_what_is_not_reached() -> None:
    x, w = leaf(1.0, 2.0), leaf(1.0, 1.0, 1.0)
    y = x * 2
    found = torch.autograd.grad(
        [torch.autograd.graph.get_gradient_edge(y)],
        [x, w],
        [torch.eye(2)],
        is_grads_batched=True,
        retain_graph=True,
        materialize_grads=True,
    )
    close(found[0], [[2, 0], [0, 2]])
    close(found[1], [0, 0, 0])
    with pytest.raises(RuntimeError, match="to not have been used in the graph"):
        torch.autograd.grad(y, [x, w], torch.eye(2), is_grads_batched=True)


def test_outputs_kept_by_hooks_as_they_are_close_no_cycle() -> None:
    class Mark:
        pass

    x = torch.ones(2, requires_grad=True)
    shown = []

    def pack(t: Any) -> Any:
        shown.append((t is x, t.grad_fn))
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = x.sin().exp()
    assert shown == [(True, None), (False, None)]
    mark = Mark()
    assert y.grad_fn is not None
    y.grad_fn.metadata["mark"] = mark
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    s, c = math.sin(1), math.cos(1)
    assert torch.allclose(h, torch.full((2,), math.exp(s) * (c * c - s)))
    alive = weakref.ref(mark)
    enabled = gc.isenabled()
    gc.disable()
    try:
        del mark, y, g
        assert alive() is None
    finally:
        if enabled:
            gc.enable()
