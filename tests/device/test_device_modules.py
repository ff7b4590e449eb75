"""The modules of device types: what the pool of a device tells of itself, limits of it, streams and copies between devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cltensor as torch
from cltensor.nn.parallel import comm, parallel_apply, replicate
from cltensor.runtime import get_backend


@pytest.fixture
def gpu(dev: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device under test in the place of a GPU, for the functions of `torch.cuda`."""
    for module in ("memory", "streams", "toolkit"):
        monkeypatch.setattr(f"cltensor.cuda.{module}.named", lambda device: torch.device(dev))
    monkeypatch.setattr("cltensor.cuda.memory.is_available", lambda: True)
    monkeypatch.setattr("cltensor.cuda.memory.device_count", lambda: 1)
    return torch.device(dev)


def test_statistics_are_the_pools(gpu: Any) -> None:
    pool = get_backend(gpu).pool
    torch.cuda.reset_accumulated_memory_stats()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()
    kept = [torch.full((1000 + i,), 1.0, device=gpu) + 0 for i in range(3)]
    torch.opencl.synchronize(gpu)
    after = torch.cuda.memory_stats()
    grown = after["allocated_bytes.all.current"] - before["allocated_bytes.all.current"]
    assert grown >= 3 * 4000
    assert after["allocation.all.allocated"] - before["allocation.all.allocated"] >= 3
    assert after["allocated_bytes.all.peak"] >= before["allocated_bytes.all.current"] + grown
    assert after["reserved_bytes.all.current"] == pool.held == torch.cuda.memory_reserved()
    assert after["segment.all.current"] == pool.created - pool.released
    nested = torch.cuda.memory_stats_as_nested_dict()
    assert nested["reserved_bytes"]["all"]["peak"] == torch.cuda.max_memory_reserved()
    del kept
    torch.cuda.empty_cache()
    assert torch.cuda.memory_stats()["num_device_free"] > 0
    assert torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_reserved() == torch.cuda.memory_reserved()
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_stats()["num_device_alloc"] == 0
    assert torch.cuda.memory_stats()["segment.all.current"] == pool.created - pool.released


def test_a_process_may_be_given_a_part_of_the_memory(gpu: Any) -> None:
    backend = get_backend(gpu)
    assert torch.cuda.get_per_process_memory_fraction() == 1.0
    fraction = (backend.pool.held + (8 << 20)) / backend.info.global_mem
    refused = torch.cuda.memory_stats()["num_ooms"]
    torch.cuda.set_per_process_memory_fraction(fraction)
    try:
        assert torch.cuda.get_per_process_memory_fraction() == pytest.approx(fraction, rel=1e-3)
        with pytest.raises(torch.cuda.OutOfMemoryError, match="this process may hold"):
            torch.empty(backend.pool.held + (64 << 20), dtype=torch.uint8, device=gpu).fill_(1)
        assert torch.cuda.memory_stats()["num_ooms"] == refused + 1
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.empty(64 << 20, dtype=torch.uint8, device=gpu).fill_(1)[-1].item() == 1
    with pytest.raises(TypeError, match="must be `float`"):
        torch.cuda.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError, match="Allowed range: 0~1"):
        torch.cuda.set_per_process_memory_fraction(1.5)


def test_the_pool_may_be_told_to_keep_nothing(gpu: Any) -> None:
    pool = get_backend(gpu).pool

    def free_after_use() -> int:
        x = torch.ones(5000, device=gpu) + 1
        torch.opencl.synchronize(gpu)
        del x
        return pool.held - pool.active

    usual = free_after_use()
    with torch.cuda.caching_allocator_disabled():
        kept = pool.held - pool.active  # what recordings of other tests reserve
        assert kept < usual
        assert free_after_use() == kept
    assert free_after_use() > kept


