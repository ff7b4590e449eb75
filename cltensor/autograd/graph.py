"""`torch.autograd.graph`: nodes, gradient edges and hooks on what is saved.

Owns the namespace and the helpers found only there. Knows nothing of how gradients are computed.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from .engine import GradientEdge, get_gradient_edge
from .hooks import RemovableHandle
from .mode import GRAD
from .node import Node
from .record import TensorBase
from .saved import (
    SavedTensor,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

__all__ = [
    "GradientEdge",
    "Node",
    "SavedTensor",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def increment_version(tensor: Any) -> None:
    """Add one to the version of a tensor (or of several), for a write that autograd did not see."""
    tensors: Any = (tensor,) if isinstance(tensor, TensorBase) else tensor
    for t in tensors:
        t._vc.value += 1


class _MultiHandle(RemovableHandle):
    """Several hooks removed as one."""

    __slots__ = ("handles",)

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state: Any) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` in each backward pass once the gradients of all `tensors` are known, or of any one.

    With the mode "all", `fn` gets a list of gradients, None for tensors that the pass does not
    reach; with "any" it gets the first gradient that is known.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    state: dict[str, Any] = {"task": None}
    edges = [get_gradient_edge(t) for t in tensors]

    def arrived(index: int, grad: Any) -> None:
        task = GRAD.task
        with lock:
            if state["task"] is not task:
                state.update(task=task, seen=0, grads=[None] * len(edges))
                state["left"] = sum(1 for e in edges if task is None or task.comes_to(e.node))
            state["seen"] += 1
            state["grads"][index] = grad
            first, done = state["seen"] == 1, state["seen"] == state["left"]
            grads = state["grads"]
            if done:  # keep neither the finished pass nor its gradients
                state.update(task=None, grads=None)
        if mode == "any":
            if first:
                fn(grad)
        elif done:
            fn(grads)

    return _MultiHandle(
        [t.register_hook(functools.partial(arrived, i)) for i, t in enumerate(tensors)]
    )
