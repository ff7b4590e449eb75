"""Storage: the cell that tensors share. It holds a buffer or a pending expression, and knows who may see its memory.

Note [In place]. A write that covers the whole storage replaces the cell's value by a new expression; the old buffer stays as
`home`, and the new value is written into it if only the kernel that computes the new value can still read it. A write
that covers a part realises the cell, runs the pending readers of its buffer, then writes the region at once. A
storage whose address the user's code has asked for (`pinned`) is always written in its present buffer; while numpy sees
its memory, every op that reads or writes it runs at once.

Versions are not kept here but in a counter that a tensor shares with its views: `.data` shares memory but has its own
counter.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from . import lazy
from .codegen import checks
from .lazy import Expr
from .runtime import Backend, Buffer

_new = object.__new__


def new_storage(backend: Backend, value: Buffer | Expr, nbytes: int) -> Storage:
    """Make a Storage that holds a buffer or an expression; in half the time that a class with an `__init__` takes."""
    storage = _new(Storage)
    storage.backend, storage.value, storage.nbytes = backend, value, nbytes
    storage.home, storage.reads, storage.pinned, storage.reduced = None, 0, False, False
    return storage


class Storage:
    """Memory of `nbytes` bytes on one device, shared by all tensors that are views of it. Made by `new_storage`."""

    __slots__ = ("__weakref__", "backend", "home", "nbytes", "pinned", "reads", "reduced", "value")

    backend: Backend
    value: Any  # a Buffer, or an Expr while it is pending
    nbytes: int
    home: Buffer | None
    reads: int  # number of leaves made of the current buffer, see Fusion.only_reader
    pinned: bool
    reduced: bool  # whether a reduction has already computed the pending value itself

    @classmethod
    def empty(cls, backend: Backend, nbytes: int) -> Storage:
        """Allocate memory of undefined content."""
        return new_storage(backend, backend.alloc(nbytes), nbytes)

    @staticmethod
    def pending(backend: Backend, expr: Expr) -> Storage:
        """Make a storage that holds an expression until its values are needed."""
        storage = new_storage(backend, expr, prod(expr.shape) * expr.dtype.itemsize)
        lazy.register(backend, storage, expr)
        return storage

    @classmethod
    def from_host(cls, backend: Backend, array: np.ndarray) -> Storage:
        """Copy a contiguous numpy array's memory to the device."""
        storage = cls.empty(backend, array.nbytes)
        if array.nbytes:
            backend.write(storage.value, 0, array)
        return storage

    @property
    def waits(self) -> bool:
        """Whether the value is a pending expression."""
        return self.value.__class__ is Expr

    @property
    def shared(self) -> bool:
        """Whether numpy can see the memory now."""
        value = self.value
        return value.__class__ is not Expr and value.exported

    def buffer(self) -> Buffer:
        """Return the memory; a pending value is computed first."""
        if self.value.__class__ is Expr:
            lazy.realise(self)
        return self.value

    def replace(self, expr: Expr) -> None:
        """Give the whole storage a new pending value (see Note [In place])."""
        if self.value.__class__ is not Expr:
            self.home = self.value
        self.value, self.reduced = expr, False
        lazy.register(self.backend, self, expr)

    def renew(self, buffer: Buffer) -> None:
        """Give the whole storage a new value that is computed; `pinned` and `shared` storages must be written instead."""
        self.value, self.home, self.reads, self.reduced = buffer, None, 0, False

    def for_write(self, value: Storage | None = None) -> Buffer:
        """Return the memory, ready to be written in part: all pending expressions that read its old content have run.

        `value`: a pending storage that is not run, because its values are needed for this write only.
        """
        buffer = self.buffer()
        lazy.run_readers(self, value)
        return buffer

    def host(self, offset: int = 0, nbytes: int | None = None) -> np.ndarray:
        """Return bytes for the host: the memory itself if the device shares the host's memory, else a copy."""
        buffer = self.buffer()
        nbytes = self.nbytes - offset if nbytes is None else nbytes
        if self.backend.info.host_shared:
            if self.backend.unchecked:
                checks.flush_checks(self.backend)
            return self.backend.host_view(buffer)[offset : offset + nbytes]
        data = self.backend.read(buffer, offset, nbytes)
        checks.flush_checks(self.backend)  # raises before results of a bad index can be seen
        return data

    def resize(self, nbytes: int) -> None:
        """Change the size, keeping the content that fits; all tensors on this storage see the new memory."""
        old = self.buffer()
        fresh = self.backend.alloc(nbytes)
        if min(nbytes, self.nbytes):
            self.backend.copy(old, 0, fresh, 0, min(nbytes, self.nbytes))
        self.value, self.nbytes, self.reads = fresh, nbytes, 0

    def data_ptr(self) -> int:
        """Return the address, which does not change from now on.

        All pending work on the memory is done, so that the host can read and write there if it shares the memory.
        """
        self.pinned = True
        buffer, backend = self.for_write(), self.backend
        if backend.info.host_shared:
            buffer.told = True  # permanently: nothing tells when the address is no longer used
            if buffer.seq > backend.finished:
                backend.finish()
        return buffer.address

    def __deepcopy__(self, memo: dict[int, Any]) -> Storage:
        copy = memo.get(id(self))
        if copy is None:
            fresh = self.backend.alloc(self.nbytes)
            if self.nbytes:
                self.backend.copy(self.buffer(), 0, fresh, 0, self.nbytes)
            copy = memo[id(self)] = new_storage(self.backend, fresh, self.nbytes)
        return copy
