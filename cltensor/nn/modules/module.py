"""`Module`: the base of all layers and networks. Parameters, buffers and children by name, and what is done to all of them.

Owns registration and the walks over the tree. Hooks are in hooks.py, the state dict in state.py; knows no layer.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ... import creation
from ...autograd import no_grad
from ...tensor import Tensor
from ..parameter import Buffer, Parameter
from . import hooks
from .built_in import unbind
from .hooks import (
    GLOBAL,
    Hooked,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .moving import CONVERSION, parse_to
from .state import _EXTRA_STATE_KEY_SUFFIX, Stateful, _IncompatibleKeys  # noqa: F401 - where torch has them

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "typename",
]

T = TypeVar("T", bound="Module")
_ABSENT = object()


def typename(obj: Any) -> str:
    """Return the name of a value's class (of a class: its own) with its module, or a tensor's legacy type."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    home = getattr(named, "__module__", "") or ""
    return named.__qualname__ if home in ("", "builtins") else f"{home}.{named.__qualname__}"


def _check_name(kind: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")


def _registered(registry: dict[int, Any], module: Any, name: str, value: Any) -> Any:
    """Pass a value through the global registration hooks of its kind."""
    for hook in registry.values():
        out = hook(module, name, value)
        if out is not None:
            value = out
    return value


def _indent(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *["  " + line if line.strip() else "" for line in rest]])


def _float_cast(name: str, doc: str) -> Any:
    def method(self: Any) -> Any:
        return self._apply(lambda t: getattr(t, name)() if t.is_floating_point() else t)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Convert floating-point parameters and buffers to {doc}; returns self."
    return method


