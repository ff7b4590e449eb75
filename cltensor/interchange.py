"""Exchange with other array libraries without copies: DLPack both ways, and the array API's namespace.

Owns the capsules and the freeing of what they hold. Only host memory is exchanged, that is, memory of the device `cpu`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np

from . import dtypes
from .creation import from_numpy
from .creation.data import lenders
from .layouts import contiguous_strides
from .ops.row import FUNCTIONS
from .tensor import Tensor

__all__ = ["from_dlpack", "register_einops", "to_dlpack"]

_HOST = 1  # kDLCPU
_PINNED = 3  # kDLCUDAHost: page-locked host memory
_OPENCL = 4
_READ_ONLY = 1
_CODES = {"i": 0, "u": 1, "f": 2, "bf": 4, "c": 5, "b": 6}


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor, of DLPack before 1.0."""

    _fields_ = (("array", _Array), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("array", _Array),
    )


_NAMES = {_Managed: b"dltensor", _Versioned: b"dltensor_versioned"}
_LIVE = (b"dltensor", b"dltensor_versioned")
_USED = {_Managed: b"used_dltensor", _Versioned: b"used_dltensor_versioned"}

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)

# ------------------------------------------------------------------------------------- giving

_held: dict[int, Any] = {}  # by the address of an exported structure: all that must outlive it


@_Deleter
def _release(address: int, held: dict[int, Any] = _held) -> None:
    held.pop(address, None)


_release_address = ctypes.cast(_release, ctypes.c_void_p).value


@_Deleter
def _discard(capsule: int, names: Any = _LIVE, held: dict[int, Any] = _held) -> None:
    """Free what a capsule holds that nobody consumed; its destructor. `capsule` is the address of the dying object."""
    for name in names:
        if _is_valid(capsule, name):
            held.pop(_pointer(capsule, name), None)


# Other libraries may call these until the very end of the process, so they are never freed.
for _callback in (_release, _discard):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))


def _code_and_bits(dt: dtypes.dtype) -> tuple[int, int]:
    return _CODES[dt.code.rstrip("0123456789")], 8 * dt.itemsize


_DTYPES = {_code_and_bits(dt): dt for dt in dtypes.ALL}
_BITS = {2: dtypes.int16, 4: dtypes.int32}  # by size, for elements that NumPy has no type for


def _export(t: Tensor, versioned: bool, copied: bool) -> Any:
    plain = t if t.dtype.np is not None else t.view(_BITS[t.dtype.itemsize])
    array = plain.numpy()
    kind: Any = _Versioned if versioned else _Managed
    managed = kind()
    sizes = (ctypes.c_int64 * max(t.ndim, 1))(*t.shape)
    strides = (ctypes.c_int64 * max(t.ndim, 1))(*t.stride())
    managed.array = _Array(
        array.ctypes.data if array.size else None, _Device(_HOST, 0), t.ndim, _Type(*_code_and_bits(t.dtype), 1), sizes, strides, 0
    )  # fmt: skip
    managed.deleter = _release_address
    if versioned:
        managed.major, managed.minor, managed.flags = 1, 0, 2 if copied else 0
    address = ctypes.addressof(managed)
    _held[address] = managed, sizes, strides, array
    return _new(address, _NAMES[kind], ctypes.cast(_discard, ctypes.c_void_p))


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return a DLPack capsule on this tensor's memory. BufferError if it requires grad or is not host memory.

    AssertionError for a stream: the host has none.
    """
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if self.device.type == "cpu" and stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    t, copied = self, bool(copy)
    if self.device.type != "cpu":
        if dl_device is None or dl_device[0] != _HOST or copy is False:
            raise BufferError(
                f"the memory of device {self.device} cannot be shared; use tensor.cpu(), or dl_device=(1, 0) for a copy"
            )
        t, copied = self.cpu(), True
    elif dl_device is not None and dl_device[0] != _HOST:
        raise BufferError(f"cannot export a tensor on cpu to DLPack device {tuple(dl_device)}")
    elif copied:
        t = self.clone()
    return _export(t, max_version is not None and max_version[0] >= 1, copied)


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """Return the type and index of this tensor's device in DLPack's numbers. ValueError for meta tensors."""
    if self.is_meta:
        raise ValueError("Unknown device type meta for Dlpack")
    return (_HOST, 0) if self.device.type == "cpu" else (_OPENCL, self.device.index or 0)


def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule on a tensor's memory, which can be consumed once."""
    return dlpack(tensor)


