"""Nodes of the autograd graph, one for each recorded op.

Owns the node classes, their edges, extras (hooks, metadata) and how saved values are read back.
Knows nothing of the engine that walks the graph, nor of how tensors are made.

A node's `_edges` are `(node, output number)` pairs, one for every input of the op, `(None, 0)` for
an input to which no gradient flows. `_meta` describes the gradient of every output: `(shape, dtype,
device)`, or None where the output is not differentiable. `_key` orders the backward pass, smallest
first: it is minus the sequence number, so the op recorded last runs first, and leaves run before
all other nodes. `shapes` are those of the op's inputs, None for an input that is not a tensor.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from .hooks import RemovableHandle
from .mode import GRAD
from .saved import FREED, SavedTensor, TensorBase, release

__all__ = [
    "AccumulateGrad",
    "Extra",
    "Node",
    "OpNode",
    "PartFormula",
    "TensorBase",
    "accumulator",
    "op_class",
]

NO_EDGE: tuple[None, int] = (None, 0)

_sequence = itertools.count()
next_sequence = _sequence.__next__
_leaf_keys = itertools.count(-(1 << 62))


class InputMetadata(NamedTuple):
    """The description of a gradient in a node's `_input_metadata`."""

    shape: Any
    dtype: Any
    device: Any
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


class Extra:
    """Attributes that few nodes have: hooks, retained gradients, metadata, the traceback of anomaly
    detection.
    """

    __slots__ = ("metadata", "parent", "post", "pre", "retain", "tensor_hooks")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, dict[int, Callable[..., Any]]] | None = None
        self.retain: dict[int, weakref.ref[Any]] | None = None
        self.pre: dict[int, Callable[..., Any]] | None = None
        self.post: dict[int, Callable[..., Any]] | None = None
        self.metadata: dict[Any, Any] | None = None
        self.parent: Any = None

    def meta(self) -> dict[Any, Any]:
        if self.metadata is None:
            self.metadata = {}
        return self.metadata


