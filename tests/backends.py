"""The backends that kernel-level tests run on, one for each schedule."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest

from cltensor.runtime import Backend, device, device_list, get_backend
from cltensor.runtime import backend as registered

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


def another_device(monkeypatch: pytest.MonkeyPatch, **info: Any) -> device:
    """Return a device beside those there are, "opencl:77": the first one again with memory of its own, described otherwise by `info`."""
    twin = Backend(device("opencl:77"), get_backend(device_list()[0]).cl_device, False)
    twin.info = dataclasses.replace(twin.info, **info)
    monkeypatch.setitem(registered.registry, twin.device, twin)
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
