"""The backends that kernel-level tests run on, one for each schedule."""

from __future__ import annotations

import dataclasses
import functools

from cltensor.runtime import Backend, device_list, get_backend

SCHEDULES = ["cpu", "gpu"]


@functools.cache
def backend_for(schedule: str) -> Backend:
    """Return a backend that takes the schedule: the first device, or a private twin of it that
    calls itself a GPU.
    """
    first = get_backend(device_list()[0])
    if first.info.kind == schedule:
        return first
    twin = Backend(first.device, first.cl_device, False)
    twin.info = dataclasses.replace(twin.info, kind=schedule, host_shared=False)
    return twin
