"""`cltensor.testing`: `assert_close`, whose errors say how values differ, and `make_tensor` for random test inputs."""

from __future__ import annotations

import cmath
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import dtypes
from .creation import as_tensor, tensor
from .ops.row import FUNCTIONS
from .tensor import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (0.016, 1e-5), dtypes.float32: (1.3e-6, 1e-5), dtypes.float64: (1e-7, 1e-7),
    dtypes.complex32: (1e-3, 1e-5), dtypes.complex64: (1.3e-6, 1e-5), dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip
# The default tolerances of `assert_allclose`.
_LOOSE = {
    dtypes.float16: (1e-3, 1e-3),
    dtypes.float32: (1e-4, 1e-5),
    dtypes.float64: (1e-5, 1e-8),
}
_NUMBER_DTYPES = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}


class _Mismatch(Exception):
    """A difference: the error to raise, and the keys that lead to it in nested containers (`at`)."""

    def __init__(self, kind: type[Exception], text: str, at: tuple[Any, ...]) -> None:
        super().__init__(text)
        self.kind, self.text, self.at = kind, text, at

    def error(self, msg: Any) -> Exception:
        if isinstance(msg, str):
            return self.kind(msg)
        text = self.text
        if self.at:
            text += f"\n\nThe failure occurred for item {''.join(str([key]) for key in self.at)}"
        return self.kind(msg(text) if callable(msg) else text)


