"""Kernels enqueued without an event.

pyopencl has the driver make an event of every launch, also of those that nobody asks about. NVIDIA's driver then takes longer: on an H100 (driver
580) the device needs 4.3 µs from one small launch to the next, not 2.3, and the host is kept waiting once a few hundred are queued.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

Enqueue = Callable[[Any, Any, tuple[int, ...], "tuple[int, ...] | None"], Any]

_KEPT = 8192  # calls whose arguments stay converted, which takes longer than the driver


def entry() -> Any:
    """Return the OpenCL loader's clEnqueueNDRangeKernel, or None where it cannot be had."""
    from pyopencl import _cl

    try:
        # What an extension module is linked to is found through it; Windows asks each library for its own.
        library = ctypes.CDLL("OpenCL.dll" if os.name == "nt" else _cl.__file__)
        return library["clEnqueueNDRangeKernel"]
    except (OSError, AttributeError):
        return None


def enqueue(module: Any) -> Enqueue:
    """Return what enqueues a kernel for which no event is wanted; it takes what pyopencl's `enqueue_nd_range_kernel` takes."""
    function = entry()
    with_event: Enqueue = module.enqueue_nd_range_kernel
    if function is None:
        return with_event

    @functools.lru_cache(_KEPT)
    def call(
        queue: Any, kernel: Any, global_size: tuple[int, ...], local_size: tuple[int, ...] | None
    ) -> Callable[[], int]:
        words = ctypes.c_size_t * len(global_size)
        group = None if local_size is None else words(*local_size)
        where, what = ctypes.c_void_p(queue.int_ptr), ctypes.c_void_p(kernel.int_ptr)
        return functools.partial(
            function, where, what, len(global_size), None, words(*global_size), group, 0, None, None
        )

    def without_event(
        queue: Any, kernel: Any, global_size: tuple[int, ...], local_size: tuple[int, ...] | None
    ) -> None:
        if call(queue, kernel, global_size, local_size)():
            # Says what is wrong, or frees memory and succeeds.
            with_event(queue, kernel, global_size, local_size)

    return without_event
