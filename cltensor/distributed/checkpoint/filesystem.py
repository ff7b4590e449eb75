"""A checkpoint's folder: `__<rank>_0.distcp` holds the entries of a process one after another, each as `save` writes it,
`.metadata` what they are and where.
"""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import serialization
from ...serialization.pickler import TorchPickler
from ...serialization.unpickler import WeightsUnpickler, refuse, safe_globals
from . import metadata
from .metadata import Metadata

_METADATA = ".metadata"
_PROTOCOL = 4  # of the pickle in it, as torch's


@dataclass
class _StorageInfo:
    """Where an entry is: a file of the folder, and the bytes of it."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: list[str] | None = None


def _storage_refused(pid: Any) -> Any:
    raise refuse("the metadata of a checkpoint holds no tensors")


class FileSystemWriter:
    """Writes the entries of a process, and the metadata, into a folder, which is made if it does not exist.

    The options that torch has for threads, caches and single files have no effect.
    """

    def __init__(self, path: str | os.PathLike[str], *options: Any, **named: Any) -> None:
        self.path = Path(path)

    def write(self, rank: int, entries: Mapping[str, Any]) -> dict[str, _StorageInfo]:
        """Write a process's entries; return the place of each."""
        self.path.mkdir(parents=True, exist_ok=True)
        name, places = f"__{rank}_0.distcp", {}
        with open(self.path / name, "wb") as file:
            for key, value in entries.items():
                content = io.BytesIO()
                serialization.save(value, content)
                places[key] = _StorageInfo(name, file.tell(), content.tell())
                file.write(content.getbuffer())
        return places

    def write_metadata(self, content: Metadata) -> None:
        """Write the metadata; a folder without it is no checkpoint, so it is the last thing to write."""
        partial = self.path / f"{_METADATA}.tmp"
        with open(partial, "wb") as file:
            TorchPickler(file, _PROTOCOL).dump(content)
        partial.replace(self.path / _METADATA)


class FileSystemReader:
    """Reads entries from a folder that this library or torch has written. Builds plain values and tensors only."""

    def __init__(self, path: str | os.PathLike[str], *options: Any, **named: Any) -> None:
        self.path = Path(path)

    def read_metadata(self) -> Metadata:
        """Return what the checkpoint holds; FileNotFoundError if the folder is none."""
        content = (self.path / _METADATA).read_bytes()
        named = {name: getattr(metadata, name) for name in _CLASSES}
        kinds: list[Any] = [
            *named.values(),
            *[(kind, f"torch.distributed.checkpoint.{name}") for name, kind in named.items()],
            _StorageInfo,
            *[(Path, f"{home}.{kind.__name__}") for kind in _PATHS for home in _PATH_HOMES],
        ]
        with safe_globals(kinds):
            found: Metadata = WeightsUnpickler(content, _storage_refused).load()
        return found

    def read(self, place: _StorageInfo) -> Any:
        """Return an entry."""
        with open(self.path / place.relative_path, "rb") as file:
            file.seek(place.offset)
            return serialization.load(io.BytesIO(file.read(place.length)), map_location="cpu")


_CLASSES = (
    *("BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta"),
    *("TensorProperties", "TensorStorageMetadata", "_MEM_FORMAT_ENCODING"),
)
_PATHS = (pathlib.PurePosixPath, pathlib.PosixPath, pathlib.WindowsPath)
_PATH_HOMES = ("pathlib", "pathlib._local")  # the second in Python 3.13