# ------------------------------------------------------------------------------------- taking


class _Owner:
    """Memory of another library, freed by that library's deleter when no tensor uses it any more."""

    def __init__(self, managed: Any, address: int, kind: np.dtype) -> None:
        self.address, self.deleter = address, managed.deleter
        array = managed.array
        shape = tuple(array.shape[: array.ndim])
        strides = tuple(array.strides[: array.ndim]) if array.strides else contiguous_strides(shape)
        read_only = isinstance(managed, _Versioned) and bool(managed.flags & _READ_ONLY)
        self.__array_interface__ = {
            "data": ((array.data or 0) + array.offset, read_only),
            "shape": shape,
            "strides": tuple(s * kind.itemsize for s in strides),
            "typestr": kind.str,
            "version": 3,
        }

    def __del__(self, make: Any = _Deleter) -> None:
        if self.deleter:
            make(self.deleter)(self.address)


def _dtype(kind: _Type) -> dtypes.dtype:
    """Return the dtype for a DLPack type; BufferError if there is none."""
    if kind.lanes != 1:
        raise BufferError(f"ATen does not support lanes != 1 for dtype code{kind.code}")
    found = _DTYPES.get((kind.code, kind.bits))
    if found is None:
        family = {0: "kInt", 1: "kUInt", 2: "kFloat", 4: "kFloat", 5: "kFloat", 6: "kDLBool"}
        raise BufferError(
            f"Unsupported {family[kind.code]} bits {kind.bits}"
            if kind.code in family
            else f"Unsupported code {kind.code}"
        )
    return found


def _take(capsule: Any) -> Tensor:
    where = id(capsule)  # CPython's address of the object
    kind: Any = next((k for k, name in _NAMES.items() if _is_valid(where, name)), None)
    if kind is None:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
            "have already constructed a tensor from it once."
        )
    address = _pointer(where, _NAMES[kind])
    managed: Any = ctypes.cast(address, ctypes.POINTER(kind)).contents
    if managed.array.device.kind not in (_HOST, _PINNED):
        raise BufferError(f"Unsupported device_type: {managed.array.device.kind}")
    dt = _dtype(managed.array.dtype)
    # All that may fail is behind: from here on the capsule is empty, and the owner frees the memory.
    _rename(where, _USED[kind])
    shape = tuple(managed.array.shape[: managed.array.ndim])
    held: Any = dt.np or _BITS[dt.itemsize].np
    owner = _Owner(managed, address, held)
    made = from_numpy(np.empty(shape, held) if 0 in shape else np.asarray(owner))
    return made if dt.np else made.view(dt)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Make a tensor on the memory of another library's array (or of a DLPack capsule).

    `copy=True` copies, `copy=False` raises ValueError where a copy is needed. BufferError for memory that is not the
    host's.

    >>> torch.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    if isinstance(ext_tensor, Tensor):
        made = ext_tensor.detach()
    elif hasattr(ext_tensor, "__dlpack__"):
        kind, index = ext_tensor.__dlpack_device__()
        if int(kind) not in (_HOST, _PINNED):
            raise BufferError(f"memory of DLPack device ({int(kind)}, {index}) cannot be shared")
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0))
        except TypeError:  # an array of DLPack before 1.0, which takes no argument
            capsule = ext_tensor.__dlpack__()
        made = _take(capsule)
    else:
        made = _take(ext_tensor)
    placed = made if device is None else made.to(device)
    if placed is not made and copy is False:
        raise ValueError(f"cannot move (i.e. copy) a tensor from {made.device} to {placed.device}")
    return placed.clone() if copy and placed is made else placed


