"""Tensors as bytes to be sent, and as memory that bytes land in.

What the host sees and what lies dense is sent from, and received into, its own memory. Any other tensor has a dense copy on the cpu
device, which is sent or received instead and copied back when the collective is over. Both are made when a collective is called, so
that what was computed before is what is sent, whichever thread sends it.

Owns that memory. Must not know who it goes to.
"""

from __future__ import annotations

from typing import Any

from ..autograd import no_grad
from ..ops.row import FUNCTIONS
from ..runtime import device
from ..tensor import Tensor

_CPU = device("cpu")


def plain(t: Tensor) -> Tensor:
    """Return a tensor of real numbers on the same memory, without history."""
    with no_grad():
        t = t.detach()
        return FUNCTIONS["view_as_real"](t) if t.is_complex() else t


class Memory:
    """A tensor's elements side by side in memory of the host, in the order of its dimensions.

    flat: them as a tensor of one dimension; bytes: as bytes. written: whether they will be received, so that the tensor gets
    them by `deliver`. read: whether they are wanted as they are.
    """

    def __init__(self, t: Tensor, written: bool, read: bool = True) -> None:
        with no_grad():
            self._target = t = plain(t)
            storage = t._storage
            self.direct = storage.backend.info.host_shared and t.is_contiguous()
            if self.direct:
                dense = t
            elif read:
                dense = t.to(_CPU).contiguous()
                if dense is t:
                    dense = t.clone()
            else:
                dense = FUNCTIONS["empty"](t.shape, dtype=t.dtype, device=_CPU)
            self._written = written
            self.flat = flat = dense.view(-1)
            storage, size = flat._storage, flat.dtype.itemsize
            self.bytes = memoryview(b"")
            if flat.numel():
                with storage.backend.lock:
                    if written:
                        storage.for_write()
                    self.bytes = storage.host(flat._offset * size, flat.numel() * size).data
                    self._buffer = storage.buffer()  # kept: the bytes are a view of its memory
        self._pins = not storage.pinned
        storage.pinned = True  # writes go where the bytes are

    def part(self, start: int, stop: int) -> memoryview:
        """Return the bytes of some elements, when what has been launched on the memory is done."""
        size = self.flat.dtype.itemsize
        if self.bytes:
            self.flat._storage.backend.host_view(self._buffer)
        return self.bytes[start * size : stop * size]

    def deliver(self) -> None:
        """Give the tensor what was received."""
        if self._pins:
            self.flat._storage.pinned = False
        if self._written and not self.direct:
            with no_grad(), self._target._storage.backend.lock:
                self._target.copy_(self.flat.view(self._target.shape))
                self._target._storage.buffer()


def scratch(like: Tensor, count: int) -> Memory:
    """Return memory for so many elements of a tensor's kind, on the cpu device, of undefined content."""
    return Memory(FUNCTIONS["empty"]((count,), dtype=like.dtype, device=_CPU), True)


def is_tensor(value: Any) -> bool:
    """Tell whether something is a tensor."""
    return isinstance(value, Tensor)