class Module(Hooked, Stateful):
    """Base class of layers and networks: subclass it, call `super().__init__()`, assign parameters and modules, define `forward`.

    `training` tells whether the module is being trained (`train`, `eval`).
    """

    dump_patches = False
    call_super_init = False
    training: bool

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the package's functions among class attributes from binding as methods: torch's are built-ins."""
        super().__init_subclass__(**kwargs)
        unbind(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            name = type(self).__name__
            if kwargs:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        # Not through __setattr__, which needs these attributes.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _modules={},
            _is_full_backward_hook=None,
            **{name: OrderedDict() for name in _HOOK_DICTS},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input: Any) -> Any:
        """Compute the module's value; to be defined by every subclass, and called by calling the module."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and the hooks if there are any."""
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or GLOBAL.forward
            or GLOBAL.forward_pre
            or GLOBAL.backward
            or GLOBAL.backward_pre
        ):
            return hooks.run(self, args, kwargs)
        return self.forward(*args, **kwargs)

    _call_impl = _wrapped_call_impl = __call__  # names that libraries call

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: kernels are fused and compiled when they are needed."""

    # ------------------------------------------------------------------------------------- registration

    def _check_free(self, kind: str, name: Any, taken: dict[str, Any]) -> None:
        _check_name(kind, name)
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in taken:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module without being learnt; a persistent one is part of the state dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_free("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _registered(GLOBAL.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves its name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_free("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To express '{name}' as a "
                "function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = _registered(GLOBAL.parameter_registration, self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child; None reserves its name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name("module", name)
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = _registered(GLOBAL.module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """`add_module` by its other name."""
        self.add_module(name, module)

    def __getattr__(self, name: str) -> Any:
        members = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind in members and name in members[kind]:
                return members[kind][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        members = self.__dict__
        params, modules, buffers = (members.get(k) for k in ("_parameters", "_modules", "_buffers"))
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, members, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, members, self._parameters, self._buffers)
            modules[name] = _registered(GLOBAL.module_registration, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = _registered(GLOBAL.module_registration, self, name, value)
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
                )
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, *owners: dict[str, Any]) -> None:
        for owner in owners:
            owner.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_buffer(self, name: str, value: Any) -> None:
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the persistent argument is "
                "not allowed."
            )

    def __delattr__(self, name: str) -> None:
        for owner in (self._parameters, self._buffers, self._modules):
            if name in owner:
                del owner[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules]
        return sorted(n for n in [*names, *self._buffers] if not n[0].isdigit())

    # ------------------------------------------------------------------------------------- by path

    def get_submodule(self, target: str) -> Module:
        """Return the module at a dotted path; AttributeError if there is none."""
        found: Any = self
        for item in target.split(".") if target else ():
            found = _member(found, item)
            if not isinstance(found, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path. strict: AttributeError unless one is there."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            if not isinstance(_member(parent, name), Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path; AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        param = _member(self.get_submodule(path), name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path; AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer = _member(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # ------------------------------------------------------------------------------------- walks

    def children(self) -> Iterator[Module]:
        """Yield the children, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield names and children, each child once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield dotted names and modules: this one, and all below it; each once unless remove_duplicate is false."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in owners:
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, of all modules below too if recurse, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield dotted names and parameters."""
        yield from self._named_members(
            lambda m: m._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, of all modules below too if recurse, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield dotted names and buffers."""
        yield from self._named_members(
            lambda m: m._buffers.items(), prefix, recurse, remove_duplicate
        )

    def apply(self: T, fn: Callable[[Module], Any]) -> T:
        """Call fn on every module, children first; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: T, mode: bool = True) -> T:
        """Set training mode here and below; returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: T) -> T:
        """Leave training mode here and below; returns self."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Say whether gradients of all parameters are wanted; returns self."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()

    # ------------------------------------------------------------------------------------- conversion

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        """Replace the memory of all parameters, their gradients and the buffers; parameters keep their identity."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in list(self._parameters.items()):
            if param is None:
                continue
            grad = param.grad
            if CONVERSION["overwrite"] and not CONVERSION["swap"]:
                with no_grad():
                    made = Parameter(fn(param), param.requires_grad)
                    made.grad = (
                        None if grad is None else fn(grad).requires_grad_(grad.requires_grad)
                    )
                self._parameters[name] = made
                continue
            with no_grad():
                param.data = fn(param)
                if grad is not None:
                    grad.data = fn(grad)
                    param.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Move and convert parameters and buffers: `(device, dtype)`, `(dtype)`, `(tensor)`; dtypes only of floating ones. Returns self."""
        device, dtype, _, format = parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, and some modules might not work as "
                    "expected when using complex tensors as parameters or buffers. Please file an issue at "
                    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work as expected.",
                    stacklevel=2,
                )

        def convert(t: Tensor) -> Tensor:
            wanted = dtype if t.is_floating_point() or t.is_complex() else None
            kept = {} if format is None or t.dim() not in (4, 5) else {"memory_format": format}
            try:
                return t.to(device, wanted, **kept)
            except NotImplementedError as error:
                if not t.is_meta:
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a "
                    "different device."
                ) from None

        return self._apply(convert)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Move parameters and buffers to a device without their values; returns self."""
        return self._apply(lambda t: creation.empty_like(t, device=device), recurse)

    def cpu(self: T) -> T:
        """Move parameters and buffers to the host's device; returns self."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: T, device: Any = None) -> T:
        """Move parameters and buffers to a GPU; returns self."""
        return self._apply(lambda t: t.cuda(device))

    def type(self: T, dst_type: Any) -> T:
        """Convert parameters and buffers, integers too; returns self."""
        return self._apply(lambda t: t.type(dst_type))

    float = _float_cast("float", "float32")
    double = _float_cast("double", "float64")
    half = _float_cast("half", "float16")
    bfloat16 = _float_cast("bfloat16", "bfloat16")

    def share_memory(self: T) -> T:
        """Move parameters and buffers to memory that other processes can see. RuntimeError where there is no memory yet."""
        for t in (*self.parameters(), *self.buffers()):
            t.share_memory_()  # type: ignore[attr-defined]
        return self

    # ------------------------------------------------------------------------------------- pickle, print

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        members = self.__dict__
        members.setdefault("_non_persistent_buffers_set", set())
        members.setdefault("_is_full_backward_hook", None)
        for name in _HOOK_DICTS:
            members.setdefault(name, OrderedDict())

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what stands in the parentheses of the printed form; to be overridden."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        if len(lines) == 1 and not self._modules:
            return f"{self._get_name()}({lines[0]})"
        lines += [f"({name}): {_indent(repr(m))}" for name, m in self._modules.items()]
        inside = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({inside})"


# torch's names for the global hooks: libraries that register parameters themselves call the hooks by these.
_global_buffer_registration_hooks = GLOBAL.buffer_registration
_global_module_registration_hooks = GLOBAL.module_registration
_global_parameter_registration_hooks = GLOBAL.parameter_registration
_global_backward_pre_hooks, _global_backward_hooks = GLOBAL.backward_pre, GLOBAL.backward
_global_forward_pre_hooks, _global_forward_hooks = GLOBAL.forward_pre, GLOBAL.forward
_global_forward_hooks_always_called = GLOBAL.always
_global_forward_hooks_with_kwargs = GLOBAL.with_kwargs

_HOOK_DICTS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _member(module: Any, name: str) -> Any:
    value = getattr(module, name, _ABSENT)
    if value is _ABSENT:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return value