lenders.append(from_dlpack)

# ------------------------------------------------------------------------------------- the array API, einops


def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """Return the module whose functions are the array API's for tensors."""
    from . import array_api

    return array_api


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on a device (the array API's name of `to`). ValueError for a stream: a device has one only."""
    if stream is not None:
        raise ValueError("to_device: a device has one stream, so none can be named")
    return self.to(device)


def share_memory_(self: Tensor) -> Tensor:
    """Move the memory of this tensor and of its views to where other processes can see it; returns the tensor.

    Memory that is not the host's stays where it is, as torch leaves a GPU's.
    """
    from .multiprocessing import share  # imported late: `import cltensor` stays quick

    share(self)
    return self


def is_shared(self: Tensor) -> bool:
    """Tell whether other processes can see this tensor's memory."""
    from .multiprocessing import shares

    return shares(self)


@functools.cache  # keeps the class: einops finds it among the subclasses of its own, which are weak references
def register_einops() -> type:
    """Make einops work on tensors; to be called after einops is imported. Return the class that einops finds.

    Where einops is imported before cltensor, `import cltensor` makes the call.
    """
    from einops._backends import AbstractBackend

    class CltensorBackend(AbstractBackend):
        """The functions that einops needs of an array library."""

        framework_name = "cltensor"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Tensor:
            return from_numpy(x)

        def to_numpy(self, x: Tensor) -> np.ndarray:
            return x.detach().cpu().numpy()

        def arange(self, start: int, stop: int) -> Tensor:
            return FUNCTIONS["arange"](start, stop, dtype=dtypes.int64)

        def reduce(self, x: Tensor, operation: str, reduced_axes: Any) -> Tensor:
            if operation in ("min", "max"):
                return getattr(x, f"a{operation}")(dim=tuple(reduced_axes))
            if operation == "prod":
                for axis in sorted(reduced_axes, reverse=True):
                    x = x.prod(dim=axis)
                return x
            if operation in ("any", "all"):
                for axis in sorted(reduced_axes, reverse=True):
                    x = getattr(x, operation)(dim=axis)
                return x
            return getattr(x, operation)(dim=tuple(reduced_axes))

        def transpose(self, x: Tensor, axes: Any) -> Tensor:
            return x.permute(*axes)

        def stack_on_zeroth_dimension(self, tensors: Any) -> Tensor:
            return FUNCTIONS["stack"](list(tensors))

        def add_axes(self, x: Tensor, n_axes: int, pos2len: Any) -> Tensor:
            repeats = [-1] * n_axes
            for position, length in pos2len.items():
                x = self.add_axis(x, position)
                repeats[position] = length
            return x.expand(*repeats)

        def tile(self, x: Tensor, repeats: Any) -> Tensor:
            return x.repeat(repeats)

        def concat(self, tensors: Any, axis: int) -> Tensor:
            return FUNCTIONS["cat"](list(tensors), dim=axis)

        def add_axis(self, x: Tensor, new_position: int) -> Tensor:
            return x.unsqueeze(new_position)

        def is_float_type(self, x: Tensor) -> bool:
            return x.dtype.is_floating_point

        def einsum(self, pattern: str, *x: Any) -> Tensor:
            return FUNCTIONS["einsum"](pattern, *x)

    return CltensorBackend


for _name, _method in {
    "__dlpack__": dlpack,
    "__dlpack_device__": dlpack_device,
    "__array_namespace__": array_namespace,
    "to_device": to_device,
    "share_memory_": share_memory_,
    "is_shared": is_shared,
}.items():
    _method.__name__ = _name
    setattr(Tensor, _name, _method)
if "einops" in sys.modules:
    register_einops()
