"""Tensors from nothing, from Python data and from numpy. Filled tensors and ranges are lazy expressions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dtypes, layouts
from .codegen.pointwise import IDENTITY, PointOp
from .dtypes import dtype as DType
from .lazy import Expr, Scalar
from .ops import convert, core
from .ops.row import FUNCTIONS
from .ops.shape import sizes
from .runtime import default_device, device, get_backend
from .size import Size
from .storage import Storage
from .tensor import Tensor


def _place(dev: Any) -> device:
    return convert.canonical(
        default_device() if dev is None else f"cuda:{dev}" if dev.__class__ is int else dev
    )


def _dtype(dt: Any, function: str) -> DType:
    if dt is None:
        return dtypes.get_default_dtype()
    if not isinstance(dt, DType):
        if dt in (float, int, bool, complex):
            return {
                float: dtypes.float64,
                int: dtypes.int64,
                bool: dtypes.bool,
                complex: dtypes.complex128,
            }[dt]
        raise TypeError(
            f"{function}(): argument 'dtype' must be torch.dtype, not {type(dt).__name__}"
        )
    return dt


def _finish(
    t: Tensor, requires_grad: bool, out: Tensor | None = None, function: str = ""
) -> Tensor:
    if out is not None:
        if out.shape != t.shape:
            if function == "arange" and out.numel():
                warnings.warn(
                    f"The number of elements in the out tensor of shape {list(out.shape)} is {out.numel()} which does not match the computed number of "
                    f"elements {t.numel()}. Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape ({t.numel()},).",
                    UserWarning, stacklevel=3,
                )  # fmt: skip
            out.resize_(t.shape)
        return core.deliver(t, out, function)
    if requires_grad:
        if t.dtype.category < 2:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        t._requires = True
    return t


def _shape(function: str, size: tuple, named: Any = None) -> Size:
    if named is not None and not size:
        size = (named,)
    return Size(layouts.check_shape(sizes(function, size, "size")))


# ------------------------------------------------------------------------------------------- filled


def empty(
    *args: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Make a tensor of undefined content."""
    shape = _shape("empty", args, size)
    if out is not None:
        return out.resize_(shape)
    return _finish(_empty(shape, _dtype(dtype, "empty"), _place(device)), requires_grad)


def _empty(shape: Size, dt: DType, dev: device) -> Tensor:
    backend = get_backend(dev)
    backend.require(dt)
    return core.make(Storage.empty(backend, layouts.numel(shape) * dt.itemsize), shape, dt, dev)


def filled(shape: Size, value: Any, dt: DType, dev: device) -> Tensor:
    """A lazy tensor whose every element is a number."""
    backend = get_backend(dev)
    backend.require(dt)
    return core.pending(Expr(IDENTITY, dt, dt, shape, (Scalar(value),)), dev)


