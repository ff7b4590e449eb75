"""`torch.utils.module_tracker`: which modules' forward or backward is running. Must not know what uses a tracker."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..autograd.graph import register_multi_grad_hook
from ..autograd.mode import GRAD
from ..nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..tensor import Tensor
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Within the block, keep track of the modules whose forward or backward is running; `parents` has their names.

    A name starts with the class of the outermost module: "Net.layers.0".
    """

    def __init__(self) -> None:
        self._forward: set[str] = set()
        self._backward: set[str] = set()
        self._task: Any = None  # the backward pass to which `_backward` belongs
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return GRAD.task is not None

    @property
    def parents(self) -> set[str]:
        """The names of the modules running now, and "Global"."""
        back = self._backward if self.is_bw and GRAD.task is self._task else set()
        return {"Global"} | self._forward | back

    def _name(self, module: Any) -> str:
        if module not in self._names:
            self._names[module] = type(module).__name__
            for path, part in module.named_modules():
                if path:
                    self._names.setdefault(part, f"{self._names[module]}.{path}")
        return self._names[module]

    def _enter(self, name: str) -> None:
        if GRAD.task is not self._task:
            self._task, self._backward = GRAD.task, set()
        self._backward.add(name)

    def _at_gradients(self, tensors: Any, do: Callable[[], None]) -> None:
        wanted = [t for t in tree_leaves(tensors) if isinstance(t, Tensor) and t.requires_grad]
        if wanted:
            self._handles.append(register_multi_grad_hook(wanted, lambda grads: do()))

    def _before(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self._forward.add(name)
        self._at_gradients(args, lambda: self._backward.discard(name))

    def _after(self, module: Any, args: Any, output: Any) -> None:
        name = self._name(module)
        self._forward.discard(name)
        self._at_gradients(output, lambda: self._enter(name))

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after),
        ]
        return self

    def __exit__(self, *exc: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
