"""Saved tensors: the values that a node keeps for its backward formula.

Owns the version check, how a saved tensor gets its place in the graph back, and the hooks that
pack and unpack (`saved_tensors_hooks`). Knows nothing of nodes' formulas or of the engine.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, ClassVar

from .anomaly import STATE as ANOMALY
from .hooks import type_string
from .mode import GRAD, set_enabled
from .version import InferenceVersion


class TensorBase:
    """The attributes of a tensor that autograd uses; `AutogradMixin` adds the methods.

    The values here are class-wide defaults: a new tensor stores the first three, which every op reads (from the
    instance in a fifth of the time), and of the others those that differ. It has no metaclass, with which `isinstance`
    takes four times as long.
    """

    __slots__ = ()
    _requires = False
    _node: Any = None
    _view: Any = None
    _nr = 0
    _grad: Any = None
    _grad_dtype: Any = ...  # of a leaf's gradient: a dtype, None for any, ... for the leaf's own
    _acc: Any = None
    _hooks: Any = None
    _post_hooks: Any = None
    _retain = False
    _fw: Any = None
    _root: Any = None
    _strided = True  # False for sparse tensors, which have no single strided memory


_DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
    "This is not supported, please use out-of-place `.detach()` instead"
)
FREED_TEXT = "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
_HOOKS_TOO_LATE = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of "
    "the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved variables "
    "after calling backward."
)
_INFERENCE_TEXT = "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."


def short_name(name: str) -> str:
    """Return a node's name as error texts spell it: "Exp" for "ExpBackward0", "Prod1" for "ProdBackward1"."""
    return re.sub(r"Backward0?(\d*)$", r"\1", name)


class _Packed:
    """A pack hook's result for a saved tensor, and the unpack hook that reverses it."""

    __slots__ = ("unhook", "value")

    def __init__(self, value: Any, unhook: Callable[[Any], Any]) -> None:
        self.value = value
        self.unhook = unhook


