"""The functions and types that the names in a checkpoint resolve to, which build tensors from checked arguments.

No function here trusts its arguments: sizes and strides must fit the storage that the file really has.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from .. import dtypes
from ..attributes import of_class, slot_names
from ..layouts import storage_extent
from ..memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    preserve_format,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from ..ops.convert import canonical
from ..ops.row import FUNCTIONS
from ..runtime import device, get_backend
from ..size import Size
from ..storage import Storage
from ..storages import NAMES, TypedStorage, UntypedStorage
from ..tensor import Tensor

NAME_OF = {dt: f"{name}Storage" for name, dt in NAMES.items()}


class StorageType:
    """A storage class named in a file, as its element type; None for an untyped storage."""

    def __init__(self, dt: dtypes.dtype | None) -> None:
        self.dtype = dt


def loaded(
    storage: Storage, dt: dtypes.dtype | None, place: device
) -> UntypedStorage | TypedStorage:
    """Return a storage of the file as a storage object, for a file that saved the storage itself, not a tensor."""
    return (
        UntypedStorage._over(storage, place)
        if dt is None
        else TypedStorage._over(storage, place, dt)
    )


def dtype_of(storage: UntypedStorage | TypedStorage) -> dtypes.dtype | None:
    """Return the element type a storage of the file was saved with; None for an untyped storage."""
    return storage.dtype if isinstance(storage, TypedStorage) else None


STORAGE_TYPES = {f"torch.{name}Storage": StorageType(dt) for name, dt in NAMES.items()} | {
    "torch.storage.UntypedStorage": StorageType(None), "torch.UntypedStorage": StorageType(None),
}  # fmt: skip

# ------------------------------------------------------------------------------------------- storages


def swap_bytes(data: np.ndarray, dt: dtypes.dtype | None) -> np.ndarray:
    """Return a storage's bytes in the opposite byte order; `dt` (None: bytes) decides the size of a word."""
    size = 1 if dt is None else dt.itemsize // (2 if dt.is_complex else 1)
    return data if size == 1 else data.view(f"u{size}").byteswap().view(np.uint8)


def make_storage(data: np.ndarray, place: device) -> Storage:
    """Copy bytes to a device."""
    return Storage.from_host(get_backend(place), data)


def locate(location: str) -> device:
    """Return the device that a location tag names. Raises torch's RuntimeError if there is no such device."""
    try:
        return canonical(location)
    except Exception as error:
        if location.startswith("cuda"):
            raise RuntimeError(
                "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please "
                "use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
            ) from error
        raise RuntimeError(
            f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})"
        ) from error


# Set by packages.py once a program registers location tags of its own: TAG names the location of a storage
# on a device for the file, RESTORE moves a loaded storage to the location named.
TAG: Callable[[Storage, device], str] | None = None
RESTORE: Callable[[Storage, device, str], Storage] | None = None


def _own_place(storage: Storage | None, location: str) -> device | Storage | None:
    if RESTORE is None:
        return locate(location)
    return None if storage is None else RESTORE(storage, storage.backend.device, location)


def placement(map_location: Any) -> Callable[[Storage | None, str], device | Storage | None]:
    """Return a function of (storage, location) that places a storage.

    For storage None it may return a device before loading.
    """
    if map_location is None:
        return _own_place
    if isinstance(map_location, dict):
        return lambda storage, location: _own_place(
            storage, str(map_location.get(location, location))
        )
    if isinstance(map_location, str | device | int):
        target = locate(str(device(map_location)))
        return lambda storage, location: target
    if not callable(map_location):
        raise TypeError(
            f"map_location should be a device, a string, a dict or a function, not {type(map_location).__name__}"
        )

    def ask(storage: Storage | None, location: str) -> device | Storage | None:
        if storage is None:
            return None
        made = map_location(UntypedStorage._over(storage, storage.backend.device), location)
        if made is None:
            return _own_place(storage, location)
        return (
            made._storage
            if isinstance(made, UntypedStorage | TypedStorage | Tensor)
            else locate(str(made))
        )

    return ask


# ------------------------------------------------------------------------------------------- tensors


def _ints(values: Any, what: str) -> tuple[int, ...]:
    made = tuple(values)
    if any(v.__class__ is not int or v < 0 for v in made):
        raise RuntimeError(f"the checkpoint has a tensor with {what} {made!r}")
    return made


def tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any = False,
    hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """Make a tensor over a loaded storage."""
    return _tensor(
        storage,
        storage.dtype if isinstance(storage, TypedStorage) else None,
        offset,
        size,
        stride,
        requires_grad,
    )


def meta_tensor(dt: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """Make a tensor on the meta device."""
    made = FUNCTIONS["empty_strided"](size, stride, dtype=dt, device="meta")
    return made.requires_grad_(requires_grad)


def tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dt: Any,
    metadata: Any = None,
) -> Tensor:
    """Make a tensor of a given dtype over a loaded storage of bytes."""
    return _tensor(storage, dt, offset, size, stride, requires_grad)


