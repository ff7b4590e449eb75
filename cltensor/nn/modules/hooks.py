"""Hooks around a module's call: global and own, before and after forward, and on its gradients.

Owns the registries, `Hooked` (what a module needs to carry hooks) and `run`, the call of a module that has any. Knows nothing of
parameters or state.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...autograd import is_grad_enabled
from ...autograd.function import Function
from ...autograd.hooks import RemovableHandle
from ...errors import caller_level
from ...tensor import Tensor

_MIXED = "Cannot use both regular backward hooks and full backward hooks {}. Please use only one of them."


class Registry:
    """Hooks of all modules: on registration, on calls, on gradients."""

    def __init__(self) -> None:
        self.buffer_registration: OrderedDict[int, Any] = OrderedDict()
        self.module_registration: OrderedDict[int, Any] = OrderedDict()
        self.parameter_registration: OrderedDict[int, Any] = OrderedDict()
        self.backward_pre: OrderedDict[int, Any] = OrderedDict()
        self.backward: OrderedDict[int, Any] = OrderedDict()
        self.full: bool | None = None
        self.forward_pre: OrderedDict[int, Any] = OrderedDict()
        self.forward: OrderedDict[int, Any] = OrderedDict()
        self.always: OrderedDict[int, bool] = OrderedDict()
        self.with_kwargs: OrderedDict[int, bool] = OrderedDict()


GLOBAL = Registry()


def _add(hooks: Any, hook: Any, extra: Any = None, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever any module registers a buffer; it may return another."""
    return _add(GLOBAL.buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever any module gets a child; it may return another."""
    return _add(GLOBAL.module_registration, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, param)` whenever any module gets a parameter; it may return another."""
    return _add(GLOBAL.parameter_registration, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before any module's forward; it may return other arguments."""
    return _add(GLOBAL.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after any module's forward; it may return another output."""
    handle = _add(GLOBAL.forward, hook, GLOBAL.always)
    if with_kwargs:
        GLOBAL.with_kwargs[handle.id] = True
    if always_call:
        GLOBAL.always[handle.id] = True
    return handle


def _global_backward(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    if GLOBAL.full is (not full):
        raise RuntimeError(_MIXED.format("as a global Module hook"))
    GLOBAL.full = full
    return _add(GLOBAL.backward, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` on the last node of any module; deprecated for the full form."""
    return _global_backward(hook, False)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before any module's gradients are computed."""
    return _add(GLOBAL.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when any module's input gradients are known."""
    return _global_backward(hook, True)


class WrappedHook:
    """A hook that may want its module first; it holds the module weakly, and survives pickling."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


class BackwardHookFunction(Function):
    """Identity whose node is where the gradients of several tensors pass together."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return tuple(None if t is None else t.view_as(t) for t in tangents)


class BackwardHook:
    """One call's full backward hooks: gradients of outputs are kept until those of inputs are known."""

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: Any = None
        self.n_inputs = self.n_outputs = -1
        self.inputs: list[int] | None = None
        self.outputs: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the module's arguments through a node that calls the hooks."""
        self.n_inputs = len(args)
        args, self.inputs = _through_node(self._on_inputs, args)
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """Pass the module's output through a node that remembers its gradients."""
        several = isinstance(result, tuple)
        outs = result if several else (result,)
        self.n_outputs = len(outs)
        outs, self.outputs = _through_node(self._on_outputs, outs)
        return outs if several else outs[0]

    def _on_inputs(self, grads: tuple[Any, ...], _: Any) -> Any:
        if self.grad_outputs is None:
            return None  # the gradient reached the inputs without passing the outputs
        res: Any = _spread(self.inputs or [], grads, self.n_inputs)
        for hook in self.hooks:
            out = hook(self.module, res, self.grad_outputs)
            if out is None:
                continue
            if len(out) != len(res):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(out)}, but expected {len(res)}"
                )
            res = out
        self.grad_outputs = None
        return tuple(res[i] for i in self.inputs or [])

    def _on_outputs(self, _: Any, grads: tuple[Any, ...]) -> Any:
        outputs = self.outputs or []
        self.grad_outputs = _spread(outputs, grads, self.n_outputs)
        for hook in self.pre_hooks:
            out = hook(self.module, self.grad_outputs)
            if out is None:
                continue
            if len(out) != len(self.grad_outputs):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(out)}, but expected {len(self.grad_outputs)}"
                )
            self.grad_outputs = out
        found = self.grad_outputs
        if self.inputs is None:
            self._without_inputs()
        return tuple(found[i] for i in outputs)

    def _without_inputs(self) -> None:
        """Call the hooks now: no input requires a gradient, so their gradients would never arrive."""
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require gradients. See "
            "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for more details.",
            stacklevel=caller_level(),
        )
        for hook in self.hooks:
            res = hook(self.module, (None,) * self.n_inputs, self.grad_outputs)
            if res is not None and not (isinstance(res, tuple) and all(r is None for r in res)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                )
        self.grad_outputs = None


def _spread(indices: list[int], values: Any, size: int) -> tuple[Any, ...]:
    res = [None] * size
    for i, value in zip(indices, values):
        res[i] = value
    return tuple(res)


def _through_node(hook: Any, args: tuple[Any, ...]) -> tuple[Any, list[int] | None]:
    """Pass the tensors among args through a node with a hook; return the new args and the tensors' places."""
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    if not (is_grad_enabled() and any(args[i].requires_grad for i in places)):
        return args, None
    fresh = BackwardHookFunction.apply(*[args[i] for i in places])
    node = next(t.grad_fn for t in fresh if t.grad_fn is not None)
    node.register_hook(hook)
    out = list(args)
    for i, t in zip(places, fresh):
        out[i] = t
    return (tuple(out) if type(args) is tuple else type(args)(*out)), places


class Hooked:
    """The hooks of one module."""

    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; it may return other arguments.

        with_kwargs: call `hook(module, args, kwargs)` instead, which returns None or `(args, kwargs)`.
        """
        handle = _add(self._forward_pre_hooks, hook, self._forward_pre_hooks_with_kwargs, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; it may return another output.

        with_kwargs: call `hook(module, args, kwargs, output)`. always_call: also when forward raises.
        """
        extra = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = _add(self._forward_hooks, hook, extra, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's gradients; it may return other ones."""
        return _add(self._backward_pre_hooks, hook, None, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when input gradients are known; it may return other ones."""
        return self._register_backward(hook, True, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` on the output's node; deprecated for the full form."""
        return self._register_backward(hook, False, False)

    def _register_backward(self, hook: Any, full: bool, prepend: bool) -> RemovableHandle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(_MIXED.format("on a single Module"))
        self._is_full_backward_hook = full
        return _add(self._backward_hooks, hook, None, prepend)

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        """Return the full and the other backward hooks, global ones first."""
        found: dict[bool, list[Any]] = {True: [], False: []}
        if GLOBAL.full is not None:
            found[GLOBAL.full] += GLOBAL.backward.values()
        if self._is_full_backward_hook is not None:
            found[self._is_full_backward_hook] += self._backward_hooks.values()
        return found[True], found[False]

    def _get_backward_pre_hooks(self) -> list[Any]:
        return [*GLOBAL.backward_pre.values(), *self._backward_pre_hooks.values()]


class _Call:
    """One call of a module with hooks: its arguments as hooks change them, and its result."""

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module, self.args, self.kwargs = module, args, kwargs
        self.result: Any = None
        self.called: set[int] = set()

    def run(self) -> Any:
        module = self.module
        full, other = module._get_backward_hooks()
        pre = module._get_backward_pre_hooks()
        self._before()
        around = None
        if full or pre:
            around = BackwardHook(module, full, pre)
            self.args = around.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        self._after()
        if around is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warnings.warn(
                    f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received {type(self.result)}",
                    stacklevel=3,
                )
            self.result = around.setup_output_hook(self.result)
        if other:
            _hook_last_node(module, other, self.args, self.result)
        return self.result

    def _before(self) -> None:
        module = self.module
        for key, hook in [*GLOBAL.forward_pre.items(), *module._forward_pre_hooks.items()]:
            if key in module._forward_pre_hooks_with_kwargs:
                changed = hook(module, self.args, self.kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                self.args, self.kwargs = changed
            else:
                changed = hook(module, self.args)
                if changed is not None:
                    self.args = changed if isinstance(changed, tuple) else (changed,)

    def _call(self, key: int, hook: Any) -> None:
        module = self.module
        if key in module._forward_hooks_with_kwargs or key in GLOBAL.with_kwargs:
            changed = hook(module, self.args, self.kwargs, self.result)
        else:
            changed = hook(module, self.args, self.result)
        if changed is not None:
            self.result = changed

    def _after(self) -> None:
        for key, hook in [*GLOBAL.forward.items(), *self.module._forward_hooks.items()]:
            self.called.add(key)
            self._call(key, hook)

    def failed(self) -> None:
        """Call the `always_call` hooks that have not been called yet."""
        own, always = self.module._forward_hooks, self.module._forward_hooks_always_called
        wanted = [("global module", k, h) for k, h in GLOBAL.forward.items() if k in GLOBAL.always]
        wanted += [("module", k, h) for k, h in own.items() if k in always]
        for whose, key, hook in wanted:
            if key in self.called:
                continue
            try:
                self._call(key, hook)
            except Exception as error:
                warnings.warn(
                    f"{whose} forward hook with ``always_call=True`` raised an exception that was silenced as another error was raised in forward: {error!s}",
                    stacklevel=3,
                )


def run(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module's forward with its own hooks and the global ones."""
    call = _Call(module, args, kwargs)
    try:
        return call.run()
    except Exception:
        call.failed()
        raise


def _hook_last_node(module: Any, hooks: list[Any], args: Any, result: Any) -> None:
    """Put non-full backward hooks on the node of the first tensor in the result."""
    first = result
    while not isinstance(first, Tensor):
        if isinstance(first, dict):
            first = next(v for v in first.values() if isinstance(v, Tensor))
        else:
            first = first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(WrappedHook(hook, module))
    reason = _what_is_missed(args, result, node)
    if reason:
        warnings.warn(reason, FutureWarning, stacklevel=4)


_DEPRECATED = (
    " is deprecated and will be removed in future versions. This hook will be missing some "
)
_USE_FULL = "Please use register_full_backward_hook to get the documented behavior."


def _what_is_missed(args: Any, result: Any, node: Any) -> str | None:
    """Say which gradients a non-full hook will not see, or None."""

    def tensors(value: Any) -> Any:
        value = (value,) if isinstance(value, Tensor) else value
        fits = isinstance(value, tuple) and all(isinstance(v, Tensor) for v in value)
        return value if fits else None

    outs, ins = tensors(result), tensors(args)
    if outs is None:
        return (
            "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors"
            + _DEPRECATED
            + f"of the grad_output. {_USE_FULL}"
        )
    if ins is None:
        return (
            "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors"
            + _DEPRECATED
            + f"of the grad_input. {_USE_FULL}"
        )
    nodes = {r.grad_fn for r in outs if r.grad_fn is not None}
    if not nodes or (len(nodes) == 1 and node not in nodes):
        return (
            "Using a non-full backward hook when outputs are nested in python data structure"
            + _DEPRECATED
            + "grad_output."
        )
    if len(nodes) > 1:
        return (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes"
            + _DEPRECATED
            + f"grad_output. {_USE_FULL}"
        )
    before = {i.grad_fn for i in ins if i.grad_fn is not None}
    if before != {edge[0] for edge in node.next_functions}:
        return (
            "Using a non-full backward hook when the forward contains multiple autograd Nodes"
            + _DEPRECATED
            + f"grad_input. {_USE_FULL}"
        )
    return None
