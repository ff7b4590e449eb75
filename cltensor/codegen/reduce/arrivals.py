"""How the last work-group of a launch learns that it is the last, and can merge all groups' partial results.

That costs less than a second launch. OpenCL 1.2 has no memory fence between groups; where a driver's compiler has one,
each group executes it after its stores and then increments a counter.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from ...runtime import ACTIVE

if TYPE_CHECKING:
    from ...runtime import Backend, Buffer

# `SHOW()` makes this lane's stores visible to the other groups. The fallback does so on CPUs only, so GPUs other than
# those of `announces` must not rely on it.
SHOW = """
#ifdef __NV_CL_C_VERSION
#define SHOW() __asm__ volatile("membar.gl;" ::: "memory")
#else
#define SHOW() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
"""

_counters: weakref.WeakKeyDictionary[Backend, Buffer] = weakref.WeakKeyDictionary()


def announces(backend: Backend) -> bool:
    """Return whether work-groups of one launch can see each other's stores after `SHOW()`."""
    return backend.info.is_nvidia


def arrivals(backend: Backend) -> Buffer:
    """Return the buffer that counts finished groups: 0 between launches, as the last group resets it."""
    with backend.lock:
        found = _counters.get(backend)
        if found is None:
            # The counter outlives a recording in progress and is initialised once, so neither is recorded.
            arena, active = backend.pool.arena, ACTIVE.recorder
            backend.pool.arena = ACTIVE.recorder = None
            try:
                found = _counters[backend] = backend.alloc(4)
                backend.write(found, 0, np.zeros(1, np.int32))
            finally:
                backend.pool.arena, ACTIVE.recorder = arena, active
    return found
