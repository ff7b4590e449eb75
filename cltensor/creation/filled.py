"""Tensors of one value or none: empty, zeros, ones, full, their `_like` and `new_` forms, and the identity matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes, layouts
from ..codegen.pointwise import IDENTITY, PointOp
from ..dtypes import dtype as DType
from ..lazy import Expr, Scalar
from ..ops import core, formats
from ..ops.core import Number
from ..ops.dims import whole
from ..ops.memory import Uninitialised
from ..ops.values import check_value, number
from ..runtime import device, get_backend
from ..size import Size
from ..storage import Storage
from ..tensor import Tensor
from .factory import Maker, factory, factory_into, prototyped, shape_of


def blank(shape: Size, dt: DType | None, dev: device) -> Tensor:
    """Make a tensor of undefined content, of the default dtype unless given."""
    backend = get_backend(dev)
    dt = dt or dtypes.get_default_dtype()
    backend.require(dt)
    nbytes = layouts.storage_bytes(shape, None, 0, dt.itemsize)
    if Uninitialised.filled:
        return filled(shape, dtypes.filler(dt), dt, dev)
    return core.Registry.dense(Storage.empty(backend, nbytes), shape, dt, dev)


def filled(
    shape: Size, value: Any, dt: DType | None, dev: device, like: Tensor | None = None
) -> Tensor:
    """Make a pending tensor with every element `value`; None leaves its elements undefined.

    `like`: a tensor that may have this dtype and device, which saves looking up the backend.
    """
    if value is None:
        return blank(shape, dt, dev)
    dt = dt or dtypes.get_default_dtype()
    if like is not None and like.dtype is dt and like.device is dev:
        backend = like._storage.backend
    else:
        backend = get_backend(dev)
        backend.require(dt)
    return core.pending(Expr(IDENTITY, dt, dt, shape, (Scalar(value),)), dev, shape, backend)


def ordered(t: Tensor, strides: tuple[int, ...] | None) -> Tensor:
    """Return a tensor of equal or undefined elements with other dense strides, unchanged for None."""
    return t if strides is None else core.make(t._storage, t.shape, t.dtype, t.device, strides)


@factory
def empty(
    *args: Any,
    size: Any = None,
    out: Any = None,
    memory_format: Any = None,
    dt: DType | None,
    dev: device,
) -> Tensor:
    """Make a tensor of undefined content."""
    shape = shape_of("empty", args, size)
    if out is not None:
        out.resize_(shape, memory_format=memory_format)
        return out.fill_(dtypes.filler(out.dtype)) if Uninitialised.filled else out
    return ordered(blank(shape, dt, dev), formats.strides("empty", memory_format, shape))


@factory_into
def zeros(*args: Any, size: Any = None, dt: DType | None, dev: device) -> Tensor:
    """Make a tensor of zeros."""
    for n in args:
        if n.__class__ is int and n < 0:
            raise RuntimeError("zeros: Dimension size must be non-negative.")
    return filled(shape_of("zeros", args, size), 0, dt, dev)


@factory_into
def ones(*args: Any, size: Any = None, dt: DType | None, dev: device) -> Tensor:
    """Make a tensor of ones."""
    return filled(shape_of("ones", args, size), 1, dt, dev)


def _full(function: str, size: Any, fill_value: Any, dt: DType | None, dev: device) -> Tensor:
    if isinstance(size, int):
        raise TypeError(
            f"{function}(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}"
        )
    shape = shape_of(function, (size,))
    fill_value = number(function, "fill_value", fill_value, 2)
    if dt is None and fill_value.__class__ is complex:  # never complex32, whatever the default
        dt = dtypes.promote_types(dtypes.complex64, dtypes.get_default_dtype())
    dt = dt or dtypes.scalar_dtype(fill_value)
    return filled(shape, check_value(fill_value, dt), dt, dev)


@factory_into
def full(size: Sequence[int], fill_value: Number, *, dt: DType | None, dev: device) -> Tensor:
    """Make a tensor filled with a number; its dtype follows the number."""
    return _full("full", size, fill_value, dt, dev)


@factory
def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dt: DType | None, dev: device
) -> Tensor:
    """Make a tensor of undefined content with given strides."""
    size, stride, dt = tuple(size), tuple(stride), dt or dtypes.get_default_dtype()
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    layouts.check_shape(size)
    if any(s < 0 for s in stride):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
        )
    nbytes = layouts.storage_bytes(size, stride, 0, dt.itemsize)
    storage = Storage.empty(get_backend(dev), nbytes)
    made = core.make(storage, Size(size), dt, dev, stride)
    return made.fill_(dtypes.filler(dt)) if Uninitialised.filled else made


@factory
def scalar_tensor(s: Number, *, dt: DType | None, dev: device) -> Tensor:
    """Make a 0-dim tensor of a number, of the default dtype."""
    return _full("scalar_tensor", (), s, dt or dtypes.get_default_dtype(), dev)


LARGE = 1 << 16  # elements
_EYE = PointOp("eye", "where(x / y == x % y, 1, 0)")


@factory_into
def eye(n: int, m: int | None = None, *, dt: DType | None, dev: device) -> Tensor:
    """Make a matrix with ones on the diagonal."""
    n = whole("eye", "n", n, 1)
    m = n if m is None else whole("eye", "m", m, 2)
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    if m < 0:
        raise RuntimeError(f"m must be greater or equal to 0, got {m}")
    made = dt or dtypes.get_default_dtype()
    # _EYE divides for each element; from this size on, writing zeros, then ones, is faster.
    if n * m >= LARGE:
        out = filled(Size((n, m)), 0, made, dev)
        core.make(out._storage, (min(n, m),), made, dev, (m + 1,)).fill_(1)
        return out
    args = (core.index_expression((n, m)), Scalar(max(m, 1)))
    return core.pending(Expr(_EYE, dtypes.int64, made, Size((n, m)), args), dev)


# ------------------------------------------------------------------------------------------- after another tensor


def _alike(input: Tensor, value: Any, dt: DType, dev: device, memory_format: Any) -> Tensor:
    """Make a filled tensor of the input's shape, with its order of dims in memory unless a memory format is asked for."""
    strides = formats.strides_like("empty_like", input, memory_format)
    return ordered(filled(input.shape, value, dt, dev), strides)


