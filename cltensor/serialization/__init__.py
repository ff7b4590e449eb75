"""`save` and `load`: checkpoints in torch's own file format, written for torch to read and read without torch.

A file is a zip of a pickle that names tensors by their storages, and of one entry per storage. Views that share memory share it
again after loading. Loading is safe by default: only tensors, containers and plain values are built.
"""

from __future__ import annotations

import io
import os
import pickle
import random
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from .. import storage as cells
from ..storage import Storage
from ..storages import TypedStorage, UntypedStorage
from . import archive, options, rebuild
from .archive import Reader, Writer, is_path, is_zip
from .inspection import (
    LoadEndianness,
    SourceChangeWarning,
    get_default_load_endianness,
    get_unsafe_globals_in_checkpoint,
    set_default_load_endianness,
)
from .options import (
    check_module_version_greater_or_equal,
    get_crc32_options,
    get_default_mmap_options,
    set_crc32_options,
    set_default_mmap_options,
)
from .packages import _package_registry as _package_registry
from .packages import (
    default_restore_location,
    location_tag,
    normalize_storage_type,
    register_package,
)
from .pickler import TorchPickler
from .rebuild import StorageType, dtype_of, loaded
from .unpickler import (
    WeightsUnpickler,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    load_all,
    refuse,
    safe_globals,
)

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]


class _Skip(threading.local):
    data = False


_skip = _Skip()