def tensor_v1(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """Make a tensor over a loaded storage."""
    return tensor_v2(storage, offset, size, stride)


def _tensor(
    storage: Any, dt: Any, offset: Any, size: Any, stride: Any, requires_grad: Any
) -> Tensor:
    if not isinstance(storage, UntypedStorage | TypedStorage) or not isinstance(dt, dtypes.dtype):
        raise RuntimeError("the checkpoint has a tensor without a storage or without a dtype")
    shape = _ints(size, "sizes")
    strides = _ints(stride, "strides")
    (start,) = _ints((offset,), "a storage offset")
    if len(shape) != len(strides):
        raise RuntimeError(f"the checkpoint has a tensor with sizes {shape} and strides {strides}")
    needed = storage_extent(shape, strides, start) * dt.itemsize if 0 not in shape else 0
    if needed > storage.nbytes():
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {start}, and itemsize {dt.itemsize} requiring a storage size of "
            f"{needed} are out of bounds for storage of size {storage.nbytes()}"
        )
    t = Tensor._make(storage._storage, Size(shape), dt, storage.device, strides, start)
    if requires_grad:
        t._requires = dt.category >= 2
    return t


def parameter(data: Any, requires_grad: Any, hooks: Any = None) -> Tensor:
    """Make a Parameter of a tensor."""
    if not isinstance(data, Tensor):
        raise RuntimeError("the checkpoint has a parameter that is no tensor")
    return _parameter_class()(data.detach(), bool(requires_grad))


def parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Tensor:
    """Make a Parameter of a tensor, with the attributes it had."""
    return set_state(parameter(data, requires_grad), state)


def from_type_v2(function: Any, kind: Any, args: Any, state: Any) -> Tensor:
    """Make a tensor, change its type to a subclass, and give it the attributes it had."""
    if function is jagged:
        return set_state(jagged(*args), {})
    if function not in (tensor_v1, tensor_v2, tensor_v3, parameter, meta_tensor):
        raise RuntimeError("the checkpoint rebuilds a tensor in an unknown way")
    if not (isinstance(kind, type) and issubclass(kind, Tensor)):
        raise RuntimeError("the checkpoint gives a tensor a type that is none")
    made = of_class(function(*args), kind)
    if hasattr(kind, "__setstate__"):
        made.__setstate__(state)
        return made
    return set_state(made, state)


def set_state(t: Tensor, state: Any) -> Tensor:
    """Restore a tensor's user-defined attributes and slots; never one that the library itself uses."""
    values, kept = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for name, value in values.items() if isinstance(values, dict) else ():
        if isinstance(name, str) and name not in t.__dict__ and not hasattr(type(t), name):
            t.__dict__[name] = value
    for name, value in kept.items() if isinstance(kept, dict) else ():
        if name in slot_names(type(t)):
            setattr(t, name, value)
    return t


def make_device(*args: Any) -> device:
    """Make a device from its name and index."""
    return device(*args)


def make_size(values: Any = ()) -> Size:
    """Make a Size."""
    return Size(values)


