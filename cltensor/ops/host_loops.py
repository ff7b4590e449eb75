"""Methods that call a Python function for every element, on the host as in torch, and tensors of subclasses."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from ..attributes import of_class
from ..autograd.hooks import type_string
from ..autograd.mode import unrecorded
from . import core
from .core import Tensor
from .row import public


def _check(name: str, x: Tensor, *others: Tensor) -> None:
    if any(t.requires_grad for t in (x, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
        )
    if x.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")


def _put(x: Tensor, values: list[Any]) -> Tensor:
    kind = (bool, int, float, complex)[x.dtype.category]
    bad = next((v for v in values if isinstance(v, str | bytes)), None)
    if bad is not None:
        raise TypeError(
            f"must be real number, not {type(bad).__name__}"
            if kind is float
            else f"'{type(bad).__name__}' object cannot be interpreted as an integer"
        )
    with unrecorded():
        return x.copy_(x.new_tensor([kind(v) for v in values]).view(x.shape))


@public(function=False)
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace every element by what a Python function returns for it. Slow: a call for each element."""
    _check("apply_", self)
    return _put(self, [callable(v) for v in self.flatten().tolist()])


@public(function=False)
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace every element by what a Python function returns for it and the other tensor's. Slow: a call for each element."""
    _check("map_", self, tensor)
    if not builtins.callable(callable):
        raise TypeError(f"'{type(callable).__name__}' object is not callable")
    if tensor.dtype is not self.dtype:
        raise TypeError(
            f"map_: expected {type_string(self)} for 'other' (got {type_string(tensor)})"
        )
    other = tensor.detach().expand(self.shape)
    pairs = zip(self.flatten().tolist(), other.flatten().tolist(), strict=True)
    return _put(self, [callable(a, b) for a, b in pairs])


@public(function=False)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace every element by what a Python function returns for it and those of two other tensors. Slow: a call for each element."""
    _check("map2_", self, x, y)
    if not builtins.callable(callable):
        raise TypeError(f"'{type(callable).__name__}' object is not callable")
    for name, t in (("x", x), ("y", y)):
        if t.dtype is not self.dtype:
            raise TypeError(
                f"map2_: expected {type_string(self)} for argument '{name}' (got {type_string(t)})"
            )
    others = (t.detach().expand(self.shape).flatten().tolist() for t in (x, y))
    triples = zip(self.flatten().tolist(), *others, strict=True)
    return _put(self, [callable(a, b, c) for a, b, c in triples])


def _alias(x: Tensor) -> Tensor:
    return core.view(x, x.shape, x._strides, x._offset, "AliasBackward0", None, _alias)


@public(function=False)
def as_subclass(self: Tensor, cls: type) -> Tensor:
    """View the same tensor, history included, as an instance of a subclass."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, core.Registry.tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. "
            "Make sure your class inherits from Tensor."
        )
    return of_class(_alias(self), cls)


def make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Tensor:
    """Make a leaf of a subclass on the memory of `data`. TypeError for another kind of class or of data."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not core.is_tensor(data):
        raise TypeError(
            f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}"
        )
    made = as_subclass(data.detach(), cls)
    if require_grad:
        made._set_requires(
            True, "Only Tensors of floating point and complex dtype can require gradients"
        )
    return made
