"""Tensors from Python data and arrays: copied, or sharing their memory where no conversion is needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes, layouts
from ..dtypes import dtype as DType
from ..errors import warn_once
from ..ops import convert, core
from ..ops.convert import place
from ..ops.dims import check_flag
from ..runtime import device, get_backend
from ..size import Size, sized
from ..storage import Storage, new_storage
from ..storages import TypedStorage, UntypedStorage
from ..tensor import Tensor
from .factory import finish
from .parse import check_order, encode, parse

_PYTHON = {float, int, bool, list, tuple}  # what `tensor` gets most often

lenders: list[Callable[[Any], Tensor]] = []  # interchange.py's `from_dlpack`: imports go down only


def _lends(obj: Any) -> bool:
    """Tell whether an object offers its memory by DLPack, or is a capsule of it."""
    return hasattr(obj, "__dlpack__") or obj.__class__.__name__ == "PyCapsule"


def copied(data: Tensor, dt: Any, dev: Any, call: str) -> Tensor:
    """Copy a tensor without its history, with torch's warning that `call` is not meant for tensors."""
    warnings.warn(
        f"To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), rather than {call}(sourceTensor).",
        UserWarning,
        stacklevel=3,
    )
    return data.detach().to(device=dev, dtype=dt, copy=True)


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Copy numbers, nested sequences, arrays or tensors into a new tensor; the dtype is inferred unless given."""
    dt = dtypes.asked(dtype, "tensor")
    if requires_grad.__class__ is not bool and requires_grad is not None:
        check_flag("tensor", "requires_grad", requires_grad)
    if data.__class__ in _PYTHON:
        made = from_data(data, dt, place(device))
    elif isinstance(data, Tensor):
        dev = data.device if device is None else device
        made = copied(data, dt or data.dtype, dev, "torch.tensor")
    elif isinstance(data, UntypedStorage | TypedStorage):
        read = read_as(data, dt)
        made = read.to(read.device if device is None else device, copy=True)
    elif hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        lent = lenders[0](data)
        made = lent.to(place(device), dt or lent.dtype, copy=True)
    else:
        made = from_data(data, dt, place(device))
    return finish(made, requires_grad)


def read_as(storage: UntypedStorage | TypedStorage, dt: DType | None) -> Tensor:
    """Return a 1-D tensor on a storage's memory, of a dtype; if None, int64, and the default one of a typed storage."""
    if isinstance(storage, TypedStorage):
        dt = dt or dtypes.get_default_dtype()
        if storage.dtype is not dt:
            raise RuntimeError(
                f"Expected a Storage of type {dt.scalar_name} or an UntypedStorage, but got {storage.dtype.scalar_name}"
            )
    dt = dt or dtypes.int64
    count = storage.nbytes() // dt.itemsize
    return core.make(storage._storage, Size((count,)), dt, storage.device)


def from_data(data: Any, dt: DType | None, dev: device) -> Tensor:
    """Copy Python data or an array into a new tensor; an array keeps the order of its dims in memory."""
    array, dt = parse(data, dt)
    backend = get_backend(dev)
    backend.require(dt)
    shape, strides = sized(array.shape), None
    if isinstance(data, np.ndarray) and not (array.flags.c_contiguous and array.size):
        steps = tuple(s // array.itemsize for s in array.strides)
        if not array.size:
            strides = steps
        elif min(steps) >= 0:
            strides = steps = layouts.preserve_strides(array.shape, steps)
            array = array.transpose(sorted(range(array.ndim), key=lambda d: -steps[d]))
    return core.make(Storage.from_host(backend, encode(array, dt)), shape, dt, dev, strides)


def as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor, sharing memory with arrays and tensors where neither dtype nor device has to change."""
    if isinstance(data, Tensor):
        return data.to(device=data.device if device is None else device, dtype=dtype)
    if isinstance(data, np.ndarray) and data.flags.writeable and data.dtype.isnative:
        t, dev = from_numpy(data), place(device)
        return t if dtype is None and dev == t.device else t.to(device=dev, dtype=dtype)
    if isinstance(data, UntypedStorage | TypedStorage):
        t = read_as(data, dtypes.asked(dtype, "as_tensor"))
        return t.to(device=t.device if device is None else device)
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        return lenders[0](data).to(device=place(device), dtype=dtype)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Make a tensor of a tensor, array, buffer, number or sequence, sharing its memory if possible and unless `copy`.

    A buffer's bytes are read as `dtype`, the default one if None. ValueError where `copy=False` but a copy is needed.
    """
    dt = dtypes.asked(dtype, "asarray")
    t = _on_memory_of(obj, dt)
    if t is None:
        if copy is False and isinstance(obj, np.generic):
            raise RuntimeError(
                "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
            )
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return finish(tensor(obj, dtype=dt, device=device), bool(requires_grad))
    dev = t.device if t is obj and device is None else place(device)
    dt = dt or t.dtype
    if copy is False and dev != t.device:
        raise ValueError(f"can't alias tensor from device '{t.device}' to '{dev}'.")
    if copy is False and dt is not t.dtype:
        raise ValueError(
            f"can't alias tensor with dtype '{t.dtype.scalar_name}' into dtype '{dt.scalar_name}'."
        )
    made = t.to(dev, dt, copy=bool(copy))
    if requires_grad is None or requires_grad is made.requires_grad:
        return made
    return finish(made, True) if requires_grad else made.detach()


def _on_memory_of(obj: Any, dt: DType | None) -> Tensor | None:
    """Return a tensor itself, or a tensor on the object's memory; None for an object whose memory a tensor cannot
    share.
    """
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, UntypedStorage | TypedStorage):
        return read_as(obj, dt)
    if isinstance(obj, np.ndarray):
        return from_numpy(obj) if obj.flags.writeable and obj.dtype.isnative else None
    if isinstance(obj, np.generic):
        return None
    if _lends(obj):
        return lenders[0](obj)
    try:
        memoryview(obj).release()
    except TypeError:
        return None
    return frombuffer(obj, dtype=dt or dtypes.get_default_dtype())


