"""Collectives among three processes on one device: run as a program, this is one rank. A failed check raises.

    python three_ranks.py <rank> <path of a store> <device>

Calls that break a process group use a group of their own; the check that ends a process comes last.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from cltensor.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from support import built_quickly

import cltensor as torch
import cltensor.distributed as dist
from cltensor import nn
from cltensor.distributed import checkpoint, schedules
from cltensor.distributed.algorithms import Join
from cltensor.distributed.algorithms.ddp_comm_hooks import (
    DDPCommHookType,
    default_hooks,
    register_ddp_comm_hook,
)
from cltensor.distributed.optim import ZeroRedundancyOptimizer
from cltensor.nn.parallel import DistributedDataParallel
from cltensor.runtime.program import ProgramCache

SIZE = 3
RANK, STORE, DEVICE = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def build_in_turns() -> None:
    """Let one process build a kernel and the others read it from the cache, as all need the same kernels at the same
    time."""
    if os.name != "posix":
        return
    import fcntl

    load, inside = built_quickly(ProgramCache._load_or_build), threading.local()

    def in_turns(self: Any, *args: Any) -> Any:
        # A nested call: the build is retried without hints that the driver refuses.
        if getattr(inside, "it", False):
            return load(self, *args)
        with open(f"{STORE}.builds", "a") as turns:
            fcntl.flock(turns, fcntl.LOCK_EX)
            inside.it = True
            try:
                return load(self, *args)
            finally:
                inside.it = False

    ProgramCache._load_or_build = in_turns  # type: ignore[method-assign]


def numbers(count: int, rank: int = RANK) -> Any:
    """Return numbers that differ by rank, whose sum is not exact."""
    made = (torch.arange(count, dtype=torch.float32) % 101 + 1.0) / (rank + 3)
    return made.to(DEVICE)


def summed(count: int) -> Any:
    """Return the sum of all ranks' numbers, added in the order of the ranks."""
    return numbers(count, 0) + numbers(count, 1) + numbers(count, 2)


def same(a: Any, b: Any) -> bool:
    """Return whether tensors have the same bits."""
    return torch.equal(a.cpu(), b.cpu())


def reductions() -> None:
    """Reductions in one piece, by shards and by segments give the same bits in all ranks: those of adding in rank
    order."""
    schedules.SEGMENT = 1 << 20
    for count in (1, 2, 1000, 100_003, 600_001):  # the last two by shards, the last in segments
        x = numbers(count)
        dist.all_reduce(x)
        assert same(x, summed(count)), count
        x = numbers(count)
        dist.reduce(x, 2)
        assert RANK != 2 or same(x, summed(count))
        x = numbers(count)
        dist.broadcast(x, 1)
        assert same(x, numbers(count, 1)), count
    x = numbers(30_000).view(100, 300).t()
    dist.all_reduce(x)
    assert same(x, summed(30_000).view(100, 300).t())
    out = torch.empty(40_000, device=DEVICE)
    dist.reduce_scatter_single(out, numbers(120_000))
    assert same(out, summed(120_000)[40_000 * RANK : 40_000 * (RANK + 1)])
    whole = torch.empty(120_000, device=DEVICE)
    dist.all_gather_single(whole, out)
    assert same(whole, summed(120_000))
    outs = [torch.empty(RANK + 1, device=DEVICE) for _ in range(SIZE)]
    dist.all_to_all(outs, [numbers(r + 1) for r in range(SIZE)])
    assert all(same(out, numbers(RANK + 1, r)) for r, out in enumerate(outs))


def several_at_once() -> None:
    """Asynchronous collectives proceed in order while the device computes."""
    xs = [numbers(50_000 + i) for i in range(4)]
    y = torch.ones(64, 64, device=DEVICE)
    works = []
    for x in xs:
        works.append(dist.all_reduce(x, async_op=True))
        y = (y @ y).clamp(max=1.0) * 0.5 + 0.5
    done = works[-1].get_future().then(lambda f: f.value()[0].numel())
    assert all(w.wait() for w in works)
    assert done.wait() == 50_003
    assert all(same(x, summed(x.numel())) for x in xs)
    assert same(y, torch.ones(64, 64))