def encode(text: Any, encoding: Any = "latin1") -> bytes:
    """Return the bytes that a text encodes in old pickles; only plain encodings are allowed."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise RuntimeError("the checkpoint has bytes in an unknown form")
    return text.encode(encoding)


def builtin_set(values: Any = ()) -> set[Any]:
    """Make a set."""
    return set(values)


def small_bytearray(*args: Any) -> bytearray:
    """Make a bytearray from content; a length is refused, as the file could ask for any amount of memory."""
    if args and isinstance(args[0], int):
        raise RuntimeError("the checkpoint asks for memory without content")
    return bytearray(*args)


_LAYOUTS = (strided, sparse_coo, sparse_csr, sparse_csc)


def sparse(layout: Any, parts: Any) -> Tensor:
    """Make a sparse tensor from its indices, values and sizes, after checking them."""
    if layout not in _LAYOUTS[1:] or not isinstance(parts, tuple) or len(parts) not in (3, 4):
        raise RuntimeError("the checkpoint has a sparse tensor of an unknown kind")
    last = parts[2:] if layout is sparse_coo else parts[3:]
    *tensors, size = (*parts[: len(parts) - len(last)], last[0])
    if not all(isinstance(t, Tensor) and t._strided for t in tensors):
        raise RuntimeError("the checkpoint has a sparse tensor without indices or values")
    shape = Size(_ints(size, "sizes"))
    if layout is sparse_coo:
        how = {"is_coalesced": last[1] is True if len(last) > 1 else False}
        make = partial(FUNCTIONS["sparse_coo_tensor"], *tensors, shape, **how)
    else:
        make = partial(FUNCTIONS["sparse_compressed_tensor"], *tensors, shape, layout=layout)
    check = partial(make, check_invariants=True)
    if _waiting.checks is None:
        return check()
    _waiting.checks.append(check)
    return make(check_invariants=False)


class _Waiting(threading.local):
    checks: list[Callable[[], Any]] | None = None


_waiting = _Waiting()


@contextmanager
def checked_later() -> Iterator[list[Callable[[], Any]]]:
    """Context in which sparse tensors are made unchecked, as their memory is yet to be read; yield the checks to be made then."""
    before, _waiting.checks = _waiting.checks, []
    try:
        yield _waiting.checks
    finally:
        _waiting.checks = before


def jagged(parts: Any) -> Tensor:
    """Make a nested tensor of jagged layout, after checking what it is made of."""
    fits = isinstance(parts, dict)
    named = {k: parts.get(k) for k in ("values", "offsets", "lengths")} if fits else {}
    fits = fits and all(
        isinstance(x, Tensor) for k, x in named.items() if k != "lengths" or x is not None
    )
    at = parts.get("_ragged_idx", 1) if fits else 0
    if not fits or not isinstance(at, int) or not 1 <= at <= named["values"].ndim:
        raise RuntimeError("the checkpoint has a nested tensor without values or offsets")
    _check_edges(named["offsets"], named["lengths"], named["values"].shape[at - 1])
    made = sys.modules["cltensor"].nested.nested_tensor_from_jagged(**named, jagged_dim=at)
    return made.requires_grad_(True) if parts.get("requires_grad") is True else made


def _check_edges(offsets: Any, lengths: Any, total: int) -> None:
    edges = offsets.tolist() if offsets.ndim == 1 else []
    sizes = [b - a for a, b in itertools.pairwise(edges)] if lengths is None else lengths.tolist()
    rows = zip(edges, sizes, strict=False)
    inside = all(n >= 0 <= a and a + n <= total for a, n in rows)
    if not edges or len(sizes) != len(edges) - 1 or not inside:
        raise RuntimeError(
            "the checkpoint has a nested tensor whose offsets are outside its values"
        )


def nested(buffer: Any, sizes: Any, strides: Any, offsets: Any) -> Tensor:
    """Make a nested tensor of strided layout from its buffer and the layouts of its tensors."""
    if not all(isinstance(x, Tensor) for x in (buffer, sizes, strides, offsets)):
        raise RuntimeError("the checkpoint has a nested tensor of parts that are no tensors")
    rows = zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=True)
    parts = [buffer.as_strided(*row) for row in rows]
    return sys.modules["cltensor"].nested.nested_tensor(parts, dtype=buffer.dtype)


class Ignored:
    """Stands for an object of torch's compiler that torch attaches to a tensor, and that means nothing here."""

    __slots__ = ()


class Layout:
    """Returns a layout for its name; stands for torch's function that does so."""

    def __call__(self, name: Any) -> Any:
        found = next((kind for kind in _LAYOUTS if str(kind) == name), None)
        if found is None:
            raise RuntimeError(f"layout {name!r} is not supported")
        return found


def _parameter_class() -> Any:
    return sys.modules["cltensor"].nn.Parameter


# torch's names that a file may use -> the objects they resolve to; some are called, others are values.
ALLOWED: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.set": builtin_set,
    "builtins.complex": complex,
    "builtins.bytearray": small_bytearray,
    "_codecs.encode": encode,
    "torch.device": make_device,
    "torch.Size": make_size,
    "torch.Tensor": Tensor,
    "torch._tensor._rebuild_from_type_v2": from_type_v2,
    "torch._utils._rebuild_tensor": tensor_v1,
    "torch._utils._rebuild_tensor_v2": tensor_v2,
    "torch._utils._rebuild_tensor_v3": tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": meta_tensor,
    "torch._utils._rebuild_sparse_tensor": sparse,
    "torch._utils._rebuild_nested_tensor": nested,
    "torch._dynamo.decorators._DimRange": Ignored,
    "torch.nested._internal.nested_tensor._rebuild_njt": jagged,
    "torch._utils._rebuild_parameter": parameter,
    "torch._utils._rebuild_parameter_with_state": parameter_with_state,
    "torch.serialization._get_layout": Layout(),
    "torch.channels_last": channels_last,
    "torch.channels_last_3d": channels_last_3d,
    "torch.contiguous_format": contiguous_format,
    "torch.preserve_format": preserve_format,
    **{f"torch.{dt.name}": dt for dt in dtypes.ALL},
    **STORAGE_TYPES,
}
CALLABLE = frozenset(
    id(v)
    for k, v in ALLOWED.items()
    if callable(v) and k not in ("torch.Tensor",) and not isinstance(v, dtypes.dtype | StorageType)
)


def allowed(name: str) -> Any:
    """Return the object that a name resolves to, None if the name is not allowed."""
    if name == "torch.nested._internal.nested_tensor.NestedTensor":
        return sys.modules["cltensor"].nested.tensor.JaggedTensor
    if name == "torch.nn.parameter.Parameter":
        return _parameter_class()
    return ALLOWED.get(name)


__all__ = ["ALLOWED", "CALLABLE", "NAME_OF", "Ignored", "allowed"]