_CPU = device("cpu")


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


_READ_ONLY = (
    "The given {0} is not writable, and PyTorch does not support non-writable tensors. This means {2}. You may want to copy the {1} to protect its data "
    "or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program."
)
_WRITES = "writing to this tensor will result in undefined behavior"
_BUFFER_WRITES = "you can write to the underlying (supposedly non-writable) buffer using the tensor"


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Make a cpu tensor on a numpy array's memory; both see every write. Strides are kept."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    made = _on_memory(ndarray)
    if not ndarray.flags.writeable:
        warn_once(_READ_ONLY.format("NumPy array", "array", _WRITES))
    return made


def _on_memory(ndarray: np.ndarray) -> Tensor:
    """Make the tensor on an array's memory."""
    check_order(ndarray)
    dt = dtypes.from_numpy(ndarray.dtype)
    shape = ndarray.shape
    plain = ndarray.flags.c_contiguous and 0 not in shape and 1 not in shape
    if not plain:
        _check_strides(ndarray)
    dev = convert.canonical(_CPU)
    backend = get_backend(dev)
    strides = None if plain else tuple([s // ndarray.itemsize for s in ndarray.strides])
    if not ndarray.size:
        return core.make(Storage.empty(backend, 0), Size(shape), dt, dev, strides)
    if not backend.info.host_shared:
        return core.make(
            Storage.from_host(backend, np.ascontiguousarray(ndarray)), Size(shape), dt, dev
        )
    memory, extent = ndarray, ndarray.nbytes
    if strides is not None:
        extent = layouts.storage_extent(shape, strides, 0) * ndarray.itemsize
        memory = np.asarray(_Memory(ndarray, ndarray.__array_interface__["data"][0], extent))
    storage = new_storage(backend, backend.wrap(memory), extent)
    storage.pinned = True
    return core.make(storage, Size(shape), dt, dev, strides)


def _check_strides(ndarray: np.ndarray) -> None:
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


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Make a 1-D tensor on the memory of an object with Python's buffer protocol; ValueError where `count` elements do not fit."""
    dt = dtypes.required(dtype, "frombuffer")
    try:
        with memoryview(buffer) as view:
            length = view.nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    each, left = dt.itemsize, length - offset
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0 and left % each:
        raise ValueError(
            f"buffer length ({left} bytes) after offset ({offset} bytes) must be a multiple of element size ({each})"
        )
    if count * each > left:
        raise ValueError(
            f"requested buffer length ({count} * {each} bytes) after offset ({offset} bytes) must not be greater than actual buffer "
            f"length ({length} bytes)"
        )
    count = left // each if count < 0 else count
    raw = dtypes.uint8 if dt.np is None else dt
    array = np.frombuffer(buffer, raw.np, count * each // raw.itemsize, offset)
    if not array.flags.writeable:
        warn_once(_READ_ONLY.format("buffer", "buffer", _BUFFER_WRITES))
    made = _on_memory(array)
    return finish(made if raw is dt else made.view(dt), requires_grad)
