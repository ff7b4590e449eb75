"""Launches and copies observed one at a time: for CLTENSOR_DEBUG=2 and for the profiler.

While there is an observer, each command is waited for before the next one starts. The device's own clock times it,
through a second queue that exists only then; where the driver has no such clock, the host's is used. Owns the record of
a command and its timing. Must not know what observers do with it.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cltensor.config import CONFIG
from cltensor.errors import debug_line

from .kernel import timed_launcher
from .stats import STATS

if TYPE_CHECKING:
    from .backend import Backend
    from .kernel import Kernel
    from .recorder import Step


# Operations per byte above which arithmetic is taken to be the limit, if peaks are unknown.
_BALANCE = 10


class Observed(NamedTuple):
    """One command as it ran: a kernel's launch, or a copy (`kernel` is None)."""

    backend: Backend
    name: str  # the kernel's name, or "Memcpy DtoD", "HtoD" or "DtoH"
    kernel: Kernel | None
    global_size: tuple[int, ...]  # work-items; () for a copy
    # Work-items of a work-group; () for a copy, or where the driver chose it.
    local_size: tuple[int, ...]
    start: int
    """When it began to run, in ns of time.perf_counter_ns."""
    ns: int
    """How long it ran."""
    nbytes: int
    """Memory traffic as the launcher says it; 0 where it does not."""
    flops: int
    """Floating-point operations as the launcher says it; 0 where they are few."""
    fresh: bool
    """Its program was compiled for this launch."""
    thread: int  # the operating system's id of the thread that launched it

    def rate(self) -> tuple[str, str]:
        """Return the rate ("25.1 GB/s") and its share of the device's peak ("93 %"); "" for what is not known."""
        return rate(self.backend, self.ns, self.nbytes, self.flops)


def rate(backend: Backend, ns: float, nbytes: int, flops: int) -> tuple[str, str]:
    """Return the rate of the limiting resource, memory traffic or arithmetic, and its share of the device's peak where
    that is known.
    """
    if not ns or not (nbytes or flops):
        return "", ""
    peaks = backend.tuned.peaks
    copy, arithmetic = peaks["copy"], peaks["flops"]
    balance = arithmetic / copy if copy and arithmetic else _BALANCE
    if flops > balance * nbytes:
        unit, value, best = "GFLOP/s", flops / ns, arithmetic
    else:
        unit, value, best = "GB/s", nbytes / ns, copy
    return f"{value:.1f} {unit}", f"{100 * value * 1e9 / best:.0f} %" if best else ""


Observer = Callable[[Observed], None]
OBSERVERS: list[Observer] = []


def launch(
    backend: Backend,
    kernel: Kernel,
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None,
    args: Sequence[Any],
    nbytes: int,
    flops: int,
) -> None:
    """Do what `Backend.launch` does, wait, and tell the observers; the caller holds the backend's lock."""
    fresh = kernel.fresh
    backend.finish()
    event = None
    if kernel.call is not None:
        begin = time.perf_counter_ns()
        kernel.call(args, global_size, local_size)
    else:
        begin, event = _on_timed_queue(backend, kernel, global_size, local_size, args)
    end = time.perf_counter_ns()
    STATS.launches += 1
    if kernel.fresh:
        backend.programs.first_launch(kernel)
    backend.finish()
    tell(
        backend, kernel.name, kernel, global_size, local_size, begin, end, event, nbytes, flops, fresh
    )  # fmt: skip


def _on_timed_queue(
    backend: Backend,
    kernel: Kernel,
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None,
    args: Sequence[Any],
) -> tuple[int, Any]:
    """Launch and wait; return the start by the host's clock in ns, and the event with the device's times (or None)."""
    backend.seq = seq = backend.seq + 1
    event = None
    begin = time.perf_counter_ns()
    try:
        queue = backend.timed_queue()
        event = timed_launcher(kernel)(kernel.cl, queue, global_size, local_size, args, seq)
        queue.finish()
    except Exception as error:
        begin = time.perf_counter_ns()
        backend.launch_again(kernel, global_size, local_size, args, error)
        backend.queue.finish()
    return begin, event


def tell(
    backend: Backend,
    name: str,
    kernel: Kernel | None,
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None,
    begin: int,
    end: int,
    event: Any,
    nbytes: int,
    flops: int = 0,
    fresh: bool = False,
) -> None:
    """Tell the observers of a command that the host saw run between `begin` and `end`."""
    ns = _device_ns(event) or end - begin
    seen = Observed(
        backend, name, kernel, global_size, local_size or (), max(begin, end - ns), ns, nbytes, flops,
        fresh, threading.get_native_id(),
    )  # fmt: skip
    for observer in OBSERVERS:
        observer(seen)


def _device_ns(event: Any) -> int:
    """Return how many ns a command ran by the device's clock; 0 if the device does not say."""
    if event is None:
        return 0
    try:
        return max(event.profile.end - event.profile.start, 0)
    except Exception:  # a queue without profiling, or a driver's own error
        return 0


def played(backend: Backend, step: Step, begin: int, end: int, event: Any = None) -> None:
    """Tell the observers of a finished command of a recording."""
    kernel = step.kernel
    name = "Memcpy DtoD" if kernel is None else kernel.name
    grid = step.global_size or ()
    tell(backend, name, kernel, grid, step.local_size, begin, end, event, step.nbytes, step.flops)


def copy(backend: Backend, dst: Any, src: Any, how: dict[str, Any]) -> Any:
    """Copy between buffers, or a buffer and the host, and tell the observers."""
    memory = backend.module.Buffer
    letters = "".join("D" if isinstance(side, memory) else "H" for side in (src, dst))
    nbytes = how.get("byte_count") or (dst if letters == "DH" else src).nbytes
    backend.finish()
    begin = time.perf_counter_ns()
    event = backend.module.enqueue_copy(backend.timed_queue(), dst, src, **how)
    event.wait()
    end = time.perf_counter_ns()
    both = 2 * nbytes if letters == "DD" else nbytes
    tell(backend, f"Memcpy {letters[0]}to{letters[1]}", None, (), None, begin, end, event, both)
    return event


def host_copy(backend: Backend, dst: int, src: int, nbytes: int) -> None:
    """Copy between two addresses in the host's memory, and tell the observers."""
    begin = time.perf_counter_ns()
    ctypes.memmove(dst, src, nbytes)
    end = time.perf_counter_ns()
    tell(backend, "Memcpy DtoD", None, (), None, begin, end, None, 2 * nbytes)


def _print(seen: Observed) -> None:
    """Write a line for CLTENSOR_DEBUG=2: name, sizes, time, rate, and whether the program was built for this launch."""
    speed, share = seen.rate()
    words = [
        seen.name, "x".join(map(str, seen.global_size)), "x".join(map(str, seen.local_size)),
        f"{seen.ns / 1e3:.1f} us", speed, share and f"({share})",
    ]  # fmt: skip
    if seen.kernel is not None:
        words.append("built" if seen.fresh else "hit")
    debug_line(2, "%s", " ".join(filter(None, words)))


if CONFIG.debug >= 2:
    OBSERVERS.append(_print)
