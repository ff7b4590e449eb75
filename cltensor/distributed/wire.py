"""Tensors as bytes to send, and as memory to receive into.

A contiguous tensor whose memory the host shares is sent from, and received into, its own memory. Any other tensor gets
a dense copy on the cpu device, which is sent or received instead and copied back when the collective is over. Either is
prepared when the collective is called, so that the tensor's values at that time are sent, whichever thread sends them.

Owns that memory. Must not know who it is sent to.
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
    """A tensor's elements in host memory, contiguous and in row-major order.

    `flat`: the elements as a 1-D tensor; `bytes`: as bytes. written: whether elements will be received, which `deliver`
    then gives to the tensor. read: whether the tensor's present elements are needed.
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
                    self._buffer = storage.buffer()  # kept alive: `bytes` is a view of its memory
        self._pins = not storage.pinned
        storage.pinned = True  # writes in place must not move the storage to other memory

    def part(self, start: int, stop: int) -> memoryview:
        """Return the bytes of elements `start` to `stop`, after waiting for the launches on this memory."""
        size = self.flat.dtype.itemsize
        if self.bytes:
            self.flat._storage.backend.host_view(self._buffer)
        return self.bytes[start * size : stop * size]

    def deliver(self) -> None:
        """Copy what was received to the tensor, if it is not in its memory already."""
        if self._pins:
            self.flat._storage.pinned = False
        if self._written and not self.direct:
            with no_grad(), self._target._storage.backend.lock:
                self._target.copy_(self.flat.view(self._target.shape))
                self._target._storage.buffer()


def scratch(like: Tensor, count: int) -> Memory:
    """Return memory for `count` elements of the dtype of `like`, on the cpu device, of undefined content."""
    return Memory(FUNCTIONS["empty"]((count,), dtype=like.dtype, device=_CPU), True)


def is_tensor(value: Any) -> bool:
    """Tell whether something is a tensor."""
    return isinstance(value, Tensor)
