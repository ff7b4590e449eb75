"""Sums of sparse tensors over all members: all members' indices and values are gathered, and coalesced.

Owns what is sent of a sparse tensor. Must not know sockets.
"""

from __future__ import annotations

import math
from typing import Any

from ..autograd import no_grad
from ..ops.row import FUNCTIONS
from . import schedules
from .transport import Mesh
from .wire import Memory, scratch


class SparseSum:
    """One member's operand of a sum: its indices and values as they are when the collective is called."""

    def __init__(self, t: Any) -> None:
        with no_grad():
            self._target = t
            mine = t.detach().coalesce()
            self._places, self._values = mine._indices().contiguous(), mine._values().contiguous()
            self._count = FUNCTIONS["full"](
                (1,), self._places.shape[1], dtype=self._places.dtype, device="cpu"
            )
        self.sent = [Memory(x, False) for x in (self._count, self._places, self._values)]

    def run(self, mesh: Mesh) -> None:
        """Gather all members' operands, and write the sum to the tensor."""
        count, places, values = self.sent
        counts = [scratch(count.flat, 1) for _ in range(mesh.size)]
        schedules.all_gather(mesh, count, counts)
        sizes = [int.from_bytes(c.bytes, "little") for c in counts]
        dims, each = self._places.shape[0], math.prod(self._values.shape[1:])
        all_places = [scratch(places.flat, dims * size) for size in sizes]
        schedules.all_gather(mesh, places, all_places)
        all_values = [scratch(values.flat, each * size) for size in sizes]
        schedules.all_gather(mesh, values, all_values)
        target, cat = self._target, FUNCTIONS["cat"]
        with no_grad(), self._places._storage.backend.lock:
            where = cat([m.flat.view(dims, size) for m, size in zip(all_places, sizes)], 1)
            what = [
                m.flat.view(size, *self._values.shape[1:]) for m, size in zip(all_values, sizes)
            ]
            place = self._values.device
            total = FUNCTIONS["sparse_coo_tensor"](
                where.to(place), cat(what).to(place), tuple(target.shape)
            )
            target.copy_(total.coalesce())
