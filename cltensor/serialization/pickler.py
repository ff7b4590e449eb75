"""Writing pickles that torch reads: this library's objects under torch's names, storages as references to separate data.

Extends the pickler that Python has in Python, not the one in C, because it must write names that are not importable
here.
"""

from __future__ import annotations

import importlib
import math
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any, BinaryIO, ClassVar

from .. import creation
from ..attributes import state
from ..dtypes import dtype, int64, uint8
from ..layouts import contiguous_strides
from ..memory_format import jagged, layout, memory_format
from ..runtime import device
from ..size import Size
from ..storage import Storage
from ..storages import TypedStorage, UntypedStorage
from ..tensor import Tensor
from . import rebuild
from .rebuild import NAME_OF


class Name:
    """A global's module and name, as written to the file."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        raise TypeError("a name in a file cannot be called")


_names: dict[tuple[str, str], Name] = {}


def _name(module: str, name: str) -> Name:
    found = _names.get((module, name))
    if found is None:
        found = _names[module, name] = Name(module, name)
    return found


# The functions that rebuild objects -> torch's names for them; a class's `__reduce_ex__` may return one.
_REBUILDERS = {
    value: _name(*key.rsplit(".", 1))
    for key, value in rebuild.ALLOWED.items()
    if value.__class__ is FunctionType
}


class StorageReference:
    """A reference to a storage, which the pickle holds in the storage's place."""

    __slots__ = ("dtype", "place", "storage")

    def __init__(self, storage: Storage, dt: dtype | None, place: device) -> None:
        self.storage, self.dtype, self.place = storage, dt, place


_Base: Any = pickle._Pickler