def messages() -> None:
    """Point-to-point messages: around a ring, by tags, from any source."""
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got, second = torch.empty(70_000, device=DEVICE), torch.empty(3, device=DEVICE)
    sent = [dist.isend(numbers(70_000), after, tag=1), dist.isend(numbers(3), after, tag=2)]
    dist.recv(second, before, tag=2)
    dist.recv(got, before, tag=1)
    assert all(w.wait() for w in sent)
    assert same(got, numbers(70_000, before))
    assert same(second, numbers(3, before))
    if RANK:
        dist.send(numbers(4), 0)
    else:
        seen = set()
        for _ in range(2):
            x = torch.empty(4, device=DEVICE)
            seen.add(source := dist.recv(x))
            assert same(x, numbers(4, source))
        assert seen == {1, 2}


def groups() -> None:
    """Groups of some of the ranks, in which ranks are renumbered."""
    pair = dist.new_group([2, 0])
    if RANK == 1:
        assert pair is dist.GroupMember.NON_GROUP_MEMBER
        assert dist.get_rank(pair) == -1
        for call in (dist.all_reduce, dist.irecv, dist.all_gather_object):
            args = ([None], 1) if call is dist.all_gather_object else (numbers(5),)
            with pytest.warns(
                UserWarning, match=f"^Running {call.__name__} on global rank 1 "
            ) as seen:
                assert call(*args, group=pair) is None
            assert seen[0].filename == __file__
        return
    assert dist.get_rank(pair) == RANK // 2
    assert dist.get_process_group_ranks(pair) == [0, 2]
    x = numbers(5)
    dist.all_reduce(x, group=pair)
    assert same(x, numbers(5, 0) + numbers(5, 2))
    dist.broadcast(x, group=pair, group_src=1)
    dist.destroy_process_group(pair)


def failures() -> None:
    """Nothing hangs: impossible calls raise, and so do calls after them."""
    pair = dist.new_group([0, 1], timeout=timedelta(seconds=30))
    if RANK < 2:
        with pytest.raises(dist.DistBackendError, match=r"another collective|reset|closed|Broken"):
            if RANK:
                dist.broadcast(numbers(2), 0, group=pair)
            else:
                dist.all_reduce(numbers(2), group=pair)
        with pytest.raises(dist.DistBackendError):
            dist.barrier(pair)
    slow = dist.new_group([0, 1], timeout=timedelta(seconds=0.3))
    if RANK == 0:
        with pytest.raises(dist.DistBackendError, match="Timed out waiting 300ms"):
            dist.all_reduce(numbers(2), group=slow)
    late = dist.new_group([1, 2])
    if RANK == 1:
        with pytest.raises(dist.DistBackendError, match="Rank 1 failed to pass monitoredBarrier"):
            dist.monitored_barrier(late, timedelta(seconds=0.3))
    dist.barrier()


def network() -> Any:
    """Return a network that differs between processes only in what DistributedDataParallel makes equal."""
    torch.manual_seed(RANK)
    return nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2)
    ).to(DEVICE)  # fmt: skip


def batches() -> tuple[Any, Any]:
    """Return the inputs and targets of all ranks."""
    generator = torch.Generator().manual_seed(5)
    return (
        torch.randn(12, 6, generator=generator).to(DEVICE),
        torch.randn(12, 2, generator=generator).to(DEVICE),
    )


def trained(**options: Any) -> list[Any]:
    """Train a replica for some steps on a third of the data; return its parameters."""
    hook = options.pop("hook", None)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(network())
    replica = DistributedDataParallel(model, **options)
    if isinstance(hook, DDPCommHookType):
        register_ddp_comm_hook(hook, replica)
    elif hook is not None:
        replica.register_comm_hook(None, hook)
    return steps(replica, slice(4 * RANK, 4 * RANK + 4))


def steps(model: Any, share: slice) -> list[Any]:
    """Train on some rows; return the parameters and the batch statistics."""
    x, y = batches()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        ((model(x[share]) - y[share]) ** 2).mean().backward()
        optimizer.step()
    kept = [p.detach() for p in model.parameters()]
    return [t.cpu() for t in (*kept, *[b for b in model.buffers() if b.is_floating_point()])]


