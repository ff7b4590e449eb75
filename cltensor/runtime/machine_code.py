"""Finding and loading the machine code inside a program binary of PoCL 3.

The binary contains files, among them for each kernel a shared library for any work-group size, and the sizes of the
kernel's local arrays. The library's function `_pocl_kernel_NAME_workgroup_fast` takes an array of pointers (addresses
of buffers, of numbers, of local arrays), then the context, then the index of the work-group along x, y and z.

Owns the binary's format. Must not know who calls the functions.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import tempfile
from typing import Any, NamedTuple

_MAGIC = b"poclbin\0"
_VERSION = 8
# Bytes between the number of local arrays and their sizes; they hold the required work-group size.
_BEFORE_LOCALS = 24
_MOST_LOCALS = 32
_RTLD_NOW = 2


class Function(NamedTuple):
    """A kernel's machine code: the function's address, and the size in bytes of each of its local arrays."""

    address: int
    local_sizes: tuple[int, ...]


def known(binary: bytes) -> bool:
    """Return whether a binary has the format version that this module understands."""
    return binary.startswith(_MAGIC) and struct.unpack_from("<I", binary, 16)[0] == _VERSION


def load(binary: bytes, name: str, arguments: int) -> Function:
    """Load the code of the kernel `name`, never to be unloaded.

    RuntimeError where the binary's format is unexpected.
    """
    if not known(binary):
        raise RuntimeError("a binary of another version")
    word = name.encode()
    path = b"/%s/0-0-0/%s.so" % (word, word)
    library = binary.find(struct.pack("<I", len(path)) + path)
    record = struct.pack("<I", len(word)) + word + struct.pack("<I", arguments)
    kernel = binary.rfind(record, 0, max(library, 0))
    if library < 0 or kernel < 0:
        raise RuntimeError("a binary without its machine code")
    start = library + 4 + len(path)
    (size,) = struct.unpack_from("<I", binary, start)
    code = binary[start + 4 : start + 4 + size]
    (count,) = struct.unpack_from("<I", binary, kernel + len(record))
    if not code.startswith(b"\x7fELF") or len(code) != size or count > _MOST_LOCALS:
        raise RuntimeError("a binary that is not as we know it")
    sizes = struct.unpack_from(f"<{count}Q", binary, kernel + len(record) + 4 + _BEFORE_LOCALS)
    return Function(_address(code, f"_pocl_kernel_{name}_workgroup_fast"), sizes)


def _address(code: bytes, symbol: str) -> int:
    """Load a shared library and return the symbol's address.

    The file, in PoCL's cache folder, is deleted once loaded.
    """
    try:
        with tempfile.NamedTemporaryFile(
            suffix=".so", dir=os.environ.get("POCL_CACHE_DIR")
        ) as file:
            file.write(code)
            file.flush()
            library = _libc().dlopen(file.name.encode(), _RTLD_NOW)
    except OSError as error:
        raise RuntimeError(f"{symbol} cannot be loaded: {error}") from error
    address = _libc().dlsym(library, symbol.encode()) if library else None
    if not address:
        raise RuntimeError(f"{symbol} cannot be loaded: {(_libc().dlerror() or b'').decode()}")
    return int(address)


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    libc.dlopen.restype, libc.dlopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
    libc.dlsym.restype, libc.dlsym.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
    libc.dlerror.restype = ctypes.c_char_p
    return libc
