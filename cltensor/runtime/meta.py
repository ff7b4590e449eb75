"""The "meta" device: its tensors have shapes, strides and dtypes, but no memory.

A computation there takes the same path as on any device, down to a backend whose buffers have no memory and whose
launches do nothing; so results have the shape, strides and dtype that they have elsewhere. Reading values raises. Owns
that backend.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from .backend import Backend
from .device import device
from .kernel import Kernel
from .memory import Block, Buffer
from .platforms import DeviceInfo
from .recorder import ACTIVE, Step
from .tuning import Table

_ENDLESS = 1 << 62
_INFO = DeviceInfo(
    kind="cpu", host_shared=False, compute_units=1, lanes=16, native_lanes=16, max_group=1024, local_mem=1 << 20,
    max_alloc=_ENDLESS, global_mem=_ENDLESS, arg_bytes=1 << 12, fp64=True, fp16=True, subgroups=False, int64_atomics=True,
    build_options=(), name="meta", vendor="", platform="", platform_version="", device_version="", driver_version="",
    is_pocl=False, has_memory=False,
)  # fmt: skip
_NOWHERE = SimpleNamespace(int_ptr=0)
_NO_PROGRAM: Any = SimpleNamespace(unsaved=False)
_NO_VALUES = "Cannot copy out of meta tensor; no data!"


class _Pool:
    """A pool of blocks without memory. As in a real pool, blocks taken during a recording belong to its arena."""

    def __init__(self) -> None:
        self.arena: Any = None
        self.dead: list[Any] = []

    def take(self, nbytes: int) -> Block:
        block = Block(0, _NOWHERE, None)
        block.arena = self.arena
        return block

    def close(self, arena: Any) -> None:
        """There is nothing to take back."""


class MetaBackend(Backend):
    """A backend that does nothing. `in_use` does not list it: there is nothing to wait for or to save."""

    def __init__(self) -> None:
        self.device, self.info = device("meta"), _INFO
        self.lock = threading.RLock()
        self.pool: Any = _Pool()
        self.tuned = Table()
        self.team = self.checks = None
        self.unchecked = False
        self.seq = self.finished = 0
        self.pending, self.left = [], []

    def wrap(self, array: np.ndarray) -> Buffer:
        """Refuse: there is no memory."""
        raise RuntimeError("meta cannot use memory of the host in place")

    def empty_cache(self) -> None:
        """There is nothing to give back."""

    def kernel(
        self, name: str, source: str, arg_types: Sequence[Any], options: Sequence[str] = ()
    ) -> Kernel:
        """Return a kernel that is never built."""
        return Kernel(name, None, _NO_PROGRAM, tuple(arg_types), None, lambda *_: None)

    def launch_held(
        self,
        kernel: Kernel,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        args: Sequence[Any],
        nbytes: int = 0,
        flops: int = 0,
    ) -> None:
        """Report the launch to an active recording; launch nothing."""
        if ACTIVE.recorder is not None:
            step = Step(kernel, global_size, local_size, args, nbytes, flops)
            ACTIVE.recorder.launch(self, step)

    def finish(self) -> None:
        """Nothing is ever under way."""

    def write(self, buffer: Buffer, offset_bytes: int, array: np.ndarray) -> None:
        """Discard the values, after reporting the write to an active recording."""
        if ACTIVE.recorder is not None:
            ACTIVE.recorder.write(buffer, offset_bytes, array)

    def copy(self, src: Buffer, src_off: int, dst: Buffer, dst_off: int, nbytes: int) -> None:
        """Report the copy to an active recording; copy nothing."""
        if ACTIVE.recorder is not None and nbytes:
            ACTIVE.recorder.copy(src, src_off, dst, dst_off, nbytes)

    def read(self, buffer: Buffer, offset_bytes: int, nbytes: int) -> NoReturn:
        """Refuse: there are no values."""
        raise NotImplementedError(_NO_VALUES)

    def host_view(self, buffer: Buffer) -> NoReturn:
        """Refuse: there are no values."""
        raise NotImplementedError(_NO_VALUES)


BACKEND = MetaBackend()