class Node:
    """One recorded op; its formula turns the gradients of its outputs into those of its inputs."""

    __slots__ = ("__weakref__", "_edges", "_extra", "_fn", "_key", "_meta", "_saved", "shapes")

    _edges: tuple[tuple[Any, int], ...]
    _extra: Extra | None
    _fn: Callable[..., Any] | None
    _key: int
    _meta: tuple[Any, ...]
    _saved: Any
    shapes: tuple[Any, ...]

    def name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        kind = type(self)
        home = "torch.autograd.function." if kind.__module__ == "torch.autograd.function" else ""
        return f"<{home}{kind.__name__} object at {id(self):#x}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple(self._edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        return self._extras().meta()

    @property
    def requires_grad(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[bool, ...]:
        """For each input, whether its gradient is needed: by the running backward pass, if none runs by any pass."""
        task = GRAD.task
        wanted = None if task is None else task.wanted
        needs = []
        for node, _ in self._edges:
            needs.append(node is not None if wanted is None else node in wanted)
        return tuple(needs)

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        return tuple([None if m is None else InputMetadata(*m) for m in self._meta])

    def _sequence_nr(self) -> int:
        return -self._key if self._key > -(1 << 61) else (1 << 64) - 1

    def _set_sequence_nr(self, value: int) -> None:
        self._key = -value

    def _extras(self) -> Extra:
        extra = self._extra
        if extra is None:
            extra = self._extra = Extra()
        return extra

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; a tuple it returns replaces
        grad_inputs.
        """
        extra = self._extras()
        if extra.post is None:
            extra.post = OrderedDict()
        handle = RemovableHandle(extra.post)
        extra.post[handle.id] = fn
        return handle

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; a tuple it returns replaces them."""
        extra = self._extras()
        if extra.pre is None:
            extra.pre = OrderedDict()
        handle = RemovableHandle(extra.pre)
        extra.pre[handle.id] = fn
        return handle

    def _apply(self, grads: list[Any]) -> tuple[Any, ...]:
        """Compute the inputs' gradients; nodes with a formula (`_fn`) never come here."""
        raise NotImplementedError

    def _release(self) -> None:
        """Free the saved tensors; reading one afterwards raises."""
        if self._saved:
            release(self._saved.values())

    def __call__(self, *grads: Any) -> Any:
        """Run this node's formula alone on gradients of its outputs."""
        for i, g in enumerate(grads):
            if g is not None and not isinstance(g, TensorBase):
                raise TypeError(f"argument {i} is not a Variable")
        if len(grads) != len(self._meta):
            raise TypeError(f"expected {len(self._meta)} arguments, got {len(grads)} instead")
        outs = self._fn(self, *grads) if self._fn is not None else self._apply(list(grads))
        if type(outs) is tuple:
            return outs if len(outs) != 1 else outs[0]
        return outs


class PartFormula:
    """The formula of a view of a part: the gradient of the whole is zero but for that part.

    It is called as any formula is; the engine may have `add` add to a gradient of the whole instead (Note [Parts] in
    autograd/loop.py).
    """

    __slots__ = ("_place", "_whole")

    def __init__(self, whole: Callable[[Any, Any], Any], place: Callable[[Any, Any], Any]) -> None:
        """whole: the formula. place: returns the part of a tensor like the input, with what the node saved."""
        self._whole, self._place = whole, place

    def __call__(self, ctx: Any, g: Any) -> Any:
        return self._whole(ctx, g)

    def add(self, ctx: Any, g: Any, total: Any) -> None:
        """Add a gradient of the part to one of the whole, in place."""
        self._place(total, ctx).add_(g)


def read_saved(node: Node, name: str) -> Any:
    """Return one saved value of `node`, unpacking tensors. AttributeError if there is none of that
    name.
    """
    saved = node._saved
    if not saved or name not in saved:
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")
    value = saved[name]
    kind = type(value)
    if kind is SavedTensor:
        return value.unpack(node)
    if kind is tuple:
        for item in value:
            if type(item) is SavedTensor:
                return tuple([v.unpack(node) if type(v) is SavedTensor else v for v in value])
    return value


_OPERANDS = {"self": "x", "other": "y"}


class OpNode(Node):
    """A node made by `record`: one subclass for each of torch's node names, its formula in `_fn`.

    A saved value called `x` reads as `node.x` (what formulas use) and `node._saved_x` (torch's
    public name). The operands of a row, `x` and `y` there, are torch's `self` and `other`.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        _, public, key = name.rpartition("_saved_")
        saved = self._saved or ()
        if public and key not in saved:
            key = _OPERANDS.get(key, key)
        if name.startswith("_raw_saved_") and key in saved:
            return self._saved[key]
        value = read_saved(self, key)
        # From now on this name is a property of the class: later reads, on any of its nodes, do not
        # go through the failed lookup that ends in `__getattr__`.
        setattr(type(self), name, property(functools.partial(read_saved, name=key)))
        return value

    def __dir__(self) -> list[str]:
        names = [n for n in super().__dir__() if not n.startswith("_saved_")]
        public = {key: name for name, key in _OPERANDS.items()}
        saved = [public.get(key, key) for key in self._saved or ()]
        return [*names, *(f"_saved_{n}" for n in saved), *(f"_raw_saved_{n}" for n in saved)]


class _Namespaced(OpNode):
    """A node whose `name()` has a namespace in torch."""

    __slots__ = ()

    def name(self) -> str:
        return f"torch::autograd::{type(self).__name__}"


CLASSES: dict[str, type[OpNode]] = {
    name: type(name, (_Namespaced,), {"__slots__": (), "__module__": "builtins"})
    for name in ("CopyBackwards", "NotImplemented")
}


class WrappingNode(OpNode):
    """A node whose saved numbers count as saved tensors (as in torch, which wraps them): a second backward raises."""

    __slots__ = ()

    def _release(self) -> None:
        saved = self._saved
        if saved:
            release(saved.values())
            for key, value in saved.items():
                if value.__class__ is not SavedTensor:
                    saved[key] = FREED


def op_class(name: str, base: type[OpNode] = OpNode) -> type[OpNode]:
    """Return the node class called `name`, made at first use as a subclass of `base`."""
    cls = CLASSES.get(name)
    if cls is None:
        cls = CLASSES[name] = type(name, (base,), {"__slots__": (), "__module__": "builtins"})
    return cls


class AccumulateGrad(Node):
    """The node of a leaf, where the graph ends: adds the gradient that arrives to `variable.grad`."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self._edges = ()
        self._extra = None
        self._fn = None
        self._key = next(_leaf_keys)
        self._saved = None
        self.shapes = ()
        self.look_again()

    def look_again(self) -> None:
        """Set `_meta` from the leaf: shape, dtype (None for any) and device of its gradient."""
        leaf = self.variable
        wanted = leaf.dtype if leaf._grad_dtype is ... else leaf._grad_dtype
        self._meta = ((leaf.shape, wanted, leaf.device),)

    def _apply(self, grads: list[Any]) -> tuple[Any, ...]:
        from .loop import accumulate

        if grads[0] is not None:
            accumulate(self.variable, grads, GRAD.enabled)
        return ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def _sequence_nr(self) -> int:
        return (1 << 64) - 1


def accumulator(leaf: Any) -> AccumulateGrad:
    """Return the leaf's AccumulateGrad node, the same one as long as some graph keeps it alive."""
    ref = leaf._acc
    if ref is not None:
        node = ref()
        if node is not None:
            return node
    node = AccumulateGrad(leaf)
    leaf._acc = weakref.ref(node)
    return node
