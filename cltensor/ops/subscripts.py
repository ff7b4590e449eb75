"""Classifying the items of a subscript: integers, sequences that become index tensors, lists that stand for tuples.

Only classifies and converts; index.py applies the subscript.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import caller_level
from ..runtime import get_backend
from ..storage import Storage
from . import core
from .core import Tensor, is_tensor

MASKS = (dtypes.bool, dtypes.uint8)
_SEQUENCE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use x[tuple(seq)] "
    "instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], which will result either in an "
    "error or a different result"
)


def from_host(x: Tensor, array: np.ndarray) -> Tensor:
    """Copy an array to the device of `x`."""
    dt = dtypes.from_numpy(array.dtype)
    return core.make(
        Storage.from_host(get_backend(x.device), np.ascontiguousarray(array)),
        array.shape,
        dt,
        x.device,
    )


def from_sequence(x: Tensor, data: Any) -> Tensor:
    """Return an index tensor for a list, range or array: bool and uint8 stay masks, all else becomes int64."""
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if not isinstance(data, np.ndarray):
        data = [int(v) if is_tensor(v) else v for v in data]
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"expected sequences of equal lengths in an index ({error})") from None
    if array.dtype.kind in "OUS":
        raise TypeError(f"new(): invalid data type '{type(array.reshape(-1)[0]).__name__}'")
    if array.dtype != np.bool_ and array.dtype != np.uint8:
        array = array.astype(np.int64)
    return from_host(x, array)


def is_sequence(item: Any) -> bool:
    """Return whether an item is a sequence or an array, but not a tensor."""
    if is_tensor(item):
        return False
    return isinstance(item, list | tuple | range | str | np.ndarray | Sequence)


def as_tuple(index: Any) -> tuple | None:
    """Return the list as a tuple, with a warning, if torch (still) reads it as a tuple of indices; else None."""
    if isinstance(index, np.ndarray) or not is_sequence(index) or len(index) >= 32:
        return None
    if any(
        e is None or e is Ellipsis or isinstance(e, slice) or is_tensor(e) or is_sequence(e)
        for e in index
    ):
        warnings.warn(_SEQUENCE, UserWarning, stacklevel=caller_level())
        return tuple(index)
    return None


def type_name(item: Any) -> str:
    """Return the name of an item's type as torch's messages spell it."""
    kind = type(item)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def as_integer(item: Any) -> int | None:
    """Return an item that is one integer, of Python or numpy; None for any other."""
    if item.__class__ is int:
        return item
    if isinstance(
        item, bool | np.bool_ | float | complex | str | list | tuple | range | slice
    ) or is_tensor(item):
        return None
    if isinstance(item, np.ndarray) and (item.ndim or item.dtype.kind not in "iu"):
        return None
    return operator.index(item) if hasattr(item, "__index__") else None


def count_dims(items: Sequence[Any]) -> int:
    """Return how many dimensions of the tensor a subscript consumes."""
    n = 0
    for item in items:
        if is_tensor(item):
            n += item.ndim if item.dtype in MASKS else 1
        elif isinstance(item, np.ndarray) and item.dtype in (np.bool_, np.uint8):
            n += item.ndim
        elif item is not None and item is not Ellipsis and item is not True and item is not False:
            n += 1
    return n
