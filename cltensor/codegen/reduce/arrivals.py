"""How the last work-group of a launch learns that it is the last, and so can join what all groups found: a second launch costs more.

OpenCL 1.2 has no fence between groups. Where a driver's compiler has one of its own, a group makes what it stored known, and counts itself.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from ...runtime import Recorder

if TYPE_CHECKING:
    from ...runtime import Backend, Buffer

# `SHOW()`: what this lane stored is there for who learns of it. Elsewhere than where `announces` says so, this holds for CPUs alone.
SHOW = """
#ifdef __NV_CL_C_VERSION
#define SHOW() __asm__ volatile("membar.gl;" ::: "memory")
#else
#define SHOW() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
"""

_counters: weakref.WeakKeyDictionary[Backend, Buffer] = weakref.WeakKeyDictionary()


def announces(backend: Backend) -> bool:
    """Whether groups can tell each other what they stored."""
    return backend.info.is_nvidia


def arrivals(backend: Backend) -> Buffer:
    """Return the counter of groups that are done: 0 between launches, for the last group leaves it so."""
    with backend.lock:
        found = _counters.get(backend)
        if found is None:
            # It outlives whatever is being recorded, and is set only once.
            arena, active = backend.pool.arena, Recorder.active
            backend.pool.arena = Recorder.active = None
            try:
                found = _counters[backend] = backend.alloc(4)
                backend.write(found, 0, np.zeros(1, np.int32))
            finally:
                backend.pool.arena, Recorder.active = arena, active
    return found
