"""The disk cache of compiled kernels: a file for each program's binary, named by the program's key.

Owns the files, their checks and their number. Must not know what a key or a binary contains.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import warnings
from pathlib import Path

from cltensor.config import CONFIG
from cltensor.errors import debug_line

from .folders import cache_dir, write_whole

_MAGIC = b"cltensor kernel 1\n"
_PRUNE_EVERY = 64  # saves between two looks at the size of the cache
_saves = 0
_trouble = False  # whether a write has failed


def folder() -> Path:
    """Return the folder of the compiled kernels."""
    return cache_dir() / "kernels"


def _entry(key: str) -> Path:
    return folder() / f"{key}.bin"


def read(key: str) -> bytes | None:
    """Return the binary saved under `key`; None if there is none or it is damaged."""
    if CONFIG.cache_size == 0:
        return None
    path = _entry(key)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 32
    payload = data[head:]
    if not data.startswith(_MAGIC) or data[len(_MAGIC) : head] != _checksum(key, payload):
        debug_line(1, "damaged entry in the kernel cache, rebuilding it: %s", path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # `prune` deletes the entries used least recently
    return payload


def write(key: str, binary: bytes) -> None:
    """Save `binary` under `key`, atomically. The first failure warns and ends saving for this process; none raises."""
    global _saves, _trouble
    if CONFIG.cache_size == 0 or _trouble:
        return
    path = _entry(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, _MAGIC + _checksum(key, binary) + binary)
    except OSError as error:
        _trouble = True
        warnings.warn(
            f"cltensor cannot save compiled kernels in {path.parent} ({error}): they will be "
            "compiled again in every process. Set CLTENSOR_CACHE_DIR to a folder that is writable "
            "and has room.",
            stacklevel=2,
        )
        return
    if _saves % _PRUNE_EVERY == 0:
        prune(CONFIG.cache_size)
    _saves += 1


def prune(limit: int) -> None:
    """Delete the least recently used entries until at most `limit` bytes are left."""
    entries = []
    now = time.time()
    try:
        with os.scandir(folder()) as scan:
            for item in scan:
                with contextlib.suppress(OSError):
                    stat = item.stat()
                    if item.name.endswith(".tmp") and now - stat.st_mtime > 3600:
                        os.unlink(item.path)  # left by a killed process
                    elif item.name.endswith(".bin"):
                        entries.append((stat.st_mtime, stat.st_size, item.path))
    except OSError:
        return
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= limit * 4 // 5:
            break


def usage() -> tuple[int, int]:
    """Return how many kernels the disk cache holds and their bytes."""
    sizes = []
    with contextlib.suppress(OSError), os.scandir(folder()) as scan:
        for item in scan:
            if item.name.endswith(".bin"):
                with contextlib.suppress(OSError):
                    sizes.append(item.stat().st_size)
    return len(sizes), sum(sizes)


def _checksum(key: str, payload: bytes) -> bytes:
    return hashlib.sha256(key.encode() + payload).digest()