class TorchPickler(_Base):
    """Pickles an object; `storages` lists the storages whose data the file must hold, in the order of their keys."""

    dispatch: ClassVar[dict[type, Any]] = _Base.dispatch.copy()

    def __init__(self, file: BinaryIO, protocol: int = 2, views: bool = False) -> None:
        super().__init__(file, protocol)
        self.storages: list[Storage] = []
        self.counts: list[int] = []  # elements of each of `storages`
        self._views = views  # whether a storage's tuple ends in a field for views: in the older format it does
        self._keys: dict[int, str] = {}
        self._dtypes: dict[int, dtype] = {}

    # ---- storages
    def persistent_id(self, obj: Any) -> Any:
        """Return the tuple that represents a storage in the pickle, None for other objects."""
        seen = None  # the dtype of a storage object, which all references to the storage must share
        if isinstance(obj, UntypedStorage):
            seen, obj = uint8, StorageReference(obj._storage, None, obj.device)
        elif isinstance(obj, TypedStorage):
            obj = StorageReference(obj._storage, obj.dtype, obj.device)
        if obj.__class__ is not StorageReference:
            return None
        storage, dt = obj.storage, obj.dtype
        seen = dt or seen
        if storage.nbytes and seen and self._dtypes.setdefault(id(storage), seen) is not seen:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        key = self._keys.get(id(storage))
        if key is None:
            key = self._keys[id(storage)] = str(len(self.storages))
            self.storages.append(storage)
            self.counts.append(storage.nbytes // (dt.itemsize if dt in NAME_OF else 1))
        kind = (
            _name("torch", NAME_OF[dt])
            if dt in NAME_OF
            else _name("torch.storage", "UntypedStorage")
        )
        count = storage.nbytes // (dt.itemsize if dt in NAME_OF else 1)
        place = str(obj.place) if rebuild.TAG is None else rebuild.TAG(storage, obj.place)
        found = ("storage", kind, key, place, count)
        return (*found, None) if self._views else found

    # ---- objects
    def reducer_override(self, obj: Any) -> Any:
        """Return the reduction of this library's objects."""
        if isinstance(obj, Tensor):
            own = type(obj).__reduce_ex__.__module__.partition(".")[0]
            return _reduce_tensor(obj) if own == "cltensor" else NotImplemented
        kind = obj.__class__
        if kind is Size:
            return _name("torch", "Size"), (tuple(obj),)
        if kind is device:
            return _name("torch", "device"), (
                (obj.type,) if obj.index is None else (obj.type, obj.index)
            )
        return NotImplemented

    def save_name(self, obj: Name) -> None:
        """Write a global."""
        if self.proto >= 4:
            self.save(obj.module)
            self.save(obj.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[Name] = save_name

    def save_dtype(self, obj: dtype) -> None:
        """Write a dtype as the global it is."""
        self.save(_name("torch", obj.name))

    dispatch[dtype] = save_dtype

    def save_format(self, obj: memory_format) -> None:
        """Write a memory format as the global it is."""
        self.save(_name("torch", str(obj).rpartition(".")[2]))

    dispatch[memory_format] = save_format

    def save_layout(self, obj: layout) -> None:
        """Write a layout as the call that looks it up."""
        self.save_reduce(_name("torch.serialization", "_get_layout"), (str(obj),), obj=obj)

    dispatch[layout] = save_layout

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a class or function; this library's get torch's names."""
        module = getattr(obj, "__module__", None) or ""
        if module.partition(".")[0] in ("cltensor", "torch"):
            found = _torch_name(obj, module, name or getattr(obj, "__qualname__", obj.__name__))
            if found is not None:
                self.save(found)  # the pickler's memo recognises a name already written
                return
        super().save_global(obj, name)

    dispatch[type(_name)] = save_global

    def save_type(self, obj: type) -> Any:
        """Write a type."""
        if obj.__module__.partition(".")[0] in ("cltensor", "torch"):
            return self.save_global(obj)
        return super().save_type(obj)

    dispatch[type] = save_type


def _torch_name(obj: Any, module: str, name: str) -> Name | None:
    """Find where torch has an object of this library: layers in modules of the same names, the rest under its shortest public name."""
    if obj.__class__ is FunctionType and obj in _REBUILDERS:
        return _REBUILDERS[obj]
    if obj.__class__ is type and issubclass(obj, Tensor):
        if obj is Tensor:
            return _name("torch", "Tensor")
        if name == "Parameter":
            return _name("torch.nn.parameter", "Parameter")
    if module.startswith("cltensor.nn.modules."):
        return _name("torch" + module[8:], name)
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        try:
            place: Any = importlib.import_module(".".join(["cltensor", *parts[1:depth]]))
        except ImportError:
            break
        if getattr(place, name, None) is obj:
            return _name(".".join(["torch", *parts[1:depth]]), name)
    return None


def _reduce_sparse(t: Any) -> tuple[Any, ...]:
    kind = _Plain(_name("torch.serialization", "_get_layout"), (str(t.layout),))
    pattern = t._pattern
    if pattern.compressed is None:
        parts: tuple[Any, ...] = (pattern.indices, t._v.detach(), t.shape, pattern.coalesced)
    else:
        parts = (*pattern.compressed[:2], t._v.detach(), t.shape)
    return _name("torch._utils", "_rebuild_sparse_tensor"), (kind, parts)


def _reduce_nested(t: Any) -> tuple[Any, ...]:
    if t.layout is jagged:
        parts = {"values": t._v.detach(), "offsets": t.offsets(), "lengths": t.lengths()}
        parts |= {"_ragged_idx": t._at, "_metadata_cache": {}, "requires_grad": t.requires_grad}
        return _name("torch.nested._internal.nested_tensor", "_rebuild_njt"), (parts,)
    shapes = [tuple(s) for s in t._pattern]
    ends = [0]
    for s in shapes:
        ends.append(ends[-1] + math.prod(s))
    width = t.dim() - 1
    sizes, strides = (
        creation.tensor(rows, dtype=int64).reshape(len(shapes), width)
        for rows in (shapes, [contiguous_strides(s) for s in shapes])
    )
    offsets = creation.tensor(ends[:-1], dtype=int64)
    made = (t._v.detach(), sizes, strides, offsets)
    return _name("torch._utils", "_rebuild_nested_tensor"), made


def _reduce_tensor(t: Tensor) -> tuple[Any, ...]:
    if t.is_nested:
        return _reduce_nested(t)
    if not t._strided:
        return _reduce_sparse(t)
    kind = type(t)
    if hasattr(kind, "cls_to_become"):  # a parameter or buffer that waits for its shape
        return kind, (bool(t.requires_grad),)
    parameter = getattr(kind, "_mark", "") == "_is_param"
    function, own = _function_and_arguments(t, bool(t.requires_grad) and not parameter)
    kept = state(t)
    if parameter:
        made: Any = (_Plain(function, own), bool(t.requires_grad), OrderedDict())
        if kept:
            return _name("torch._utils", "_rebuild_parameter_with_state"), (*made, kept)
        return _name("torch._utils", "_rebuild_parameter"), made
    if kind is Tensor and not kept:
        return function, own
    return _name("torch._tensor", "_rebuild_from_type_v2"), (function, kind, own, kept)


def _function_and_arguments(t: Tensor, requires_grad: bool) -> tuple[Any, tuple]:
    """Return the function that rebuilds a tensor, with or without a storage, and its arguments."""
    dt, steps = t.dtype, (tuple(t.shape), tuple(t._strides))
    if t.is_meta:
        return _name("torch._utils", "_rebuild_meta_tensor_no_storage"), (
            dt,
            *steps,
            requires_grad,
        )
    typed = dt in NAME_OF
    storage = StorageReference(t._storage, dt if typed else None, t.device)
    own: tuple = (storage, t._offset, *steps, requires_grad, OrderedDict())
    if typed:
        return _name("torch._utils", "_rebuild_tensor_v2"), own
    return _name("torch._utils", "_rebuild_tensor_v3"), (*own, dt)


class _Plain:
    """A tensor reduced as a plain one, without its subclass."""

    __slots__ = ("args", "function")

    def __init__(self, function: Name, args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.args
