"""The memory behind tensors as programs see it: `UntypedStorage`, `TypedStorage` and the classes named by type (`FloatStorage`, ...).

They hold the `Storage` cell that tensors share. Elements are read and written through a 1-d tensor over the cell, so
that pending work on it runs first, as for any tensor. Nothing here knows where a cell's memory lies.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from . import dtypes
from . import storage as cells
from .dtypes import dtype as DType
from .errors import caller_level
from .host import mapped_file
from .ops.convert import canonical
from .ops.core import Tensor, make
from .runtime import device as Device
from .runtime import get_backend
from .storage import Storage

Kind = TypeVar("Kind", bound="_Memory")

NAMES = {
    "Float": dtypes.float32, "Double": dtypes.float64, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16, "Byte": dtypes.uint8, "Char": dtypes.int8,
    "Short": dtypes.int16, "Int": dtypes.int32, "Long": dtypes.int64, "Bool": dtypes.bool, "ComplexFloat": dtypes.complex64, "ComplexDouble": dtypes.complex128,
}  # fmt: skip
_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This should only "
    "matter to you if you are using storages directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of "
    "tensor.storage()"
)
_warned = False


def warn_typed() -> None:
    """Warn that typed storages are deprecated, once per process."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(_DEPRECATED, UserWarning, stacklevel=caller_level())


class _Memory:
    """Base of both kinds of storage: a cell and the device it is on."""

    _storage: Storage
    device: Device
    is_sparse = is_sparse_csr = is_hpu = False
    filename = None

    @property
    def _dtype(self) -> DType:
        raise NotImplementedError

    def _flat(self) -> Tensor:
        """Return a 1-d tensor of all elements that shares the memory."""
        return make(self._storage, (len(self),), self._dtype, self.device)

    def _take(self: Kind, values: Tensor) -> Kind:
        """Return a storage of the same class over a tensor's memory."""
        made = copy.copy(self)
        made._storage, made.device = values._storage, values.device
        return made

    def _place(self, index: int) -> int:
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"index {index} out of range for storage of size {n}")
        return index % n

    def __len__(self) -> int:
        return self._storage.nbytes // self._dtype.itemsize

    def size(self) -> int:
        """Return the number of elements."""
        return len(self)

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self._storage.nbytes

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return self._dtype.itemsize

    def data_ptr(self) -> int:
        """Return the address of the first byte, which does not change from now on."""
        return self._storage.data_ptr() if self._storage.nbytes else 0

    @property
    def is_cuda(self) -> bool:
        """Whether the device is a GPU named as `cuda`."""
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """Return the device index, -1 on cpu."""
        return -1 if self.device.type == "cpu" else self.device.index or 0

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Tell whether the memory is page-locked: never."""
        return False

    def is_shared(self) -> bool:
        """Tell whether other processes see the memory."""
        return self.is_cuda

    def resizable(self) -> bool:
        """Tell whether `resize_` may be called: always."""
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        return self._flat().tolist()

    def clone(self: Kind) -> Kind:
        """Return a copy with memory of its own."""
        return self._take(self._flat().clone())

    def to(self: Kind, *, device: Any, non_blocking: bool = False) -> Kind:
        """Return the content on a device; the storage itself if it is there already."""
        at = canonical(device)
        return self if at == self.device else self._take(self._flat().to(at))

    def cpu(self: Kind) -> Kind:
        """Return the content on the host's device."""
        return self.to(device="cpu")

    def cuda(self: Kind, device: Any = None, non_blocking: bool = False) -> Kind:
        """Return the content on a GPU."""
        return self.to(device="cuda" if device is None else device)

    def fill_(self: Kind, value: Any) -> Kind:
        """Set all elements."""
        self._flat().fill_(value)
        return self

    def resize_(self: Kind, size: int) -> Kind:
        """Change the number of elements, keeping those that fit; tensors on this storage see the new memory."""
        if self._storage.shared:
            raise RuntimeError("Trying to resize storage that is not resizable")
        self._storage.resize(size * self._dtype.itemsize)
        return self

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._storage.nbytes

    def __copy__(self: Kind) -> Kind:
        made = object.__new__(self.__class__)
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self: Kind, memo: dict[int, Any]) -> Kind:
        made = copy.copy(self)
        made._storage = copy.deepcopy(self._storage, memo)
        return made

    def _text(self, name: str) -> str:
        return " " + "\n ".join(map(str, self.tolist())) + f"\n[torch.storage.{name} of size {len(self)}]"  # fmt: skip

    @property
    def _cdata(self) -> int:
        return id(self._storage)


def _new(count: int, dt: DType, at: Device) -> Storage:
    return Storage.empty(get_backend(at), count * dt.itemsize)


