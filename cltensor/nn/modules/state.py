"""`state_dict` and `load_state_dict`: a module's parameters, buffers and extra state, saved and loaded by name.

Owns the format of names, the words of mismatches, and replicas without parameters. Knows nothing of files:
`cltensor.save` writes any dict.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from ...autograd import no_grad
from ...autograd.hooks import RemovableHandle
from ...tensor import Tensor
from ..parameter import Parameter, is_lazy
from .hooks import WrappedHook

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The names a state dict lacked, and those the module does not have."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _Report:
    """What a load found: names without a value, values without a name, and errors."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []


class Stateful:
    """The part of a module that saves and loads its state."""

    _version: int = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def _replicate_for_data_parallel(self) -> Any:
        """Return a copy without parameters: a replica is given those of its device afterwards."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__ | {
            "_parameters": {},
            "_buffers": self._buffers.copy(),
            "_modules": self._modules.copy(),
            "_is_replica": True,
        }
        return replica

    # ------------------------------------------------------------------------------------- out

    def get_extra_state(self) -> Any:
        """Return further state to be saved; override together with `set_extra_state`."""
        raise RuntimeError(_NEVER.format("get"))

    def set_extra_state(self, state: Any) -> None:
        """Load what `get_extra_state` returned."""
        raise RuntimeError(_NEVER.format("set"))

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write this module's own state, without its children's."""
        for name, value in self._own_state().items():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _own_state(self) -> dict[str, Any]:
        """Return parameters and persistent buffers by name."""
        buffers = self._buffers.items()
        kept = ((k, v) for k, v in buffers if k not in self._non_persistent_buffers_set)
        return {k: v for k, v in (*self._parameters.items(), *kept) if v is not None}

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Return parameters, persistent buffers and extra state by name, sharing their memory.

        prefix: written before every name. keep_vars: return the tensors themselves, with their grad nodes, not
        detached.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args))
            destination = given["destination"] if destination is None else destination
            prefix = prefix or given.get("prefix", "")
            keep_vars = keep_vars or given.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata)` at the end; what it returns becomes the result."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via register_state_dict_post_hook"
            )
        return _register(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata)` at the end, which may change the dict in place."""
        hook._from_public_api = True
        return _register(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the state is gathered."""
        return _register(self._state_dict_pre_hooks, hook)

    # ------------------------------------------------------------------------------------- in

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        wrapped = WrappedHook(hook, self if with_module else None)
        return _register(self._load_state_dict_pre_hooks, wrapped)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; it may change the lists in place."""
        return _register(self._load_state_dict_post_hooks, hook)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy values by name into parameters and buffers.

        strict: RuntimeError unless names agree. assign: take the tensors themselves instead of copying. RuntimeError, which
        names them all, for shapes that disagree.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata
        report = _Report()
        _load(self, state, "", metadata, assign, report)
        errors = report.errors
        if strict:
            for keys, what in ((report.unexpected, "Unexpected"), (report.missing, "Missing")):
                if keys:
                    names = ", ".join(f'"{k}"' for k in keys)
                    errors.insert(0, f"{what} key(s) in state_dict: {names}. ")
        if errors:
            joined = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{joined}"
            )
        return _IncompatibleKeys(report.missing, report.unexpected)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Take this module's own state from a dict, without its children's; note what does not fit."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        own = self._own_state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, value in own.items():
            key = prefix + name
            if key in state_dict:
                error = self._take(name, value, key, state_dict[key], assign)
                if error:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if not strict:
            return
        for key in state_dict:
            if key.startswith(prefix) and key != extra:
                head, dot, _ = key[len(prefix) :].partition(".")
                if head not in (self._modules if dot else own):
                    unexpected_keys.append(key)

    def _take(self, name: str, param: Any, key: str, value: Any, assign: bool) -> str | None:
        """Copy or assign one value; return what is wrong with it, or None."""
        if not isinstance(value, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                f"received {type(value)}"
            )
        if is_lazy(param) and is_lazy(value) and not assign:
            return None  # neither has a shape yet
        if not is_lazy(param):
            if len(param.shape) == 0 and len(value.shape) == 1 and value.shape[0] == 1:
                value = value[0]  # scalars were once saved as vectors of one
            if value.shape != param.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current model is "
                    f"{param.shape}."
                )
        if param.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
                "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the "
                "module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with no_grad():
                if not assign:
                    param.copy_(value)
                    return None
                if isinstance(param, Parameter):
                    if isinstance(value, Parameter):
                        value.requires_grad_(param.requires_grad)
                    else:
                        value = Parameter(value, requires_grad=param.requires_grad)
                setattr(self, name, value)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {param.size()} and whose dimensions in the '
                f"checkpoint are {value.size()}, an exception occurred : {error.args}."
            )
        return None


_NEVER = (
    "Reached a code path in Module.{}_extra_state() that should never be called. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)


def _register(hooks: Any, hook: Any) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _load(
    module: Any, state: Any, prefix: str, metadata: Any, assign: bool, report: _Report
) -> None:
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = assign
    module._load_from_state_dict(
        state, prefix, local, True, report.missing, report.unexpected, report.errors
    )
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {k: v for k, v in state.items() if k.startswith(below)}
            _load(child, part, below, metadata, assign, report)
    keys = _IncompatibleKeys(report.missing, report.unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if incompatible_keys need "
                "to be modified, it should be done inplace."
            )