class skip_data:
    """Context in which `save` writes zeros for storages, to be filled in later, and `load` gives zeros without reading them.

    materialize_fake_tensors: accepted and ignored.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = _skip.data
        _skip.data = True

    def __exit__(self, *error: Any) -> None:
        _skip.data = self._before


_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
DEFAULT_PROTOCOL = 2  # of pickle; torch's default


def save(
    obj: object,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a path or a file object open for binary writing.

    A file at a path is replaced only once everything is written. RuntimeError if the folder does not exist; objects
    that cannot be pickled raise pickle's own error.
    """
    if not _use_new_zipfile_serialization:
        with archive.output(f) as file:
            _save_legacy(obj, file, pickle_protocol)
        return
    text = io.BytesIO()
    pickler = TorchPickler(text, pickle_protocol)
    pickler.dump(obj)
    folder = "archive"
    if is_path(f):
        folder = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
    with archive.output(f) as file:
        writer = Writer(file, folder)
        writer.put("data.pkl", text.getbuffer())
        writer.put(".format_version", b"1")
        writer.put(".storage_alignment", b"64")
        if not _disable_byteorder_record:
            writer.put("byteorder", sys.byteorder.encode())
        for key, storage in enumerate(pickler.storages):
            if _skip.data:
                writer.put(f"data/{key}", bytes(storage.nbytes), checked=False)
            else:
                writer.put(f"data/{key}", storage.host() if storage.nbytes else b"")
        writer.put("version", b"3\n")
        writer.put(
            ".data/serialization_id", f"{random.SystemRandom().randrange(10**40):040d}".encode()
        )
        writer.close()


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` (or torch) wrote, from a path or a file object open for binary reading.

    map_location: a device or its name, a dict from location to location, or a function of a storage and its location.
    weights_only (the default): build tensors, containers, plain values and what `add_safe_globals` names; UnpicklingError
    for anything else. With False the file can run any code: only for files you trust.
    mmap: read storages from disk when they are copied to their device, not before (path only).
    RuntimeError for a damaged file, EOFError for an empty one.
    """
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap is None:
        mmap = options.load.mmap
    if mmap and not is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    pickle_load_args.setdefault("encoding", "utf-8")
    how = (weights_only, pickle_module, pickle_load_args)
    place = rebuild.placement(map_location)
    with archive.source(f) as (file, path):
        if not file.read(1):
            raise EOFError("Ran out of input")
        file.seek(-1, os.SEEK_CUR)
        if is_zip(file):
            reader = Reader(file, path)
            storages = _ZipStorages(reader, place, mmap)
            return _unpickle(io.BytesIO(reader.get("data.pkl")), storages, *how)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved in the zip format, please save your checkpoint with it in order to use mmap."
            )
        return _load_legacy(file, place, *how)


def _unpickle(
    file: io.BytesIO,
    storages: Callable[[Any], Any],
    weights_only: bool,
    pickle_module: Any,
    kwargs: dict[str, Any],
) -> Any:
    if weights_only:
        return WeightsUnpickler(file.getvalue(), storages, kwargs["encoding"]).load()
    return load_all(file, storages, pickle_module, **kwargs)


Place = Callable[[Storage | None, str], Any]
MAP_LOCATION = Any  # torch's name for the type of `map_location`
Memory = UntypedStorage | TypedStorage


def _settle(data: np.ndarray, dt: Any, place: Place, location: str) -> Memory:
    """Copy a storage's bytes to the device that `place` gives for the location; return the storage object."""
    target = place(None, location)
    if target is None:
        host = rebuild.locate("cpu")
        storage = rebuild.make_storage(data, host)
        made = place(storage, location)
        if isinstance(made, Storage):
            return loaded(made, dt, made.backend.device)
        if made == host:
            return loaded(storage, dt, host)
        target = made
    return loaded(rebuild.make_storage(data, target), dt, target)


def _check_id(pid: Any) -> tuple[Any, str, str, int]:
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] not in ("storage", b"storage"):
        raise refuse(
            f"Unknown typename for persistent_load, expected 'storage' but got {pid[0]!r}"
            if isinstance(pid, tuple) and pid
            else "a storage without a name"
        )
    kind, key, location, count = pid[1:5]
    key, location = (v.decode() if isinstance(v, bytes) else v for v in (key, location))
    if (
        not isinstance(kind, StorageType)
        or not isinstance(key, str)
        or not isinstance(location, str)
        or count.__class__ is not int
        or count < 0
    ):
        raise refuse("a storage is described in a way no checkpoint does")
    return kind.dtype, key, location, count


_UNTOLD = {
    None: "little",
    LoadEndianness.NATIVE: sys.byteorder,
    LoadEndianness.LITTLE: "little",
    LoadEndianness.BIG: "big",
}


class _ZipStorages:
    """Loads the storages of a zip file by their persistent ids, each once."""

    def __init__(self, reader: Reader, place: Place, mapped: bool) -> None:
        self.reader, self.place, self.mapped = reader, place, mapped
        self.found: dict[str, Memory] = {}
        order = (
            reader.get("byteorder").decode("ascii", "replace")
            if reader.has("byteorder")
            else _UNTOLD[get_default_load_endianness()]
        )
        if order not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {order}")
        self.swap = order != sys.byteorder

    def __call__(self, pid: Any) -> Memory:
        dt, key, location, count = _check_id(pid)
        known = self.found.get(key)
        if known is not None:
            return known if dtype_of(known) is dt else loaded(known._storage, dt, known.device)
        nbytes = count * (dt.itemsize if dt is not None else 1)
        name = f"data/{key}"
        if self.reader.size(name) != nbytes:
            raise RuntimeError(
                f"the checkpoint is damaged: storage {key} has {self.reader.size(name)} bytes where its tensors expect {nbytes}"
            )
        if _skip.data:
            data = np.zeros(nbytes, np.uint8)
        elif self.mapped:
            data = self.reader.map(name)
        else:
            data = np.frombuffer(self.reader.get(name), np.uint8)
        if self.swap:
            data = rebuild.swap_bytes(data, dt)
        made = self.found[key] = _settle(data, dt, self.place, location)
        return made


# ------------------------------------------------------------------------------------------- the older format


class _LateStorages:
    """Storages of the older format, whose bytes follow the pickle: allocated when the pickle names them, filled later."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.found: dict[str, tuple[Memory, int]] = {}
        self.limit = 0

    def __call__(self, pid: Any) -> Memory:
        dt, key, location, count = _check_id(pid)
        if len(pid) > 5 and pid[5] is not None:
            raise refuse("views of storages are not supported in the older format")
        if key not in self.found:
            nbytes = count * (dt.itemsize if dt is not None else 1)
            if nbytes > self.limit:
                raise RuntimeError(
                    f"the checkpoint is damaged: storage {key} should have {nbytes} bytes, the file has {self.limit}"
                )
            self.found[key] = _settle(np.zeros(nbytes, np.uint8), dt, self.place, location), count
        known = self.found[key][0]
        return known if dtype_of(known) is dt else loaded(known._storage, dt, known.device)


def _save_legacy(obj: object, file: BinaryIO, protocol: int) -> None:
    """Write the older format: headers, the pickle, the keys of the storages, and each storage's element count and bytes."""
    sizes = {"short": 2, "int": 4, "long": 4}
    machine = {"protocol_version": _LEGACY_PROTOCOL, "little_endian": sys.byteorder == "little", "type_sizes": sizes}  # fmt: skip
    for header in (_LEGACY_MAGIC, _LEGACY_PROTOCOL, machine):
        pickle.dump(header, file, protocol)
    pickler = TorchPickler(file, protocol, views=True)
    pickler.dump(obj)
    storages = {str(key): item for key, item in enumerate(zip(pickler.storages, pickler.counts))}
    pickle.dump(sorted(storages), file, protocol)
    file.flush()
    for key in sorted(storages):
        storage, count = storages[key]
        file.write(count.to_bytes(8, "little"))
        if storage.nbytes:
            file.write(storage.host().tobytes())
    file.flush()


def _load_legacy(
    file: BinaryIO, place: Place, weights_only: bool, pickle_module: Any, kwargs: dict[str, Any]
) -> Any:
    """Read the older format; leave the file position just after the data."""
    start, data = file.tell(), file.read()
    storages = _LateStorages(place)
    storages.limit = len(data)
    machine = WeightsUnpickler(data, storages, kwargs["encoding"])
    if machine.load() != _LEGACY_MAGIC:
        raise pickle.UnpicklingError("Invalid magic number; corrupt file?")
    if machine.load() != _LEGACY_PROTOCOL:
        raise pickle.UnpicklingError("Invalid protocol version of the older checkpoint format")
    info = machine.load()
    with rebuild.checked_later() as checks:
        if weights_only:
            value = machine.load()
        else:
            rest = io.BytesIO(data[machine.at :])
            value = load_all(rest, storages, pickle_module, **kwargs)
            machine.at += rest.tell()
    keys = machine.load()
    at = machine.at
    swap = isinstance(info, dict) and info.get("little_endian", True) != (sys.byteorder == "little")
    for name in keys:
        key = name.decode() if isinstance(name, bytes) else name
        if key not in storages.found:
            raise RuntimeError(f"the checkpoint is damaged: storage {key} belongs to no tensor")
        made, count = storages.found[key]
        nbytes = made.nbytes()
        header = int.from_bytes(data[at : at + 8], "little")
        if header != count or at + 8 + nbytes > len(data):
            raise RuntimeError("the checkpoint is damaged: it ends before its storages do")
        if nbytes:
            raw = np.frombuffer(data, np.uint8, nbytes, at + 8)
            made._storage.backend.write(
                made._storage.buffer(), 0, rebuild.swap_bytes(raw, dtype_of(made)) if swap else raw
            )
        at += 8 + nbytes
    for check in checks:
        check()
    file.seek(start + at)
    return value


def _load_from_bytes(content: bytes) -> Any:
    """Load a storage from the bytes that torch embeds in an ordinary pickle."""
    return load(io.BytesIO(content), weights_only=True)


_get_layout = rebuild.Layout()
cells._load_from_bytes = _load_from_bytes  # type: ignore[attr-defined]  # where torch has it
