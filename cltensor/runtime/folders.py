"""The folders of compiled kernels, of drivers' files and of the package's own kernel sources.

Owns where they are, and how a file is put there whole. Must not know what it contains.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from pathlib import Path

from cltensor.config import CONFIG


@functools.cache
def cache_dir() -> Path:
    """Return the folder for compiled kernels: CLTENSOR_CACHE_DIR, else the user's cache folder."""
    if CONFIG.cache_dir is not None:
        return CONFIG.cache_dir
    import platformdirs

    return Path(platformdirs.user_cache_dir("cltensor"))


def writable(folder: Path) -> bool:
    """Create `folder` if needed and return whether files can be created in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        os.close(handle)
        os.unlink(name)
    except OSError:
        return False
    return True


def write_whole(path: Path, data: bytes) -> None:
    """Write a file such that other processes see all of it or what was there before. OSError if that fails."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def shipped(name: str) -> Path:
    """Return a folder of the distribution: inside the installed package, or beside the package in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / name
    return inside if inside.is_dir() else package.parent / name
