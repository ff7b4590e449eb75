"""Tensors of evenly spaced values: arange, range, linspace and logspace, as lazy expressions of an index."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .. import dtypes
from ..codegen.pointwise import PointOp
from ..dtypes import dtype as DType
from ..lazy import Expr, Scalar
from ..ops import core
from ..ops.row import FUNCTIONS
from ..ops.values import check_value
from ..runtime import device, get_backend
from ..size import Size
from ..tensor import Tensor
from .factory import factory_into

_START_STEP = PointOp("arange", "y + z * x")


def _real(dev: device) -> DType:
    """The widest real dtype of a device."""
    return dtypes.float64 if get_backend(dev).info.fp64 else dtypes.float32


def _ramp(count: int, start: Any, step: Any, dt: DType, dev: device) -> Tensor:
    """Make start + i * step, computed in int64 or float64 (float32 without fp64), then converted."""
    whole = dt.category < 2 or (isinstance(start, int) and isinstance(step, int))
    args = (core.index_expression((count,)), Scalar(start), Scalar(step))
    inner = dtypes.int64 if whole else _real(dev)
    return core.pending(Expr(_START_STEP, inner, dt, Size((count,)), args), dev)


def _check_step(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if (end - start) / step >= 1 << 63:
        raise RuntimeError("invalid size, possible overflow?")


def _ends(args: tuple, start: Any, end: Any, step: Any) -> tuple[Any, Any, Any]:
    """Read arange's forms: (end), (start, end) and (start, end, step), each by place or by name."""
    if (
        start is end is step and 0 < len(args) < 4 and all(type(v) is int for v in args)
    ):  # most calls
        return (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    named = {"start": start, "end": end, "step": step}
    named = {name: v for name, v in named.items() if v is not None}
    if len(args) + len(named) == 1 and "start" not in named and "step" not in named:
        placed = {"end": args[0]} if args else {}
    else:
        placed = dict(zip(("start", "end", "step"), args, strict=False))
        whole = {*placed, *named} >= {"start", "end"}
        if not whole or len(args) > 3 or placed.keys() & named.keys():
            types = [type(v).__name__ for v in args]
            types += [f"{name}={type(v).__name__}" for name, v in named.items()]
            raise TypeError(
                f"arange() received an invalid combination of arguments - got ({', '.join(types)})"
            )
    ends = {"start": 0, "step": 1, **placed, **named}
    for position, name in enumerate(ends if "start" in {*placed, *named} else ("end",)):
        v = ends[name]
        if isinstance(v, Tensor | np.generic):
            ends[name] = v = v.item()
        if not isinstance(v, int | float):
            raise TypeError(
                f"arange(): argument '{name}' (position {position + 1}) must be Number, not {type(v).__name__}"
            )
    return ends["start"], ends["end"], ends["step"]


@factory_into
def arange(
    *args: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    dt: DType | None,
    dev: device,
) -> Tensor:
    """Make the values from start (0) to end, which is excluded, in steps."""
    if start is end is step and len(args) == 1 and dt in (None, dtypes.int64):  # most calls
        count = args[0]
        if count.__class__ is int and 0 <= count < 1 << 31:
            return _ramp(count, 0, 1, dtypes.int64, dev)
    start, end, step = _ends(args, start, end, step)
    whole = all(isinstance(v, int) for v in (start, end, step))
    made = dt or (dtypes.int64 if whole else dtypes.get_default_dtype())
    if made.category in (0, 3):
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{made.scalar_name}'")
    _check_step(start, end, step)
    if made is dtypes.int64:
        for v in (start, end, step):
            check_value(v, made)
    elif whole and made.category == 2 and max(map(abs, (start, end, step))) >= 1 << 53:
        start, end, step = float(start), float(end), float(step)
    # For other dtypes the count follows from the numbers as given.
    if made in (dtypes.int64, dtypes.uint64):
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero")
    if any(isinstance(v, float) for v in (start, end, step)):
        count = math.ceil((end - start) / step)
    else:
        count = max(0, -((start - end) // step))
    if made.category < 2:
        start, step = int(start), int(step)
    return _ramp(count, start, step, made, dev)


@factory_into
def range(start: Any, end: Any, step: Any = 1, *, dt: DType | None, dev: device) -> Tensor:
    """Make the values from start to end inclusive (deprecated form of `arange`)."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=4,
    )
    made = dt or dtypes.get_default_dtype()
    if made.category < 2:
        start, end, step = int(start), int(end), int(step)
    _check_step(start, end, step)
    return _ramp(int((end - start) / step + 1), start, step, made, dev)


# The first half counts from `start`, the second from `end`, so that the last value is exactly `end`.
_LINEAR = PointOp("linspace", "where(x < u, y + w * x, z - w * (v - x))")
# Integers are truncated from sums that must be rounded only once, as by an fma. So the step is split in two, w + s,
# where `w` has so few bits that `w` times an index is exact.
_WHOLE = PointOp(
    "linspace_whole", "where(x < u, (y + w * x) + s * x, (z - w * (v - x)) - s * (v - x))"
)
_POWER = PointOp("logspace", "pow(y, x)")


def _spaced_dtype(dt: DType | None, start: Any, end: Any, function: str) -> DType:
    """Return the dtype of evenly spaced values: that asked for, else complex if an end is, else the default."""
    ends = [v for v in (start, end) if isinstance(v, complex)]
    if not ends:
        return dt or dtypes.get_default_dtype()
    found = dtypes.scalar_dtype(ends[0])
    if dt is not None and not dt.is_complex:
        raise RuntimeError(
            f"torch.{function}(): inferred dtype {dtypes.C_NAMES[found.name]} can't be safely cast to passed "
            f"dtype {dt.scalar_name}"
        )
    return dt or found


def _spaced_ends(start: Any, end: Any, function: str) -> list[Any]:
    """Read the ends, which may be tensors of one number."""
    wide = [
        f"{name} with {v.ndim} dimension(s)"
        for name, v in (("start", start), ("end", end))
        if isinstance(v, Tensor) and v.ndim
    ]
    if wide:
        raise RuntimeError(
            f"{function} only supports 0-dimensional start and end tensors, but got {' and '.join(wide)}."
        )
    return [v.item() if isinstance(v, Tensor) else v for v in (start, end)]


def _spaced(start: Any, end: Any, steps: Any, dt: DType, dev: device, function: str) -> Tensor:
    if isinstance(steps, np.integer) or (
        isinstance(steps, Tensor) and not steps.ndim and steps.dtype.category == 1
    ):
        steps = int(steps)
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
    whole, inner = dt.category == 1, _real(dev)
    if whole:
        for v in (start, end):
            check_value(v, dt)
        start, end = int(start), int(end)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    numbers = [start, end, step, max(steps // 2, 1), steps - 1]
    if whole:
        half = np.finfo(inner.np).nmant // 2
        mantissa, power = math.frexp(step)
        numbers[2] = math.ldexp(round(math.ldexp(mantissa, half)), power - half)
        numbers.append(step - numbers[2])
    args = (core.index_expression((steps,)), *map(Scalar, numbers))
    op = _WHOLE if whole else _LINEAR
    return core.pending(Expr(op, inner, dt, Size((steps,)), args), dev)


@factory_into
def linspace(
    start: Tensor | complex, end: Tensor | complex, steps: int, *, dt: DType | None, dev: device
) -> Tensor:
    """Make evenly spaced values, both ends included."""
    first, last = _spaced_ends(start, end, "linspace")
    made = _spaced_dtype(dt, first, last, "linspace")
    return _spaced(first, last, steps, made, dev, "linspace")


@factory_into
def logspace(
    start: Tensor | complex,
    end: Tensor | complex,
    steps: int,
    base: float = 10.0,
    *,
    dt: DType | None,
    dev: device,
) -> Tensor:
    """Make powers of the base with evenly spaced exponents."""
    first, last = _spaced_ends(start, end, "logspace")
    made = _spaced_dtype(dt, first, last, "logspace")
    inner = _real(dev).to_complex() if made.is_complex else _real(dev)
    if made.category == 1 and steps > 1:
        first, last = int(first), int(last)
    exponents = _spaced(first, last, steps, inner, dev, "logspace")
    if made.is_complex:
        return FUNCTIONS["pow"](base, exponents).to(made)
    power = core.expression(_POWER, inner, made, (exponents, float(base)), exponents.shape)
    return core.pending(power, dev)
