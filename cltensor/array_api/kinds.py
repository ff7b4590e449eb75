"""Dtypes and devices, as the standard asks for them."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import creation, dtypes
from ..ops.row import FUNCTIONS as F
from ..runtime import device_list, get_default_device
from ..tensor import Tensor

__all__ = [
    "__array_namespace_info__",
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "promoted",
    "result_type",
]

_KINDS = {
    "bool": ("bool",), "signed integer": ("int8", "int16", "int32", "int64"), "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"), "complex floating": ("complex64", "complex128"),
}  # fmt: skip
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def isdtype(dtype: Any, kind: Any) -> bool:
    """Tell whether a dtype is of a kind: a dtype, a kind's name or a tuple of those."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    return dtype.name in _KINDS[kind] if isinstance(kind, str) else dtype is kind


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Convert to a dtype."""
    return x.to(dtype=dtype, device=device, copy=copy)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Tell whether a dtype can be cast to another by the standard's rules of promotion."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    if source is to:
        return True
    if isdtype(source, "unsigned integer") and isdtype(
        to, "integral"
    ):  # torch promotes few of them
        return source.itemsize + isdtype(to, "signed integer") <= to.itemsize
    try:
        return dtypes.promote_types(source, to) is to
    except RuntimeError:
        return False


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the dtype that arrays, dtypes and numbers promote to; how many axes an array has does not matter."""
    given = [a.dtype if isinstance(a, Tensor) else a for a in arrays_and_dtypes]
    arrays = [creation.empty(1, dtype=d) for d in given if isinstance(d, dtypes.dtype)]
    made, *rest = arrays or [creation.empty((), dtype=dtypes.scalar_dtype(given[0]))]
    for other in (*rest, *(g for g in given if not isinstance(g, dtypes.dtype))):
        made = creation.empty(1, dtype=F["result_type"](made, other))
    return made.dtype


def promoted(*arrays: Tensor) -> list[Tensor]:
    """Return arrays cast to the dtype they promote to, for functions of torch that want a common dtype."""
    common = result_type(*arrays)
    return [a.to(common) for a in arrays]


class Finfo(NamedTuple):
    """Limits of a floating type, or of the parts of a complex one."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class Iinfo(NamedTuple):
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> Finfo:
    """Return the limits of a floating dtype, or of an array's dtype."""
    kind = type.dtype if isinstance(type, Tensor) else type
    found = dtypes.finfo(kind)
    return Finfo(found.bits, found.eps, found.max, found.min, found.smallest_normal, dtypes.to_real(kind))  # fmt: skip


def iinfo(type: Any, /) -> Iinfo:
    """Return the limits of an integer dtype, or of an array's dtype."""
    kind = type.dtype if isinstance(type, Tensor) else type
    found = dtypes.iinfo(kind)
    return Iinfo(found.bits, found.max, found.min, kind)


class _Info:
    """The standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Any:
        return get_default_device()

    def devices(self) -> list[Any]:
        return list(device_list())

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        return {
            "real floating": dtypes.get_default_dtype(), "complex floating": dtypes.to_complex(dtypes.get_default_dtype()),
            "integral": dtypes.int64, "indexing": dtypes.int64,
        }  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        names = [
            n for k, group in _KINDS.items() if k not in ("integral", "numeric") for n in group
        ]
        found = {n: getattr(dtypes, n) for n in names}
        return {n: d for n, d in found.items() if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> _Info:
    """Return the inspection functions."""
    return _Info()
