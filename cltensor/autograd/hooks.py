"""Hooks on tensors and nodes: running them, checking their results, and handles to remove them.

Owns `RemovableHandle` and the runners the engine calls. Knows nothing of the graph.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


class RemovableHandle:
    """The handle of a registered hook: removes it by `remove()` or at the end of a `with` block."""

    __slots__ = ("__weakref__", "extra_dict_refs", "hooks_dict_ref", "id")

    next_id = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: Any = _reference(hooks_dict)
        self.id: int = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = (
            extra_dict
            if isinstance(extra_dict, list)
            else []
            if extra_dict is None
            else [extra_dict]
        )
        self.extra_dict_refs: tuple[Any, ...] = tuple(_reference(d) for d in extras)

    def remove(self) -> None:
        for ref in (self.hooks_dict_ref, *self.extra_dict_refs):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_refs))

    def __setstate__(self, state: Any) -> None:
        hooks, self.id = state[0], state[1]
        self.hooks_dict_ref = _reference({} if hooks is None else hooks)
        self.extra_dict_refs = tuple(
            _reference({} if d is None else d) for d in (state[2] if len(state) > 2 else ())
        )
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def _reference(hooks: Any) -> Callable[[], Any]:
    """Return a callable that gives a dict of hooks, or None once a weakly referenced dict is gone."""
    try:
        return weakref.ref(hooks)
    except TypeError:  # a plain dict cannot be referenced weakly
        return lambda: hooks


def _hook_name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


# The dtypes for which torch's first releases had a class of tensors.
_NAMED = frozenset(["Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"])


def type_string(t: Any) -> str:
    """Return a tensor's type as torch's errors call it: "torch.FloatTensor", on a GPU "torch.opencl.FloatTensor", and
    "CPUBoolType" for dtypes that had no class of tensors once.
    """
    kind, name = t.device.type, t.dtype.scalar_name
    if name not in _NAMED:
        return f"{kind.upper()}{name}Type"
    return f"torch.{'' if kind == 'cpu' else kind + '.'}{name}Tensor"


def check_result(before: Any, after: Any, hook: Any) -> None:
    """Raise TypeError or RuntimeError unless a hook's result can replace the gradient it got: same dtype, device and
    shape.
    """
    if not hasattr(after, "_vc"):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    name = _hook_name(hook)
    if after.dtype is not before.dtype or after.device != before.device:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {type_string(before)} got "
            f"{type_string(after)})"
        )
    if tuple(after.shape) != tuple(before.shape):
        raise RuntimeError(f"hook '{name}' has changed the size of value")


def run_tensor_hooks(hooks: dict[int, Any], grad: Any) -> Any:
    """Pass a gradient (None if there is none) through a tensor's hooks in turn; return the final gradient."""
    for hook in list(hooks.values()):
        result = hook(grad)
        if result is not None:
            check_result(grad, result, hook)
            grad = result
    return grad


def _replace(hook: Any, before: tuple[Any, ...], result: Any) -> tuple[Any, ...]:
    """Return the tuple with which a hook replaces gradients; TypeError or RuntimeError if it does not fit them."""
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(before):
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has returned an incorrect number of values "
            f"(got {len(result)}, but expected {len(before)})"
        )
    for old, new in zip(before, result):
        if new is not None:
            check_result(old, new, hook)
    return result


def run_pre_hooks(hooks: dict[int, Any], grads: list[Any]) -> list[Any]:
    """Pass the gradients of a node's outputs through its pre-hooks."""
    current = tuple(grads)
    for hook in list(hooks.values()):
        result = hook(current)
        if result is not None:
            current = _replace(hook, current, result)
    return list(current)


def run_post_hooks(
    hooks: dict[int, Any], outs: tuple[Any, ...], grads: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Pass the gradients of a node's inputs through its hooks."""
    for hook in list(hooks.values()):
        result = hook(outs, grads)
        if result is not None:
            outs = _replace(hook, outs, result)
    return outs
