"""Launches posted to a team while the caller goes on (`post` in runtime/team.py): no reader sees unfinished results."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cltensor as torch
from cltensor.ops import replay
from cltensor.runtime import Backend, device, get_backend, team, team_layout

ROWS = 300  # of square matrices: they take several groups, and their product takes a while


@pytest.fixture
def backend() -> Backend:
    found = get_backend(device("cpu"))
    if found.team is None or not found.team.several:
        pytest.skip("the cpu device has no team of several threads")
    return found


@pytest.fixture(params=[team.PATIENCE, 0], ids=["awake", "asleep"])
def later(request: pytest.FixtureRequest, backend: Backend) -> Iterator[None]:
    """Post every launch to the team, whatever its size."""
    assert backend.team is not None
    before = backend.team.patience
    backend.team.patience = request.param
    with _every(-1):
        yield
    backend.team.patience = before


class _every(pytest.MonkeyPatch):
    """Set the size from which launches are posted to the team."""

    def __init__(self, size: float) -> None:
        super().__init__()
        self._size = size

    def __enter__(self) -> _every:
        self.setattr(team, "LATER", self._size)
        self.setattr(team, "SOON", self._size)
        replay.forget()
        return self

    def __exit__(self, *error: object) -> None:
        self.undo()
        replay.forget()


def square(seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).random((ROWS, ROWS), np.float32)).clone()


def slow(x: Any) -> Any:
    """Post a long sequence of products to the team and return the last result."""
    for _ in range(4):
        x = torch.mm(x, x) / ROWS
    return x


def left(backend: Backend) -> int:
    """Return the number of orders not known to be done."""
    return backend.seq - backend.finished


def test_a_large_launch_is_left_to_do_and_a_small_one_is_not(backend: Backend) -> None:
    x, small = torch.rand(1 << 20), torch.rand(16)
    for _ in range(3):  # the call that is recorded for replay is waited for
        x.cumsum(0), small.cumsum(0)
    torch.opencl.synchronize()
    made = x.cumsum(0)
    assert left(backend) >= 1
    assert backend.team is not None
    torch.opencl.synchronize()
    assert left(backend) == 0
    assert backend.team._progress[team_layout.TEAM_DONE] == backend.team.posted > 0
    posted = backend.team.posted
    also = small.cumsum(0)
    assert backend.team.posted == posted
    assert made[-1].item() == pytest.approx(x.numpy().sum(dtype=np.float64), rel=1e-4)
    assert also[-1].item() == pytest.approx(small.numpy().sum(), rel=1e-5)


def test_a_small_launch_behind_one_that_is_left_is_left_too(backend: Backend) -> None:
    x = torch.rand(1 << 20)
    for _ in range(3):
        x.cumsum(0)[-3:].cumsum(0)
    torch.opencl.synchronize()
    last = x.cumsum(0)[-3:].cumsum(0)
    assert left(backend) == 2
    wanted = np.cumsum(np.cumsum(x.numpy())[-3:])
    np.testing.assert_allclose(last.numpy(), wanted, rtol=1e-3)


WAITS: dict[str, Callable[[Any], Any]] = {
    "synchronize": lambda t: torch.opencl.synchronize(), "item": lambda t: t[3].item(), "numpy": lambda t: t.numpy().sum(),
}  # fmt: skip


@pytest.mark.parametrize("op", ["pointwise", "replayed"])
@pytest.mark.parametrize("name", WAITS)
def test_of_middling_launches_those_are_left_before_which_the_host_did_not_wait(
    name: str, op: str, backend: Backend
) -> None:
    x = torch.rand(1 << 16)  # what is read and written lies between SOON and LATER

    def launched() -> Any:
        made = x + 1 if op == "pointwise" else x.cumsum(0)
        torch.opencl.flush()
        return made

    for _ in range(3):
        WAITS[name](launched())
        assert left(backend) == 0
    launched()
    assert left(backend) == 0  # the host may be going to wait for it
    kept = [launched() for _ in range(3)]
    assert left(backend) == 3
    WAITS[name](kept[-1])
    launched()
    assert left(backend) == 0
    wanted = x.numpy() + 1 if op == "pointwise" else np.cumsum(x.numpy(), dtype=np.float64)
    for made in kept:
        np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-4)


READERS: dict[str, Callable[[Any], Any]] = {
    "item": lambda t: t[0, 1].item(), "tolist": lambda t: t[0].tolist(), "numpy": lambda t: t.numpy().copy(), "clone": lambda t: t.clone().numpy(),
    "bool": lambda t: bool((t > -1).all()), "bytes": lambda t: np.asarray(t.detach()).tobytes(), "dlpack": lambda t: np.from_dlpack(t).copy(),
    "nonzero": lambda t: t.nonzero().shape, "mask": lambda t: t[t > 0.2].numpy(), "repr": repr, "copy": lambda t: torch.empty(ROWS, ROWS).copy_(t).numpy(),
    "pointer": lambda t: bytes((ctypes.c_char * t.nbytes).from_address(t.data_ptr())), "storage": lambda t: t.untyped_storage().tolist()[:64],
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_who_reads_sees_it_done(name: str, later: None, backend: Backend) -> None:
    x = square()
    found = READERS[name](slow(x))
    with _every(float("inf")):
        wanted = READERS[name](slow(x))
    np.testing.assert_equal(found, wanted)


def test_writes_of_the_host_come_after_what_reads_the_memory(later: None, backend: Backend) -> None:
    x = square()
    with _every(float("inf")):
        wanted = slow(x).numpy()
    made = slow(x)
    first = made + 0
    x[0, 0] = 7.0
    x[1] = torch.tensor(np.full(ROWS, 3, np.float32))
    x.numpy()[2] = 5
    np.testing.assert_array_equal(first.numpy(), wanted)
    assert x[:3, 0].tolist() == [7, 3, 5]


def test_memory_that_dies_is_given_out_again_in_order(later: None, backend: Backend) -> None:
    x = square()
    with _every(float("inf")):
        wanted = slow(x).numpy()
    for k in range(20):
        made = slow(x)
        # The host writes it into memory that a dead intermediate result had.
        other = torch.tensor(np.full((ROWS, ROWS), k, np.float32))
        np.testing.assert_array_equal(made.numpy(), wanted)
        assert other[-1, -1].item() == k
        del made, other


def test_memory_that_numpy_sees_is_ready_when_an_operation_returns(
    later: None, backend: Backend
) -> None:
    x = square()
    seen, address = torch.zeros(ROWS, ROWS), torch.zeros(ROWS, ROWS)
    array = seen.numpy()
    memory = np.ctypeslib.as_array(
        ctypes.cast(address.data_ptr(), ctypes.POINTER(ctypes.c_float)), (ROWS, ROWS)
    )
    for _ in range(5):
        torch.mm(slow(x), x, out=seen)
        kept = array.copy()
        torch.opencl.synchronize()
        np.testing.assert_array_equal(kept, array)
        address.add_(seen)
        kept = memory.copy()
        torch.opencl.synchronize()
        np.testing.assert_array_equal(kept, memory)


def test_more_orders_than_there_is_room_for(later: None, backend: Backend) -> None:
    x = square()
    total = torch.zeros(ROWS, ROWS)
    slow(x)
    for k in range(3 * team_layout.ORDERS):
        total = torch.mm(total, x) * 0 + k + total
        total.sum()
    assert total[3, 4].item() == sum(range(3 * team_layout.ORDERS))


def test_what_is_forgotten_meanwhile_is_done_all_the_same(later: None) -> None:
    x = square()
    with _every(float("inf")):
        wanted = slow(x).numpy()
    for _ in range(20):
        for _ in range(3):  # a call is played from the third time on
            made = slow(x)
        replay.forget()
        kept = [np.full(1000, 7, np.uint64) for _ in range(50)]  # take the memory of what played it
        np.testing.assert_array_equal(made.numpy(), wanted)
        assert all((array == 7).all() for array in kept)


def test_a_bad_index_is_reported_at_once(later: None) -> None:
    made = slow(square())
    with pytest.raises(IndexError, match="index 400 is out of bounds"):
        made[torch.tensor([1, 400])]
    assert np.isfinite(made.numpy()).all()


def test_threads_of_a_program(later: None, backend: Backend) -> None:
    x = square()
    with _every(float("inf")):
        wanted = slow(x).sum(0).numpy()
    failed: list[Any] = []

    def work() -> None:
        for _ in range(15):
            found = slow(x).sum(0).numpy()
            if not np.array_equal(found, wanted):
                failed.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_settings_wait_for_what_is_left(later: None, backend: Backend) -> None:
    x = square()
    with _every(float("inf")):
        wanted = slow(x).numpy()
    before = torch.get_num_threads()
    try:
        made = slow(x)
        torch.set_num_threads(1)
        np.testing.assert_array_equal((made + 0).numpy(), wanted)
        torch.set_num_threads(before)
        made = slow(x)
        torch.set_flush_denormal(True)
        np.testing.assert_array_equal(made.numpy(), wanted)
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_meanwhile(later: None, backend: Backend) -> None:
    x = square()
    with _every(float("inf")):
        wanted = slow(x).numpy()
    made = slow(x)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        good = False
        try:
            good = np.array_equal(made.numpy(), wanted) and np.array_equal(slow(x).numpy(), wanted)
        finally:
            os.write(write, b"y" if good else b"n")
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 1) == b"y"
    os.close(read), os.close(write)
    np.testing.assert_array_equal(made.numpy(), wanted)


STEPS: dict[str, Callable[[list[Any]], Any]] = {
    "product": lambda v: torch.mm(v[-1], v[-2]) / ROWS, "sum": lambda v: v[-1].sum(0, keepdim=True) / ROWS + v[-2], "in place": lambda v: v[-1].mul_(0.5).add_(v[-2]),
    "softmax": lambda v: v[-1].softmax(1), "scan": lambda v: v[-1].cumsum(1) / ROWS, "turn": lambda v: v[-1].t().contiguous(), "write": lambda v: v[-1].clone().fill_(0.25) + v[-2],
    "rows": lambda v: v[-1][torch.arange(ROWS - 1, -1, -1)], "host": lambda v: v[-1] + v[-2][0, 0].item(), "view": lambda v: v[-1].flip(0), "sort": lambda v: v[-1].sort(1)[0],
    "set": lambda v: v[-1].index_fill(0, torch.tensor([1, 5]), 0.5), "random": lambda v: v[-1] * torch.nn.functional.dropout(torch.ones(ROWS, ROWS), 0.5),
}  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=9), st.integers(0, 2))
def test_programs_give_the_same_bits(steps: list[str], kept: int) -> None:
    backend = get_backend(device("cpu"))
    if backend.team is None or not backend.team.several:
        pytest.skip("the cpu device has no team of several threads")

    def program() -> list[np.ndarray]:
        torch.manual_seed(3)
        values = [square(1), square(2)]
        for name in steps:
            values.append(STEPS[name](values))
            values = values[-2 - kept :]
        return [v.numpy().copy() for v in values]

    found = []
    for size in (float("inf"), -1):
        with _every(size):
            found += [program(), program()]
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
