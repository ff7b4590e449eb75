"""Where device time goes: a case's time on the device alone, beside torch's, and the times of its kernels.

On a GPU a case's time is mostly that of the host, which queues its launches: here the host is excluded (held.py). The kernels listed for
a case are timed one by one, by the device's clock; each time includes a fixed part, that of an empty kernel.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks import held, kits
from benchmarks.case import Case, Kit, Run
from benchmarks.held import Held, runs_together
from benchmarks.report import ENOUGH, LARGE, label
from benchmarks.suite import best, driver_words, host_words, limit, peak_words, percent, unit

TURNS = 3  # runs whose kernels are timed, of which the fastest counts
MOST = 8  # kernels listed for a case


def watched(kit: Kit, run: Run) -> list[Any]:
    """Return the launches of the fastest of a few runs, as timed by the device's clock."""
    from cltensor.runtime import observe

    best: list[Any] = []
    for _ in range(TURNS):
        seen: list[Any] = []
        observe.OBSERVERS.append(watch := seen.append)
        try:
            kept = run()
            kit.wait()
        finally:
            observe.OBSERVERS.remove(watch)
        if not best or sum(s.ns for s in seen) < sum(s.ns for s in best):
            best = seen
    del kept
    return best


def by_kernel(launches: list[Any]) -> list[dict[str, Any]]:
    """Return the total time of each kernel, the longest first."""
    kinds: dict[tuple[Any, ...], list[Any]] = {}
    for launch in launches:
        kinds.setdefault((launch.name, launch.global_size, launch.local_size), []).append(launch)
    kernels = [
        {"name": name, "count": len(all_of), "seconds": sum(s.ns for s in all_of) * 1e-9, "bytes": sum(s.nbytes for s in all_of),
         "flops": sum(s.flops for s in all_of), "items": sizes, "group": group}
        for (name, sizes, group), all_of in kinds.items()
    ]  # fmt: skip
    return sorted(kernels, key=lambda k: -k["seconds"])


def one(case: Case, ours: Held | Kit, peer: Held | None, peak: dict[str, float]) -> dict[str, Any]:
    """Measure a case on the device alone: its seconds, the peer's, its share of the device's peak, its kernels.

    If the queue cannot be held (on a CPU), or a run itself waits for the device, the seconds are the sum of the
    kernels' times.
    """
    queue = ours if isinstance(ours, Held) else None
    kit = ours.kit if isinstance(ours, Held) else ours
    run = case.make(kit)
    run()
    kit.wait()
    launches = watched(kit, run)
    clock = sum(s.ns for s in launches) * 1e-9
    count = runs_together(clock, len(launches))
    seconds = (queue and queue.seconds(run, count)) or clock
    theirs = None
    if peer is not None:
        other = case.make(peer.kit)
        for _ in range(2):
            other()
        theirs = peer.seconds(other, count)
    bound = limit(case, peak)
    amount = case.flops if bound == "flops" else case.bytes
    return {
        "family": case.family, "name": case.name, "bytes": case.bytes, "flops": case.flops, "bound": case.bound, "limit": bound,
        "seconds": seconds, "clock_seconds": clock, "launches": len(launches), "torch_seconds": theirs,
        "of_peak": amount / seconds / peak[bound] if bound and seconds else None, "kernels": by_kernel(launches),
    }  # fmt: skip


def lines(found: dict[str, Any]) -> list[str]:
    """Return a case's line, and one for each of the kernels that take most of its time."""
    theirs, mine = found["torch_seconds"], found["seconds"]
    beside = (
        f"  {theirs / mine:.2f} times as fast as torch ({unit(theirs)})" if theirs and mine else ""
    )
    share = percent(found["of_peak"])
    text = [f"{label(found):56} {unit(mine) if mine else '':>9} {share:>6}{beside}"]
    for kernel in found["kernels"][:MOST]:
        took = kernel["seconds"]
        rates = f"{kernel['bytes'] / took / 1e9:.0f} GB/s" if kernel["bytes"] and took else ""
        if kernel["flops"] and took:
            rates += f" {kernel['flops'] / took / 1e9:.0f} GFLOP/s"
        sizes = f"{tuple(kernel['items'])} by {tuple(kernel['group'] or ())}"
        text.append(f"    {kernel['count']:3} x {kernel['name'][:60]:60} {unit(took):>9} {rates} {sizes}")  # fmt: skip
    return text


def summary(cases: list[dict[str, Any]]) -> str:
    """Return a line that sums up the ratios to torch and one for those to the device's peak, where there are such."""
    beside = [c["torch_seconds"] / c["seconds"] for c in cases if c["torch_seconds"]]
    large = [c for c in cases if c["limit"] not in ("", "flops") and c["bytes"] >= LARGE]
    quick = sum(c["of_peak"] >= ENOUGH for c in large)
    lines = []
    if beside:
        lines.append(
            f"{sum(r >= 1 for r in beside)} of {len(beside)} cases take no longer than torch, "
            f"{sum(r >= 0.8 for r in beside)} no more than a quarter longer"
        )
    if large:
        lines.append(
            f"{quick} of {len(large)} cases that move {LARGE >> 20} MiB and more reach {percent(ENOUGH)} of the device's own speed"
        )
    return "\n".join(lines)


def run(chosen: list[Case], device: str, threads: int, wanted: list[str]) -> dict[str, Any]:
    """Print where the time of each case goes, and return that; torch takes part if its device is a GPU."""
    import cltensor

    ours = kits.ours(device)
    beside = [kit for kit in kits.peers(device, threads, wanted) if kit.device == "cuda"]
    peer = held.torch(beside[0]) if beside else None
    backend = cltensor.runtime.get_backend(cltensor.device(device))
    info, peak = backend.info, best(device, {})
    print(f"{info.name} by {info.platform} {info.platform_version}; {peak_words(peak)}", flush=True)
    mine = held.ours(ours, backend) if kits.is_gpu(device) else ours
    cases = []
    for case in chosen:
        try:
            cases.append(one(case, mine, peer, peak))
        except Exception as error:
            print(f"{case.label:56} {kits.reason(error)}")
            continue
        print("\n".join(lines(cases[-1])), flush=True)
    print(summary(cases))
    return {
        "device": device, "device_name": info.name, "driver": driver_words(info), "host": host_words(), "peak": peak,
        "when": time.strftime("%Y-%m-%d"), "versions": {kit.name: kit.version for kit in (ours, *beside)}, "cases": cases,
    }  # fmt: skip
