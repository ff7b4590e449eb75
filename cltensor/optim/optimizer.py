"""`Optimizer`: parameter groups, state, their saving and loading, and hooks around a step.

Each algorithm is in a file of its own; how it is computed in few launches is in stepper.py. Knows no formula.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from .. import dtypes
from ..autograd import set_grad_enabled
from ..autograd.hooks import RemovableHandle
from ..tensor import Tensor
from ..utils import _foreach_utils as foreach_utils
from .stepper import Replaced, clear

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

_global_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable] = OrderedDict()

_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _Required:
    """Placeholder for the default of an option that every group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


def _add_hook(hooks: OrderedDict[int, Callable], hook: Callable, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _use_grad_for_differentiable(step: Callable) -> Callable:
    """Return a step that records gradients only if its optimiser's defaults say `differentiable`; for optimisers of others."""

    @functools.wraps(step)
    def recorded_if_asked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **kwargs)

    return recorded_if_asked


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Tell whether a fused step, and whether a `_foreach_*` step is the best for all of the parameters."""
    if differentiable:
        return False, False
    given = [p for p in params if p is not None]
    plain = all(type(p) in foreach_utils._foreach_supported_types for p in given)
    floats = all(p.is_floating_point() for p in given)
    types = {p.device.type for p in given}
    fused = use_fused and plain and floats
    fused = fused and types.issubset(foreach_utils._get_fused_kernels_supported_devices())
    foreach = plain and types.issubset(foreach_utils._get_foreach_kernels_supported_devices())
    return fused, foreach and not fused


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of any optimiser."""
    return _add_hook(_global_pre_hooks, hook, False)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of any optimiser."""
    return _add_hook(_global_post_hooks, hook, False)


def _typename(x: Any) -> str:
    if isinstance(x, Tensor):
        return x.type()
    kind = type(x)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__


class Optimizer:
    """Base of all optimisers.

    params: tensors, pairs of name and tensor, or dicts with such a list under "params" and options of their own.
    defaults: the options of groups that do not give them. A subclass defines `step`.
    """

    _optimizer_step_pre_hooks: OrderedDict[int, Callable]
    _optimizer_step_post_hooks: OrderedDict[int, Callable]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable]
    _group_tensors_by_device_and_dtype = staticmethod(
        foreach_utils._group_tensors_by_device_and_dtype
    )

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + _typename(params)
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = self.__class__.__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # ------------------------------------------------------------------------------------- hooks

    @staticmethod
    def profile_hook_step(func: Callable) -> Callable:
        """Wrap a class's `step` so that it runs the hooks before and after."""

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
            out = func(*args, **kwargs)
            for hook in chain(
                self._optimizer_step_post_hooks.values(), _global_post_hooks.values()
            ):
                hook(self, args, kwargs)
            return out

        return wrapper

    def _patch_step_function(self) -> None:
        cls: Any = self.__class__
        if not getattr(cls.step, "hooked", None):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return changed args and kwargs."""
        return _add_hook(self._optimizer_step_pre_hooks, hook, False)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _add_hook(self._optimizer_step_post_hooks, hook, False)

    def register_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; what it returns replaces the dict."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; what it returns replaces the dict."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """Return "state" and "param_groups", with the parameters replaced by their numbers."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        packed = []
        start = 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            row = {k: v for k, v in group.items() if k != "params"}
            row["params"] = [numbers[id(p)] for p in group["params"]]
            start += len(row["params"])
            packed.append(row)
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        made: dict[str, Any] = {"state": state, "param_groups": packed}
        for hook in self._optimizer_state_dict_post_hooks.values():
            made = _replaced(hook(self, made), made)
        return made

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor,
        value: Tensor,
        param_id: int,
        param_groups: list[dict[Any, Any]],
        key: Hashable = None,
    ) -> Tensor:
        """Bring a loaded tensor to its parameter's dtype and device; a "step" counter only if `capturable` or `fused`,
        else the host reads it.
        """
        if param_groups is None:
            raise AssertionError("Expected param_groups to be set")
        if key != "step":
            if param.is_floating_point():
                return value.to(dtype=param.dtype, device=param.device)
            return value.to(device=param.device)
        group = next((g for g in param_groups if param_id in g["params"]), {})
        if group.get("capturable", False) or group.get("fused", False):
            return value.to(dtype=dtypes.float32, device=param.device)
        return value

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned; ValueError when the groups do not fit."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            state_dict = _replaced(hook(self, state_dict), state_dict)
        groups = self.param_groups
        saved = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = dict(
            zip(
                chain.from_iterable(s["params"] for s in saved),
                chain.from_iterable(g["params"] for g in groups),
                strict=True,
            )
        )
        state: defaultdict[Any, Any] = defaultdict(dict)
        for k, v in state_dict["state"].items():
            if k in params:
                state[params[k]] = self._loaded(params[k], v, k, state_dict["param_groups"])
            else:
                state[k] = v
        for group, new in zip(groups, saved, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        Replaced.count += 1
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _loaded(
        self, param: Tensor, value: Any, number: int, groups: list[dict], key: Any = None
    ) -> Any:
        if isinstance(value, Tensor):
            return Optimizer._process_value_according_to_param_policy(
                param, value, number, groups, key
            )
        if isinstance(value, dict):
            return {k: self._loaded(param, v, number, groups, k) for k, v in value.items()}
        if isinstance(value, Iterable):
            kind: Any = type(value)
            return kind(self._loaded(param, v, number, groups) for v in value)
        return value

    # ------------------------------------------------------------------------------------- use

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        grads = []
        for group in self.param_groups:
            for p in group["params"]:
                grad = p._grad  # not `p.grad`: the property warns about non-leaf tensors
                if grad is None:
                    continue
                if set_to_none:
                    p._grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                if grad._strided:
                    grads.append(grad)
                else:
                    grad.zero_()
        if grads:
            clear(grads)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters; `closure`, called first, computes the loss and its gradients anew."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with "params" and the options that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        Replaced.count += bool(self.state)
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs. Please use a list instead."
            )
        _take_params(param_group, [params] if isinstance(params, Tensor) else list(params))
        for param in param_group["params"]:
            self._check_param(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        self._check_against_others(param_group)
        self.param_groups.append(param_group)

    def _check_param(self, param: Any) -> None:
        if not isinstance(param, Tensor):
            raise TypeError(
                "optimizer can only optimize Tensors, but one of the params is " + _typename(param)
            )
        if not self.defaults.get("differentiable", None) and not (
            param.is_leaf or param.retains_grad
        ):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_against_others(self, param_group: dict[str, Any]) -> None:
        mine = set(param_group["params"])
        if len(mine) != len(param_group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        named = "param_names" in param_group
        for group in self.param_groups:
            if ("param_names" in group) != named:
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {'with names' if named else 'without names'} to the optimizer"
                )
        if any(p in mine for group in self.param_groups for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")


def _replaced(result: Any, value: Any) -> Any:
    return value if result is None else result


def _take_params(param_group: dict[str, Any], params: list[Any]) -> None:
    """Store parameters in a group, those given as (name, tensor) split into "param_names" and "params"."""
    found = [p[0] for p in params if isinstance(p, tuple)]
    param_group["params"] = [p[1] if isinstance(p, tuple) else p for p in params]
    if not found:
        return
    if len(found) != len(params):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    param_group["param_names"] = found
