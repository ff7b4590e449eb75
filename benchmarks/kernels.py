"""Where the device's own time goes: the kernels of a case by the device's clock, beside what torch's device needs in all.

On a GPU a case's time is mostly that of whoever queues its launches: this leaves out the host. A launch has a fixed part in it, the
time that an empty kernel takes.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks import kits
from benchmarks.case import Case, Kit, Run
from benchmarks.report import label
from benchmarks.suite import driver_words, host_words, unit

TURNS = 3  # of which the quickest counts
MOST = 8  # kernels named for a case


def torch_seconds(run: Run) -> float:
    """Return the seconds between two events around a run's launches, which are queued while the GPU is kept waiting."""
    import torch

    for _ in range(2):
        run()
    found = []
    for _ in range(TURNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(2_000_000)  # a millisecond: launches are then done being queued
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) * 1e-3)
    return min(found)


def one(case: Case, ours: Kit, peer: Kit | None) -> dict[str, Any]:
    """Watch the launches of a case's second run and later ones; the quickest run counts."""
    from cltensor.runtime import observe

    run = case.make(ours)
    kept = run()
    ours.wait()
    best: list[Any] = []
    for _ in range(TURNS):
        seen: list[Any] = []
        observe.OBSERVERS.append(watch := seen.append)
        try:
            kept = run()
            ours.wait()
        finally:
            observe.OBSERVERS.remove(watch)
        if not best or sum(s.ns for s in seen) < sum(s.ns for s in best):
            best = seen
    kinds: dict[tuple[Any, ...], list[Any]] = {}
    for launch in best:
        kinds.setdefault((launch.name, launch.global_size, launch.local_size), []).append(launch)
    kernels = [
        {"name": name, "count": len(all_of), "seconds": sum(s.ns for s in all_of) * 1e-9, "bytes": sum(s.nbytes for s in all_of),
         "flops": sum(s.flops for s in all_of), "items": sizes, "group": group}
        for (name, sizes, group), all_of in kinds.items()
    ]  # fmt: skip
    kernels.sort(key=lambda k: -k["seconds"])
    del kept
    theirs = torch_seconds(case.make(peer)) if peer is not None else None
    return {
        "family": case.family, "name": case.name, "bytes": case.bytes, "flops": case.flops,
        "seconds": sum(s.ns for s in best) * 1e-9, "torch_seconds": theirs, "kernels": kernels,
    }  # fmt: skip


def lines(found: dict[str, Any]) -> list[str]:
    """A case's line, and one for each kernel that takes most of its time."""
    theirs, mine = found["torch_seconds"], found["seconds"]
    beside = f"  torch {unit(theirs)}, {theirs / mine:.2f} times" if theirs and mine else ""
    text = [f"{label(found):56} {unit(mine) if mine else '':>9}{beside}"]
    for kernel in found["kernels"][:MOST]:
        took = kernel["seconds"]
        rates = f"{kernel['bytes'] / took / 1e9:.0f} GB/s" if kernel["bytes"] and took else ""
        if kernel["flops"] and took:
            rates += f" {kernel['flops'] / took / 1e9:.0f} GFLOP/s"
        sizes = f"{tuple(kernel['items'])} by {tuple(kernel['group'] or ())}"
        text.append(f"    {kernel['count']:3} x {kernel['name'][:60]:60} {unit(took):>9} {rates} {sizes}")  # fmt: skip
    return text


def run(chosen: list[Case], device: str, threads: int, wanted: list[str]) -> dict[str, Any]:
    """Print where the time of each case goes, and return it; torch takes part where its device is a GPU."""
    import cltensor

    ours = kits.ours(device)
    beside = [kit for kit in kits.peers(device, threads, wanted) if kit.device == "cuda"]
    peer = beside[0] if beside else None
    info = cltensor.runtime.get_backend(cltensor.device(device)).info
    print(f"{info.name} by {info.platform} {info.platform_version}", flush=True)
    cases = []
    for case in chosen:
        try:
            cases.append(one(case, ours, peer))
        except Exception as error:
            print(f"{case.label:56} {kits.reason(error)}")
            continue
        print("\n".join(lines(cases[-1])), flush=True)
    return {
        "device": device, "device_name": info.name, "driver": driver_words(info), "host": host_words(),
        "when": time.strftime("%Y-%m-%d"), "versions": {kit.name: kit.version for kit in (ours, *beside)}, "cases": cases,
    }  # fmt: skip
