"""Collective calls of two processes, with torch or with cltensor: run as a program, this is one rank.

    python collective_calls.py <library> <rank> <path of a store> <path of the outcomes>

Each line of CALLS is Python in which `torch` is the library, `dist` its `distributed` and `rank` the rank. The outcome is the line's value, or
the class and text of its error. Calls that raise in one rank only are not listed, because they end the process group.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from datetime import timedelta
from typing import Any

import replicas

DTYPES = "bool uint8 int16 int64 uint16 float16 bfloat16 float32 complex64"  # a selection: kernels are built for each

SET_UP = """
R = dist.ReduceOp
def t(*n, dtype=torch.float32):  # from the host: few kernels to build
    values = [i % 7 + 3 + rank for i in range(n[0] if len(n) == 1 else n[0] * n[1])]
    return torch.tensor(values, dtype=dtype).view(n)
def z(*n, dtype=torch.float32):
    return torch.zeros(n, dtype=dtype)
def both(x, call):
    found = call(x)
    return x if found is None else found
def p2p(n, *tags):
    if rank == 0:
        works = [dist.isend(t(n) * tag, 1, tag=tag) for tag in tags]
        return [w.wait() for w in works]
    outs = [z(n) for _ in tags]
    works = [dist.irecv(o, 0, tag=tag) for o, tag in reversed(list(zip(outs, tags)))]
    return [w.wait() for w in works], outs
def swap():
    x, y = t(5), z(5)
    for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]):
        w.wait()
    return y
def objects(call, *args, **kwargs):
    call(*args, **kwargs)
    return args[0]
def later(x):
    work = dist.all_reduce(x, async_op=True)
    waited = work.wait()
    return waited, work.is_completed(), work.is_success(), x, work.get_future().value()
def grads(call, x):
    x = x.requires_grad_()
    out = call(x)
    out = sum(o * (i + 1) for i, o in enumerate(out)) if isinstance(out, tuple) else out
    (out * t(*out.shape)).sum().backward()
    return out, x.grad
