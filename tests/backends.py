"""The backends that kernel-level tests run on, one for each schedule."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest

from cltensor.runtime import Backend, device, device_list, get_backend, registry

SCHEDULES = ["cpu", "gpu"]
OF_A_CPU = {"cpu", "row", "col"}  # names of CPU schedules, as template families call them


def backend_for(schedule: str) -> Backend:
    """Return a backend that uses the schedule: the first device of that kind, or, for a GPU schedule, a private twin of
    the first device that claims to be a GPU. Without a CPU, tests of CPU schedules are skipped: only CPUs run them.
    """
    found = _found(schedule)
    if found is None:
        pytest.skip("no device here is a CPU")
    return found


def another_device(monkeypatch: pytest.MonkeyPatch, **info: Any) -> device:
    """Return an additional device, "opencl:77": the first device with memory of its own and the fields `info` of its
    record replaced."""
    twin = Backend(device("opencl:77"), get_backend(device_list()[0]).cl_device, False)
    twin.info = dataclasses.replace(twin.info, **info)
    monkeypatch.setitem(registry.backends, twin.device, twin)
    return twin.device


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
