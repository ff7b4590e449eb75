"""Launches that request no event from the driver (runtime/eventless.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cltensor.runtime import eventless
from cltensor.runtime.kernel import _launcher

TEXT = "__kernel void add_up(__global int *x, int n) { x[get_global_id(0)] += n * (int)get_local_size(0); }"


@pytest.fixture
def launch(backend: Any) -> Any:
    """Return a function that launches a kernel without an event, waits, and returns the numbers the kernel has added
    to.
    """
    cl = backend.module
    enqueue = eventless.enqueue(cl)
    assert enqueue is not cl.enqueue_nd_range_kernel, "the loader's own function was not found"
    kernel = cl.Kernel(cl.Program(backend.context, TEXT).build(), "add_up")
    run = _launcher((None, "<i4"), enqueue)
    numbers = backend.alloc(4 * 8)
    backend.write(numbers, 0, np.arange(8, dtype=np.int32))

    def launched(*how: Any) -> Any:
        backend.seq += 1
        run(kernel, backend.queue, *how, (numbers, 3), backend.seq)
        backend.queue.finish()
        return np.frombuffer(backend.read(numbers, 0, 4 * 8), np.int32)

    return launched


def test_it_runs_as_with_an_event(launch: Any) -> None:
    assert (launch((8,), (4,)) == np.arange(8) + 12).all()
    assert (launch((8, 1), (2, 1)) == np.arange(8) + 18).all()


def test_the_driver_may_choose_the_groups(launch: Any) -> None:
    added = launch((8,), None) - np.arange(8)
    assert (added == added[0]).all() and added[0] % 3 == 0 and added[0] > 0


def test_what_the_driver_refuses_is_raised(backend: Any, launch: Any) -> None:
    with pytest.raises(backend.module.Error, match="WORK_GROUP_SIZE"):
        launch((8,), (3,))


def test_without_the_function_an_event_is_asked_for(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eventless, "entry", lambda: None)
    assert eventless.enqueue(backend.module) is backend.module.enqueue_nd_range_kernel