def _like(function: str, value: Any) -> Maker:
    def like(input: Tensor, *, memory_format: Any = None, dt: DType, dev: device) -> Tensor:
        return _alike(input, value, dt, dev, memory_format)

    like.__name__ = function
    like.__doc__ = "Make a tensor of the input's shape, dtype and device unless said otherwise."
    return prototyped(like)


empty_like = _like("empty_like", None)
zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)


@prototyped
def full_like(
    input: Tensor, fill_value: Number, *, memory_format: Any = None, dt: DType, dev: device
) -> Tensor:
    """Make a tensor of the input's shape filled with a number."""
    fill_value = number("full_like", "fill_value", fill_value, 2)
    return _alike(input, check_value(fill_value, dt), dt, dev, memory_format)


def _new(function: str, value: Any) -> Maker:
    def new(self: Tensor, *args: Any, size: Any = None, dt: DType, dev: device) -> Tensor:
        return filled(shape_of(function, args, size), value, dt, dev, self)

    new.__name__ = function
    new.__doc__ = "Make a tensor with this one's dtype and device unless said otherwise."
    return prototyped(new)


@prototyped
def new_full(
    self: Tensor, size: Sequence[int], fill_value: Number, *, dt: DType, dev: device
) -> Tensor:
    """Make a tensor filled with a number, with this one's dtype and device unless said otherwise."""
    return _full("new_full", size, fill_value, dt, dev)


@prototyped
def new_empty_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], *, dt: DType, dev: device
) -> Tensor:
    """Make a tensor of undefined content with given strides."""
    return empty_strided(size, stride, dtype=dt, device=dev)


for _method in (
    _new("new_empty", None),
    _new("new_zeros", 0),
    _new("new_ones", 1),
    new_full,
    new_empty_strided,
):
    setattr(Tensor, _method.__name__, _method)
