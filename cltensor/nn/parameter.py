"""`Parameter` and `Buffer`: tensors that a Module registers when they are assigned to it.

Knows nothing of modules, which test with `isinstance`.
"""

from __future__ import annotations

import sys
from typing import Any

from .. import attributes, creation, printing
from ..attributes import fields, made_as, of_class, restore, state
from ..tensor import Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(attributes.FieldsMeta):
    """Make isinstance true also for tensors of other subclasses that carry the class's mark; derived classes have none."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        mark = vars(cls).get("_mark")
        return bool(mark and isinstance(instance, Tensor) and getattr(instance, mark, False))


_BufferMeta = _ParameterMeta


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor to be learnt.

    It shares the memory of `data` and requires grad by default, even if made under `no_grad`.
    """

    _mark = "_is_param"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """Make a parameter; a tensor of another subclass keeps its class and is marked."""
        if data is None:
            data = creation.empty(0)
        made = data.detach()  # AttributeError if `data` is no tensor
        if type(data) is not Tensor and not issubclass(type(data), Parameter):
            made = of_class(made, type(data))
            made._is_param = True
        else:
            made = made_as(cls, made)
        if requires_grad:
            made._set_requires(
                True, "Only Tensors of floating point and complex dtype can require gradients"
            )
        return made

    def __copy__(self) -> Any:  # through the subclass's pickle, if it has its own
        function, arguments, *kept = self.__reduce_ex__(4)
        made = function(*arguments)
        if kept and kept[0] is not None:
            restore(made, kept[0])
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
        return _rebuild, (self.data, self.requires_grad, state(self) or None)


class Buffer(Tensor, metaclass=_ParameterMeta):
    """A tensor of a module's state that is not learnt; part of the state dict if `persistent`."""

    _mark = "_is_buffer"
    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """Make a buffer that shares the memory of `data`; the result is a plain tensor with a mark."""
        if data is None:
            data = creation.empty(0)
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def _rebuild(data: Tensor, requires_grad: bool, kept: Any) -> Any:
    made = Parameter(data, requires_grad)
    if kept is not None:
        restore(made, kept)
    return made


_NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when trying to load an "
    "uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before accessing their attributes."
)
_NO_VALUE = (
    "Attempted to use an uninitialized parameter in a function. This error happens when you are using a `LazyModule` or explicitly manipulating "
    "`torch.nn.parameter.{}` objects. When using LazyModules Call `forward` with a dummy batch to initialize the parameters before calling "
    "torch functions"
)
_FUNCTIONS = tuple(f"{__package__.partition('.')[0]}.{home}" for home in ("ops.", "tensor", "creation."))  # fmt: skip


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet: it may be moved and converted, and materialised once."""

    cls_to_become: Any = None

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Take a shape, with memory of undefined contents, and become an ordinary tensor of the class `cls_to_become`."""
        like = self._plain()
        device = like.device if device is None else device
        dtype = like.dtype if dtype is None else dtype
        self.data = creation.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    def _plain(self) -> Tensor:
        """Return the empty tensor that stands for this one, as a plain Tensor."""
        t = object.__new__(Tensor)
        fields(t).update(fields(self))
        t._requires = False
        return t

    @property
    def data(self) -> Tensor:
        """The empty tensor that stands for this one."""
        return self._plain()

    @data.setter
    def data(self: Any, value: Tensor) -> None:
        value = value._plain() if is_lazy(value) else value  # type: ignore[attr-defined]
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]

    @property
    def shape(self) -> Any:
        """Raise an error, as there is no shape yet: ValueError if a function of tensors asks, else RuntimeError."""
        frame: Any = sys._getframe(1)
        # Called by the attribute lookup of attributes.py: what asks is one frame up.
        if frame.f_globals.get("__name__") == attributes.__name__:
            frame = frame.f_back
        if frame.f_globals.get("__name__", "").startswith(_FUNCTIONS):
            raise ValueError(_NO_VALUE.format(type(self).__name__))
        raise RuntimeError(_NO_SHAPE)

    @shape.setter
    def shape(self, value: Any) -> None:
        fields(self)["shape"] = value

    def share_memory_(self) -> Any:
        """Raise RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self: Any, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad,)

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            like = self._plain()
            memo[id(self)] = type(self)(self.requires_grad, like.device, like.dtype)
        return memo[id(self)]


_MARKS = ("_is_buffer", "persistent")


def _on_plain(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = getattr(self._plain(), name)(*args, **kwargs)
        if isinstance(found, Tensor):
            found.__dict__.update({k: v for k, v in self.__dict__.items() if k in _MARKS})
            found.__class__ = type(self)
        return found

    method.__name__ = name
    return method


for _name in ("to", "cpu", "cuda", "half", "float", "double", "bfloat16", "size"):
    setattr(UninitializedTensorMixin, _name, _on_plain(_name))


def _refused(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked = f"<method '{name}' of 'torch._C.TensorBase' objects>"
        raise ValueError(_NO_VALUE.replace("a function", asked, 1).format(type(self).__name__))

    method.__name__ = name
    return method


# Methods that do not ask for the shape, and would otherwise answer for the empty tensor.
for _name in (
    "stride", "is_contiguous", "storage", "untyped_storage", "detach", "dim", "numel", "nelement", "data_ptr", "element_size",
    "storage_offset", "is_shared", "type", "storage_type", "pin_memory", "numpy", "tolist", "zero_", "fill_", "backward",
):  # fmt: skip
    setattr(UninitializedTensorMixin, _name, _refused(_name))


def is_lazy(param: Any) -> bool:
    """Tell whether a parameter or buffer waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        """Make a parameter without a shape; `device` and `dtype` are those it will have."""
        made = Parameter(creation.empty(0, device=device, dtype=dtype), requires_grad)
        made.__class__ = cls
        return made


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape is not known yet."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
        persistent: bool = True,
    ) -> Any:  # fmt: skip
        """Make a buffer without a shape; `device` and `dtype` are those it will have."""
        made = creation.empty(0, device=device, dtype=dtype).requires_grad_(requires_grad)
        made.__class__ = cls
        made.persistent = persistent
        made._is_buffer = True
        return made
