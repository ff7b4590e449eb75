"""Single work-groups run in the launching thread, where the driver has a queue for that; elsewhere a second queue
stands in for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cltensor.runtime import ACTIVE, Backend, Recording, device, device_list, get_backend

STEP = """
__kernel void inline_step(__global float *out, long n, float s) {
  for (long i = get_global_id(0); i < n; i += get_global_size(0)) out[i] = out[i] * 2 + s;
}
"""
ONE, MANY = (1,), (4,)


@pytest.fixture(params=[str(d) for d in device_list()])
def backend(request: pytest.FixtureRequest) -> Backend:
    found = get_backend(device(request.param))
    if found.team is not None:
        pytest.skip("launches are calls there")
    return found


@pytest.fixture
def ran(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list to which each launch appends whether it was inline. Inline launches are waited for here, as the
    driver's own queue for them would run them at once.
    """
    cl, found = backend.module, []
    inline = cl.CommandQueue(backend.context, backend.cl_device)
    monkeypatch.setattr(backend, "inline", inline)
    kernel = backend.kernel("inline_step", STEP, (None, np.int64, np.float32))

    def noting(run: Callable[..., Any], place: int) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            result = run(*args)
            found.append(args[place] is inline)
            if found[-1]:
                inline.finish()
            return result

        return noted

    monkeypatch.setattr(kernel, "run", noting(kernel.run, 1))
    monkeypatch.setattr(backend.programs, "enqueue", noting(backend.programs.enqueue, 0))
    backend.finish()
    return found


def steps(backend: Backend, out: Any, sizes: list[tuple[int, ...]]) -> None:
    kernel = backend.kernel("inline_step", STEP, (None, np.int64, np.float32))
    for number, size in enumerate(sizes):
        backend.launch(kernel, size, (1,), [out, 100, float(number)])


def expected(sizes: list[tuple[int, ...]], start: float = 0.0) -> float:
    for number, _ in enumerate(sizes):
        start = start * 2 + number
    return start


def cleared(backend: Backend) -> Any:
    out = backend.alloc(400)
    backend.write(out, 0, np.zeros(100, np.float32))
    backend.finish()
    return out


def test_only_while_nothing_is_queued(backend: Backend, ran: list[bool]) -> None:
    out, sizes = cleared(backend), [ONE, ONE, MANY, ONE, ONE]
    steps(backend, out, sizes)
    assert ran == [True, True, False, False, False]
    assert backend.finished < backend.seq
    np.testing.assert_array_equal(backend.read(out, 0, 400).view(np.float32), expected(sizes))
    steps(backend, out, [ONE])
    assert ran[5:] == [True]
    assert backend.finished == backend.seq


def test_recordings(backend: Backend, ran: list[bool]) -> None:
    """In a recording, single work-groups are run inline at the beginning, and later where enough of them follow each
    other to be worth waiting for what is queued.
    """
    out, sizes = cleared(backend), [ONE, MANY, ONE, MANY, ONE, ONE, ONE, ONE]
    ACTIVE.recorder = recording = Recording(backend)
    try:
        steps(backend, out, sizes)
    finally:
        ACTIVE.recorder = None
    recording.prepare([])
    first = expected(sizes)
    np.testing.assert_array_equal(backend.read(out, 0, 400).view(np.float32), first)
    ran.clear()
    recording.play({})
    assert ran == [True, False, False, False, True, True, True, True]
    assert backend.finished == backend.seq
    again = backend.read(out, 0, 400).view(np.float32)
    np.testing.assert_array_equal(again, expected(sizes, first))


def test_the_drivers_own_queue(backend: Backend) -> None:
    assert (backend.inline is not backend.queue) == backend.info.inline
    out, sizes = cleared(backend), [ONE, MANY, ONE] * 4
    steps(backend, out, sizes)
    np.testing.assert_array_equal(backend.read(out, 0, 400).view(np.float32), expected(sizes))
