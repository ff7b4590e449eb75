"""Constructors and checks by type name: FloatTensor, LongTensor, …, `Tensor.type`, set_default_tensor_type."""

from __future__ import annotations

from typing import Any

from . import cuda, dtypes
from .creation import legacy_new
from .errors import warn_once
from .memory_format import strided
from .runtime import home_type
from .storages import NAMES as STORAGE_NAMES
from .tensor import Tensor

TENSOR_NAMES = {
    **STORAGE_NAMES,
    "ComplexHalf": dtypes.complex32,
    "UInt16": dtypes.uint16,
    "UInt32": dtypes.uint32,
    "UInt64": dtypes.uint64,
}


class TensorType(type):
    """The metaclass of FloatTensor and the like: a call makes a Tensor, isinstance tests dtype, layout and device."""

    _dtype: dtypes.dtype
    _device: str | None

    def __new__(mcs, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> TensorType:
        """Make a type that has no subclasses, as torch's have none."""
        if bases:
            base = bases[0]
            raise TypeError(
                f"type '{base.__module__}.{base.__name__}' is not an acceptable base type"
            )
        return super().__new__(mcs, name, bases, members)

    def __instancecheck__(cls, other: Any) -> bool:
        return (
            isinstance(other, Tensor)
            and other.dtype is cls._dtype
            and other.layout is strided
            and not other.is_meta
            and (other.device.type == "cuda") == (cls._device == "cuda")
        )

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return legacy_new(args, cls._dtype, device, cls._device)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"

    @property
    def dtype(cls) -> dtypes.dtype:
        """The element type."""
        return cls._dtype


def _make(name: str, dt: dtypes.dtype, dev: str | None) -> TensorType:
    made = TensorType(
        f"{name}Tensor", (), {"__doc__": f"Constructor and type check of {dt!r} tensors."}
    )
    made._dtype, made._device, made.__module__ = dt, dev, "torch.cuda" if dev else "torch"
    return made


_types: dict[str, TensorType] = {}
for _name, _dt in TENSOR_NAMES.items():
    globals()[f"{_name}Tensor"] = _types[f"torch.{_name}Tensor"] = _make(_name, _dt, None)
    _types[f"torch.cuda.{_name}Tensor"] = _make(_name, _dt, "cuda")
    setattr(cuda, f"{_name}Tensor", _types[f"torch.cuda.{_name}Tensor"])


def type_name(t: Tensor) -> str:
    """Return torch's name of a tensor's type: "torch.FloatTensor"."""
    name = next(n for n, d in TENSOR_NAMES.items() if d is t.dtype)
    prefix = "" if t.device.type == home_type() else f"{t.device.type}."
    return f"torch.{prefix}{name}Tensor"


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Return the type's name, or convert to a dtype, a type or its name."""
    if dtype is None:
        return type_name(self)
    if isinstance(dtype, str):
        if dtype not in _types:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = _types[dtype]
    if isinstance(dtype, TensorType):
        return self.to(device=dtype._device or self.device, dtype=dtype._dtype)
    if isinstance(dtype, dtypes.dtype):
        return self.to(dtype)
    if dtype is Tensor:
        return self.to(dtypes.get_default_dtype())
    raise ValueError(f"invalid type: {getattr(dtype, '__name__', dtype)!r}")


type_.__name__ = "type"
Tensor.type = type_  # type: ignore[method-assign, assignment]


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype by a tensor type or its name (deprecated in favour of set_default_dtype)."""
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and torch.set_default_device() as alternatives."
    )
    found = _types.get(t) if isinstance(t, str) else t if isinstance(t, TensorType) else None
    if found is None:
        raise TypeError(f"invalid type object: {t!r}")
    if found._dtype.category < 2:
        raise TypeError("only floating-point types are supported as the default type")
    dtypes.set_default_dtype(found._dtype)


__all__ = ["set_default_tensor_type", *(f"{_name}Tensor" for _name in TENSOR_NAMES)]  # noqa: PLE0604 - the table decides
