"""Python data and numpy arrays turned into memory: dtype inference, torch's errors for ragged or foreign data, and
encoding.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import dtype as DType
from ..ops import core
from ..ops.values import check_value
from ..tensor import Tensor

_PLAIN, _FLOAT, _INT = {float, int, bool}, {float}, {int}
_LARGE = 3e38  # no number below it becomes infinite in float32, of which numpy would warn


def encode(array: np.ndarray, dt: DType) -> np.ndarray:
    """Return an array's values in a dtype as contiguous memory; bfloat16 and complex32, which numpy lacks, as their
    bits. Numbers out of range become infinite, or wrap, without numpy's warnings.
    """
    if dt.np is not None and array.dtype == dt.np:
        return np.ascontiguousarray(array)
    with np.errstate(all="ignore"):
        return _converted(array, dt)


def _converted(array: np.ndarray, dt: DType) -> np.ndarray:
    if dt.np is not None:
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


def check_order(array: np.ndarray) -> None:
    """Raise ValueError where an array's bytes are not in the machine's order."""
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported."
        )


def parse(data: Any, dt: DType | None) -> tuple[np.ndarray, DType]:
    """Turn Python data into an array and find its dtype; torch's errors for ragged or foreign data."""
    if isinstance(data, np.ndarray | np.generic):
        array = np.asarray(data)
        if array.dtype == object or array.dtype.kind in "USMm":
            raise TypeError(
                f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
            )
        check_order(array)
        return array, dt or dtypes.from_numpy(array.dtype)
    kind = data.__class__
    if kind is list and (dt is None or dt.category == 2):  # most often a flat list
        leaves = {*map(type, data)}
        if leaves == _FLOAT:
            return np.array(data), dt or dtypes.get_default_dtype()
        if leaves == _INT and (array := np.array(data)).dtype == np.int64:
            return array, dt or dtypes.int64
    if kind is float or kind is int or kind is bool or kind is complex:
        found = dt or dtypes.scalar_dtype(data)
        if kind is float and found is dtypes.float32 and -_LARGE < data < _LARGE:
            return np.array(data, np.float32), found
        array = _numbers(np.array(data), found)
        if dt is not None and kind is not bool:
            _check_fits(array, found)
        return array, found
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if hasattr(data, "__array__") and not isinstance(data, Sequence):
        return parse(np.asarray(data), dt)
    if not _is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {kind.__name__}")
    kinds: list[DType] = []  # dtypes of leaves that are tensors or numpy arrays
    plain = _plain(data, dt, kinds)
    sizes = _sizes(plain)
    if 0 in sizes:
        return np.empty(sizes, np.float32), dt or dtypes.get_default_dtype()
    try:
        array = np.array(plain)
    except (ValueError, OverflowError) as error:
        raise ValueError(str(error)) from None
    if array.dtype.kind == "f" and _whole(plain):  # numpy makes floats of int64 and uint64 together
        array = np.array(plain, object)
    array = _numbers(array, dt)
    if array.dtype == object:
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
        if kinds:
            dt = functools.reduce(dtypes.promote_types, [*kinds, *_number_kinds(data)])
    return array, dt


def _whole(data: Any) -> bool:
    """Tell whether nested sequences hold integers alone."""
    if isinstance(data, list | tuple):
        return all(map(_whole, data))
    return isinstance(data, int)


def _numbers(array: np.ndarray, dt: DType | None) -> np.ndarray:
    """Convert integers beyond int64, which numpy keeps as objects or uint64, to a type that converts to `dt`.

    ValueError if `dt` is an integer dtype other than uint64, or None without a float among the numbers.
    """
    if dt is dtypes.uint64 and array.dtype.kind in "iu":
        return _unsigned(array)
    kinds = set(map(type, array.flat)) if array.dtype == object else {int}
    if array.dtype.kind not in "Ou" or not kinds <= {int, float, bool}:
        return array
    if dt is dtypes.uint64:
        return _unsigned(array)
    if dt.category == 1 if dt is not None else float not in kinds:
        raise ValueError("Overflow when unpacking long long")
    return array != 0 if dt is dtypes.bool else array.astype(np.float64)


def _unsigned(array: np.ndarray) -> np.ndarray:
    """Return integers as uint64; torch's OverflowError for those out of its range."""
    if array.min() < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if array.max() >= 1 << 64:
        raise OverflowError("int too big to convert")
    return array.astype(np.uint64)


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
            check_value(value.item(), dt, dt.name)


def _number_kinds(data: Any) -> Iterator[DType]:
    """Yield the dtypes of the Python numbers in nested sequences."""
    if isinstance(data, list | tuple):
        for x in data:
            yield from _number_kinds(x)
    elif data.__class__ in core.NUMBERS:
        yield dtypes.scalar_dtype(data)


def _plain(data: Any, dt: DType | None, kinds: list[DType]) -> Any:
    """Turn one-element tensors, arrays and other sequences inside nested sequences into numbers and lists.

    Appends the dtypes of tensors and arrays to `kinds`.
    """
    if not isinstance(data, list | tuple | Tensor | np.ndarray) and _is_sequence(data):
        data = _items(data)
    if isinstance(data, list | tuple):
        if {*map(type, data)} <= _PLAIN:
            return data
        if any(x is data for x in data):
            raise TypeError("new(): self-referential lists are incompatible")
        return [_plain(x, dt, kinds) for x in data]
    if isinstance(data, Tensor):
        kinds.append(data.dtype)
        return _element(data, dt or data.dtype)
    if isinstance(data, np.generic | np.ndarray):
        kinds.append(dtypes.from_numpy(data.dtype))
        return data.tolist()
    return data


def _is_sequence(data: Any) -> bool:
    kind = type(data)
    return isinstance(data, list | tuple) or (
        hasattr(kind, "__getitem__")
        and hasattr(kind, "__len__")
        and not isinstance(data, dict | str | bytes | np.generic)
    )


def _items(data: Any) -> list:
    try:
        return [data[i] for i in range(len(data))]
    except (TypeError, IndexError):
        name = type(data).__name__
        raise ValueError(f"could not determine the shape of object type '{name}'") from None


def _element(t: Tensor, dt: DType) -> Any:
    if t.numel() == 1:
        return t.item()
    if dt.category == 1 and t.dtype.category == 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    raise ValueError("only one element tensors can be converted to Python scalars")


def _sizes(data: Any) -> list[int]:
    """Return the shape of nested sequences, as their first items tell; torch's errors where other items have another
    one.
    """
    sizes: list[int] = []
    first = data
    while isinstance(first, list | tuple):
        sizes.append(len(first))
        if not first:
            return sizes
        first = first[0]
    if isinstance(first, str):
        raise ValueError("too many dimensions 'str'")
    _check_even(data, sizes, 0)
    return sizes


def _check_even(data: Any, sizes: list[int], dim: int) -> None:
    if not isinstance(data, list | tuple):
        raise TypeError("not a sequence")
    if len(data) != sizes[dim]:
        raise ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(data)})")
    if dim + 1 < len(sizes):
        for x in data:
            _check_even(x, sizes, dim + 1)
    elif list in (kinds := set(map(type, data))) or tuple in kinds:
        kind = "list" if list in kinds else "tuple"
        raise TypeError(
            f"'{kind}' object cannot be interpreted as an integer"
            if isinstance(data[0], int)
            else f"must be real number, not {kind}"
        )
