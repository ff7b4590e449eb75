"""Sending objects between processes: a pickle, then the memory of arrays and tensors, which pickling does not copy.

Tensors are sent as host memory. Nothing here knows what the objects mean.
"""

from __future__ import annotations

import io
import pickle
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ...tensor import Tensor
from .collate import HostTensor, to_host


def _receive_tensor(raw: Any, shape: tuple[int, ...], *rest: Any) -> Tensor:
    return HostTensor(np.frombuffer(raw, np.uint8), shape, *rest).made()


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """Pickle a leaf tensor or a HostTensor as a call of `_receive_tensor` on its memory, an out-of-band buffer."""
        if type(obj) is Tensor and obj.is_leaf:
            obj = to_host(obj)
        if type(obj) is not HostTensor:
            return NotImplemented
        raw = pickle.PickleBuffer(obj.array.reshape(-1).view(np.uint8).data)
        return _receive_tensor, (raw, obj.shape, obj.dtype, obj.device, obj.requires_grad)


def send(connection: Connection, obj: Any) -> None:
    """Send an object. One that cannot be pickled raises before anything is sent."""
    text = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    _Pickler(text, 5, buffer_callback=buffers.append).dump(obj)
    connection.send_bytes(len(buffers).to_bytes(4, "little") + text.getbuffer())
    for buffer in buffers:
        connection.send_bytes(buffer.raw())


def receive(connection: Connection) -> Any:
    """Receive an object that `send` sent. EOFError if the other end of the pipe is closed."""
    head = connection.recv_bytes()
    count = int.from_bytes(head[:4], "little")
    buffers = [bytearray(connection.recv_bytes()) for _ in range(count)]
    return pickle.loads(memoryview(head)[4:], buffers=buffers)
