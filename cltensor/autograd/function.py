"""Custom differentiable functions: `Function`, its context, `once_differentiable`.

Owns how a user's forward and backward become a node. Knows nothing of the engine's loop.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from . import anomaly, custom_forward, dual
from .anomaly import STATE as ANOMALY
from .mode import FORWARD, GRAD, set_enabled
from .node import Node, next_sequence
from .record import TensorBase, record
from .saved import FREED_TEXT, release, save
from .views import (
    CUSTOM_FUNCTION,
    MULTI_OUTPUT,
    VIEW_OF_LEAF_WRITTEN,
    ViewMeta,
    attach,
    gradient_edge,
    requires,
    set_node,
)


class FunctionCtx:
    """The `ctx` that `forward` and `backward` share: saved tensors, flags, and attributes set by the user."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Save inputs or outputs (or None) for backward, which reads them as `ctx.saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors for the function's jvp, which reads them as `ctx.saved_tensors`."""
        for t in tensors:
            if not isinstance(t, TensorBase) and t is not None:
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should "
                    "save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Declare the inputs that forward wrote in place."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declare the outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether a missing gradient is passed to backward as zeros (the default) or as None."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Do nothing but warn: shared storages are tracked automatically."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom function in the graph, which is also its `ctx`."""

    _forward_cls: Any = None

    def __init__(self) -> None:
        self._edges = ()
        self._extra = None
        self._fn = None
        self._key = -next_sequence()
        self._meta = ()
        self._saved = None
        self.shapes = ()
        self._tensor_args: tuple[bool, ...] = ()
        self.to_save: Any = None
        self.dirty_tensors: Any = None
        self.non_differentiable: Any = None
        self.materialize_grads = True
        self.needs_input_grad: tuple[bool, ...] = ()
        self._kept: list[Any] | None = None
        self._freed = False
        self.saved_for_forward: Any = None
        self.pushing = False  # while the user's jvp runs

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of `save_for_backward`, checked to be unmodified since.

        Inside a jvp, those of `save_for_forward`.
        """
        if self.pushing:
            return tuple(self.saved_for_forward or ())
        if self._freed:
            raise RuntimeError(FREED_TEXT)
        if self._kept is None:
            return () if self.to_save is None else tuple(self.to_save)
        return tuple([None if s is None else s.unpack(self) for s in self._kept])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The older name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._freed:
            raise RuntimeError(FREED_TEXT)
        return tuple(self._kept or ())

    def _keep(self, outputs: Any) -> None:
        """Turn `to_save` into SavedTensors; called after the outputs got this node."""
        kept = self.to_save
        self.to_save = None
        if kept is None:
            return
        items: list[Any] = []
        for i, t in enumerate(kept):
            if t is None:
                items.append(None)
            elif not isinstance(t, TensorBase):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type "
                    f"{type(t).__name__}"
                )
            else:
                items.append(save(t, t._node is self or any(t is out for out in outputs)))
        self._kept = items

    def _release(self) -> None:
        if self._kept:
            release(self._kept)
            self._kept = None
            self._freed = True

    def _apply(self, grads: list[Any]) -> tuple[Any, ...]:
        if self.materialize_grads:
            task = GRAD.task
            seed = (
                task.seed if task is not None else next((g for g in grads if g is not None), None)
            )
            for i, meta in enumerate(self._meta):
                if grads[i] is None and meta is not None and seed is not None:
                    grads[i] = seed.new_zeros(meta[0], dtype=meta[1], device=meta[2])
        outs = self.apply(*grads)
        if type(outs) is not tuple:
            outs = tuple(outs) if type(outs) is list else (outs,)
        expected = len(self._tensor_args)
        if len(outs) > expected and all(o is None for o in outs[expected:]):
            outs = outs[:expected]
        if len(outs) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(outs)})"
            )
        kept = []
        for i, (g, is_tensor) in enumerate(zip(outs, self._tensor_args)):
            if is_tensor:
                if g is not None and not isinstance(g, TensorBase):
                    raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
                kept.append(g)
            elif g is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different from None at position {i + 1}, but the corresponding forward input was not a Variable"
                )
        return tuple(kept)

    def apply(self, *grads: Any) -> Any:
        """Run the user's backward (or vjp) on the outputs' gradients."""
        backward, vjp = self._forward_cls.backward, self._forward_cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
            )
        return (vjp if vjp is not Function.vjp else backward)(self, *grads)