class UntypedStorage(_Memory):
    """A tensor's memory as bytes. Made from a size, a sequence of bytes, or by `tensor.untyped_storage()`."""

    def __init__(self, data: Any = 0, *, device: Any = None) -> None:
        self.device = at = canonical("cpu" if device is None else device)
        if isinstance(data, int):
            self._storage = _new(data, dtypes.uint8, at)
            return
        for item in data:
            if not isinstance(item, int):
                raise RuntimeError(
                    f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(data).__name__}), but one of the items "
                    f"was of type {type(item).__name__} instead of int"
                )
        content = np.array(data, np.int64).astype(np.uint8)
        self._storage = Storage.from_host(get_backend(at), content)

    @classmethod
    def _over(cls, storage: Storage, at: Device) -> UntypedStorage:
        made = object.__new__(cls)
        made._storage, made.device = storage, at
        return made

    @property
    def _dtype(self) -> DType:
        return dtypes.uint8

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, *, dtype: DType) -> UntypedStorage:  # fmt: skip
        """Return a copy of a buffer's elements, which are stored in the given byte order."""
        raw = np.frombuffer(buffer, np.uint8)
        if byte_order == "big" and (size := dtype.itemsize) > 1:
            raw = raw.view(f"u{size}").byteswap().view(np.uint8)
        at = canonical("cpu")
        return cls._over(Storage.from_host(get_backend(at), np.ascontiguousarray(raw)), at)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return the first bytes of a file. shared: writes change the file, which is made or grown as needed."""
        from .creation import from_numpy  # which needs Tensor

        if not nbytes:
            return cls(0, device="cpu")
        content = from_numpy(mapped_file(filename, shared, nbytes))
        return cls._over(content._storage, content.device)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._take(self._flat()[index].clone())
        if not isinstance(index, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        return self._flat()[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._flat()[self._place(index) if isinstance(index, int) else index] = value

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Take the bytes of a storage of the same size."""
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        self._flat().copy_(source.untyped()._flat())
        return self

    def byteswap(self, dtype: DType) -> None:
        """Reverse the bytes of each element of a dtype, in place; of each component of a complex one."""
        size = dtype.itemsize // (2 if dtype.is_complex else 1)
        if self.nbytes() % dtype.itemsize:
            raise RuntimeError(f"the length of data is not a multiple of {dtype.itemsize}")
        elements = self._flat().view(-1, size)
        elements.copy_(elements.flip(1))

    def new(self) -> UntypedStorage:
        """Return an empty storage on the same device."""
        return UntypedStorage(0, device=self.device)

    def untyped(self) -> UntypedStorage:
        """Return the storage."""
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the storage's class, or a storage of the elements converted to another type."""
        return "torch.storage.UntypedStorage" if dtype is None else _typed(self).type(dtype)

    def share_memory_(self) -> UntypedStorage:
        """Return the storage: processes are given copies."""
        return self

    def __reduce__(self) -> Any:
        return _untyped_from, (self._storage.host().tobytes(), str(self.device))

    def __repr__(self) -> str:
        return self._text(f"UntypedStorage(device={self.device})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)


class TypedStorage(_Memory):
    """A tensor's memory as elements of a dtype; deprecated. Made from a size, a sequence or an UntypedStorage."""

    def __init__(self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Any = None, device: Any = None, _internal: bool = False) -> None:  # fmt: skip
        if not _internal:
            warn_typed()
        self.dtype: DType = dtype or dtypes.get_default_dtype()
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    "TypedStorage.__init__ received an invalid combination of arguments: no positional arguments should be given when "
                    "using 'wrap_storage'"
                )
            if dtype is None:
                raise RuntimeError("TypedStorage.__init__: argument 'dtype' must be specified when using 'wrap_storage'")  # fmt: skip
            self._storage, self.device = wrap_storage._storage, wrap_storage.device
            return
        self.device = at = canonical("cpu" if device is None else device)
        data = args[0] if args else 0
        if isinstance(data, int):
            self._storage = _new(data, self.dtype, at)
        elif isinstance(data, Sequence) and not isinstance(data, _Memory):
            from .creation import tensor

            self._storage = tensor(data, dtype=self.dtype, device=at)._storage
        else:
            raise TypeError(f"Argument type not recognized: {type(data)}")

    @property
    def _dtype(self) -> DType:
        return self.dtype

    @classmethod
    def _over(cls, storage: Storage, at: Device, dt: DType) -> TypedStorage:
        made = object.__new__(cls)
        made._storage, made.device, made.dtype = storage, at, dt
        return made

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return UntypedStorage._over(self._storage, self.device)

    def untyped(self) -> UntypedStorage:
        """Return the memory as bytes."""
        return self._untyped_storage

    _size = _Memory.size
    _data_ptr = _Memory.data_ptr
    _nbytes = _Memory.nbytes
    _element_size = _Memory.element_size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        return self._flat()[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, int | slice):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._flat()[self._place(index) if isinstance(index, int) else index] = value

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take the bytes of a storage of the same size."""
        self.untyped().copy_(source)
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the storage's class, or a storage of the elements converted to another type."""
        prefix = "torch" if self.device.type == "cpu" else f"torch.{self.device.type}"
        if dtype is None:
            return f"{prefix}.{self.pickle_storage_type()}"
        if isinstance(dtype, str):
            dtype = CLASSES[dtype.rpartition(".")[2]]
        return _cast(self, dtype if isinstance(dtype, DType) else dtype.dtype)

    def pickle_storage_type(self) -> str:
        """Return the name of the storage class for the element type, such as "FloatStorage"."""
        for name, dt in NAMES.items():
            if dt is self.dtype:
                return f"{name}Storage"
        raise KeyError(f"dtype {self.dtype} is not recognized")

    def share_memory_(self) -> TypedStorage:
        """Return the storage: processes are given copies."""
        return self

    def __reduce__(self) -> Any:
        return _typed_from, (self._storage.host().tobytes(), str(self.device), self.dtype)

    def __repr__(self) -> str:
        return self._text(f"TypedStorage(dtype={self.dtype}, device={self.device})")


