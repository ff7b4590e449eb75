"""Runs cases on cltensor and its peers, in turns, and collects what is to be reported."""

from __future__ import annotations

import gc
import platform
import shutil
import time
from typing import Any

import numpy as np

from benchmarks import measure
from benchmarks.case import Case, Kit


def kits(device: str, threads: int) -> tuple[Kit, list[Kit]]:
    """Return cltensor and the peers with torch's names that are installed."""
    import cltensor

    ours = Kit("cltensor", cltensor, device, lambda: cltensor.opencl.synchronize())
    peers = []
    try:
        import torch
    except ImportError:
        print("torch is not installed: cltensor alone")
    else:
        torch.set_num_threads(threads)
        info = cltensor.runtime.get_backend(cltensor.device(device)).info
        on_gpu = info.kind == "gpu" and torch.cuda.is_available()
        wait = torch.cuda.synchronize if on_gpu else (lambda: None)
        if on_gpu:
            torch.backends.cuda.matmul.allow_tf32 = False
        peers.append(Kit("torch", torch, "cuda" if on_gpu else "cpu", wait))
    return ours, peers


def compiled(timed: measure.Timed) -> measure.Timed | None:
    """Return torch.compile's version of a program, None where it cannot be had."""
    if not any(map(shutil.which, ("g++", "clang++", "c++"))):
        return None
    import torch

    try:
        made = measure.Timed("torch.compile", torch.compile(timed.run, dynamic=False), timed.wait)
        made.first()
    except Exception as error:
        print(f"  torch.compile is left out: {type(error).__name__}")
        return None
    return made


def host(value: Any) -> list[np.ndarray]:
    """The numbers of a result, whichever library it is of."""
    items = value if isinstance(value, tuple | list) else [value]
    return [np.asarray(i.detach().cpu().double() if hasattr(i, "detach") else i) for i in items]


def disagreement(mine: Any, theirs: Any) -> float:
    """The largest difference relative to the largest number."""
    worst = 0.0
    for a, b in zip(host(mine), host(theirs), strict=True):
        if a.size:
            worst = max(worst, float(np.abs(a - b).max() / (np.abs(b).max() + 1e-9)))
    return worst


def one(case: Case, ours: Kit, peers: list[Kit], seconds: float, compile: bool) -> dict[str, Any]:
    """Measure a case: times, rates, launches, ratios."""
    import cltensor

    mine = measure.Timed(ours.name, case.make(ours), ours.wait)
    first_s, value = mine.first()
    timed = []
    for kit in peers:
        peer = measure.Timed(kit.name, case.make(kit), kit.wait)
        _, theirs = peer.first()
        if case.check and (off := disagreement(value, theirs)) > case.tolerance:
            raise ArithmeticError(f"{case.label}: {kit.name} differs by {off:.1e}")
        timed.append(peer)
        if compile and kit.name == "torch" and (fast := compiled(peer)) is not None:
            timed.append(fast)
    for name, make in case.others.items():
        timed.append(measure.Timed(name, make(), lambda: None))
    del value
    measure.alternate([mine, *timed], seconds * (1 + len(timed)))
    before = cltensor.stats().launches
    mine.first()
    return {
        "family": case.family, "name": case.name, "bytes": case.bytes, "flops": case.flops, "bar": case.bar,
        "first_s": first_s, "launches": cltensor.stats().launches - before, **measure.summary(mine),
        "peers": {p.name: {**measure.ratios(mine, p), **measure.summary(p)} for p in timed},
    }  # fmt: skip


def run(
    chosen: list[Case], device: str, threads: int, seconds: float, compile: bool
) -> dict[str, Any]:
    """Measure every case and print a line for each; a case that fails says why and is left out."""
    import cltensor
    from cltensor.tune.peaks import peaks

    ours, peers = kits(device, threads)
    peak = peaks(device)
    info = cltensor.runtime.get_backend(cltensor.device(device)).info
    print(
        f"{info.name}: copy {peak['copy'] / 1e9:.1f} GB/s, multiply-add {peak['flops'] / 1e9:.0f} GFLOP/s"
    )
    print(f"{'':52} {'time':>9} {'rate':>14} {'of peak':>7} {'launches':>8}  ratio to peers")
    found = []
    for case in chosen:
        try:
            result = one(case, ours, peers, seconds, compile)
        except Exception as error:
            print(f"{case.label:52} {type(error).__name__}: {str(error).splitlines()[0][:90]}")
            continue
        found.append(result)
        print(line(result, peak))
        gc.collect()
    versions = {"python": platform.python_version(), "cltensor": cltensor.__version__}
    versions |= {kit.name: str(kit.torch.__version__) for kit in peers}
    return {
        "device": device, "device_name": info.name, "driver": f"{info.platform} {info.platform_version}", "threads": threads,
        "when": time.strftime("%Y-%m-%d"), "versions": versions, "peak": peak, "cases": found,
    }  # fmt: skip


def rate(result: dict[str, Any], peak: dict[str, float]) -> tuple[str, str]:
    """The rate that the case is about, and its share of the device's peak."""
    seconds = result["median_s"]
    if result["flops"] and result["flops"] / peak["flops"] > result["bytes"] / peak["copy"]:
        value = result["flops"] / seconds
        return f"{value / 1e9:.1f} GFLOP/s", f"{100 * value / peak['flops']:.0f} %"
    if result["bytes"]:
        value = result["bytes"] / seconds
        return f"{value / 1e9:.1f} GB/s", f"{100 * value / peak['copy']:.0f} %"
    return "", ""


def unit(seconds: float) -> str:
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def line(result: dict[str, Any], peak: dict[str, float]) -> str:
    """One line of the printed table; a missed bar is marked."""
    speed, share = rate(result, peak)
    parts = []
    for name, p in result["peers"].items():
        text = f"{name} {p['ratio']:.2f} ({p['low']:.2f}-{p['high']:.2f})"
        if name == "torch" and result["bar"] is not None:
            text += f" {'≥' if p['ratio'] >= result['bar'] else '< bar'} {result['bar']:g}"
        parts.append(text)
    label = f"{result['family']}: {result['name']}"
    return (
        f"{label:52} {unit(result['median_s']):>9} {speed:>14} {share:>7} {result['launches']:>8}  "
        + "; ".join(parts)
    )
