"""Launches of one work-group in the calling thread (PoCL's second device): same results, same order, no second build."""

from __future__ import annotations

import numpy as np
import pytest

import cltensor as torch
from cltensor.runtime import STATS, Backend, device, get_backend
from cltensor.runtime.inline import WORTH

ADD = """
__kernel void add_one(__global float *a, long n) {
  for (long i = get_global_id(0); i < n; i += get_global_size(0)) a[i] += 1.0f;
}
"""


@pytest.fixture
def backend() -> Backend:
    found = get_backend(device("cpu"))
    if found.inline is None:
        pytest.skip("the cpu device has no inline lane")
    return found


def test_twin_is_not_listed() -> None:
    assert not any("basic" in torch.opencl.get_device_name(n) for n in range(torch.opencl.device_count()))  # fmt: skip


def test_twin_comes_from_the_binary(backend: Backend) -> None:
    values = np.zeros(64, np.float32)
    buffer = backend.alloc(values.nbytes)
    backend.write(buffer, 0, values)
    kernel = backend.kernel("add_one", ADD, (None, np.int64))
    builds, launches = STATS.builds, STATS.launches
    for _ in range(WORTH + 4):
        backend.launch(kernel, (1,), (1,), [buffer, 64])
        backend.finish()
    assert kernel.inline is not None
    assert (STATS.builds, STATS.launches) == (builds, launches + WORTH + 4)
    assert backend.finished == backend.seq
    np.testing.assert_array_equal(backend.read(buffer, 0, 256).view(np.float32), WORTH + 4)


def test_order_with_the_queue(backend: Backend) -> None:
    n = 1 << 22
    buffer = backend.alloc(4 * n)
    backend.write(buffer, 0, np.zeros(n, np.float32))
    kernel = backend.kernel("add_one", ADD, (None, np.int64))
    for _ in range(WORTH + 1):
        backend.launch(kernel, (1,), (1,), [buffer, 8])
        backend.finish()
    for _ in range(5):  # behind a long launch the short one has to queue
        backend.launch(kernel, (2,), (1,), [buffer, n])
        backend.launch(kernel, (1,), (1,), [buffer, 8])
    backend.finish()
    for _ in range(2):
        backend.launch(kernel, (1,), (1,), [buffer, 8])
    found = backend.read(buffer, 0, 4 * n).view(np.float32)
    assert found[:8].tolist() == [WORTH + 1 + 10 + 2] * 8
    assert (found[8:] == 5).all()


@pytest.mark.parametrize(
    "work",
    [
        lambda x, w: x @ w,
        lambda x, w: x.softmax(1),
        lambda x, w: x.sum(0),
        lambda x, w: torch.nn.functional.layer_norm(x, (128,)),
        lambda x, w: x[torch.arange(16)],
    ],
    ids=["matmul", "softmax", "sum", "layer_norm", "index"],
)
def test_small_work_of_every_family_is_one_launch_in_this_thread(work, backend: Backend) -> None:
    x, w = torch.rand(16, 128), torch.rand(128, 128)
    for _ in range(WORTH + 1):
        work(x, w)
        torch.opencl.synchronize()
    launches = STATS.launches
    found = work(x, w)
    torch.opencl.flush()
    assert STATS.launches > launches
    assert backend.finished == backend.seq  # though nobody waited
    assert found.isfinite().all()