def training() -> None:
    """Replicas with a third of the data each train like one model on all of the data."""
    alone = network()
    for p in (*alone.parameters(), *alone.buffers()):
        dist.broadcast(p.detach(), 0)
    expected = steps(alone, slice(0, 12))
    small = {"bucket_cap_mb": 0.0005}
    for options, close in (
        ({}, 1e-4),
        (small, 1e-4),
        ({"gradient_as_bucket_view": True, **small}, 1e-4),
        ({"static_graph": True, **small}, 1e-4),
        ({"find_unused_parameters": True}, 1e-4),
        ({"hook": default_hooks.allreduce_hook, **small}, 1e-4),
        ({"hook": DDPCommHookType.FP16_COMPRESS}, 1e-3),
        ({"hook": default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)}, 1e-2),
    ):
        found = trained(**options)
        for a, b in zip(found, expected, strict=True):
            assert torch.allclose(a, b, rtol=close, atol=close), options
        everybody: list[Any] = [None] * SIZE
        dist.all_gather_object(everybody, [t.tolist() for t in found])
        assert everybody[0] == everybody[1] == everybody[2], options


def uneven() -> None:
    """With `Join` a rank without further inputs takes part until all are done; under `no_sync` gradients are not
    reduced."""
    model = DistributedDataParallel(nn.Linear(2, 1, bias=False).to(DEVICE))
    with torch.no_grad():
        model.module.weight.zero_()
    with Join([model], divide_by_initial_world_size=False):
        for _ in range(RANK + 1):
            model.zero_grad()
            model(torch.full((1, 2), RANK + 1.0, device=DEVICE)).sum().backward()
    # The mean over the ranks that have inputs in this rank's last step.
    mean = {0: 2.0, 1: 2.5, 2: 3.0}[RANK]
    assert model.module.weight.grad.tolist() == [[mean, mean]]
    model.zero_grad()
    x = torch.full((1, 2), RANK + 1.0, device=DEVICE)
    with model.no_sync():
        model(x).sum().backward()
    assert model.module.weight.grad.tolist() == [[RANK + 1.0] * 2]
    model(x).sum().backward()
    assert model.module.weight.grad.tolist() == [[4.0, 4.0]]
    assert list(model.state_dict()) == ["module.weight"]
    sampler = torch.utils.data.DistributedSampler(range(9), shuffle=False)
    assert list(sampler) == [RANK, RANK + 3, RANK + 6]


def shared_optimizer() -> None:
    """ZeroRedundancyOptimizer, which steps a third of the parameters per rank, equals one optimiser, also after loading
    a saved state."""
    models = [nn.Linear(4, 3).to(DEVICE) for _ in range(2)]
    for p, q in zip(*[m.parameters() for m in models]):
        dist.broadcast(p.detach(), 0)
        q.data.copy_(p.data)
    whole = torch.optim.Adam(models[0].parameters(), lr=0.1)
    shared = ZeroRedundancyOptimizer(models[1].parameters(), torch.optim.Adam, lr=0.1)
    schedules_ = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (whole, shared)]
    for i in range(4):
        for model, optimizer, schedule in zip(models, (whole, shared), schedules_):
            optimizer.zero_grad()
            model(torch.full((2, 4), i + 1.0, device=DEVICE)).square().sum().backward()
            optimizer.step()
            schedule.step()
        if i == 1:
            shared.consolidate_state_dict(to=1)
            saved = [shared.state_dict() if RANK == 1 else None]
            dist.broadcast_object_list(saved, 1)
            shared = ZeroRedundancyOptimizer(models[1].parameters(), torch.optim.Adam, lr=1.0)
            shared.load_state_dict(saved[0])
            schedules_[1].optimizer = shared
    for p, q in zip(*[m.parameters() for m in models]):
        assert torch.allclose(p, q, rtol=1e-5, atol=1e-6)
    assert len(shared.optim.state) == (1 if RANK < 2 else 0)
    with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
        shared.state_dict()