class FunctionMeta(type):
    """Gives every Function class its node class, `<Name>Backward`."""

    _backward_cls: type[BackwardCFunction]

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        cls._backward_cls = type(
            name + "Backward",
            (BackwardCFunction,),
            {"_forward_cls": cls, "__module__": "torch.autograd.function"},
        )
        super().__init__(name, bases, attrs)


class Function(metaclass=FunctionMeta):
    """Base of custom differentiable functions: subclass it with static `forward` and `backward`,
    call `apply`.

    `forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`;
    `backward(ctx, *grads)` returns one gradient or None for every argument of forward.
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result. Called without recording."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Set up `ctx` after a forward that does not take a `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of forward's arguments."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of forward's results."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The function's rule for a call under `vmap`."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on the arguments and record a node for the call; return what forward returned."""
        split = cls.setup_context is not Function.setup_context
        if kwargs or split:
            args = by_position(cls, args, kwargs)
        ctx = cls._backward_cls()
        needs = tuple([isinstance(a, TensorBase) and requires(a) for a in args])
        ctx.needs_input_grad = needs
        ctx._tensor_args = tuple([isinstance(a, TensorBase) for a in args])
        executable = GRAD.enabled and any(needs)
        if executable:
            ctx._edges = tuple([gradient_edge(a) for a in args if isinstance(a, TensorBase)])
            if ANOMALY.enabled:
                anomaly.remember(ctx._extras(), GRAD.task.node if GRAD.task is not None else None)
        prev = GRAD.enabled
        set_enabled(False)
        seen, GRAD.levels = GRAD.levels, ()
        try:
            if split:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        finally:
            GRAD.levels = seen
            set_enabled(prev)
        outputs = result if type(result) is tuple else (result,)
        wrapped = _wrap_outputs(ctx, args, outputs, executable)
        if FORWARD.open and dual.flows(args):
            custom_forward.propagate(cls, ctx, args, outputs, wrapped)
        if executable:
            ctx._keep(wrapped)
        else:
            ctx.to_save = None
        ctx.dirty_tensors = ctx.non_differentiable = None
        return wrapped if type(result) is tuple else wrapped[0]


def by_position(cls: type[Function], args: tuple, kwargs: dict[str, Any]) -> tuple:
    """Return `apply`'s arguments with those given by name in their places, and defaults where there is a `setup_context`."""
    split = cls.setup_context is not Function.setup_context
    if cls.forward is Function.forward and not kwargs:
        return args
    signature = inspect.signature(cls.forward)
    if split:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        args, kwargs = bound.args, bound.kwargs
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in signature.parameters.values() if p.kind in places][not split :]
    for name in kwargs:
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if name in names[: len(args)]:
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    given = [*args]
    while len(given) < len(args) + len(kwargs):
        name = names[len(given)]
        if name not in kwargs:
            raise TypeError(f"forward() missing required argument: '{name}' (position {len(given)})")  # fmt: skip
        given.append(kwargs[name])
    return tuple(given)


def _contains(items: Any, t: Any) -> bool:
    """Return whether `t` is among the items, by identity: `in` would compare elements."""
    if items:
        for item in items:
            if item is t:
                return True
    return False


def _wrap_outputs(
    ctx: BackwardCFunction, args: tuple[Any, ...], outputs: tuple[Any, ...], executable: bool
) -> tuple[Any, ...]:
    """Return the outputs with their place in the graph, according to what forward declared in `ctx` about them."""
    dirty = ctx.dirty_tensors
    for item in dirty or ():
        if not _contains(outputs, item):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
        item._vc.value += 1
    metas: list[Any] = []
    wrapped: list[Any] = []
    kind = CUSTOM_FUNCTION
    if sum(1 for out in outputs if isinstance(out, TensorBase)) > 1:
        kind = MULTI_OUTPUT
    for nr, out in enumerate(outputs):
        t: Any = out
        if not isinstance(out, TensorBase):
            metas.append(None)
            wrapped.append(out)
            continue
        metas.append((t.shape, t.dtype, t.device))
        differentiable = executable and t.dtype.category >= 2
        if differentiable and not _contains(ctx.non_differentiable, t):
            wrapped.append(_wrap_differentiable(ctx, args, t, nr, kind, metas))
        else:
            wrapped.append(_wrap_constant(ctx, args, t, kind))
    ctx._meta = tuple(metas)
    if executable and ctx.to_save:
        # An output that forward saved may have been replaced by another tensor object above: save that one.
        swap = {id(old): new for old, new in zip(outputs, wrapped) if old is not new}
        if swap:
            ctx.to_save = tuple(
                swap.get(id(t), t) if not _contains(args, t) else t for t in ctx.to_save
            )
    return tuple(wrapped)


