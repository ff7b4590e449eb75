"""The array API standard's namespace for tensors: its names and arguments, over this library's functions.

`tensor.__array_namespace__()` returns this module. Where torch's name and meaning are the standard's, the function is torch's.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

from . import creation, dtypes
from .dtypes import finfo, iinfo
from .interchange import from_dlpack
from .ops.row import FUNCTIONS as F
from .runtime import device_list, get_default_device
from .tensor import Tensor

__all__ = ["asarray", "finfo", "from_dlpack", "iinfo", "isdtype"]

__array_api_version__ = "2023.12"
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

_SAME = [
    "abs", "acos", "acosh", "add", "all", "any", "argsort", "asin", "asinh", "atan", "atan2", "atanh",
    "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "broadcast_tensors", "ceil", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1",
    "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan",
    "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "meshgrid", "minimum", "moveaxis", "multiply", "negative",
    "nonzero", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "searchsorted",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "tril", "triu", "trunc",
    "matmul", "tensordot", "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones",
    "ones_like", "zeros", "zeros_like", "unstack",
]  # fmt: skip
_DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip

globals().update({name: F[name] for name in _SAME if name in F})
globals().update({name: getattr(dtypes, name) for name in _DTYPES})
bitwise_invert = F["bitwise_not"]
broadcast_to = F["broadcast_to"]
asarray = creation.asarray


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, Sequence) else axis


def _reduction(name: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    def reduce(x: Tensor, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Tensor:
        dims = tuple(range(x.ndim)) if axis is None else _axes(axis)
        return function(x, dim=dims, keepdim=keepdims)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"Reduce by {name} along axes, all by default."
    return reduce


max, min = _reduction("max", F["amax"]), _reduction("min", F["amin"])
mean = _reduction("mean", F["mean"])


def sum(
    x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False
) -> Tensor:
    """Sum along axes, all by default."""
    dims = tuple(range(x.ndim)) if axis is None else _axes(axis)
    return x.sum(dim=dims, keepdim=keepdims, dtype=dtype)


def prod(
    x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False
) -> Tensor:
    """Multiply along axes, all by default."""
    dims = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    made = x if dtype is None else x.to(dtype)
    for dim in sorted((d % x.ndim for d in dims), reverse=True):
        made = made.prod(dim, keepdim=keepdims)
    return made if x.ndim else made.clone()


def var(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """Variance along axes, all by default."""
    return x.var(dim=_axes(axis), correction=correction, keepdim=keepdims)


def std(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """Standard deviation along axes, all by default."""
    return x.std(dim=_axes(axis), correction=correction, keepdim=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Index of the largest element."""
    return x.argmax(dim=axis, keepdim=keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Index of the smallest element."""
    return x.argmin(dim=axis, keepdim=keepdims)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """Running sums along an axis, begun by a zero with `include_initial`."""
    dim = 0 if axis is None else axis
    made = x.cumsum(dim, dtype=dtype)
    if include_initial:
        shape = list(made.shape)
        shape[dim] = 1
        made = F["cat"]([made.new_zeros(shape), made], dim)
    return made


def sort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """Sort along an axis."""
    return x.sort(dim=axis, descending=descending, stable=stable)[0]


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """Indices that sort along an axis."""
    return x.sort(dim=axis, descending=descending, stable=stable)[1]


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join along an axis; None joins flattened arrays."""
    if axis is None:
        return F["cat"]([a.flatten() for a in arrays], 0)
    return F["cat"](list(arrays), axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join along a new axis."""
    return F["stack"](list(arrays), axis)


def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """Insert an axis of size one."""
    return x.unsqueeze(axis)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Remove axes of size one. ValueError for another size."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"cannot squeeze axes {axes} of shape {tuple(x.shape)}")
    return x.squeeze(axes)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Reorder axes."""
    return x.permute(axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Swap the last two axes."""
    return x.mT


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Reverse along axes, all by default."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return x.flip(axes)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Shift around along axes."""
    return x.roll(shift, axis)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element."""
    return x.repeat_interleave(repeats, dim=axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeat the whole array."""
    return x.tile(repetitions)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """Give the elements another shape."""
    return x.clone().reshape(shape) if copy else x.reshape(shape)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Pick along an axis."""
    return x.index_select(0 if axis is None else axis, indices)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Choose elementwise."""
    return F["where"](condition, x1, x2)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Limit to an interval."""
    return x.clone() if min is None and max is None else x.clamp(min, max)


def astype(x: Tensor, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """Convert to a dtype."""
    return x.to(dtype=dtype, device=device, copy=copy)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct values."""
    return x.unique()


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Inner products along an axis."""
    return (x1.conj() * x2).sum(axis)


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Tell whether promotion turns one dtype into another."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    return dtypes.promote_types(source, to) is to


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that arrays, dtypes and numbers promote to."""
    tensors = [
        creation.empty(1, dtype=a) if isinstance(a, dtypes.dtype) else a for a in arrays_and_dtypes
    ]
    made = tensors[0]
    for other in tensors[1:]:
        made = creation.empty(1, dtype=F["result_type"](made, other))
    return made.dtype


_KINDS = {
    "bool": ("bool",), "signed integer": ("int8", "int16", "int32", "int64"), "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"), "complex floating": ("complex64", "complex128"),
}  # fmt: skip
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Tell whether a dtype is of a kind: a dtype, a kind's name or a tuple of those."""
    if isinstance(kind, tuple):
        return _any(isdtype(dtype, k) for k in kind)
    return dtype.name in _KINDS[kind] if isinstance(kind, str) else dtype is kind


_any = builtins.any


class _Info:
    """What the standard's inspection functions tell."""

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
