"""`Parameter` and `Buffer`: tensors that a Module takes as its own when they are assigned to it.

Knows nothing of modules: they ask `isinstance`.
"""

from __future__ import annotations

from typing import Any

from .. import creation, printing
from ..tensor import Tensor

__all__ = ["Buffer", "Parameter"]


class _Marked(type):
    """isinstance also holds for a tensor of a foreign subclass that was marked as one of the kind."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return isinstance(instance, Tensor) and bool(getattr(instance, cls._mark, False))  # type: ignore[attr-defined]


class Parameter(Tensor, metaclass=_Marked):
    """A leaf tensor to be learnt: on the memory of `data`, requiring grad unless told otherwise, also under `no_grad`."""

    _mark = "_is_param"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """Make a parameter; a tensor of another subclass keeps its class and is marked."""
        if data is None:
            data = creation.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}"
            )
        made = data.detach()
        if type(data) is not Tensor and not issubclass(type(data), Parameter):
            made.__class__ = type(data)
            made._is_param = True  # type: ignore[attr-defined]
        else:
            made.__class__ = cls
        if requires_grad:
            made._set_requires(
                True, "Only Tensors of floating point and complex dtype can require gradients"
            )
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return printing.parameter_str(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.data, self.requires_grad)


class Buffer(Tensor, metaclass=_Marked):
    """A tensor that belongs to a module's state without being learnt; saved with it if `persistent`."""

    _mark = "_is_buffer"

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """Make a buffer on the memory of `data`; the result is a plain tensor with a mark."""
        if data is None:
            data = creation.empty(0)
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def _rebuild(cls: type, data: Tensor, requires_grad: bool) -> Any:
    return cls(data, requires_grad)