def first_ranks_states() -> None:
    """All ranks take over the parameters, buffers and optimiser state that rank 0 alone has loaded."""
    whole = StateDictOptions(full_state_dict=True)
    from_first = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)

    def trained(factor: float) -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Linear(2, 2)
        model.register_buffer("seen", numbers(2) * factor)
        with torch.no_grad():
            model.weight.fill_(factor)
        optimizer = torch.optim.Adam(model.parameters(), lr=factor)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        return model, optimizer

    saved = get_state_dict(*trained(RANK + 1.0), options=whole)
    expected = [saved]
    dist.broadcast_object_list(expected, src=0)
    model, optimizer = trained(RANK + 5.0)
    own = saved if RANK == 0 else ({}, {})
    found = set_model_state_dict(model, own[0], options=from_first)
    assert not found.missing_keys
    assert not found.unexpected_keys
    set_optimizer_state_dict(model, optimizer, own[1], options=from_first)
    states, (first, optimum) = get_state_dict(model, optimizer, options=whole), expected[0]
    torch.testing.assert_close(states[0], first)
    torch.testing.assert_close(states[1]["state"], optimum["state"])
    assert optimizer.param_groups[0]["lr"] == 1.0


def shared_folder() -> None:
    """All ranks write one checkpoint; of entries that several have, rank 0's is kept. A rank's failure is all ranks'."""
    folder = f"{STORE}-checkpoint"
    own = f"own{RANK}"
    saved = {"model": nn.Linear(2, 1).state_dict(), own: numbers(2), "rank": RANK}
    made = checkpoint.save(saved, checkpoint_id=folder)
    assert {f"own{rank}" for rank in range(SIZE)} < set(made.state_dict_metadata)
    first = [saved["model"]]
    dist.broadcast_object_list(first, src=0)
    loaded = {"model": nn.Linear(2, 1).state_dict(), own: torch.zeros(2), "rank": -1}
    checkpoint.load(loaded, checkpoint_id=folder)
    torch.testing.assert_close(loaded["model"], first[0])
    torch.testing.assert_close(loaded[own], numbers(2))
    assert loaded["rank"] == 0
    with pytest.raises(checkpoint.CheckpointException, match="Missing key") as caught:
        checkpoint.load({own: torch.zeros(2)} if RANK else {"lost": 1}, checkpoint_id=folder)
    assert [*caught.value.failures] == [0]


def refusals() -> None:
    """Parameters without gradients and replicas of different shapes raise torch's errors."""
    two = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    two.forward = lambda x: two[0](x)
    replica = DistributedDataParallel(two)
    x = torch.ones(1, 2)
    replica(x).sum().backward()
    with pytest.raises(RuntimeError, match="Expected to have finished reduction in the prior") as e:
        replica(x)
    assert f"did not receive grad for rank {RANK}: 2 3" in str(e.value)
    with pytest.raises(RuntimeError, match=r"appears not to match sizes|of other sizes"):
        DistributedDataParallel(nn.Linear(2, 2 + RANK))
    with pytest.raises(RuntimeError, match="DDP expects same model across all ranks"):
        DistributedDataParallel(nn.Linear(2, 2, bias=RANK == 1))


def the_end() -> None:
    """The end of a process is noticed at once by the others."""
    dist.barrier()
    if RANK == 2:
        os._exit(0)
    begun = time.monotonic()
    with pytest.raises(dist.DistBackendError, match=r"rank 2|reset|closed"):
        for _ in range(3):  # rank 1 may notice only when rank 0, after its error, leaves the group
            dist.all_reduce(numbers(3))
    with pytest.raises(dist.DistBackendError):
        dist.recv(numbers(3), 2)
    assert time.monotonic() - begun < 60  # well before the timeout, which is half an hour


if __name__ == "__main__":
    build_in_turns()
    torch.set_default_device("cpu")
    dist.init_process_group(
        init_method=f"file://{STORE}", rank=RANK, world_size=SIZE, timeout=timedelta(minutes=5)
    )
    for part in (
        reductions, several_at_once, messages, groups, failures, training, uneven, shared_optimizer, first_ranks_states,
        shared_folder, refusals, the_end
    ):  # fmt: skip
        part()
