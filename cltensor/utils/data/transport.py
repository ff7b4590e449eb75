"""How objects travel between processes: a pickle and, beside it, the memory of arrays and tensors, uncopied.

Tensors travel as host memory. Nothing here knows what the objects mean.
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
        """Send a tensor as its bytes."""
        if type(obj) is Tensor and obj.is_leaf:
            obj = to_host(obj)
        if type(obj) is not HostTensor:
            return NotImplemented
        raw = pickle.PickleBuffer(obj.array.reshape(-1).view(np.uint8).data)
        return _receive_tensor, (raw, obj.shape, obj.dtype, obj.device, obj.requires_grad)


def send(connection: Connection, obj: Any) -> None:
    """Send an object. What cannot be pickled raises before anything is sent."""
    text = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    _Pickler(text, 5, buffer_callback=buffers.append).dump(obj)
    connection.send_bytes(len(buffers).to_bytes(4, "little") + text.getbuffer())
    for buffer in buffers:
        connection.send_bytes(buffer.raw())


def receive(connection: Connection) -> Any:
    """Receive what `send` sent. EOFError where the other side is gone."""
    head = connection.recv_bytes()
    count = int.from_bytes(head[:4], "little")
    buffers = [bytearray(connection.recv_bytes()) for _ in range(count)]
    return pickle.loads(memoryview(head)[4:], buffers=buffers)
