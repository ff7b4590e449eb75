"""Enqueuing kernels without an event.

pyopencl requests an event for every launch, even if the caller does not use it. That slows NVIDIA's driver down: on an
H100 (driver 580) small launches follow each other every 4.3 µs instead of 2.3 µs, and the host blocks once a few
hundred are queued.

Owns the direct call of the driver's function. Must not know which devices gain by it.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

Enqueue = Callable[[Any, Any, tuple[int, ...], "tuple[int, ...] | None"], Any]

_KEPT = 8192  # calls whose arguments are kept in ctypes form: converting them takes longer than the driver's call


def entry() -> Any:
    """Return clEnqueueNDRangeKernel of the OpenCL loader that pyopencl uses, or None where it cannot be found."""
    from pyopencl import _cl

    try:
        # dlsym on an extension module also searches the libraries it is linked to; on Windows the DLL has to be named.
        library = ctypes.CDLL("OpenCL.dll" if os.name == "nt" else _cl.__file__)
        return library["clEnqueueNDRangeKernel"]
    except (OSError, AttributeError):
        return None


def enqueue(module: Any) -> Enqueue:
    """Return a function that enqueues a kernel without an event; its parameters are those of pyopencl's
    `enqueue_nd_range_kernel`.

    Where the driver's function cannot be called directly, this is pyopencl's own.
    """
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
            # pyopencl's call either raises an error that says what is wrong, or frees memory and succeeds.
            with_event(queue, kernel, global_size, local_size)

    return without_event