def _wrap_constant(ctx: BackwardCFunction, args: tuple[Any, ...], t: Any, kind: int) -> Any:
    """Return an output through which no gradient flows."""
    is_input, modified = _contains(args, t), _contains(ctx.dirty_tensors, t)
    # A view among the outputs stays a view, as it does in no_grad mode.
    made_here = not is_input and t._view is None
    if (is_input and not modified) or (made_here and requires(t)):
        t = t.detach()
    if t._view is not None and not (is_input and modified):
        t._view.kind = kind
    return t


def _wrap_differentiable(
    ctx: BackwardCFunction, args: tuple[Any, ...], t: Any, nr: int, kind: int, metas: list[Any]
) -> Any:
    """Return output number `nr` with `ctx` as its node; an output that is a view gets the ViewMeta kind `kind`."""
    is_input, modified = _contains(args, t), _contains(ctx.dirty_tensors, t)
    if modified:
        if not is_input:
            warnings.warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed to ctx.mark_dirty().",
                stacklevel=5,
            )
        _rebase_dirty(ctx, t, nr, args, kind, metas)
    elif is_input:
        given, t = t, t.alias()
        t._view = None
        _as_view_of(t, given, kind)
        t._node, t._nr, t._requires = ctx, nr, False
    else:
        if t._view is not None:
            t._view.version = t._vc.value
        set_node(t, ctx, nr)
    if t._view is not None and not (is_input and modified):
        t._view.kind = kind
    return t


def _as_view_of(view: Any, parent: Any, kind: int) -> None:
    """Mark `view`, an alias of `parent`, as a view of it or, if `parent` is a view itself, of its base."""
    meta, made = parent._view, ViewMeta()
    made.base = parent if meta is None else meta.base
    made.replay = None if meta is None else meta.replay
    made.kind, made.version = kind, view._vc.value
    view._view = made


def _rebase_dirty(
    ctx: BackwardCFunction, t: Any, nr: int, args: tuple[Any, ...], kind: int, metas: list[Any]
) -> None:
    """Make `ctx` the history of `t`, output number `nr`, which forward wrote in place."""
    view = t._view
    if view is None:
        if t._requires:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation."
            )
        set_node(t, ctx, nr)
        return
    if requires(t) and view.base._node is None:
        raise RuntimeError(VIEW_OF_LEAF_WRITTEN)
    if kind == MULTI_OUTPUT:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. This "
            "is not supported by the current autograd engine. You should either make sure the input is not a view (using .clone() for example) or "
            "make your Function only return one Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single "
            "Tensor and a second one that does the other operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to "
            "do this change."
        )
    index = next(i for i, a in enumerate(a for a in args if isinstance(a, TensorBase)) if a is t)
    ctx._meta = tuple(metas)
    attach(t, ctx, index)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that must not be differentiated itself: doing so raises RuntimeError."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        prev = GRAD.enabled
        set_enabled(False)
        try:
            outs = fn(ctx, *args)
        finally:
            set_enabled(prev)
        if not GRAD.enabled or not any(isinstance(a, TensorBase) and requires(a) for a in args):
            return outs
        many = outs if isinstance(outs, tuple) else (outs,)
        marked = []
        for out in many:
            if isinstance(out, TensorBase):
                source = out.detach()  # type: ignore[attr-defined]
                source._requires = True
                out = source.alias()
                record("DelayedErrorBackward0", (source,), out, _refuse)
            marked.append(out)
        return tuple(marked) if isinstance(outs, tuple) else marked[0]

    return wrapper


def _refuse(ctx: Any, *grads: Any) -> Any:
    raise RuntimeError(
        "trying to differentiate twice a function that was marked with @once_differentiable"
    )


class InplaceFunction(Function):
    """A Function with an `inplace` attribute; kept for old programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