def _typed(storage: _Memory) -> TypedStorage:
    """Return a storage as a typed one; bytes become elements of uint8, as in torch's conversions."""
    if isinstance(storage, TypedStorage):
        return storage
    return TypedStorage._over(storage._storage, storage.device, dtypes.uint8)


def _cast(storage: _Memory, dt: DType) -> TypedStorage:
    """Return a new storage of the elements converted to a dtype."""
    values = _typed(storage)._flat().to(dt, copy=True)
    return TypedStorage._over(values._storage, values.device, dt)


def _install(name: str, dt: DType) -> None:
    def cast(self: _Memory) -> TypedStorage:
        return _cast(self, dt)

    cast.__name__, cast.__doc__ = name, f"Return the elements converted to {dt!r}."
    setattr(_Memory, name, cast)


for _name, _dt in NAMES.items():
    _install(_name.lower().replace("complex", "complex_"), _dt)


def _untyped_from(content: bytes, at: str) -> UntypedStorage:
    return UntypedStorage._over(_from_bytes(content, at), canonical(at))


def _typed_from(content: bytes, at: str, dt: DType) -> TypedStorage:
    return TypedStorage._over(_from_bytes(content, at), canonical(at), dt)


def _from_bytes(content: bytes, at: str) -> Storage:
    return Storage.from_host(get_backend(canonical(at)), np.frombuffer(content, np.uint8))


class _StorageType(type):
    """The metaclass of FloatStorage and the like: a call makes a TypedStorage, isinstance tests dtype and device."""

    dtype: DType
    kind = "cpu"

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, TypedStorage) and other.dtype is cls.dtype and other.device.type == cls.kind  # fmt: skip

    def __call__(cls, *args: Any, wrap_storage: UntypedStorage | None = None) -> TypedStorage:
        warn_typed()
        if len(args) > 1 or (args and not isinstance(args[0], int | Sequence)):
            what = f"Argument type not recognized: {type(args[0])}" if len(args) == 1 else "Too many positional arguments"  # fmt: skip
            raise TypeError(
                f"{cls} received an invalid combination of arguments. Expected one of:\n * no arguments\n * (int size)\n * (Sequence data)\n"
                f" * (*, UntypedStorage wrap_storage)\n{what}"
            )
        return TypedStorage(
            *args, wrap_storage=wrap_storage, dtype=cls.dtype, device=cls.kind, _internal=True
        )

    def from_buffer(cls, buffer: Any, byte_order: str = "native") -> TypedStorage:
        """Return a copy of a buffer's elements, which are stored in the given byte order."""
        raw = UntypedStorage.from_buffer(buffer, byte_order, dtype=cls.dtype)
        return TypedStorage._over(raw._storage, raw.device, cls.dtype)

    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return the first elements of a file. shared: writes change the file, which is made or grown as needed."""
        raw = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage._over(raw._storage, raw.device, cls.dtype)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


CLASSES: dict[str, _StorageType] = {}
for _name, _dt in NAMES.items():
    _made = _StorageType(f"{_name}Storage", (), {"dtype": _dt, "__doc__": f"Constructor and type check of storages of {_dt!r}.", "__module__": "torch"})  # fmt: skip
    globals()[_made.__name__] = CLASSES[_made.__name__] = _made


@functools.cache
def on_gpu(name: str) -> type:
    """Return the type of that name whose storages are on GPUs: `torch.cuda.FloatStorage`."""
    doc = f"Constructor and type check of storages of {CLASSES[name].dtype!r} on GPUs."
    own = {"dtype": CLASSES[name].dtype, "kind": "cuda", "__doc__": doc, "__module__": "torch.cuda"}
    return _StorageType(name, (), own)


# Under torch's path, too: `torch.storage.UntypedStorage`.
cells.TypedStorage, cells.UntypedStorage = TypedStorage, UntypedStorage  # type: ignore[attr-defined]

StorageBase = UntypedStorage  # torch's name of the base class

__all__ = ["StorageBase", "TypedStorage", "UntypedStorage", *CLASSES]  # noqa: PLE0604 - the table decides
