"""Kernels run by a team (Note [Team] in runtime/team.py): each group runs once before a launch returns, whichever
helpers sleep.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import cltensor as torch
from cltensor.runtime import (
    ACTIVE,
    STATS,
    Backend,
    Recording,
    device,
    get_backend,
    machine_code,
    program,
    team,
    team_launch,
    team_layout,
)
from cltensor.runtime.folders import shipped
from cltensor.runtime.threads import processors

# Each group fills local memory of its own and reads it again: groups that shared it would disturb each other.
PLACES = """
__kernel void places(__global long *out, long add, float scale) {
  __local long mine[64];
  __local long other[3];
  const long g = get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2));
  for (int i = 0; i < 64; ++i) mine[i] = g * 64 + i;
  for (int i = 0; i < 3; ++i) other[i] = get_group_id(i);
  long sum = 0;
  for (int r = 0; r < 3; ++r)
    for (int i = 0; i < 64; ++i) { sum += mine[i]; mine[i] ^= r + other[r]; }
  out[g] += (long)(scale * (sum != 0)) + add + 10 * other[0] + 100 * other[1] + 1000 * other[2];
}
"""
BARRIER = """
__kernel void turn_groups(__global int *a) {
  __local int part[8];
  part[get_local_id(0)] = a[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  a[get_global_id(0)] = part[7 - get_local_id(0)];
}
"""


FOREVER: list[team.Team] = []  # keeps teams alive, because helper threads never end


class Memory(NamedTuple):
    address: int


@pytest.fixture
def backend() -> Backend:
    found = get_backend(device("cpu"))
    if found.team is None:
        pytest.skip("the cpu device has no team")
    return found


@pytest.fixture(params=[team.PATIENCE, 20, 0], ids=["awake", "tired", "asleep"])
def patience(request: pytest.FixtureRequest, backend: Backend) -> Iterator[None]:
    """Set how long helpers wait awake. With a short wait they fall asleep while work comes in."""
    assert backend.team is not None
    backend.team.patience = request.param
    yield
    backend.team.patience = team.PATIENCE


@pytest.fixture
def threads(backend: Backend) -> Iterator[None]:
    yield
    assert backend.team is not None
    backend.team.threads = backend.team.size


def run_places(backend: Backend, grid: tuple[int, ...], times: int = 1) -> np.ndarray:
    kernel = backend.kernel("places", PLACES, (None, np.int64, np.float32))
    n = int(np.prod(grid))
    buffer = backend.alloc(8 * n)
    backend.write(buffer, 0, np.zeros(n, np.int64))
    for _ in range(times):
        backend.launch(kernel, grid, (1,) * len(grid), [buffer, 3, 2.0])
        assert backend.finished == backend.seq
    return backend.read(buffer, 0, 8 * n).view(np.int64)


def expected(grid: tuple[int, ...]) -> np.ndarray:
    z, y, x = np.indices((*(1,) * (3 - len(grid)), *grid[::-1]))
    found: np.ndarray = (5 + 10 * x + 100 * y + 1000 * z).reshape(-1)
    return found


@pytest.mark.parametrize("grid", [(1,), (2,), (37,), (1000,), (3, 5), (2, 3, 4)])
def test_every_group_runs_once(grid: tuple[int, ...], backend: Backend) -> None:
    launches = STATS.launches
    np.testing.assert_array_equal(run_places(backend, grid, 20), 20 * expected(grid))
    assert STATS.launches == launches + 20


def test_whoever_sleeps(patience: None, backend: Backend) -> None:
    dice = random.Random(0)
    for _ in range(60):
        grid = (dice.choice((1, 2, 3, 37)),)
        times = dice.choice((1, 3, 40))
        np.testing.assert_array_equal(run_places(backend, grid, times), times * expected(grid))
        if dice.random() < 0.3:
            time.sleep(dice.random() * 2e-3)


def test_several_threads_launch(backend: Backend) -> None:
    trouble: list[str] = []

    def work() -> None:
        for _ in range(50):
            if (run_places(backend, (5,), 4) != 4 * expected((5,))).any():
                trouble.append("wrong")

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not trouble


@pytest.mark.parametrize("members", [2, 3, 5])
def test_portions_of_members(
    members: int, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member of the team works through portions of its own and then takes those of others. Each group runs once,
    however few groups and processors there are.
    """
    monkeypatch.setattr(team, "processors", lambda: members)
    source = (shipped("cl_kernels") / "team.cl").read_text()
    made = team.Team(
        lambda name: backend.programs.code(name, source, team_layout.CODE[name]), members
    )
    FOREVER.append(made)
    function = backend.kernel("places", PLACES, (None, np.int64, np.float32)).function
    assert function is not None
    run = made.launcher("places", function, (None, "<i8", "<f4"))
    for made.threads in range(members, 0, -1):
        for n in (2, 3, 4, 5, 6, 31, 81, 160, 1001):
            out = np.zeros(n, np.int64)
            for later in (False, True, True, False, True):
                if not later:
                    made.finish()
                run((Memory(out.ctypes.data), 3, 2.0), (n,), (1,), later and made.several)
            made.finish()
            np.testing.assert_array_equal(out, 5 * expected((n,)))


def test_a_helper_makes_room_for_the_caller(backend: Backend) -> None:
    assert backend.team is not None
    everywhere = os.sched_getaffinity(0)
    if len(everywhere) != backend.team.size or len(everywhere) == 1:
        pytest.skip("there is no processor for each thread")
    run_places(backend, (37,))  # starts the helpers
    while len(backend.team.places) < backend.team.size - 1:
        time.sleep(1e-3)
    try:
        for place in [*everywhere, *everywhere]:
            os.sched_setaffinity(0, {place})
            np.testing.assert_array_equal(run_places(backend, (37,)), expected((37,)))
            places = backend.team.places
            assert {place, *places.values()} == everywhere
            assert all(os.sched_getaffinity(thread) == {at} for thread, at in places.items())
    finally:
        os.sched_setaffinity(0, everywhere)


def test_denormal_numbers_are_flushed_where_asked(backend: Backend) -> None:
    """Denormals are flushed in kernels, whether the caller or helpers run them and however they are launched, and in no
    other code of these threads.
    """
    small = torch.tensor([2e-39]).expand(100_000).contiguous()
    halved = torch.capture(lambda x: x * 0.5)
    zeros, kept = np.zeros(100_000, "float32"), np.full(100_000, 1e-39, "float32")

    def check(expected: np.ndarray) -> None:
        for made in (small * 0.5, small[:3] * 0.5, halved(small)):
            np.testing.assert_array_equal(made.numpy(), expected[: made.numel()])
        assert np.float32(2e-39) * np.float32(0.5) > 0

    check(kept)
    try:
        assert torch.set_flush_denormal(True)
        check(zeros)
    finally:
        assert torch.set_flush_denormal(False)
    check(kept)
    with pytest.raises(RuntimeError, match="flush_denormal expects a bool, but got int"):
        torch.set_flush_denormal(1)  # type: ignore[arg-type]


def test_groups_with_barriers(backend: Backend) -> None:
    kernel = backend.kernel("turn_groups", BARRIER, (None,))
    values = np.arange(64, dtype=np.int32)
    buffer = backend.alloc(values.nbytes)
    backend.write(buffer, 0, values)
    backend.launch(kernel, (64,), (8,), [buffer])
    found = backend.read(buffer, 0, values.nbytes).view(np.int32)
    np.testing.assert_array_equal(found, values.reshape(-1, 8)[:, ::-1].reshape(-1))
    with pytest.raises(RuntimeError, match="turn_groups, launched with"):
        backend.launch(kernel, (63,), (8,), [buffer])


def test_numbers_are_of_the_arguments_type(backend: Backend) -> None:
    source = """__kernel void numbers(__global float *out, float a, int b, uchar c, float d) {
      out[0] = a; out[1] = b; out[2] = c; out[3] = d;
    }"""
    kernel = backend.kernel("numbers", source, (None, np.float32, np.int32, np.uint8, np.float32))
    buffer = backend.alloc(16)
    backend.launch(kernel, (1,), (1,), [buffer, np.float64(0.1), np.int64(-7), True, 1e300])
    found = backend.read(buffer, 0, 16).view(np.float32)
    assert found.tolist() == [np.float32(0.1), -7, 1, np.inf]
    with pytest.raises(TypeError, match="numbers takes 5 arguments, got 2"):
        backend.launch(kernel, (1,), (1,), [buffer, 1.0])


def test_number_of_threads(threads: None, backend: Backend) -> None:
    before = torch.get_num_threads()
    assert backend.team is not None
    assert before == backend.team.size
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    np.testing.assert_array_equal(run_places(backend, (37,), 3), 3 * expected((37,)))
    torch.set_num_threads(1000)  # is limited to the threads there are
    assert torch.get_num_threads() == before


def test_processors_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    for text, wanted in (("max 100000", 8), ("300000 100000", 3), ("50000 100000", 1), ("", 8)):
        monkeypatch.setattr(Path, "read_text", lambda self, text=text: text)
        assert processors() == wanted


def test_a_binary_of_another_kind_is_refused() -> None:
    for binary in (b"not a binary", b"poclbin\0" + bytes(64)):
        assert not machine_code.known(binary)
        with pytest.raises(RuntimeError):
            machine_code.load(binary, "places", 3)


def test_other_contexts_are_refused(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe notices when PoCL's kernel context differs from the layout the team assumes."""
    assert backend.team is not None
    monkeypatch.setattr(team_launch, "CONTEXT_GROUPS", 1)
    with pytest.raises(RuntimeError, match="other things"):
        backend.team.probe()
    monkeypatch.undo()
    backend.team.probe()


def test_a_kernel_that_only_the_driver_runs(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a kernel is queued, in order between launches of the team. A recording that has one is queued as a whole."""
    assert backend.team is not None
    monkeypatch.setattr(team, "LAUNCH_ARGS", 4)
    source = PLACES.replace("places", "queued")
    queued = backend.kernel("queued", source, (None, np.int64, np.float32))
    assert program.queued.pop() == "queued"
    monkeypatch.undo()
    places = backend.kernel("places", PLACES, (None, np.int64, np.float32))
    assert queued.function is None
    assert places.function is not None
    buffer = backend.alloc(8 * 5)
    backend.write(buffer, 0, np.zeros(5, np.int64))

    def both() -> None:
        for kernel in (places, queued, places):
            backend.launch(kernel, (5,), (1,), [buffer, 3, 2.0])

    both()
    np.testing.assert_array_equal(backend.read(buffer, 0, 40).view(np.int64), 3 * expected((5,)))
    ACTIVE.recorder = recording = Recording(backend)
    try:
        both()
    finally:
        ACTIVE.recorder = None
    recording.prepare([])
    recording.play({})
    np.testing.assert_array_equal(backend.read(buffer, 0, 40).view(np.int64), 9 * expected((5,)))


def test_a_binary_that_is_no_longer_on_disk(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program from disk is read again for its next kernel; if it has vanished, it is built."""
    one = PLACES.replace("places", "first_of_two")
    source = one + PLACES.replace("places", "second_of_two")
    types = (None, np.int64, np.float32)
    kernel = backend.kernel("first_of_two", source, types)
    kernel.program.binary = None  # as if it had come from disk
    monkeypatch.setattr("cltensor.runtime.disk_cache.read", lambda key: None)
    builds = STATS.builds
    again = backend.kernel("second_of_two", source, types)
    assert STATS.builds == builds + 1
    buffer = backend.alloc(8)
    for each in (kernel, again):
        backend.write(buffer, 0, np.zeros(1, np.int64))
        backend.launch(each, (1,), (1,), [buffer, 3, 2.0])
        assert backend.read(buffer, 0, 8).view(np.int64) == expected((1,))


def test_switched_off() -> None:
    code = """
import cltensor as torch
from cltensor.runtime import device, get_backend
x = torch.arange(12.).view(3, 4)
assert (x @ x.T + 1).sum().item() == 1143
assert get_backend(device("cpu")).team is None
"""
    environment = {**os.environ, "CLTENSOR_TEAM": "0"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
