"""`Backend`: one context and one in-order queue per device; launches and transfers.

Owns when the host waits for the device. Must not know tensors, templates or, of dtypes, more than which need doubles.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cltensor.errors import OutOfMemoryError, debug_line
from cltensor.symbols import Symbol, is_symbol, plain

from . import loader, observe, platforms, pocl, team, team_layout, tuning
from .device import device
from .folders import shipped
from .kernel import Kernel, kinds, plain_numbers
from .loader import keep_forever
from .memory import Block, Buffer, Pool, new_buffer
from .observe import OBSERVERS
from .program import ProgramCache
from .recorder import ACTIVE, Step
from .stats import STATS

_FLUSH_EVERY = 64  # some drivers fail when a long queue is never flushed
_SMALL = 64 << 10  # bytes; up to this size `write` copies host data aside instead of waiting
_MAX_STAGED = 256
_LOCAL_EXEC = 1 << 31  # CL_QUEUE_THREAD_LOCAL_EXEC_ENABLE_INTEL
_WRAPPED = -1  # `Block.size` of wrapped memory, which does not belong to the pool

_PROBE = """
__kernel void cltensor_probe_shared(__global int *memory) { memory[0] += 41; }
"""


class Backend:
    """A device in use. Made by `get_backend` only; safe to use from several threads."""

    def __init__(self, dev: device, cl_device: Any, shared: bool) -> None:
        if platforms.lacks_linker(cl_device):
            raise RuntimeError(pocl.linker_error())
        cl = self.module = loader.load()
        self.device = dev
        self.cl_device = cl_device
        self.lock = threading.RLock()
        self.context = cl.Context([cl_device])
        self.queue = cl.CommandQueue(self.context, cl_device)
        # Never released: drivers abort or hang when contexts are released while the interpreter shuts down.
        keep_forever(self.context, self.queue)
        self.read_write = cl.mem_flags.READ_WRITE
        self.seq = 0  # commands enqueued
        self.finished = 0  # commands known to be done
        self.waited = True  # whether the host has waited, or read, since the last launch
        # For lazy/: weak references to storages whose value is a pending expression ...
        self.pending: list[Any] = []
        # ... and to those that stay pending although a kernel has computed the expression for others.
        self.left: list[Any] = []
        self.queued = False  # whether unfinished commands are in the queue although there is a team
        self._staged: list[Any] = []  # (event, array): host copies that queued transfers still read
        self._timed: Any = None  # the profiling queue for observed launches, made at first use
        self.inline = self.queue  # where one work-group runs soonest while `queue` is idle
        self.team: team.Team | None = None  # the threads that run kernels instead of the queue
        self.checks: Any = None  # codegen/checks.py's log of launches that check indices
        self.unchecked = False  # a recording was played and its index checks have not been read yet
        self.info = platforms.describe(cl, cl_device, host_shared=False)
        self.tuned = tuning.load(self.info)
        self.programs = ProgramCache(self)
        if shared:
            self.team = self._form_team()
            if self.team is not None or self._probe_shared():
                self.info = replace(self.info, host_shared=True, team=self.team is not None)
        if self.info.inline:
            self.inline = self._inline_queue()
        self.pool = Pool(self)
        debug_line(
            1, "%s is %s (%s, %s%s)", dev, self.info.name, self.info.platform_version,
            "memory shared with the host" if self.info.host_shared else "memory of its own",
            "" if self.team is None else f", a team of {self.team.size}",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<Backend {self.device}: {self.info.name}>"

    # --- memory

    def alloc(self, nbytes: Any) -> Buffer:
        """Return a Buffer of `nbytes` bytes, contents undefined; may raise OutOfMemoryError."""
        with self.lock:
            return self.alloc_held(nbytes)

    def alloc_held(self, nbytes: Any) -> Buffer:
        """Do what `alloc` does; the caller holds the lock, since acquiring it again costs as much as taking a block."""
        if type(nbytes) is Symbol:
            buffer = self.alloc_held(nbytes.value)
            if is_symbol(nbytes) and ACTIVE.recorder is not None:
                ACTIVE.recorder.taken(buffer, nbytes)
            return buffer
        return new_buffer(self, nbytes, self.pool.take(nbytes), True)

    def alloc_many(self, sizes: Sequence[int]) -> list[Buffer]:
        """Return one Buffer for each size in bytes; like `alloc`, but acquires the lock only once."""
        with self.lock:
            take = self.pool.take
            return [new_buffer(self, nbytes, take(nbytes), True) for nbytes in sizes]

    def wrap(self, array: np.ndarray) -> Buffer:
        """Return a Buffer that aliases a contiguous array's memory; host-shared devices only."""
        if not self.info.host_shared:
            raise RuntimeError(f"{self.device} cannot use memory of the host in place")
        if not array.flags.forc:
            raise ValueError("wrap: the array must be contiguous")
        if array.nbytes == 0:
            return self.alloc(0)
        flat = (array if array.flags.c_contiguous else array.T).reshape(-1).view(np.uint8)
        access = self.read_write if flat.flags.writeable else self.module.mem_flags.READ_ONLY
        with self.lock:
            return self._alias(flat, access)

    def _alias(self, memory: np.ndarray, access: int) -> Buffer:
        """Return a Buffer over an array of bytes; access: the driver's flag for reading, or for reading and writing."""
        cl = self.module
        made = cl.Buffer(self.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=memory)
        return new_buffer(self, memory.nbytes, Block(_WRAPPED, made, memory), False)

    def empty_cache(self) -> None:
        """Return the pool's free blocks to the device."""
        with self.lock:
            self.pool.release()

    def require(self, dtype: Any) -> None:
        """Raise RuntimeError when the device cannot compute with `dtype`."""
        if not self.info.fp64 and dtype.name in ("float64", "complex128"):
            raise RuntimeError(
                f"{self.device} ({self.info.name}) has no float64: use float32 there, or the cpu "
                f"device for {dtype.name}"
            )

    # --- kernels

    def kernel(
        self, name: str, source: str, arg_types: Sequence[Any], options: Sequence[str] = ()
    ) -> Kernel:
        """Return the kernel `name` of `source` from the memory cache or the disk cache, else build it.

        `arg_types` has None for a Buffer and a numpy scalar type for a number. Raises BuildError.
        """
        with self.lock:
            return self.programs.kernel(name, source, arg_types, options)

    def launch(
        self,
        kernel: Kernel,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        args: Sequence[Any],
        nbytes: int = 0,
        flops: int = 0,
    ) -> None:
        """Run `kernel`, post it to the team, or enqueue it where there is no team; no size may be 0.

        The launch is waited for when numpy can see one of its buffers.
        `nbytes` is the memory traffic and `flops` the arithmetic, where that may limit the speed: observers report
        them, and they decide whether a launch is long enough to be posted.
        """
        with self.lock:
            self.launch_held(kernel, global_size, local_size, args, nbytes, flops)

    def launch_held(
        self,
        kernel: Kernel,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        args: Sequence[Any],
        nbytes: int = 0,
        flops: int = 0,
    ) -> None:
        """Do what `launch` does, for a caller that holds the lock."""
        assert 0 not in global_size, f"{kernel.name}: empty launch {global_size}"
        if ACTIVE.recorder is not None:
            step = Step(kernel, global_size, local_size, args, nbytes, flops)
            ACTIVE.recorder.launch(self, step)
            global_size, args, (nbytes, flops) = map(plain, (global_size, args, (nbytes, flops)))
        if OBSERVERS:
            observe.launch(self, kernel, global_size, local_size, args, nbytes, flops)
            return
        call = kernel.call
        if call is not None:
            STATS.launches += 1
            kernel.fresh = False
            work = nbytes + flops / team.PER_BYTE
            later = self.seq != self.finished or team.is_long(work, self.waited)
            self.waited = False
            if later:
                if self.may_post():
                    seen = self.note_use(args)
                    call(args, global_size, local_size, True)
                    if seen:
                        self.finish()
                    return
                self.finish()
            call(args, global_size, local_size)
            return
        self.leave_team()
        queue = self.queue
        if global_size == local_size and self.seq == self.finished:
            queue = self.inline
        self.seq = seq = self.seq + 1
        try:
            exported = kernel.run(kernel.cl, queue, global_size, local_size, args, seq)
            if queue is not self.queue:
                self.finished = seq
        except Exception as error:
            exported = self.launch_again(kernel, global_size, local_size, args, error)
        STATS.launches += 1
        if kernel.fresh:
            self.programs.first_launch(kernel)
        if exported:
            self.finish()
        elif not seq % _FLUSH_EVERY:
            self.queue.flush()

    def may_post(self) -> bool:
        """Return whether a launch may be posted: the team runs it while the caller goes on. The caller holds the lock."""
        return self.team.several and not self.queued and ACTIVE.recorder is None

    def leave_team(self) -> None:
        """Wait for the team, if there is one, before a kernel without known machine code goes to the queue."""
        if self.team is not None:
            self.finish()
            self.queued = True

    def note_use(self, args: Iterable[Any]) -> bool:
        """Mark the buffers among `args` as used by the team's next order; return whether the host sees one: then it is waited for."""
        self.seq = seq = self.seq + 1
        seen = False
        for a in args:
            if a.__class__ is Buffer:
                a.seq = seq
                seen = seen or a.exported or a.told
        return seen

    def launch_again(
        self,
        kernel: Kernel,
        global_size: Any,
        local_size: Any,
        args: Sequence[Any],
        error: Exception,
    ) -> bool:
        """Repeat a failed launch after freeing memory, or with its numbers converted; else raise the error."""
        if isinstance(error, self.module.Error):
            if not isinstance(error, self.module.MemoryError):
                raise _launch_error(kernel, global_size, local_size, error) from error
            self.pool.release()  # the driver allocates a buffer's memory at its first use, and found none
            try:
                return kernel.run(kernel.cl, self.queue, global_size, local_size, args, self.seq)
            except self.module.MemoryError:
                wanted = sum(a.nbytes for a in args if isinstance(a, Buffer))
                raise self.pool.out_of_memory(wanted) from error
        args = plain_numbers(kernel.name, kinds(kernel.arg_types), args, error)
        return kernel.run(kernel.cl, self.queue, global_size, local_size, args, self.seq)

    def _inline_queue(self) -> Any:
        """Return a queue whose commands run in the enqueuing thread (Intel's driver for CPUs has one), else `queue`."""
        try:
            made = self.module.CommandQueue(self.context, self.cl_device, _LOCAL_EXEC)
        except self.module.Error as error:
            debug_line(1, "%s wakes threads for every launch: %s", self.device, error)
            return self.queue
        keep_forever(made)
        return made

    def timed_queue(self) -> Any:
        """Return a second queue with profiling enabled, or `queue` where the driver has no profiling."""
        if self._timed is None:
            cl = self.module
            how = cl.command_queue_properties.PROFILING_ENABLE
            try:
                self._timed = cl.CommandQueue(self.context, self.cl_device, properties=how)
                keep_forever(self._timed)
            except cl.Error:
                self._timed = self.queue
        return self._timed

    def finish(self) -> None:
        """Wait until everything enqueued so far is done."""
        self.waited = True
        if self.seq == self.finished and not self._staged and not self.programs.unsaved:
            return
        with self.lock:
            seq = self.seq
            if self.finished != seq:
                if self.team is not None:
                    self.team.finish()
                if self.team is None or self.queued:
                    self.queue.finish()
                    self.queued = False
                self.finished = seq
            if self._staged:
                self._staged.clear()
            if self.programs.save_due:
                self.programs.save()

    # --- moving data

    def write(self, buffer: Buffer, offset_bytes: int, array: np.ndarray) -> None:
        """Copy a contiguous array into the buffer; the array may be changed when this returns."""
        nbytes = array.nbytes
        _check_range(buffer, offset_bytes, nbytes)
        if nbytes == 0:
            return
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        with self.lock:
            if ACTIVE.recorder is not None:
                ACTIVE.recorder.write(buffer, offset_bytes, array)
            STATS.copies += 1
            STATS.bytes_moved += nbytes
            host = buffer.host
            if host is not None:
                if buffer.seq > self.finished and (nbytes > _SMALL or self.team is not None):
                    self.finish()
                if buffer.seq <= self.finished:
                    host[offset_bytes : offset_bytes + nbytes] = data
                    return
            small = nbytes <= _SMALL
            if small:
                data = data.copy()
            self.seq = buffer.seq = self.seq + 1
            event = self._enqueue_copy(
                buffer.cl, data, dst_offset=offset_bytes, is_blocking=not small
            )
            if small:
                self._staged.append((event, data))
            if buffer.exported or len(self._staged) >= _MAX_STAGED:
                self.finish()

    def read(self, buffer: Buffer, offset_bytes: int, nbytes: int) -> np.ndarray:
        """Return a copy of `nbytes` bytes of the buffer, after waiting for the commands that use it."""
        _check_range(buffer, offset_bytes, nbytes)
        if nbytes == 0:
            return np.empty(0, np.uint8)
        with self.lock:
            if ACTIVE.recorder is not None:
                ACTIVE.recorder.refuse("reads values")
            STATS.copies += 1
            STATS.bytes_moved += nbytes
            self.waited = True
            if buffer.seq > self.finished:
                self.finish()
            host = buffer.host
            if host is not None:
                return host[offset_bytes : offset_bytes + nbytes].copy()
            out = _aligned_empty(nbytes)
            self._enqueue_copy(out, buffer.cl, src_offset=offset_bytes, is_blocking=True)
            return out

    def copy(self, src: Buffer, src_off: int, dst: Buffer, dst_off: int, nbytes: int) -> None:
        """Copy between buffers of this device, in queue order; the two ranges may overlap."""
        _check_range(src, src_off, nbytes)
        _check_range(dst, dst_off, nbytes)
        if nbytes == 0:
            return
        with self.lock:
            if src is dst and abs(src_off - dst_off) < nbytes:
                if src_off == dst_off:
                    return
                between = self.alloc(nbytes)
                self.copy(src, src_off, between, 0, nbytes)
                self.copy(between, 0, dst, dst_off, nbytes)
                return
            if ACTIVE.recorder is not None:
                ACTIVE.recorder.copy(src, src_off, dst, dst_off, nbytes)
                src_off, dst_off, nbytes = plain((src_off, dst_off, nbytes))
            STATS.copies += 1
            STATS.bytes_moved += nbytes
            if self.team is not None:
                self.finish()
                to, of = dst.address + dst_off, src.address + src_off
                if OBSERVERS:
                    observe.host_copy(self, to, of, nbytes)
                else:
                    ctypes.memmove(to, of, nbytes)
                return
            self.seq = src.seq = dst.seq = self.seq + 1
            self._enqueue_copy(
                dst.cl, src.cl, byte_count=nbytes, src_offset=src_off, dst_offset=dst_off
            )
            if src.exported or dst.exported:
                self.finish()

    def host_view(self, buffer: Buffer) -> np.ndarray:
        """Return the buffer's memory itself as bytes, after waiting for the commands that use it.

        The view does not keep the buffer alive. RuntimeError on a device with its own memory.
        """
        host = buffer.host
        if host is None:
            raise RuntimeError(f"the memory of {self.device} is not visible to the host")
        if ACTIVE.recorder is not None:
            ACTIVE.recorder.refuse("reads values")
        self.waited = True
        if buffer.seq > self.finished:
            self.finish()
        return host

    def _enqueue_copy(self, dst: Any, src: Any, **how: Any) -> Any:
        try:
            if OBSERVERS:
                return observe.copy(self, dst, src, how)
            return self.module.enqueue_copy(self.queue, dst, src, **how)
        except self.module.MemoryError:
            self.pool.release()
            try:
                return self.module.enqueue_copy(self.queue, dst, src, **how)
            except self.module.MemoryError as error:
                raise OutOfMemoryError(
                    f"{self.device} out of memory while copying: {error}"
                ) from None

    # --- probing

    def _form_team(self) -> team.Team | None:
        """Return the team that runs kernels instead of the queue; None where the device or its binaries allow none."""
        if not team.possible(self.info):
            return None
        self.programs.wants_code = True
        source = (shipped("cl_kernels") / "team.cl").read_text()
        try:
            made = team.Team(
                lambda name: self.programs.code(name, source, team_layout.CODE[name]),
                self.info.compute_units,
            )
        except RuntimeError as error:
            debug_line(1, "%s runs kernels through its queue: %s", self.device, error)
            self.programs.wants_code = False
            return None
        keep_forever(made)  # its threads never end
        self.programs.team = made
        return made

    def _probe_shared(self) -> bool:
        """Return whether a kernel's write to a USE_HOST_PTR buffer is visible to the host without a map call."""
        memory = np.zeros(64, np.int32)
        memory[0] = 1
        try:
            buffer = self._alias(memory.view(np.uint8), self.read_write)
            kernel = self.kernel("cltensor_probe_shared", _PROBE, (None,))
            memory[0] = 2
            self.launch(kernel, (1,), (1,), (buffer,))
            buffer.cl.release()
        except self.module.Error as error:
            debug_line(1, "%s does not share memory with the host: %s", self.device, error)
            return False
        return bool(memory[0] == 43)


def _check_range(buffer: Buffer, offset: int, nbytes: int) -> None:
    if nbytes and (offset < 0 or nbytes < 0 or offset + nbytes > buffer.nbytes):
        raise ValueError(f"bytes {offset} to {offset + nbytes} are outside of {buffer}")


def _aligned_empty(nbytes: int) -> np.ndarray:
    raw = np.empty(nbytes + 64, np.uint8)  # some drivers mangle transfers to unaligned memory
    start = -raw.ctypes.data % 64
    return raw[start : start + nbytes]


def _launch_error(
    kernel: Kernel, global_size: Any, local_size: Any, error: Exception
) -> RuntimeError:
    return RuntimeError(
        f"{kernel.name}, launched with {global_size} in groups of {local_size}: {error}"
    )
