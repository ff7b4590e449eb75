"""Device memory: `Buffer`, and the pool of blocks from which buffers are allocated.

Owns size classes, limits and the counters. Must not know kernels, programs or tensors.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from cltensor.config import CONFIG
from cltensor.errors import OutOfMemoryError, format_bytes

from .host_memory import available_memory, physical_memory
from .loader import keep_forever

if TYPE_CHECKING:
    from .backend import Backend

_new = object.__new__

ALIGN = 128
_MIN = 64
_FINE = 1 << 20  # bytes; larger blocks have eight size classes per power of two, smaller ones four
_COMPARED = 32 << 20  # bytes; requests from here on are compared with the host's available memory


@functools.lru_cache(maxsize=4096)
def block_size(nbytes: int) -> int:
    """Return the size class for a request of `nbytes`.

    At most 25 % of the block is unused (above the smallest class).
    """
    if nbytes <= _MIN:
        return _MIN
    shift = nbytes.bit_length() - (4 if nbytes > _FINE else 3)
    step = 1 << (shift if nbytes & (nbytes - 1) else shift - 1)
    return (nbytes + step - 1) // step * step


class Block:
    """A piece of device memory, in use by one Buffer or free in the pool."""

    __slots__ = ("__weakref__", "address", "arena", "cl", "host", "seq", "size")

    def __init__(self, size: int, cl: Any, host: np.ndarray | None) -> None:
        self.size = size
        self.cl = cl
        self.host = host  # the memory itself, host-shared devices only
        # `host.ctypes.data` is the same, but makes an object of a Python class.
        self.address: int = cl.int_ptr if host is None else host.__array_interface__["data"][0]
        self.seq = 0  # the last launch that used it
        self.arena: Arena | None = None  # of the recording that reserves the block, if any


class Arena:
    """The blocks reserved for one recording, whose recorded launches refer to their addresses."""

    def __init__(self) -> None:
        self.free: dict[int, list[Block]] = {}
        self.blocks: list[Block] = []


def new_buffer(backend: Backend, nbytes: int, block: Block, pooled: bool) -> Buffer:
    """Make a Buffer of a block; in half the time that a class with an `__init__` takes."""
    buffer = _new(Buffer)
    buffer.backend, buffer.nbytes, buffer._block = backend, nbytes, block
    buffer.cl, buffer.address, buffer.seq = block.cl, block.address, block.seq
    buffer.exported, buffer.told, buffer._exporters = not pooled, False, 0 if pooled else 1
    return buffer


class Buffer:
    """Device memory of `nbytes` bytes; its block goes back to the pool when the object dies. Made by `new_buffer`."""

    __slots__ = (
        "__weakref__",
        "_block",
        "_exporters",
        "address",
        "backend",
        "cl",
        "exported",
        "nbytes",
        "seq",
        "told",
    )

    backend: Backend
    nbytes: int
    cl: Any
    address: int
    seq: int  # the last launch that used the memory
    exported: bool
    told: bool  # the address was given out: host code may access the memory at any time
    _exporters: int
    _block: Block

    def export(self) -> None:
        """Mark the memory as visible to numpy, until `unexport` has been called as often as this."""
        self._exporters += 1
        self.exported = True

    def unexport(self) -> None:
        """Undo one `export`: the numpy array that aliased the memory is gone."""
        self._exporters -= 1
        self.exported = self._exporters > 0

    @property
    def arena(self) -> Arena | None:
        """The arena of the recording that reserves the memory; None for ordinary memory."""
        return self._block.arena

    def leave_arena(self) -> None:
        """Make this ordinary memory; correct only if each play binds other memory in its place."""
        arena = self._block.arena
        if arena is not None:
            arena.blocks.remove(self._block)
            self._block.arena = None

    @property
    def host(self) -> np.ndarray | None:
        """A view of the memory as bytes, without waiting for kernels.

        None where the device does not share the host's memory.
        """
        host = self._block.host
        return None if host is None else host[: self.nbytes]

    def __del__(self) -> None:
        # The garbage collector may run this inside the pool's own methods: only append, which is atomic.
        try:
            block = self._block
            block.seq = self.seq
            if block.size > 0:  # else wrapped memory, which is idle: its launches are waited for
                self.backend.pool.dead.append(block)
        except AttributeError:  # __init__ failed, or the interpreter is closing
            pass
        except RuntimeError:  # a forked child: leak the block, for the driver must not be called
            keep_forever(block)

    def __repr__(self) -> str:
        return f"Buffer({self.nbytes} bytes on {self.backend.device})"


class Pool:
    """The blocks of one device by size class. The backend's lock guards everything except `dead`."""

    def __init__(self, backend: Backend) -> None:
        # Blocks whose Buffer died and that `drain` has not counted as free yet.
        self.dead: deque[Block] = deque()
        self._backend = weakref.ref(backend)
        self._free: dict[int, list[Block]] = {}
        self._large: set[Block] = set()  # active blocks worth naming when memory runs out
        self._active = 0
        self._held = 0
        self.peak = 0  # most bytes active at once
        self.peak_held = 0
        self.allocations = 0  # buffers given out
        # Of the recording in progress, for which blocks given out are reserved.
        self.arena: Arena | None = None
        self.created = 0  # blocks that were allocated by the driver
        self.released = 0  # blocks that were given back to it
        self.retries = 0  # requests that the driver fulfilled, if at all, after free blocks had been given back
        self.refused = 0  # requests that ended in OutOfMemoryError
        self.limit: int | None = None  # the most bytes to hold, if the user set any
        info = backend.info
        memory = min(info.global_mem, physical_memory()) if info.host_shared else info.global_mem
        self._usual_cap = CONFIG.pool_cap if CONFIG.pool_cap is not None else memory // 4
        self.cap = self._usual_cap
        self._since = self._counts()

    @property
    def active(self) -> int:
        """Bytes in the blocks of live Buffers."""
        self.drain()
        return self._active

    @property
    def held(self) -> int:
        """Bytes allocated from the device: active blocks and free ones kept for reuse."""
        self.drain()
        return self._held

    def take(self, nbytes: int) -> Block:
        """Return a block of `nbytes` or a little more; OutOfMemoryError when there is none."""
        size = block_size(nbytes)
        arena, dead = self.arena, self.dead
        if dead:
            if arena is None:
                # Before all others the block freed last: it is warm in the cache, and still counted as active.
                try:
                    block = dead.pop()
                    if block.size == size and block.arena is None:
                        self.allocations += 1
                        return block
                    dead.append(block)
                except IndexError:  # another thread has drained them
                    pass
            self.drain()
        blocks = (arena.free if arena is not None else self._free).get(size) or self._free.get(size)
        if blocks:
            block = blocks.pop()
        else:
            block = self._create(size, nbytes)
            self._held += size
            if self._held > self.peak_held:
                self.peak_held = self._held
        if arena is not None and block.arena is None:
            block.arena = arena
            arena.blocks.append(block)
        self.allocations += 1
        self._active = active = self._active + size
        if active > self.peak:
            self.peak = active
        if size >= _FINE:
            self._large.add(block)
        return block

    def drain(self) -> None:
        """Move the blocks of dead Buffers to the free lists, and release memory beyond the pool's cap."""
        dead = self.dead
        while True:
            try:
                block = dead.popleft()
            except IndexError:
                break
            self._active -= block.size
            self._large.discard(block)
            home = self._free if block.arena is None else block.arena.free
            home.setdefault(block.size, []).append(block)
        if self._held - self._active > self.cap:
            self.release(self.cap // 2)

    def close(self, arena: Arena) -> None:
        """Return a recording's blocks to the pool."""
        self.drain()
        backend = self._backend()
        for block in arena.blocks:
            block.arena = None
            if backend is not None:
                block.seq = backend.seq  # the recording may have been played after its buffers died
        for size, blocks in arena.free.items():
            self._free.setdefault(size, []).extend(blocks)
        arena.free, arena.blocks = {}, []

    def release(self, keep: int = 0) -> None:
        """Release free blocks to the device, largest first, until at most `keep` free bytes are left."""
        backend = self._backend()
        if self.dead and keep == 0:
            self.drain()
        if backend is None or self._held == self._active:
            return
        backend.finish()  # commands may still write to host memory that numpy is about to free
        for size in sorted(self._free, reverse=True):
            blocks = self._free[size]
            while blocks and self._held - self._active > keep:
                blocks.pop().cl.release()
                self.released += 1
                self._held -= size
            if not blocks:
                del self._free[size]

    def keep_freed(self, keep: bool) -> None:
        """Keep the blocks of dead Buffers for reuse, up to the usual cap, or release them."""
        self.cap = self._usual_cap if keep else 0
        self.drain()

    def _counts(self) -> tuple[int, ...]:
        return self.allocations, self.created, self.released, self.retries, self.refused

    def counts(self) -> tuple[int, ...]:
        """Return since the start or the last reset: buffers given out, blocks created, blocks released, retries, refusals."""
        return tuple(now - then for now, then in zip(self._counts(), self._since))

    def reset_counts(self) -> None:
        """Start the counts anew."""
        self._since = self._counts()

    def reset_peak(self) -> None:
        """Start the peak counters anew from what is in use now."""
        self.drain()
        self.peak = self._active
        self.peak_held = self._held

    def _create(self, size: int, nbytes: int) -> Block:
        backend = self._backend()
        assert backend is not None
        for attempt in range(2):
            try:
                if self.limit is not None and self._held + size > self.limit:
                    raise MemoryError
                if backend.info.host_shared:
                    block = self._create_host(backend, size)
                else:
                    if size > backend.info.global_mem:
                        raise MemoryError
                    cl = backend.module
                    block = Block(size, cl.Buffer(backend.context, backend.read_write, size), None)
                self.created += 1
                return block
            except (MemoryError, ValueError, OverflowError, backend.module.Error):
                if attempt == 0 and self._held > self._active:
                    self.retries += 1
                    self.release()
                else:
                    break
        self.refused += 1
        raise self.out_of_memory(nbytes) from None

    def _create_host(self, backend: Backend, size: int) -> Block:
        if size >= _COMPARED and size > available_memory():
            raise MemoryError
        raw = np.empty(size + ALIGN, np.uint8)
        start = -raw.ctypes.data % ALIGN
        host = raw[start : start + size]
        flags = backend.read_write | backend.module.mem_flags.USE_HOST_PTR
        return Block(size, backend.module.Buffer(backend.context, flags, hostbuf=host), host)

    def out_of_memory(self, nbytes: int) -> OutOfMemoryError:
        """Return the error for a request of `nbytes`; its text says how much memory exists and what uses it."""
        backend = self._backend()
        assert backend is not None
        info = backend.info
        if info.host_shared:
            text = (
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                f"{nbytes} bytes. The host has {format_bytes(available_memory())} available"
            )
        else:
            text = (
                f"{backend.device} out of memory. Tried to allocate {format_bytes(nbytes)}. The "
                f"device ({info.name}) has a total capacity of {format_bytes(info.global_mem)}"
            )
        if self.limit is not None:
            text += f"; this process may hold {format_bytes(self.limit)}"
        if nbytes > info.max_alloc:
            text += f"; one buffer may have at most {format_bytes(info.max_alloc)} on it"
        text += (
            f". Of {format_bytes(self._held)} held, {format_bytes(self._active)} is in use by "
            "tensors."
        )
        largest = sorted((block.size for block in self._large), reverse=True)[:5]
        if largest:
            text += " Largest blocks in use: " + ", ".join(map(format_bytes, largest)) + "."
        return OutOfMemoryError(text)