def test_streams_of_a_device_are_one(gpu: Any) -> None:
    stream = torch.cuda.Stream()
    assert stream == torch.cuda.current_stream() == torch.cuda.default_stream()
    assert len({stream, torch.cuda.current_stream()}) == 1
    torch.cuda.set_stream(stream)
    with torch.cuda.stream(stream):
        x = torch.arange(4.0, device=gpu) * 2
    assert stream.query()
    assert x.tolist() == [0, 2, 4, 6]
    assert torch.cuda.memory_snapshot is torch.cuda.memory.memory_snapshot


def test_streams_of_the_cpu() -> None:
    first, second = torch.cpu.current_stream(), torch.cpu.Stream()
    with torch.cpu.stream(second):
        assert torch.cpu.current_stream() is second
        second.wait_stream(first)
        with torch.cpu.stream(None):
            assert torch.cpu.current_stream() is second
    assert torch.cpu.current_stream() is first
    x = torch.ones(3, device="cpu") + 1
    event = torch.cpu.Event()
    event.record()
    assert event.query()
    assert not get_backend(torch.device("cpu")).pending
    assert x.tolist() == [2, 2, 2]


def test_copies_and_sums_between_devices(dev: Any) -> None:
    x = torch.arange(6.0, device=dev).reshape(3, 2).requires_grad_()
    copies = comm.broadcast(x, ["cpu", dev])
    assert [c.device for c in copies] == [torch.device("cpu"), x.device]
    total = comm.reduce_add([c * k for c, k in zip(copies, (2, 3))], dev)
    total.sum().backward()
    assert total.tolist() == (x * 5).tolist()
    assert x.grad.tolist() == [[5, 5]] * 3
    sums = comm.reduce_add_coalesced([[x, x * 2], [x, x]], dev)
    assert [s.tolist() for s in sums] == [(x * 2).tolist(), (x * 3).tolist()]
    parts = comm.scatter(x.detach(), [dev, "cpu"], [2, 1])
    assert [tuple(p.shape) for p in parts] == [(2, 2), (1, 2)]
    assert comm.gather(parts, 0, dev).tolist() == x.tolist()
    out = torch.empty(3, 2, device=dev)
    assert comm.gather(parts, out=out) is out
    assert torch.equal(out, x.detach())
    assert comm.broadcast_coalesced([x.detach()], ["cpu"])[0][0].tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="Exactly one of 'devices' and 'out'"):
        comm.broadcast(x)
    with pytest.raises(ValueError, match="input 1 has invalid size: got 2, but expected 3x2"):
        comm.reduce_add([x, x[0]], dev)
    with pytest.raises(RuntimeError, match="must not be specified when 'out'"):
        comm.scatter(x, [dev], out=[out])
    assert torch.cuda.comm.scatter is comm.scatter


def test_replicas_send_gradients_to_the_module(dev: Any) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh())
    net = net.to(dev).eval()
    x = torch.randn(4, 3, device=dev)
    whole = net(x)
    whole.sum().backward()
    expected = [p.grad.cpu().numpy().copy() for p in net.parameters()]
    net.zero_grad()
    replicas = replicate(net, [dev, "cpu"])
    assert not list(replicas[1].parameters())
    results = parallel_apply(replicas, comm.scatter(x, [dev, "cpu"]), devices=[dev, "cpu"])
    assert [str(r.device) for r in results] == [str(x.device), "cpu"]
    joined = comm.gather(results, 0, dev)
    np.testing.assert_allclose(
        joined.detach().cpu().numpy(), whole.detach().cpu().numpy(), rtol=1e-5
    )
    joined.sum().backward()
    for p, grad in zip(net.parameters(), expected):
        np.testing.assert_allclose(p.grad.cpu().numpy(), grad, rtol=1e-4, atol=1e-6)
    assert replicate(net, [dev], detach=True)[0][0].weight.grad_fn is None
    with pytest.raises(AssertionError, match="number of modules 2"):
        parallel_apply(replicas, [x])
