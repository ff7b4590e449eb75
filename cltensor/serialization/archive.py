"""The container of a checkpoint: a zip file of stored entries under one folder, each aligned to 64 bytes, written atomically.

Knows names and bytes; what the bytes mean is the other modules' business.
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

ALIGNMENT = 64
_HEADER = 30  # bytes of a local zip header before the name
_FIELD = 4  # bytes of an extra field's own header
_ZIP64 = 20  # bytes of the extra field that entries of 4 GiB get

BROKEN = (
    "PytorchStreamReader failed reading zip archive: {}. The file is damaged: it was not written to its end, not transferred completely, or changed "
    "afterwards."
)


def is_path(f: Any) -> bool:
    """Return whether this is a path, not a file object."""
    return isinstance(f, str | os.PathLike)


class _Sink:
    """Wraps a file object that has only `write`, whose return value may be missing."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, data: Any) -> int:
        """Write all of it."""
        self.file.write(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: the wrapped object flushes when it likes."""


@contextmanager
def output(f: Any) -> Iterator[BinaryIO]:
    """Open a path or file object for writing. A path is replaced atomically, and only after success."""
    if not is_path(f):
        if not hasattr(f, "write"):
            raise AttributeError(
                "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
            )
        yield f if hasattr(f, "seek") else _Sink(f)  # type: ignore[misc]
        return
    path = os.fspath(f)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _mode(path: str) -> int:
    """Return the permissions that an ordinary `open` would give the file."""
    if os.path.exists(path):
        return os.stat(path).st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


class Writer:
    """Writes entries of a zip file under one folder, their data aligned."""

    def __init__(self, file: BinaryIO, folder: str) -> None:
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self.folder = folder

    def put(self, name: str, data: Any, *, checked: bool = True) -> None:
        """Write one entry: bytes or a contiguous array of bytes.

        `checked=False` stores no checksum, for data to be filled in later.
        """
        view = memoryview(data)
        info = zipfile.ZipInfo(f"{self.folder}/{name}")
        info.file_size = view.nbytes
        start = self.zip.start_dir + _HEADER + len(info.filename.encode()) + _FIELD
        if info.file_size >= zipfile.ZIP64_LIMIT:
            start += _ZIP64
        pad = -start % ALIGNMENT
        info.extra = b"FB" + pad.to_bytes(2, "little") + b"Z" * pad
        with self.zip.open(info, "w", force_zip64=info.file_size >= zipfile.ZIP64_LIMIT) as entry:
            entry.write(view)
        if not checked:
            info.CRC = 0

    def close(self) -> None:
        """Write the directory at the end."""
        self.zip.close()


class Reader:
    """Reads entries of a checkpoint; RuntimeError for a damaged or missing one."""

    def __init__(self, file: BinaryIO, path: str | None = None) -> None:
        self.path = path
        try:
            self.zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise RuntimeError(BROKEN.format("failed finding central directory")) from error
        self.entries = {info.filename: info for info in self.zip.infolist()}
        pickles = [n for n in self.entries if n.endswith("/data.pkl") and n.count("/") == 1]
        if len(pickles) != 1:
            what = (
                "file in archive is not in a subdirectory"
                if not pickles
                else "more than one data.pkl"
            )
            raise RuntimeError(BROKEN.format(f"{what}: data.pkl"))
        self.folder = pickles[0].partition("/")[0]

    def has(self, name: str) -> bool:
        """Return whether an entry exists."""
        return f"{self.folder}/{name}" in self.entries

    def _info(self, name: str) -> zipfile.ZipInfo:
        info = self.entries.get(f"{self.folder}/{name}")
        if info is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise RuntimeError(BROKEN.format(f"entry {name} is compressed or encrypted"))
        return info

    def size(self, name: str) -> int:
        """Return the size of an entry in bytes."""
        return self._info(name).file_size

    def get(self, name: str) -> bytes:
        """Return an entry's bytes, checked against its checksum."""
        info = self._info(name)
        try:
            with self.zip.open(info) as entry:
                if not info.CRC:  # written by `put(checked=False)`, filled in later
                    entry._expected_crc = None  # type: ignore[attr-defined]
                data = entry.read()
        except (zipfile.BadZipFile, EOFError, ValueError, OSError, NotImplementedError) as error:
            raise RuntimeError(BROKEN.format(f"failed reading file {name}: {error}")) from error
        if len(data) != info.file_size:
            raise RuntimeError(BROKEN.format(f"file {name} is cut short"))
        return data

    def map(self, name: str) -> np.ndarray:
        """Map an entry of a file on disk into memory; pages are read on access."""
        info = self._info(name)
        if not info.file_size:
            return np.empty(0, np.uint8)
        try:
            with self.zip.open(info) as entry:
                start = entry._orig_compress_start  # type: ignore[attr-defined]
            return np.memmap(str(self.path), np.uint8, "r", offset=start, shape=(info.file_size,))
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise RuntimeError(BROKEN.format(f"failed mapping file {name}: {error}")) from error


def is_zip(file: BinaryIO) -> bool:
    """Return whether the file starts like a zip file; its position is kept."""
    at = file.tell()
    start = file.read(4)
    file.seek(at)
    return start == b"PK\x03\x04"


@contextmanager
def source(f: Any) -> Iterator[tuple[BinaryIO, str | None]]:
    """Open a path or file object for reading; yield the file, and its path if it has one."""
    if is_path(f):
        with open(f, "rb") as file:
            yield file, os.fspath(f)
        return
    if not hasattr(f, "read"):
        raise AttributeError(
            f"'{type(f).__name__}' object has no attribute 'seek'. You can only torch.load from a file that is seekable. Please pre-load the data into "
            "a buffer like io.BytesIO and try to load from it instead."
        )
    seekable = getattr(f, "seekable", None)
    if seekable is None or not seekable() or not hasattr(f, "seek"):
        yield io.BytesIO(f.read()), None
        return
    yield f, None
