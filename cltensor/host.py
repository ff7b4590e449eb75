"""Tensors as numpy arrays on the host: a snapshot, or the memory itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes, layouts
from .dtypes import dtype
from .runtime import Buffer

if TYPE_CHECKING:
    from .tensor import Tensor


class _Export:
    """Keeps a buffer alive and marked as exported as long as a numpy array uses its memory."""

    def __init__(self, buffer: Buffer, interface: dict[str, Any]) -> None:
        self.buffer, self.__array_interface__ = buffer, interface
        buffer.export()

    def __del__(self) -> None:
        self.buffer.unexport()


def host_array(t: Tensor) -> np.ndarray:
    """Return a tensor's elements with its strides: a snapshot or the memory itself, so not to be kept.

    bfloat16 is uint16 here, complex32 uint16 with a last dim of 2 for the components.
    """
    size = t.dtype.itemsize
    kind = t.dtype.np
    pair = kind is None and size == 4
    base = np.dtype(np.uint16) if kind is None else kind
    full = (*t.shape, 2) if pair else tuple(t.shape)
    if not t.numel():
        return np.empty(full, base)
    extent = layouts.storage_extent(tuple(t.shape), t._strides, t._offset)
    start = t._offset * size
    raw = t._storage.host(start, extent * size - start)
    strides = tuple([s * size for s in t._strides])
    return np.ndarray(full, base, raw, 0, (*strides, 2) if pair else strides)


def widen(bits: np.ndarray, dt: dtype) -> np.ndarray:
    """Return the values of `host_array` for dtypes that numpy lacks: float32 for bfloat16, complex64 for complex32."""
    if dt is dtypes.bfloat16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    halves = np.ascontiguousarray(bits).view(np.float16).astype(np.float32)
    return np.ascontiguousarray(halves).view(np.complex64)[..., 0]


def shared_array(t: Tensor) -> np.ndarray:
    """Return a numpy array on the memory of a tensor; a copy if the host cannot access this memory."""
    storage = t._storage
    size = t.dtype.itemsize
    if not t.numel() or not storage.backend.info.host_shared:
        return host_array(t).copy()
    buffer = storage.for_write()  # numpy may write: pending readers of the memory must run before
    storage.backend.host_view(buffer)
    storage.pinned = True
    interface = {
        "data": (buffer.address + t._offset * size, False),
        "shape": tuple(t.shape),
        "strides": tuple(s * size for s in t._strides),
        "typestr": t.dtype.np.str,
        "version": 3,
    }
    return np.asarray(_Export(buffer, interface))


def mapped_file(filename: str | os.PathLike, shared: bool, nbytes: int) -> np.ndarray:
    """Map the first bytes of a file into memory. shared: writes change the file, which is made or grown as needed.

    RuntimeError, in torch's words, if the file cannot be opened or is too short.
    """
    path = os.fspath(filename)
    try:
        if shared:
            with open(path, "ab") as file:
                if file.tell() < nbytes:
                    file.truncate(nbytes)
        elif os.path.getsize(path) < nbytes:
            raise RuntimeError(
                f"file <{path}> size <{os.path.getsize(path)}> is smaller than the required mapping size <{nbytes}>"
            )
    except OSError as error:
        how = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{path}> in {how} mode: {error.strerror} ({error.errno})"
        ) from None
    return np.asarray(np.memmap(path, np.uint8, "r+" if shared else "c", shape=(nbytes,)))