def zeros(
    *args: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor of zeros."""
    if any(n.__class__ is int and n < 0 for n in args):
        raise RuntimeError("zeros: Dimension size must be non-negative.")
    return _finish(
        filled(_shape("zeros", args, size), 0, _dtype(dtype, "zeros"), _place(device)),
        requires_grad,
        out,
        "zeros",
    )


def ones(
    *args: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor of ones."""
    return _finish(
        filled(_shape("ones", args, size), 1, _dtype(dtype, "ones"), _place(device)),
        requires_grad,
        out,
        "ones",
    )


def full(
    size: Any,
    fill_value: Any,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor filled with a number; its dtype follows the number."""
    shape = _shape("full", (tuple(size),) if not isinstance(size, int) else (size,))
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    dt = dtypes.scalar_dtype(fill_value) if dtype is None else _dtype(dtype, "full")
    fill_value = convert.check_value(fill_value, dt)
    return _finish(filled(shape, fill_value, dt, _place(device)), requires_grad, out, "full")


def _like(function: str, value: Any) -> Any:
    def like(
        input: Tensor,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        return _finish(_alike(input, value, dtype, device, memory_format), requires_grad)

    like.__name__ = like.__qualname__ = function
    like.__doc__ = "Make a tensor of the input's shape, dtype and device unless said otherwise."
    return like


def _alike(input: Tensor, value: Any, dtype: Any, dev: Any, memory_format: Any = None) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    dt = input.dtype if dtype is None else dtype
    place = input.device if dev is None else _place(dev)
    t = _empty(input.shape, dt, place) if value is None else filled(input.shape, value, dt, place)
    if not input.is_contiguous() and "contiguous_format" not in str(memory_format):
        t._set_layout(input.shape, layouts.preserve_strides(tuple(input.shape), input._strides), 0)
        if value is not None:
            t = core.make(
                filled(Size((t.numel(),)), value, dt, place)._storage,
                input.shape,
                dt,
                place,
                t._strides,
            )
    return t


empty_like = _like("empty_like", None)
zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Make a tensor of the input's shape filled with a number."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    fill_value = convert.check_value(fill_value, input.dtype if dtype is None else dtype)
    return _finish(_alike(input, fill_value, dtype, device, memory_format), requires_grad)


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor of undefined content with given strides."""
    size, stride = tuple(size), tuple(stride)
    dt, dev = _dtype(dtype, "empty_strided"), _place(device)
    extent = layouts.storage_extent(size, stride, 0) if math.prod(size) else 0
    t = core.make(
        Storage.empty(get_backend(dev), extent * dt.itemsize), Size(size), dt, dev, stride
    )
    return _finish(t, requires_grad)


def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a 0-dim tensor of a number, of the default dtype."""
    return full(
        (), s, dtype=_dtype(dtype, "scalar_tensor"), device=device, requires_grad=requires_grad
    )


# ------------------------------------------------------------------------------------------- ranges

_START_STEP = PointOp("arange", "y + z * x")


def _ramp(count: int, start: Any, step: Any, dt: DType, dev: device) -> Tensor:
    """start + i * step in int64 or float64 (float32 without fp64), then converted."""
    whole = dt.category < 2 or (isinstance(start, int) and isinstance(step, int))
    inner = (
        dtypes.int64 if whole else dtypes.float64 if get_backend(dev).info.fp64 else dtypes.float32
    )
    index = core.index_expression((count,))
    return core.pending(
        Expr(_START_STEP, inner, dt, Size((count,)), (index, Scalar(start), Scalar(step))), dev
    )


def arange(
    *args: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make the values from start (0) to end, which is excluded, in steps."""
    values = [v.item() if isinstance(v, Tensor | np.generic) else v for v in args]
    if len(values) == 1:
        end = values[0]
    elif values:
        start, end = values[:2]
        step = values[2] if len(values) > 2 else step
    if end is None:
        raise TypeError("arange() received an invalid combination of arguments - got no end")
    start, step = 0 if start is None else start, 1 if step is None else step
    for v in (start, end, step):
        if not isinstance(v, int | float):
            raise TypeError(f"arange(): arguments must be Numbers, not {type(v).__name__}")
    dt = (
        _dtype(dtype, "arange")
        if dtype is not None
        else dtypes.int64
        if all(isinstance(v, int) for v in (start, end, step))
        else dtypes.get_default_dtype()
    )
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dt.category < 2:
        start, end, step = (
            int(start),
            (int(end) if dtype is not None and not isinstance(end, int) else end),
            int(step),
        )
        if step == 0:
            raise RuntimeError("step must be nonzero")
    span = (
        (end - start) / step
        if isinstance(end, float) or isinstance(start, float) or isinstance(step, float)
        else None
    )
    count = (
        math.ceil(span)
        if span is not None
        else max(0, -((start - end) // step) if step > 0 else (start - end - step - 1) // -step)
    )
    return _finish(_ramp(count, start, step, dt, _place(device)), requires_grad, out, "arange")


def range_(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make the values from start to end inclusive (deprecated form of `arange`)."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return _finish(
        _ramp(int((end - start) / step + 1), start, step, _dtype(dtype, "range"), _place(device)),
        requires_grad,
        out,
        "range",
    )


# Both halves count from their own end, so that the last value is exactly `end`.
_LINEAR = PointOp("linspace", "where(x < u, y + w * x, z - w * (v - x))")
_POWER = PointOp("logspace", "pow(y, x)")


def _spaced_dtype(dtype: Any, start: Any, end: Any, function: str) -> DType:
    """The dtype of a ramp: complex where an end is, else the default."""
    ends = [v for v in (start, end) if isinstance(v, complex)]
    dt = dtypes.scalar_dtype(ends[0]) if ends and dtype is None else _dtype(dtype, function)
    if ends and not dt.is_complex:
        raise RuntimeError(
            f"torch.{function}(): inferred dtype {dtypes.C_NAMES[dtypes.scalar_dtype(ends[0]).name]} can't be safely cast to passed "
            f"dtype {dt.scalar_name}"
        )
    return dt


def _spaced(start: Any, end: Any, steps: int, dt: DType, dev: device, function: str) -> Tensor:
    if not isinstance(steps, int):
        raise TypeError(f"{function}(): argument 'steps' must be int, not {type(steps).__name__}")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dt in (dtypes.bool, dtypes.complex32):
        raise NotImplementedError(f"\"linspace_cpu\" not implemented for '{dt.scalar_name}'")
    if dt.is_complex:
        real, imag = (
            _spaced(*ends, steps, dt.to_real(), dev, function)
            for ends in ((start.real, end.real), (start.imag, end.imag))
        )
        return FUNCTIONS["complex"](real, imag)
    inner = dtypes.float64 if get_backend(dev).info.fp64 else dtypes.float32
    if dt.category == 1:  # the ends are integers, the steps between them float32
        start, end = int(start), int(end)
    step = (end - start) / (steps - 1) if steps > 1 else 0
    if dt.category == 1:
        step = float(np.float32(step))
    index = core.index_expression((steps,))
    args = (
        index,
        Scalar(start),
        Scalar(end),
        Scalar(step),
        Scalar(max(steps // 2, 1)),
        Scalar(steps - 1),
    )
    made = dtypes.float32 if dt.category == 1 else dt
    return core.pending(Expr(_LINEAR, inner, made, Size((steps,)), args), dev).to(dt)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make evenly spaced values, both ends included."""
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    dt = _spaced_dtype(dtype, start, end, "linspace")
    t = _spaced(start, end, steps, dt, _place(device), "linspace")
    return _finish(t, requires_grad, out, "linspace")


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make powers of the base with evenly spaced exponents."""
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    dt, dev = _spaced_dtype(dtype, start, end, "logspace"), _place(device)
    inner = dtypes.float64 if get_backend(dev).info.fp64 else dtypes.float32
    inner = inner.to_complex() if dt.is_complex else inner
    if dt.category == 1 and steps > 1:
        start, end = int(start), int(end)
    exponents = _spaced(start, end, steps, inner, dev, "logspace")
    if dt.is_complex:
        t = FUNCTIONS["pow"](base, exponents).to(dt)
    else:
        power = core.expression(_POWER, inner, dt, (exponents, float(base)), exponents.shape)
        t = core.pending(power, dev)
    return _finish(t, requires_grad, out, "logspace")


_EYE = PointOp("eye", "where(x / y == x % y, 1, 0)")


def eye(
    n: int,
    m: int | None = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a matrix with ones on the diagonal."""
    m = n if m is None else m
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    if m < 0:
        raise RuntimeError(f"m must be greater or equal to 0, got {m}")
    dt = _dtype(dtype, "eye")
    index = core.index_expression((n, m))
    t = core.pending(
        Expr(_EYE, dtypes.int64, dt, Size((n, m)), (index, Scalar(max(m, 1)))), _place(device)
    )
    return _finish(t, requires_grad, out, "eye")


# ------------------------------------------------------------------------------------------- windows


def _window(function: str, shape: Any) -> None:
    def window(
        window_length: int,
        periodic: bool = True,
        *args: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        **named: Any,
    ) -> Tensor:
        dt = _dtype(dtype, function)
        if dt.category != 2:
            raise RuntimeError(f"{function} expects floating point dtypes, got: {dt!r}")
        if window_length < 0:
            raise RuntimeError(
                f"{function} requires non-negative window_length, got window_length={window_length}"
            )
        if window_length < 2:
            return ones(window_length, dtype=dt, device=device, requires_grad=requires_grad)
        points = window_length + bool(periodic)
        wide = dtypes.float32 if dt.itemsize < 4 else dt
        t = shape(arange(points, dtype=wide, device=device), points - 1, *args, **named)[
            :window_length
        ]
        return _finish(t.contiguous().to(dt), requires_grad)

    window.__name__ = window.__qualname__ = function
    window.__doc__ = "Make a window function: symmetric of `window_length` points, or the first points of a period."
    FUNCTIONS[function] = window


def _hamming(i: Tensor, last: int, alpha: float = 0.54, beta: float = 0.46) -> Tensor:
    return alpha - beta * (i * (2 * math.pi / last)).cos()


def _kaiser(i: Tensor, last: int, beta: float = 12.0) -> Tensor:
    half = last / 2
    return (beta * (1 - ((i - half) / half) ** 2).clamp_min(0).sqrt()).i0() / FUNCTIONS["full"](
        (), beta, dtype=i.dtype, device=i.device
    ).i0()


_window("hann_window", lambda i, last: _hamming(i, last, 0.5, 0.5))
_window("hamming_window", _hamming)
_window("bartlett_window", lambda i, last: 1 - (i * (2 / last) - 1).abs())
_window(
    "blackman_window",
    lambda i, last: (
        0.42 - 0.5 * (i * (2 * math.pi / last)).cos() + 0.08 * (i * (4 * math.pi / last)).cos()
    ),
)
_window("kaiser_window", _kaiser)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Make the matrix of powers of a vector's elements, the highest (or the 0th, if `increasing`) first."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.numel() if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    wide = x.to(dtypes.int64) if x.dtype.category < 2 else x
    powers = [wide.new_ones((x.numel(), min(n, 1)))] + (
        [wide.unsqueeze(1).expand(-1, n - 1).cumprod(1)] if n > 1 else []
    )
    result = FUNCTIONS["cat"](powers, 1)
    return result if increasing else result.flip(1)


FUNCTIONS["vander"] = vander

# ------------------------------------------------------------------------------------------- from data


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Copy numbers, nested sequences, arrays or tensors into a new tensor; the dtype is inferred unless given."""
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        t = data.detach().to(
            device=data.device if device is None else device, dtype=dtype or data.dtype, copy=True
        )
        return _finish(t, requires_grad)
    return _finish(
        _from_data(data, None if dtype is None else _dtype(dtype, "tensor"), _place(device)),
        requires_grad,
    )


def _from_data(data: Any, dt: DType | None, dev: device) -> Tensor:
    array, dt = parse(data, dt)
    backend = get_backend(dev)
    backend.require(dt)
    if not isinstance(data, np.ndarray) or (array.flags.c_contiguous and array.size):
        return core.make(Storage.from_host(backend, encode(array, dt)), Size(array.shape), dt, dev)
    steps = tuple(s // array.itemsize for s in array.strides)
    if not array.size or any(s < 0 for s in steps):
        return core.make(
            Storage.from_host(backend, encode(array, dt)),
            Size(array.shape),
            dt,
            dev,
            None if array.size else steps,
        )
    # A dense order of dimensions other than row-major is kept.
    strides = layouts.preserve_strides(array.shape, steps)
    order = sorted(range(array.ndim), key=lambda d: -strides[d])
    return core.make(
        Storage.from_host(backend, encode(array.transpose(order), dt)),
        Size(array.shape),
        dt,
        dev,
        strides,
    )


def encode(array: np.ndarray, dt: DType) -> np.ndarray:
    """Contiguous memory of an array's values in a dtype, also in those numpy does not have."""
    if dt.np is not None:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if array.dtype.kind in "fc" and dt.category == 1:
                array = array.real.astype(np.int64)
            elif array.dtype.kind == "c" and dt.category == 2:
                array = array.real
            elif dt.category == 0:
                return np.ascontiguousarray(array != 0)
            return np.ascontiguousarray(array, dt.np)
    if dt is dtypes.bfloat16:
        value = np.ascontiguousarray(array.real if array.dtype.kind == "c" else array, np.float32)
        bits = value.view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(value), np.uint16(0x7FC0), rounded)
    pair = np.ascontiguousarray(array, np.complex64)
    return pair.view(np.float32).astype(np.float16)


def parse(data: Any, dt: DType | None) -> tuple[np.ndarray, DType]:
    """Turn Python data into an array and find its dtype; torch's errors for ragged or foreign data."""
    if isinstance(data, np.ndarray | np.generic):
        array = np.asarray(data)
        if array.dtype == object or array.dtype.kind in "USMm":
            raise TypeError(
                f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
            )
        array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        return array, dt or dtypes.from_numpy(array.dtype)
    kind = data.__class__
    if kind is float or kind is int or kind is bool or kind is complex:
        found = dt or dtypes.scalar_dtype(data)
        if kind is int and not -(1 << 63) <= data < 1 << 64:
            raise RuntimeError("Overflow when unpacking long long")
        array = np.array(data)
        if dt is not None and kind is not bool:
            _check_fits(array, found)
        return array, found
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if hasattr(data, "__array__") and not isinstance(data, Sequence):
        return parse(np.asarray(data), dt)
    if not isinstance(data, list | tuple | Sequence):
        if hasattr(data, "__float__"):
            return parse(float(data), dt)
        raise RuntimeError(f"Could not infer dtype of {kind.__name__}")
    plain = _plain(data)
    _check_even(plain)
    try:
        array = np.array(plain)
    except (ValueError, OverflowError) as error:
        raise ValueError(str(error)) from None
    if not array.size:
        return array.astype(np.float32), dt or dtypes.get_default_dtype()
    if array.dtype == object:
        if isinstance(array.reshape(-1)[0], int):
            raise RuntimeError("Overflow when unpacking long long")
        bad = next((v for v in array.reshape(-1) if not isinstance(v, int | float | complex)), None)
        raise (
            TypeError(f"new(): invalid data type '{type(bad).__name__}'")
            if isinstance(bad, str)
            else RuntimeError(f"Could not infer dtype of {type(bad).__name__}")
        )
    if array.dtype.kind in "US":
        raise TypeError("new(): invalid data type 'str'")
    if dt is not None:
        _check_fits(array, dt)
    else:
        dt = {
            "b": dtypes.bool,
            "i": dtypes.int64,
            "u": dtypes.int64,
            "f": dtypes.get_default_dtype(),
            "c": dtypes.get_default_complex_dtype(),
        }[array.dtype.kind]
        first = _first(data)
        if isinstance(first, Tensor | np.generic | np.ndarray):
            dt = (
                first.dtype
                if isinstance(first, Tensor)
                else dtypes.from_numpy(first.dtype)
                if array.dtype.kind == np.dtype(first.dtype).kind
                else dt
            )
    return array, dt


def _check_fits(array: np.ndarray, dt: DType) -> None:
    """Raise torch's errors for Python numbers that a dtype cannot hold."""
    if array.dtype.kind == "c" and dt.category in (1, 2):
        raise TypeError(
            "must be real number, not complex"
            if dt.category == 2
            else "'complex' object cannot be interpreted as an integer"
        )
    if dt.category == 1 and array.dtype.kind in "iuf":
        for value in (array.min(), array.max()):
            convert.check_value(value.item(), dt, dt.name)


def _first(data: Any) -> Any:
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return data


def _plain(data: Any) -> Any:
    """Nested sequences with tensors inside turned into lists."""
    if isinstance(data, list | tuple):
        if any(x.__class__ not in (float, int, bool) for x in data):
            return [_plain(x) for x in data]
        return data
    if isinstance(data, Tensor):
        return data.tolist()
    if isinstance(data, range):
        return list(data)
    return data.tolist() if isinstance(data, np.ndarray) else data


def _check_even(data: Any, depth: int = 0) -> None:
    if not isinstance(data, list | tuple) or not data or not isinstance(data[0], list | tuple):
        if isinstance(data, list | tuple) and any(isinstance(x, list | tuple) for x in data):
            bad = next(x for x in data if isinstance(x, list | tuple))
            raise TypeError(f"must be real number, not {type(bad).__name__}")
        return
    n = len(data[0])
    for x in data:
        if not isinstance(x, list | tuple):
            raise ValueError(f"expected sequence of length {n} at dim {depth + 1} (got 0)")
        if len(x) != n:
            raise ValueError(f"expected sequence of length {n} at dim {depth + 1} (got {len(x)})")
        _check_even(x, depth + 1)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor, sharing memory with arrays and tensors where nothing has to change."""
    if isinstance(data, Tensor):
        return data.to(device=data.device if device is None else device, dtype=dtype)
    if isinstance(data, np.ndarray) and data.flags.writeable and data.dtype.isnative:
        t = from_numpy(data)
        return t.to(device=_place(device), dtype=dtype)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor of any array-like object, sharing memory unless `copy` asks otherwise."""
    t = as_tensor(obj, dtype, device)
    if copy and isinstance(obj, Tensor | np.ndarray):
        t = t.clone()
    return _finish(t.detach() if isinstance(obj, Tensor) and requires_grad else t, requires_grad)


class _Memory:
    """Bytes that a numpy array covers, keeping the array alive."""

    def __init__(self, array: np.ndarray, address: int, nbytes: int) -> None:
        self.array = array
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Make a cpu tensor on a numpy array's memory; both see every write. Strides are kept."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if not ndarray.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported."
        )
    _, dt = parse(ndarray, None)
    if any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if any(
        s % ndarray.itemsize for s, n in zip(ndarray.strides, ndarray.shape, strict=True) if n > 1
    ):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this tensor will result in "
            "undefined behavior. You may want to copy the array to protect its data or make it writable before converting it to a tensor. This type of "
            "warning will be suppressed for the rest of this program.",
            UserWarning, stacklevel=2,
        )  # fmt: skip
    dev = convert.canonical("cpu")
    backend = get_backend(dev)
    strides = tuple(s // ndarray.itemsize for s in ndarray.strides)
    if not ndarray.size:
        return core.make(Storage.empty(backend, 0), Size(ndarray.shape), dt, dev, strides)
    if not backend.info.host_shared:
        return core.make(
            Storage.from_host(backend, np.ascontiguousarray(ndarray)), Size(ndarray.shape), dt, dev
        )
    extent = layouts.storage_extent(ndarray.shape, strides, 0) * ndarray.itemsize
    memory = np.asarray(_Memory(ndarray, ndarray.__array_interface__["data"][0], extent))
    storage = Storage(backend, backend.wrap(memory), extent)
    storage.pinned = backend.exports = True
    return core.make(storage, Size(ndarray.shape), dt, dev, strides)


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Make a 1-D tensor on the memory of an object with Python's buffer protocol."""
    return _finish(from_numpy(np.frombuffer(buffer, dtype.np, count, offset)), requires_grad)


# ------------------------------------------------------------------------------------------- constructors by type


def legacy_new(args: tuple, dt: DType | None, dev: Any) -> Tensor:
    """What `Tensor(…)`, `FloatTensor(…)` and `t.new(…)` make: sizes as ints or a Size, else data."""
    dt = dt or dtypes.get_default_dtype()
    place = _place(dev)
    if not args:
        return _empty(Size((0,)), dt, place)
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor):
        return first.detach().to(place, dt) if first.dtype is not dt else first.alias()
    if (isinstance(first, Size) and len(args) == 1) or all(
        isinstance(a, int) and not isinstance(a, bool) for a in args
    ):
        return _empty(_shape("new", args), dt, place)
    if len(args) == 1 and isinstance(first, list | tuple | np.ndarray | Sequence):
        return _from_data(first, dt, place)
    got = ", ".join(type(a).__name__ for a in args)
    raise TypeError(
        f"new() received an invalid combination of arguments - got ({got}), but expected one of: (*sizes) (Tensor other) (Sequence data)"
    )


def _new_like(name: str, value: Any) -> None:
    def method(
        self: Tensor,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
        **named: Any,
    ) -> Tensor:
        if "size" in named:
            size = (named["size"],)
        shape, dt = _shape(name, size), self.dtype if dtype is None else dtype
        place = self.device if device is None else _place(device)
        return _finish(
            _empty(shape, dt, place) if value is None else filled(shape, value, dt, place),
            requires_grad,
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Make a tensor with this one's dtype and device unless said otherwise."
    setattr(Tensor, name, method)


_new_like("new_empty", None)
_new_like("new_zeros", 0)
_new_like("new_ones", 1)


def _new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor filled with a number, with this one's dtype and device unless said otherwise."""
    return full(
        size,
        fill_value,
        dtype=dtype or self.dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


def _new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Copy data into a tensor with this one's dtype and device unless said otherwise."""
    place = self.device if device is None else device
    if isinstance(data, Tensor):
        return tensor(data, dtype=dtype or data.dtype, device=place, requires_grad=requires_grad)
    return tensor(data, dtype=dtype or self.dtype, device=place, requires_grad=requires_grad)


def _new_empty_strided(
    self: Tensor,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Make a tensor of undefined content with given strides."""
    return empty_strided(
        size,
        stride,
        dtype=dtype or self.dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


def _new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """Construct as this tensor's type does."""
    return legacy_new(args, self.dtype, self.device if device is None else device)


for _name, _fn in {
    "new_full": _new_full,
    "new_tensor": _new_tensor,
    "new_empty_strided": _new_empty_strided,
    "new": _new,
}.items():
    setattr(Tensor, _name, _fn)

for _fn in (
    empty,
    zeros,
    ones,
    full,
    empty_like,
    zeros_like,
    ones_like,
    full_like,
    empty_strided,
    scalar_tensor,
    arange,
    linspace,
    logspace,
    eye,
    tensor,
    as_tensor,
    asarray,
    from_numpy,
    frombuffer,
):
    FUNCTIONS[_fn.__name__] = _fn
FUNCTIONS["range"] = range_
