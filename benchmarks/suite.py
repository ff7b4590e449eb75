"""Runs cases on cltensor and its peers (the other libraries), in turns, and collects the results."""

from __future__ import annotations

import gc
import os
import platform
import shutil
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import cached, kits, measure
from benchmarks.case import Case, Kit, Run

LARGE = 32 << 20  # bytes: too many for any cache
ENOUGH = 0.8  # the share of the device's measured peak that cases should reach
HEAD = f"{'':56} {'time':>9} {'rate':>14} {'of peak':>7} {'launches':>8}  times as fast as each peer (quartiles)"

WAITS = (
    "each run is waited for",
    "a measurement's runs are queued and waited for together; each by itself where a case says so",
)


def compiled(timed: measure.Timed) -> measure.Timed:
    """Return torch.compile's version of a program; raise an error if it is not available."""
    if not any(map(shutil.which, ("g++", "clang++", "c++"))):
        raise OSError("it needs a C++ compiler")
    import torch

    # Dynamo stops compiling a function after a few versions, and counts the cases' closures, which share their code, as
    # such.
    torch._dynamo.reset()
    fast = torch.compile(timed.run, dynamic=False)
    made = measure.Timed("torch.compile", fast, timed.wait, timed.submit)
    made.first()
    return made


def disagreement(mine: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> float:
    """Return the largest difference relative to the largest finite number; infinity if shapes differ, either has a NaN,
    or one is infinite where the other is not.
    """
    worst = 0.0
    for a, b in zip(mine, theirs, strict=True):
        if a.shape != b.shape:
            return float("inf")
        if a.size:
            a, b = (x if x.dtype.kind in "fc" else x.astype(np.float64) for x in (a, b))
            apart = np.abs(np.subtract(a, b, out=np.zeros_like(a), where=a != b)).max()
            off = float(apart / (np.abs(b).max(where=np.isfinite(b), initial=0) + 1e-9))
            worst = max(worst, float("inf") if np.isnan(off) else off)
    return worst


def timed_on(kit: Kit, run: Run, queued: bool) -> measure.Timed:
    """Return a library's program to be measured; `queued`: only the last run of a measurement is waited for."""
    return measure.Timed(kit.name, run, kit.wait, kit.submit if queued else None)


def numbers(kit: Kit, value: Any) -> list[np.ndarray]:
    """Return a program's result, one tensor or several, as NumPy arrays."""
    return [kit.host(v) for v in (value if isinstance(value, tuple | list) else [value])]


def beside(
    case: Case, mine: list[np.ndarray], peers: Sequence[Kit], compile: bool, queued: bool = False
) -> tuple[list[measure.Timed], dict[str, str]]:
    """Return the peers' programs, after comparing their first results with `mine`, and the reasons why other peers are
    left out."""
    timed: list[measure.Timed] = []
    left_out: dict[str, str] = {}
    for kit in peers:
        if not (kit.like_torch or kit.name in case.also):
            continue
        try:
            peer = timed_on(kit, case.make(kit), queued)
            _, theirs = peer.first()
        except Exception as error:
            left_out[kit.name] = kits.reason(error)
            continue
        if case.check and (off := disagreement(mine, numbers(kit, theirs))) > case.tolerance:
            raise ArithmeticError(f"{case.label}: {kit.name} differs by {off:.1e}")
        timed.append(peer)
        if compile and kit.name == "torch":
            try:
                timed.append(compiled(peer))
            except Exception as error:
                left_out["torch.compile"] = kits.reason(error)
    return timed, left_out


def limit(case: Case, peak: dict[str, float]) -> str:
    """Return the speed that limits a case: one of the device's memory speeds, its arithmetic ("flops"), or nothing
    ("")."""
    if case.flops / peak["flops"] > case.bytes / peak[case.bound]:
        return "flops"
    return case.bound if case.bytes else ""


def one(
    case: Case,
    ours: Kit,
    peers: Sequence[Kit],
    seconds: float,
    compile: bool,
    peak: dict[str, float] | None = None,
) -> dict[str, Any]:
    """Measure a case: times, launches, ratios to the peers, and its share of the peak, measured in turns with it."""
    import cltensor
    from cltensor.tune.peaks import probes

    queued = kits.is_gpu(ours.device) and not case.alone
    mine = timed_on(ours, case.make(ours), queued)
    first_s, value = mine.first()
    value = numbers(ours, value) if case.check else []
    timed, left_out = beside(case, value, peers, compile, queued)
    del value
    bound = limit(case, peak) if peak else ""
    held: list[measure.Timed] = []
    if bound:
        probe = probes(ours.device)[bound]
        held = [measure.Timed("the device", probe.run, ours.wait, mine.submit)]
    measure.alternate([mine, *timed, *held], seconds * (1 + len(timed)))
    of_peak = None
    if bound:
        amount = case.flops if bound == "flops" else case.bytes
        of_peak = measure.ratios(mine, held[0])["ratio"] * amount / probe.amount
    in_cache = None
    if bound and not queued and case.bytes >= LARGE and bound != "flops" and of_peak < ENOUGH:
        in_cache = cached.share(case, mine, ours, seconds)
    before = cltensor.stats().launches
    mine.first()
    launches = cltensor.stats().launches - before
    low, _, high = statistics.quantiles(mine.times, n=4)
    return {
        "family": case.family, "name": case.name, "bytes": case.bytes, "flops": case.flops, "bound": case.bound, "bar": case.bar,
        "limit": bound, "of_peak": of_peak, "in_cache": in_cache, "queued": queued,
        "first_s": first_s, "launches": launches, **measure.summary(mine), "low_s": low, "high_s": high,
        "peers": {p.name: {**measure.ratios(mine, p), **measure.summary(p)} for p in timed}, "left_out": left_out,
    }  # fmt: skip


def run(
    chosen: list[Case], device: str, threads: int, seconds: float, wanted: Sequence[str]
) -> dict[str, Any]:
    """Measure every case and print a line for each; return all results. A case that fails is left out, and the reason
    printed."""
    import cltensor

    ours = kits.ours(device)
    peers = list(kits.peers(device, threads, wanted))
    info = cltensor.runtime.get_backend(cltensor.device(device)).info
    versions = {kit.name: kit.version for kit in (ours, *peers)}
    print(f"{info.name} by {info.platform} {info.platform_version}; {threads} threads each")
    print(", ".join(f"{kit.name} {kit.version} on {kit.device}" for kit in (ours, *peers)))
    print(WAITS[kits.is_gpu(device)])
    peak = best(device, {})
    print(f"{peak_words(peak)}\n{HEAD}")
    found: list[dict[str, Any]] = []
    family = ""
    for case in chosen:
        if case.family != family:
            family, peak = case.family, best(device, peak)
        try:
            result = one(case, ours, peers, seconds, "torch.compile" in wanted, peak)
        except Exception as error:
            print(f"{case.label:56} {kits.reason(error)}")
            continue
        found.append(result)
        print(line(result), flush=True)
        gc.collect()
    peak = best(device, peak)
    print(peak_words(peak))
    return {
        "device": device, "queued": kits.is_gpu(device), "device_name": info.name, "driver": driver_words(info), "threads": threads,
        "host": host_words(), "when": time.strftime("%Y-%m-%d"),
        "versions": {"python": platform.python_version(), **versions}, "devices": {kit.name: kit.device for kit in peers},
        "peak": peak, "cases": found,
    }  # fmt: skip


def driver_words(info: Any) -> str:
    told = f", told to compile for {info.compiled_for}" if info.compiled_for else ""
    return f"{info.platform} {info.platform_version}{told}"


def host_words() -> str:
    """Describe the machine, with the processor's family and model numbers from Linux: many processors share a name such
    as AMD EPYC."""
    from cltensor.runtime import processor

    words = [f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"]
    for fact in ("vendor_id", "cpu family", "model"):
        if value := processor.facts().get(fact):
            words.append(f"{fact} {' '.join(value)}")
    return ", ".join(words)


def best(device: str, peak: dict[str, float]) -> dict[str, float]:
    """Measure the peaks again and return the higher ones: a shared machine is not always at its best."""
    from cltensor.tune.peaks import peaks

    return {name: max(value, peak.get(name, 0.0)) for name, value in peaks(device).items()}


def peak_words(peak: dict[str, float]) -> str:
    memory = ", ".join(f"{k} {peak[k] / 1e9:.1f}" for k in peak if k != "flops")
    return f"peaks: {memory} GB/s, multiply-add {peak['flops'] / 1e9:.0f} GFLOP/s"


def rate(result: dict[str, Any]) -> str:
    """Return a case's rate (bytes or operations per second) as text."""
    if result["limit"] == "flops":
        return f"{result['flops'] / result['median_s'] / 1e9:.1f} GFLOP/s"
    return f"{result['bytes'] / result['median_s'] / 1e9:.1f} GB/s" if result["limit"] else ""


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def unit(seconds: float) -> str:
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def line(result: dict[str, Any]) -> str:
    """Return a case's line of the printed table; its aim, if it has one, and peers that failed are named."""
    parts = []
    for name, p in result["peers"].items():
        text = f"{name} {p['ratio']:.2f} ({p['low']:.2f}-{p['high']:.2f})"
        if name == "torch" and result["bar"] is not None:
            text += f" {'≥' if p['ratio'] >= result['bar'] else '<'} aim {result['bar']:g}"
        parts.append(text)
    parts += [f"{name} left out: {why}" for name, why in result["left_out"].items()]
    if result.get("in_cache"):
        parts.append(f"{percent(result['in_cache'])} of its speed in a cache")
    label = f"{result['family']}: {result['name']}"
    return (
        f"{label:56} {unit(result['median_s']):>9} {rate(result):>14} {percent(result['of_peak']):>7} {result['launches']:>8}  "
        + "; ".join(parts)
    )
