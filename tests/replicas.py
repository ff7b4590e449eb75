"""Trainings of DistributedDataParallel replicas in two processes, with torch or cltensor: each returns sums that must equal torch's per rank.

tests/collective_calls.py calls them. `torch` is the library; process groups exist already.
"""

from __future__ import annotations

import importlib
from typing import Any

torch: Any = None  # the library under test, set by the caller
rank = 0


def _filled(module: Any) -> Any:
    """Return a module with numbers that are the same in both libraries."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            numbers = torch.tensor([((k * (i + 1)) % 13 - 6) / 20 for k in range(p.numel())])
            p.copy_(numbers.view(p.shape))
    return module


def _rows() -> Any:
    """Return inputs that differ by rank."""
    return torch.tensor([((k * 5 + rank * 7) % 11 - 5) / 6 for k in range(24)]).view(4, 6)


def _replica(module: Any, **options: Any) -> Any:
    return torch.nn.parallel.DistributedDataParallel(_filled(module), **options)


def _sums(tensors: Any) -> list[Any]:
    return [None if t is None else t.detach().sum() for t in tensors]


def _gradients(module: Any) -> list[Any]:
    return _sums([p.grad for p in module.parameters()])


def plain(**options: Any) -> Any:
    """Train for three steps."""
    nn = torch.nn
    replica = _replica(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)), **options)
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        replica(_rows()).square().mean().backward()
        optimizer.step()
    return _sums(replica.parameters()), _gradients(replica), list(replica.state_dict())


def statistics() -> Any:
    """Train with batch statistics: buffers are broadcast from rank 0."""
    nn = torch.nn
    replica = _replica(nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 2)))
    for _ in range(3):
        replica(_rows()).square().mean().backward()
    return _sums([replica.module[1].running_mean]), _gradients(replica)


def recomputed(reentrant: bool, **options: Any) -> Any:
    """Train with activation checkpointing: part of the forward runs again in backward."""
    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(6, 6), torch.nn.Linear(6, 2)

        def forward(self, x: Any) -> Any:
            return self.b(checkpoint(self.a, x, use_reentrant=reentrant))

    replica = _replica(Model(), **options)
    for _ in range(3):
        replica(_rows().requires_grad_()).square().mean().backward()
    return _gradients(replica)


def accumulated() -> Any:
    """Accumulate gradients: those of every other step are not reduced."""
    replica, found = _replica(torch.nn.Linear(6, 2)), []
    for i in range(4):
        if i % 2:
            replica(_rows() * (i + 1)).square().mean().backward()
        else:
            with replica.no_sync():
                replica(_rows() * (i + 1)).square().mean().backward()
        found.append(replica.module.weight.grad.sum())
    return found


def branches() -> Any:
    """Return outputs in containers; a step uses one output, and each process another one."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = (torch.nn.Linear(6, 2) for _ in range(3))

        def forward(self, x: Any) -> Any:
            return {"a": self.a(x), "rest": [self.b(x)], "none": 3}

    replica, found = _replica(Model(), find_unused_parameters=True), []
    for i in range(3):
        replica.zero_grad()
        out = replica(_rows())
        (out["a"] if i != 1 + rank else out["rest"][0]).sum().backward()
        found.append(_gradients(replica))
    return found


def frozen_and_tied() -> Any:
    """Train with a parameter that requires no gradient, and one used in two places."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 2))
    model[0].bias.requires_grad_(False)
    model[2].weight = model[0].weight
    replica = _replica(model)
    for _ in range(2):
        replica(_rows()).square().sum().backward()
    return _gradients(replica), list(replica.state_dict())


def embedded() -> Any:
    """Train an embedding with sparse gradients, whose rows differ by process."""
    nn = torch.nn
    replica = _replica(nn.Sequential(nn.Embedding(6, 3, sparse=True), nn.Linear(3, 2)))
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.1)
    for i in range(3):
        optimizer.zero_grad()
        replica(torch.tensor([1, 1 + rank, 5 - i])).square().sum().backward()
        optimizer.step()
    table = replica.module[0].weight
    return table.grad.is_sparse, table.grad.to_dense(), table, replica.module[1].weight.grad


def hooked() -> Any:
    """Return gradients reduced by communication hooks of every kind."""
    name = f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.default_hooks"
    hooks, found = importlib.import_module(name), []

    def sevens(state, bucket):  # torch reads annotations
        future = torch.futures.Future()
        future.set_result(bucket.buffer() * 0 + 7 + bucket.index() + bucket.is_last())
        return future

    halved = hooks.fp16_compress_wrapper(hooks.allreduce_hook)
    for hook in (hooks.allreduce_hook, hooks.fp16_compress_hook, halved, sevens):
        replica = _replica(torch.nn.Linear(6, 2))
        replica.register_comm_hook(None, hook)
        replica(_rows()).square().sum().backward()
        found.append(_gradients(replica))
    return found


def joined(**options: Any) -> Any:
    """Train with `join`: the processes have different numbers of inputs."""
    replica = _replica(torch.nn.Linear(6, 2))
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.1)
    with replica.join(**options):
        for i in range(2 + 2 * rank):
            optimizer.zero_grad()
            replica(_rows() * (i + 1)).square().mean().backward()
            optimizer.step()
    return _sums(replica.parameters()), _gradients(replica)


def divided() -> Any:
    """Train with ZeroRedundancyOptimizer, and return its state, too."""
    module = importlib.import_module(f"{torch.__name__}.distributed.optim")
    nn = torch.nn
    replica = _replica(nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 2)))
    shared = module.ZeroRedundancyOptimizer(replica.parameters(), torch.optim.AdamW, lr=0.1)
    for _ in range(3):
        shared.zero_grad()
        replica(_rows()).square().mean().backward()
        shared.step()
    shared.consolidate_state_dict(0)
    state: Any = shared.state_dict() if rank == 0 else {"state": {}, "param_groups": [{}]}
    averages = {k: s["exp_avg"].sum() for k, s in sorted(state["state"].items())}
    sizes = [p.numel() for p in shared.optim.param_groups[0]["params"]]
    options = [state["param_groups"][0].get(k) for k in ("lr", "betas", "params")]
    return _sums(replica.parameters()), list(averages), list(averages.values()), sizes, options


def unused() -> Any:
    """Leave parameters without a gradient: an error at the next forward."""
    pair = torch.nn.ModuleList([torch.nn.Linear(6, 2), torch.nn.Linear(6, 2)])
    pair.forward = lambda x: pair[0](x)
    replica = _replica(pair)
    replica(_rows()).sum().backward()
    replica(_rows())
