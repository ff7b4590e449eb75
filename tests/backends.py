"""The backends that kernel-level tests run on, one for each schedule."""

from __future__ import annotations

import dataclasses
import functools

import pytest

from cltensor.runtime import Backend, device_list, get_backend

SCHEDULES = ["cpu", "gpu"]
OF_A_CPU = {"cpu", "row", "col"}  # by the names that families give schedules


def backend_for(schedule: str) -> Backend:
    """Return a backend that takes the schedule: the first device of its kind, or, of a GPU's, a private twin of
    the first device that calls itself one. Without a CPU its schedules are skipped: none but a CPU is given them.
    """
    found = _found(schedule)
    if found is None:
        pytest.skip("no device here is a CPU")
    return found


@functools.cache
def _found(schedule: str) -> Backend | None:
    backends = [get_backend(device) for device in device_list()]
    for backend in backends:
        if backend.info.kind == schedule:
            return backend
    if schedule == "cpu":
        return None
    first = backends[0]
    twin = Backend(first.device, first.cl_device, False)
    twin.info = dataclasses.replace(twin.info, kind=schedule, host_shared=False)
    return twin