"""

CALLS: list[str] = [
    *[f"both(t(5, dtype=torch.{d}), dist.all_reduce)" for d in DTYPES.split()],
    *[f"both(t(5, dtype=torch.{d}), lambda x: dist.broadcast(x, 1))" for d in DTYPES.split()],
    *[f"(lambda o: (dist.all_gather(o, t(3, dtype=torch.{d})), o)[1])([z(3, dtype=torch.{d}) for _ in range(2)])" for d in DTYPES.split()],
    *[
        f"both(t(5, dtype=torch.{d}), lambda x: dist.all_reduce(x, R.{op}))"
        for d, ops in (("float32", "AVG PRODUCT MIN BAND"), ("int64", "AVG MAX BAND BOR BXOR"))
        for op in ops.split()
    ],
    "both(t(5, dtype=torch.half), lambda x: dist.all_reduce(x, R.AVG))",
    "both(t(5, dtype=torch.complex64), lambda x: dist.all_reduce(x, R.MAX))",
    "both(t(5, dtype=torch.bool), lambda x: dist.all_reduce(x, R.BAND))",
    "both(t(5, dtype=torch.bool), lambda x: dist.all_reduce(x, R.AVG))",
    *[f"(lambda x: (dist.reduce(x, 1, R.{op}), x[:0] if rank == 0 else x)[1])(t(6))" for op in ("SUM", "AVG")],
    *[f"(lambda o: (dist.reduce_scatter_tensor(o, t(6), R.{op}), o)[1])(z(3))" for op in ("SUM", "AVG")],
    "both(t(3, 4).t(), dist.all_reduce)",
    "both(torch.zeros(0), dist.all_reduce)",
    "both(torch.tensor(3.5), dist.all_reduce)",
    "both(t(70000), dist.all_reduce)",  # by shards
    "both(t(300001), dist.all_reduce)",
    "both(t(300001), lambda x: dist.broadcast(x, 1))",
    "(lambda o: (dist.all_gather(o, t(3, 4)), o)[1])([z(4, 3).t(), z(3, 4)])",
    "(lambda o: (dist.all_gather_into_tensor(o, t(3)), o)[1])(z(6))",
    "(lambda o: (dist.all_gather_single(o, t(3, 2)), o)[1])(z(6, 2))",
    "dist.all_gather([z(2), z(2)], t(3))",
    "dist.all_gather([z(3)], t(3))",
    "dist.all_gather([z(3), z(3, dtype=torch.int32)], t(3))",
    "dist.all_gather_into_tensor(z(5), t(3))",
    "(lambda o: (dist.reduce_scatter(o, [t(2), t(2) * 2]), o)[1])(z(2))",
    "(lambda o: (dist.gather(t(3), o), o)[1])([z(3), z(3)] if rank == 0 else None)",
    "(lambda o: (dist.scatter(o, [t(3), t(3) * 2] if rank == 1 else None, src=1), o)[1])(z(3))",
    "dist.gather(t(3), [z(3)] if rank else None)",
    "dist.scatter(t(3), None if rank == 0 else [z(3), z(3)])",
    "(lambda o: (dist.all_to_all_single(o, t(6)), o)[1])(z(6))",
    "(lambda o: (dist.all_to_all_single(o, t(4, 2), [1, 1] if rank == 0 else [3, 3], [1, 3]), o)[1])(z(2 + 4 * rank, 2))",
    "dist.all_to_all_single(z(4), t(4), [1, 1], [1, 3])",
    "(lambda o: (dist.all_to_all(o, [t(3), t(3) * 2]), o)[1])([z(3), z(3)])",
    "dist.broadcast(t(2), 5)",
    "dist.reduce(t(2), -1)",
    "dist.all_reduce(3)",
    "dist.all_gather(3, t(2))",
    "dist.all_gather([3], t(2))",
    "dist.broadcast(t(2))",
    "dist.broadcast(t(2), 0, group_src=0)",
    "dist.send(t(2), rank)",
    "dist.P2POp(dist.send, t(2), 1)",
    "dist.P2POp(dist.isend, 3, 1)",
    "dist.batch_isend_irecv([3])",
    "later(t(4))",
    "p2p(4, 0)",
    "p2p(4, 1, 2, 3)",
    "(dist.send(t(3), 1), 0) if rank == 0 else (lambda x: (dist.recv(x), x))(z(3))",
    "(dist.send(t(200000), 1), 0) if rank == 0 else (lambda x: (dist.recv(x, 0), x))(z(200000))",
    "swap()",
    "objects(dist.all_gather_object, [None, None], {'rank': rank, 'x': [1] * rank})",
    "objects(dist.broadcast_object_list, ['a', rank, None] if rank == 0 else [0, 0, 0], 0)",
    "objects(dist.scatter_object_list, [None], [['x'], ('y', 2)] if rank == 0 else None, src=0)",
    "(lambda o: (dist.gather_object((rank,), o), o)[1])([0, 0] if rank == 0 else None)",
    "dist.send_object_list([1, 'b'], 1) if rank == 0 else objects(dist.recv_object_list, [0, 0], 0)",
    "[dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.is_initialized(), dist.group.WORLD.size()]",
    "dist.get_process_group_ranks(None)",
    "[dist.get_global_rank(dist.group.WORLD, 1), dist.get_group_rank(dist.group.WORLD, 1)]",
    "dist.init_process_group('gloo')",
    "dist.new_group([0, 0])",
    "dist.new_group([0, 7])",
    "dist.new_group([0, 1, 2])",
    "dist.new_group([0, 1], timeout=3)",
    "dist.new_group([0, 1], backend='other')",
    "(lambda g: [dist.get_rank(g), dist.get_world_size(g), dist.all_reduce(t(2), group=g)])(dist.new_group([1]))",
    "(lambda g: both(t(3), lambda x: dist.broadcast(x, group_src=1, group=g)))(dist.new_group([1, 0]))",
    "dist.new_subgroups(3)",
    "dist.barrier()",
    "dist.monitored_barrier()",
    "str(R.SUM), repr(R.AVG), R.SUM == R.SUM, R.SUM != R.AVG, dist.supports_complex(R.SUM), dist.supports_complex(R.MAX)",
    "grads(lambda x: dnn.all_reduce(x), t(4))",
    "grads(lambda x: dnn.all_gather(x), t(4))",
    "grads(lambda x: dnn.broadcast(x, 0), t(4))",
    "grads(lambda x: dnn.reduce(x, 0) * (rank == 0), t(4))",
    "grads(lambda x: dnn.gather(x, 0), t(4))",
    "grads(lambda x: dnn.scatter([x, x * 2], 0), t(4))",
    "grads(lambda x: dnn.all_to_all_single(z(4), x), t(4))",
    "grads(lambda x: dnn.all_to_all([z(4), z(4)], [x, x * 3]), t(4))",
    "dist.all_reduce_coalesced([t(2), t(3)])",
    "(lambda x: (dist.all_reduce(x), x.to_dense(), x.is_coalesced())[1:])(torch.sparse_coo_tensor(torch.tensor([[0, 2 + rank, 0]]), t(3), (5,)))",
    "dist.all_reduce(t(3).to_sparse(), R.MAX)",
    *[
        f"replicas.plain({options})"
        for options in (
            "", "gradient_as_bucket_view=True", "static_graph=True", "find_unused_parameters=True", "bucket_cap_mb=1e-4", "init_sync=False",
            "broadcast_buffers=False",
        )
    ],
    "replicas.statistics()",
    "replicas.recomputed(False)",
    "replicas.recomputed(True)",
    "replicas.recomputed(True, static_graph=True)",
    "replicas.accumulated()",
    "replicas.branches()",
    "replicas.frozen_and_tied()",
    "replicas.embedded()",
    "replicas.hooked()",
    "replicas.joined()",
    "replicas.joined(divide_by_initial_world_size=False)",
    "replicas.divided()",
    "replicas.unused()",
    "torch.nn.parallel.DistributedDataParallel(torch.nn.Identity())",
    "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2), device_ids=[0])",
    "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2)).register_comm_hook(None, 3)",
    "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2)).register_comm_hook(None, lambda state, other: other)",
]  # fmt: skip


def plain(value: Any) -> Any:
    """Return an outcome in a form that JSON can hold: tensors as their values, dtype and sizes."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        values = value.detach().tolist()
        while values and isinstance(values, list) and isinstance(values[0], list):
            values = [v for row in values for v in row]
        values = values if isinstance(values, list) else [values]
        total = str(sum(values)) if values else "none"
        return [str(value.dtype), list(value.shape), [str(v) for v in values[:50]], total]
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, str | int | float | dict | None) else type(value).__name__


def main(library: str, rank: int, store: str, path: str) -> None:
    """Run all lines, and write their outcomes."""
    warnings.simplefilter("ignore")
    torch = importlib.import_module(library)
    dist = importlib.import_module(f"{library}.distributed")
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=60),
    )
    names = {"torch": torch, "dist": dist, "rank": rank}
    names["dnn"] = importlib.import_module(f"{library}.distributed.nn")
    names["replicas"] = replicas
    replicas.torch, replicas.rank = torch, rank
    exec(SET_UP, names)
    outcomes = []
    for call in CALLS:
        try:
            outcome = plain(eval(call, names))
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        outcomes.append([call, outcome])
    with open(path, "w") as file:
        json.dump(outcomes, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
