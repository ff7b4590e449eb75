"""A pointwise chain, large and tiny, and what it costs to begin: cltensor against torch.

    python benchmarks/chain.py [--device cpu] [--threads 2]

The chain is `z = x*y + 2; z = z*z - x; z = sigmoid(z)*y`. Fused, it reads two
arrays and writes one.
"""

from __future__ import annotations

import shutil
from typing import Any

import harness

LARGE = 16 * 1024 * 1024
FIRST = "import {0} as t; x = t.ones(1000); z = t.sigmoid(x * x + 2) * x; assert z.sum().item() > 0"


def chain(torch: Any, x: Any, y: Any) -> Any:
    z = x * y + 2
    z = z * z - x
    return torch.sigmoid(z) * y


def five(x: Any, y: Any) -> Any:
    return ((x * y + y) * x - y) * x


def compiled(torch: Any) -> Any:
    """Return torch.compile'd chain, or None with the reason printed."""
    if not any(map(shutil.which, ("g++", "clang++", "c++"))):
        print("torch.compile is left out: no C++ compiler")
        return None
    try:
        made = torch.compile(lambda x, y: chain(torch, x, y), dynamic=False)
        made(torch.ones(8), torch.ones(8))
    except Exception as error:
        print(f"torch.compile is left out: {type(error).__name__}")
        return None
    return made


def main() -> None:
    args = harness.options(__doc__.splitlines()[0])
    import numpy as np

    import cltensor

    try:
        import torch
    except ImportError:
        torch = None
        print("torch is not installed: cltensor alone")
    if torch is not None:
        torch.set_num_threads(args.threads)

    def wait() -> None:
        cltensor.opencl.synchronize()

    rng = np.random.default_rng(0)
    results: dict[str, Any] = {"threads": args.threads}
    for title, count, inner in (
        ("chain on 16 Mi float32", LARGE, 1),
        ("5 operations on 16 float32", 16, 200),
    ):
        big = count == LARGE
        a, b = (rng.random(count, dtype=np.float32) for _ in range(2))
        x, y = (cltensor.tensor(v, device=args.device) for v in (a, b))

        def ours(x: Any = x, y: Any = y, big: bool = big) -> Any:
            z = chain(cltensor, x, y) if big else five(x, y)
            wait()  # a result that nobody has asked for may never run
            return z

        peers = [harness.Peer("cltensor", ours)]
        if not big:

            def started(x: Any = x, y: Any = y) -> Any:
                z = five(x, y)
                cltensor.opencl.flush()
                return z

            peers.append(harness.Peer("cltensor, started but not waited for", started))
        if torch is not None:
            tx, ty = torch.from_numpy(a), torch.from_numpy(b)
            want = chain(torch, tx, ty) if big else five(tx, ty)
            np.testing.assert_allclose(ours().cpu().numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
            peers.append(
                harness.Peer(
                    "torch eager",
                    lambda tx=tx, ty=ty, big=big: chain(torch, tx, ty) if big else five(tx, ty),
                )
            )
            if big and (fast := compiled(torch)):
                peers.append(harness.Peer("torch.compile", lambda tx=tx, ty=ty: fast(tx, ty)))
        with torch.no_grad() if torch is not None else cltensor.no_grad():
            results[title] = harness.alternate(peers, args.rounds, inner)
        harness.table(
            title, harness.against(results[title], "cltensor", 3 * 4 * count if big else 0)
        )

    begin = {
        "python alone": harness.process("pass"),
        "import cltensor": harness.process("import cltensor"),
    }
    cold, warm = harness.cold_and_warm(FIRST.format("cltensor"))
    begin |= {"cltensor, first result, cold": cold, "cltensor, first result, warm": warm}
    if torch is not None:
        begin |= {
            "import torch": harness.process("import torch"),
            "torch, first result": harness.process(FIRST.format("torch")),
        }
    results["a fresh process"] = begin
    rows = [(name, harness.unit(seconds)) for name, seconds in begin.items()]
    harness.table("a fresh process", [("", "wall time"), *rows])
    if not args.no_write:
        print(f"\nwritten: {harness.write(args.device, 'chain', results)}")


if __name__ == "__main__":
    main()