class SavedTensor:
    """A tensor saved for backward, with the version it had and its place in the graph.

    An input is kept as it is. An output is kept as an alias without its node (the node holds this
    object, so holding the output itself would be a reference cycle) and gets its node back when read.
    `output` is False for an input, True for an output, None for an input that the node then overwrote
    (`z.div_(z)`); for a result written through a view it is a function that returns the result with
    its place in the graph.
    """

    __slots__ = ("data", "node", "nr", "output", "version")

    data: Any
    node: Any
    nr: int
    output: Any
    version: int

    def register_hooks(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        """Replace the saved tensor by `pack(tensor)`; `unpack` of that must return the tensor."""
        t = self.data
        if t is None:
            raise RuntimeError(_HOOKS_TOO_LATE)
        if t.__class__ is _Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. "
                "Hint: only one pair of hooks is allowed at a time."
            )
        self._pack(t, t.detach(), pack, unpack)

    def _pack(self, t: Any, shown: Any, pack: Callable, unpack: Callable) -> None:
        """Replace `data` by the pack hook's result for `shown`, an alias of the saved tensor `t` or `t` itself."""
        before = t._vc.value
        prev = GRAD.enabled
        set_enabled(False)
        try:
            value = pack(shown)
        finally:
            set_enabled(prev)
        if t._vc.value != before:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook can not be modified by in-place operations as this can lead to "
                "unexpected side-effects. Please open an issue if you need to perform in-place "
                "operations on the input to a pack hook."
            )
        if not self.output and self.node is None and t._requires:
            from .node import accumulator

            self.node = accumulator(t)
        self.data = _Packed(value, unpack)

    def unpack(self, owner: Any = None) -> Any:
        """Return the saved tensor; `owner` is the node that saved it.

        RuntimeError if it was freed or written to since; a tensor packed by hooks is not checked for writes.
        """
        t = self.data
        if t is None:
            raise RuntimeError(FREED_TEXT)
        if t.__class__ is _Packed:
            return self._unpack_hooked(t, owner)
        if t._vc.value != self.version:
            raise RuntimeError(self._overwritten(t, owner))
        output = self.output
        if not output:
            node = self.node
            if t._node is node:
                return t
            if t._node is None:
                raise RuntimeError(_DETACHED)
        else:
            if not GRAD.enabled or owner is None:
                return t
            if output is not True:
                return output(t)
            node = owner
        fresh = t.alias()
        fresh._node = node
        fresh._nr = self.nr
        if t._fw is not None:
            fresh._fw = t._fw
        return fresh

    def _unpack_hooked(self, packed: _Packed, owner: Any) -> Any:
        """Return the unpack hook's result, in grad mode with the saved tensor's place in the graph."""
        value = self._unhooked(packed, owner)
        if not hasattr(value, "_vc"):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(value)}"
            )
        if not GRAD.enabled:
            return value
        node = owner if self.output else self.node
        if node is None and not value._requires and value._node is None:
            return value
        fresh = value.detach()
        if value._fw is not None:
            fresh._fw = value._fw
        if node is None:
            return fresh
        if hasattr(node, "variable"):  # a leaf's AccumulateGrad
            fresh._requires = True
            fresh._acc = weakref.ref(node)
        else:
            fresh._node = node
            fresh._nr = self.nr
        return fresh

    def _unhooked(self, packed: _Packed, owner: Any) -> Any:
        """Return the unpack hook's result.

        The hook is called once per node and pass, however often the node's formula reads the tensor.
        """
        task = GRAD.task
        if task is None or owner is None:
            return packed.unhook(packed.value)
        if task.unpacking is not owner:
            task.unpacking, task.unpacked = owner, {}
        found = task.unpacked
        if self not in found:
            value = packed.unhook(packed.value)
            if task.unpacking is not owner:  # the hook itself read other nodes' saved tensors
                return value
            found[self] = value
        return found[self]

    def _overwritten(self, t: Any, owner: Any) -> str:
        """Return the text of the error for a saved tensor that was written in place."""
        node, nr = self.node if self.output is False else owner, self.nr
        if self.output is None:
            nr = 0
        elif self.output is False:
            # The write gave the tensor another node; if it is a view that may not be re-derived, the old one is named.
            with suppress(RuntimeError):
                node, nr = t.grad_fn, t._nr
        which = ""
        if node is not None and not hasattr(node, "variable"):
            which = f", which is output {nr} of {short_name(node.name())},"
        hint = (
            "Hint: the backtrace further above shows the operation that failed to compute its "
            "gradient. The variable in question was changed in there or anywhere later. Good luck!"
            if ANOMALY.enabled
            else "Hint: enable anomaly detection to find the operation that failed to compute its "
            "gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
        return (
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [{type_string(t)} {list(t.shape)}]{which} is at version {t._vc.value}; "
            f"expected version {self.version} instead. {hint}"
        )


FREED = SavedTensor()
FREED.data = FREED.node = None
FREED.output = False


def release(values: Iterable[Any]) -> None:
    """Free the data of saved tensors, including those in tuples; reading one afterwards raises."""
    for value in values:
        if value.__class__ is SavedTensor:
            value.data = value.node = None
            value.output = False
        elif value.__class__ is tuple:
            release(value)


def save(t: Any, output: bool | None = False) -> SavedTensor:
    """Return a SavedTensor for `t`, packed by the hooks in force, if any; `output` as in SavedTensor."""
    vc = t._vc
    if vc.__class__ is InferenceVersion:
        raise RuntimeError(_INFERENCE_TEXT)
    saved = SavedTensor()
    saved.version = vc.value
    saved.output = output
    saved.nr = t._nr
    if output:
        saved.node = None
        saved.data = t.alias()
    else:
        saved.node = t._node
        saved.data = t
    pack = GRAD.pack
    if pack is not None:
        # A pack hook gets an input itself, since it may check whether that is a Parameter; it gets an
        # output as an alias without its node, since a hook that keeps its argument would make a cycle.
        saved._pack(t, saved.data, *pack)
    return saved


_NO_TENSORS = frozenset((int, float, bool, str, type(None)))  # asked for first: it takes less time


def save_dict(saved: dict[str, Any], outputs: Any) -> None:
    """Replace the tensors in a dict of saved values, and in its lists and tuples, by SavedTensors.

    `outputs`: the tensor, or tuple of tensors, that the op returns.
    """
    several = outputs.__class__ is tuple or outputs.__class__ is list
    for key, value in saved.items():
        kind = value.__class__
        if kind in _NO_TENSORS:
            continue
        if isinstance(value, TensorBase):
            output = value is outputs
            if several:
                for out in outputs:
                    if value is out:
                        output = True
            saved[key] = save(value, output)
        elif kind is list or kind is tuple:
            for item in value:
                if item.__class__ not in _NO_TENSORS and isinstance(item, TensorBase):
                    saved[key] = tuple([save(v) if isinstance(v, TensorBase) else v for v in value])
                    break


class saved_tensors_hooks:
    """Within the block, save `pack_hook(t)` instead of every tensor saved for backward; backward
    gets the tensor from `unpack_hook`.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if GRAD.pack_off is not None:
            raise RuntimeError(GRAD.pack_off)
        self.prev = GRAD.pack
        GRAD.pack = (self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: Any) -> None:
        GRAD.pack = self.prev


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Within the block, tensors saved for backward may be written in place: gradients see what was
    saved.

    Each saved tensor is a copy that stays pending until a write, and costs nothing if there is none.
    AssertionError if backward runs outside the block. RuntimeError for nested blocks.
    """

    active: ClassVar[Any] = None

    def __init__(self) -> None:
        super().__init__(lambda t: t.clone(), self._kept)

    def _kept(self, copy: Any) -> Any:
        if allow_mutation_on_saved_tensors.active is not self:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin "
                "which the graph was originally recorded."
            )
        return copy

    def __enter__(self) -> Any:
        if allow_mutation_on_saved_tensors.active is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        super().__enter__()
        allow_mutation_on_saved_tensors.active = self
        return self

    def __exit__(self, *exc: Any) -> None:
        allow_mutation_on_saved_tensors.active = None
        super().__exit__(*exc)


class disable_saved_tensors_hooks:
    """Within the block, `saved_tensors_hooks` raises RuntimeError with this message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def __enter__(self) -> None:
        if GRAD.pack is not None:
            raise RuntimeError(self.message)
        self.prev, GRAD.pack_off = GRAD.pack_off, self.message

    def __exit__(self, *exc: Any) -> None:
        GRAD.pack_off = self.prev

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with disable_saved_tensors_hooks(self.message):
                return func(*args, **kwargs)

        return wrapper


class save_on_cpu(saved_tensors_hooks):
    """Within the block, keep saved tensors in host memory; they move back to their device for
    backward.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.to("cpu")), lambda packed: packed[1].to(packed[0]))