class _Options:
    def __init__(self, rtol: float | None, atol: float | None, **flags: bool) -> None:
        self.rtol, self.atol, self.flags = rtol, atol, flags

    def tolerances(self, kinds: Sequence[dtypes.dtype], at: tuple[Any, ...]) -> tuple[float, float]:
        """Return (rtol, atol): as given, or the loosest defaults of the dtypes."""
        if (self.rtol is None) != (self.atol is None):
            missing = "rtol" if self.rtol is None else "atol"
            text = (
                f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
            )
            raise _Mismatch(ValueError, text, at)
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        pairs = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(p[0] for p in pairs), max(p[1] for p in pairs)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless `|actual - expected| <= atol + rtol * |expected|`, element by element.

    Takes tensors, arrays, numbers, and sequences and mappings of those. Tolerances follow the dtypes where none are given.
    Shapes must agree, and so must devices, dtypes and layouts unless their checks are switched off. `msg` replaces the
    error's text, or is a function of it. TypeError for values that cannot be compared.

    >>> torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-8)
    """
    __tracebackhide__ = True
    options = _Options(
        rtol, atol, allow_subclasses=allow_subclasses, equal_nan=equal_nan, check_device=check_device,
        check_dtype=check_dtype, check_layout=check_layout, check_stride=check_stride,
    )  # fmt: skip
    found: _Mismatch | None = None
    try:
        for pair in _pairs(actual, expected, (), options):
            try:
                pair()
            except _Mismatch as mismatch:
                found = found or mismatch
    except _Mismatch as mismatch:
        raise mismatch.error(None) from None
    if found is not None:
        raise found.error(msg) from None


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Deprecated form of `assert_close`: makes tensors first, ignores dtypes, is looser, takes NaN as equal to NaN."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
        "Please use `torch.testing.assert_close()` instead. "
        "You can find detailed upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = tensor(actual)
    if not isinstance(expected, Tensor):
        expected = tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_LOOSE.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*pairs, strict=True))
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )


def _pairs(a: Any, b: Any, at: tuple[Any, ...], options: _Options) -> list[Callable[[], None]]:
    """Return the comparisons to make for two values, in order. Raises for values that cannot be compared at all."""
    sequences = all(isinstance(v, Sequence) and not isinstance(v, str) for v in (a, b))
    if sequences:
        if len(a) != len(b):
            text = f"The length of the sequences mismatch: {len(a)} != {len(b)}"
            raise _Mismatch(AssertionError, text, at)
        return [p for i in range(len(a)) for p in _pairs(a[i], b[i], (*at, i), options)]
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            raise _Mismatch(AssertionError, _key_text(set(a), set(b)), at)
        keys: Any = list(a)
        try:
            keys = sorted(keys)
        except Exception:  # keys without an order
            pass
        return [p for key in keys for p in _pairs(a[key], b[key], (*at, key), options)]
    return [_pair(a, b, at, options)]


def _key_text(actual: set[Any], expected: set[Any]) -> str:
    text = "The keys of the mappings do not match:"
    for name, keys in (
        ("Missing keys in the actual mapping", expected - actual),
        ("Additional keys in the actual mapping", actual - expected),
    ):
        if keys:
            text += f"\n{name}: {sorted(keys)}"
    return text


def _pair(a: Any, b: Any, at: tuple[Any, ...], options: _Options) -> Callable[[], None]:
    if a is None or b is None:
        return lambda: _require(a is b, f"None mismatch: {a} is not {b}", at)
    if all(isinstance(v, bool | np.bool_) for v in (a, b)):
        same = bool(a) is bool(b)
        return lambda: _require(same, f"Booleans mismatch: {bool(a)} is not {bool(b)}", at)
    if all(isinstance(v, int | float | complex | np.number) for v in (a, b)):
        x, y = (v.item() if isinstance(v, np.number) else v for v in (a, b))
        limits = options.tolerances([_NUMBER_DTYPES.get(type(v), dtypes.int64) for v in (x, y)], at)
        return lambda: _compare_numbers(x, y, *limits, at, options)
    x, y = _tensors(a, b, at, options)
    limits = options.tolerances([x.dtype, y.dtype], at)
    return lambda: _compare_tensors(x, y, *limits, at, options)


def _tensors(a: Any, b: Any, at: tuple[Any, ...], options: _Options) -> tuple[Tensor, Tensor]:
    related = isinstance(a, type(b)) or isinstance(b, type(a))
    if related and (options.flags["allow_subclasses"] or type(a) is type(b)):
        try:
            x, y = (v if isinstance(v, Tensor) else as_tensor(v) for v in (a, b))
            return x, y
        except Exception:  # not convertible to a tensor
            pass
    text = f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}."
    raise _Mismatch(TypeError, text, at)


def _require(condition: bool, text: str, at: tuple[Any, ...]) -> None:
    if not condition:
        raise _Mismatch(AssertionError, text, at)


def _compare_numbers(
    a: Any, b: Any, rtol: float, atol: float, at: tuple[Any, ...], options: _Options
) -> None:
    if options.flags["check_dtype"]:
        same = type(a) is type(b)
        _require(same, f"The (d)types do not match: {type(a)} != {type(b)}.", at)
    if a == b or (options.flags["equal_nan"] and cmath.isnan(a) and cmath.isnan(b)):
        return
    difference = abs(a - b)
    close = cmath.isfinite(difference) and difference <= atol + rtol * abs(b)
    _require(close, _scalar_text(a, b, rtol, atol), at)


def _scalar_text(a: Any, b: Any, rtol: float, atol: float) -> str:
    absolute = abs(a - b)
    relative = math.inf if b == 0 else absolute / abs(b)
    exact = rtol == 0 and atol == 0
    lines = [
        f"Scalars are not {'equal' if exact else 'close'}!\n",
        f"Expected {b} but got {a}.",
        f"Absolute difference: {absolute}" + ("" if exact else f" (up to {atol} allowed)"),
        f"Relative difference: {relative}" + ("" if exact else f" (up to {rtol} allowed)"),
    ]
    return "\n".join(lines)


def _compare_tensors(
    a: Tensor, b: Tensor, rtol: float, atol: float, at: tuple[Any, ...], options: _Options
) -> None:
    flags = options.flags
    strides = flags["check_stride"] and a._strided and b._strided
    for name, x, y, wanted in (
        ("shape", a.shape, b.shape, True),
        ("layout", a.layout, b.layout, flags["check_layout"]),
        ("stride()", *((a.stride(), b.stride()) if strides else ((), ())), strides),
        ("device", a.device, b.device, flags["check_device"]),
        ("dtype", a.dtype, b.dtype, flags["check_dtype"]),
    ):
        text = f"The values for attribute '{name}' do not match: {x} != {y}."
        _require(not wanted or x == y, text, at)
    if a.is_meta or b.is_meta:  # without values
        return
    a, b = a.detach(), b.detach()
    if a.device != b.device:
        a, b = a.cpu(), b.cpu()
    if a.dtype is not b.dtype:
        joint = dtypes.promote_types(a.dtype, b.dtype)
        a, b = a.to(joint), b.to(joint)
    if a.layout is not b.layout:
        a, b = (t if t._strided else t.to_dense() for t in (a, b))
    for what, x, y, limits in _parts(a, b, rtol, atol, at):
        _compare_values(x, y, *limits, flags["equal_nan"], at, what)


_Part = tuple[str, Tensor, Tensor, tuple[float, float]]
_KINDS = {
    "torch.sparse_coo": ("COO", ("_indices", "_values")),
    "torch.sparse_csr": ("CSR", ("crow_indices", "col_indices", "values")),
    "torch.sparse_csc": ("CSC", ("ccol_indices", "row_indices", "values")),
}


def _parts(a: Tensor, b: Tensor, rtol: float, atol: float, at: tuple[Any, ...]) -> Iterator[_Part]:
    """Yield the parts to compare of two tensors of one layout: (name in errors, a's, b's, (rtol, atol))."""
    if a._strided:
        yield "Tensor-likes", a, b, (rtol, atol)
        return
    name, parts = _KINDS[str(a.layout)]
    text = f"The number of sparse dimensions in sparse {name} tensors does not match: {a.sparse_dim()} != {b.sparse_dim()}"
    _require(a.sparse_dim() == b.sparse_dim(), text, at)
    text = f"The number of specified values in sparse {name} tensors does not match: {a._nnz()} != {b._nnz()}"
    _require(a._nnz() == b._nnz(), text, at)
    for part in parts:
        exact = part.endswith("indices")
        what = f"Sparse {name} {part.lstrip('_')}"
        yield what, getattr(a, part)(), getattr(b, part)(), (0.0, 0.0) if exact else (rtol, atol)


def _compare_values(
    a: Tensor, b: Tensor, rtol: float, atol: float, equal_nan: bool, at: tuple[Any, ...], what: str
) -> None:
    matches = FUNCTIONS["isclose"](a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(matches.all()):
        return
    text = (
        _tensor_text(a, b, matches, rtol, atol, what)
        if a.ndim
        else _scalar_text(a.item(), b.item(), rtol, atol)
    )
    raise _Mismatch(AssertionError, text, at)


def _tensor_text(a: Tensor, b: Tensor, matches: Tensor, rtol: float, atol: float, what: str) -> str:
    total = matches.numel()
    wrong = total - int(matches.sum())
    if a.dtype.category < 2:
        a, b = a.to(dtypes.int64), b.to(dtypes.int64)
    absolute = (a - b).abs().masked_fill(matches, 0)
    relative = (absolute / b.abs()).masked_fill(matches, 0)
    exact = rtol == 0 and atol == 0
    lines = [
        f"{what} are not {'equal' if exact else 'close'}!\n",
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})",
    ]
    for name, difference, limit in (("absolute", absolute, atol), ("relative", relative, rtol)):
        flat = difference.flatten()
        place = int(flat.argmax())
        index = tuple(int(i) for i in np.unravel_index(place, tuple(a.shape)))
        allowed = "" if exact else f" (up to {limit} allowed)"
        lines.append(f"Greatest {name} difference: {flat[place].item()} at index {index}{allowed}")
    return "\n".join(lines)


# ------------------------------------------------------------------------------------- inputs


def make_tensor(
    *shape: Any,
    dtype: dtypes.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Make a tensor of numbers uniform in [low, high): [-9, 9) by default, clamped to the dtype's range.

    `exclude_zero` replaces zeros by the smallest positive (normal) number; `noncontiguous` leaves gaps in memory.
    ValueError for bounds that are NaN, in the wrong order or out of the dtype's range.
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and {memory_format=}"
        )
    if requires_grad and dtype.category < 2:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}"
        )
    gaps = noncontiguous and math.prod(shape) > 1
    made = _filled((*shape[:-1], 2 * shape[-1]) if gaps else shape, dtype, device, low, high)
    if gaps:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made.masked_fill_(made.eq(0), 1 if dtype.category < 2 else dtypes.finfo(dtype).tiny)
    return made.requires_grad_(requires_grad) if dtype.category >= 2 else made


def _filled(shape: Any, dt: dtypes.dtype, device: Any, low: Any, high: Any) -> Tensor:
    if dt is dtypes.bool:
        a, b = _bounds(dt, low, high, (0, 2), (0, 2))
        return FUNCTIONS["randint"](a, b, shape, device=device, dtype=dt)
    if dt.category == 1:
        info = dtypes.iinfo(dt)
        top = info.max + (dt not in (dtypes.int64, dtypes.uint64))
        a, b = _bounds(dt, low, high, (info.min, top), (-9, 10))
        return FUNCTIONS["randint"](a, b, shape, device=device, dtype=dt)
    limits = dtypes.finfo(dt)
    a, b = _bounds(dt, low, high, (limits.min, limits.max), (-9, 9))
    made = FUNCTIONS["empty"](shape, device=device, dtype=dt)
    numbers = FUNCTIONS["view_as_real"](made) if dt.is_complex else made
    if b - a >= limits.max:
        numbers.uniform_(a / 2, b / 2).mul_(2)
    else:
        numbers.uniform_(a, b)
    return made


def _bounds(
    dt: dtypes.dtype, low: Any, high: Any, limits: tuple[Any, Any], default: tuple[Any, Any]
) -> tuple[Any, Any]:
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if low != low or high != high:  # not math.isnan: ints may be too large for a float
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dt.category >= 2:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and "
            "will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < limits[0] or low >= limits[1]:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dt} only supports "
            f"[{limits[0]}, {limits[1]})"
        )
    low, high = (min(max(v, limits[0]), limits[1]) for v in (low, high))
    return (math.ceil(low), math.ceil(high)) if dt.category < 2 else (low, high)
