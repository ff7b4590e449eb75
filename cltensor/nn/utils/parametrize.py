"""Parametrisations: a module's parameter or buffer is computed, at each access, from others by modules of the user's.

Owns the list of modules behind a tensor, the property that takes its place, and the class that carries the property.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from ...autograd import no_grad
from ...tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    def __init__(self) -> None:
        self.depth = 0
        self.values: dict[tuple[int, str], Any] = {}


_CACHE = _Cache()


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrised tensor once within the with block."""
    _CACHE.depth += 1
    try:
        yield
    finally:
        _CACHE.depth -= 1
        if not _CACHE.depth:
            _CACHE.values.clear()


def _register(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _check_same(kept: str, old: Any, found: str, new: Any, flag: str) -> None:
    """Raise ValueError unless a parametrisation keeps dtype and shape."""
    for what in ("dtype", "shape"):
        if getattr(old, what) != getattr(new, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless {flag} is enabled.\n"
                f"{kept.format(what)}: {getattr(old, what)}\n{found.format(what)}: {getattr(new, what)}"
            )


class ParametrizationList(ModuleList):
    """The modules that compute a tensor in turn, and the first one's arguments (`original`, or `original0`, ...)."""

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        like = original.detach()
        with no_grad():
            new = self._inverse_of(original)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueError(
                    f"A parametrization must return a tensor. Got {type(result).__name__}."
                )
            _check_same(
                "unparametrized {}", like, "parametrized {}", result,
                "`unsafe` flag",
            )  # fmt: skip

    def _inverse_of(self, value: Any) -> Any:
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    value = module.right_inverse(value)
        return value

    def _keep_one(self, original: Tensor, new: Tensor) -> None:
        for what in ("dtype", "device"):
            if getattr(original, what) != getattr(new, what):
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                    f"original.{what}: {getattr(original, what)}\nright_inverse(original).{what}: {getattr(new, what)}"
                )
        with no_grad():
            original.set_(new)
        _register(self, "original", original)

    def _keep_several(self, original: Tensor, new: Sequence[Any]) -> None:
        for i, value in enumerate(new):
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element {i} of the sequence with type "
                    f"{type(value).__name__}."
                )
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            value.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", value)

    @no_grad()
    def right_inverse(self, value: Any) -> None:
        """Set the originals so that they give `value`. RuntimeError unless all modules have a right inverse."""
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(
                    f"parametrization {type(module).__name__} does not implement right_inverse."
                )
            value = module.right_inverse(value)
        if self.is_tensor:
            self._assign_one(value)
        else:
            self._assign_several(value)

    def _assign_one(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype {self.original.dtype}"
            )
        self.original.set_(value)

    def _assign_several(self, values: Any) -> None:
        if not isinstance(values, Sequence):
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}."
            )
        if len(values) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(values)}."
            )
        for i, value in enumerate(values):
            original = getattr(self, f"original{i}")
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got element {i} of type {type(value).__name__}"
                )
            if value.dtype != original.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {value.dtype} while `original{i}` has dtype {original.dtype}"
                )
            original.set_(value)

    def forward(self) -> Any:
        """Compute the tensor."""
        first, *others = self
        if self.is_tensor:
            x = first(self.original)
        else:
            x = first(*[getattr(self, f"original{i}") for i in range(self.ntensors)])
        for module in others:
            x = module(x)
        return x


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    if id(self) not in memo:
        memo[id(self)] = replica = self.__new__(type(self))
        replica.__dict__ = deepcopy(self.__dict__, memo)
    return memo[id(self)]


def _getstate(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _give_class(module: Module) -> None:
    """Make the module the only instance of a class of its own, to which properties can be added."""
    cls = type(module)
    members: dict[str, Any] = {"__getstate__": _getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _give_property(module: Module, name: str) -> None:
    def get(self: Any) -> Any:
        computing = self.parametrizations[name]
        if not _CACHE.depth:
            return computing()
        key = (id(self), name)
        if key not in _CACHE.values:
            _CACHE.values[key] = computing()
        return _CACHE.values[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Any:
    """Compute a parameter or buffer by `parametrization` from now on; returns the module.

    If `parametrization` has a `right_inverse`, that computes the tensors to be learnt from the present value. Several
    parametrisations are applied one after another. unsafe: dtype and shape may change, and nothing is checked now.
    ValueError for a name without tensor, and for a parametrisation that changes dtype or shape.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _try(module, tensor_name, parametrization)
        listed = module.parametrizations[tensor_name]
        listed.append(parametrization)
        listed.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        listed = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_class(module)
            module.parametrizations = ModuleDict()
        _give_property(module, tensor_name)
        module.parametrizations[tensor_name] = listed
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def _try(module: Any, name: str, parametrization: Any) -> None:
    """Raise ValueError unless one more parametrisation, and its right inverse, keep dtype and shape."""
    old = getattr(module, name)
    new = parametrization(old)
    flag, kept = "the `unsafe` flag", f"module.{name}.{{}}"
    if not isinstance(new, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(new).__name__}.")
    _check_same(
        kept,
        old,
        f"parametrization(module.{name}).{{}}",
        new,
        flag,
    )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(new)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    for what in ("dtype", "shape"):
        if getattr(old, what) != getattr(back, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, unless the `unsafe` flag is "
                f"enabled.\n{kept.format(what)}: {getattr(old, what)}\nreturned {what}: {getattr(back, what)}"
            )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Tell whether a module, or one of its tensors, is parametrised."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a parametrised tensor an ordinary one again, with its present value or its original; returns the module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    listed = module.parametrizations[tensor_name]
    if listed.is_tensor:
        original = listed.original
        if leave_parametrized:
            with no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """Return the class a module had before it was parametrised."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Give `to_module` the parametrisations and originals of `from_module`, of one tensor or all; return `to_module`."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key, value in [*source._parameters.items(), *source._buffers.items()]:
            setattr(target, key, value)
    return to_module
