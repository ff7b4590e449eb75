"""What benchmarks share: measuring in turns, fresh processes, the table, the results file.

Peers are measured in one run, taking turns, because a shared machine changes its speed from minute
to minute: the ratios of one run mean something, its absolute times less. Nothing here knows an
operation.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def options(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2, help="for torch and the driver alike")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-write", action="store_true", help="leave benchmarks/results alone")
    args = parser.parse_args()
    # Before any library is imported: PoCL, OpenMP and Intel's runtime read these once.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT"):
        os.environ[name] = str(args.threads)
    os.environ.setdefault("CL_CONFIG_CPU_TBB_NUM_WORKERS", str(args.threads))
    return args


@dataclass
class Peer:
    """Something to time: `run` starts the work, `wait` ends it."""

    name: str
    run: Callable[[], Any]
    wait: Callable[[], Any] = lambda: None
    first_s: float = field(default=0.0, init=False)

    def once(self) -> float:
        begin = time.perf_counter()
        kept = self.run()
        self.wait()
        took = time.perf_counter() - begin
        del kept
        return took


def alternate(peers: list[Peer], rounds: int, inner: int = 1) -> dict[str, dict[str, float]]:
    """Return median, least and first time of each peer in seconds, measured in turns."""
    for peer in peers:
        peer.first_s = peer.once()
        for _ in range(3):
            peer.once()
    times: dict[str, list[float]] = {p.name: [] for p in peers}
    for turn in range(rounds):
        for peer in peers if turn % 2 else reversed(peers):
            begin = time.perf_counter()
            for _ in range(inner):
                kept = peer.run()
            peer.wait()
            times[peer.name].append((time.perf_counter() - begin) / inner)
            del kept
    return {
        p.name: {
            "median_s": statistics.median(times[p.name]),
            "least_s": min(times[p.name]),
            "first_s": p.first_s,
        }
        for p in peers
    }


def process(program: str, times: int = 3, **environment: str) -> float:
    """Return the median wall time of a fresh Python process running `program`, in seconds."""
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **environment}, check=True
        )
        took.append(time.perf_counter() - begin)
    return statistics.median(took)


def cold_and_warm(program: str, times: int = 3) -> tuple[float, float]:
    """Return the seconds of a fresh process with an empty and with a filled kernel cache."""
    cold, warm = [], []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            caches = {"CLTENSOR_CACHE_DIR": folder, "POCL_CACHE_DIR": folder}
            cold.append(process(program, 1, **caches))
            warm.append(process(program, 1, **caches))
    return statistics.median(cold), statistics.median(warm)


def unit(seconds: float) -> str:
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def table(title: str, rows: list[tuple[str, ...]]) -> None:
    """Print rows, the first of which is the heading, as a Markdown table."""
    print(f"\n**{title}**\n")
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for n, row in enumerate(rows):
        print("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |")
        if n == 0:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")


def against(
    results: Mapping[str, Mapping[str, float]], ours: str, nbytes: float = 0
) -> list[tuple[str, ...]]:
    """Return table rows: median, least, GB/s for `nbytes` moved, how many times ours."""
    rows: list[tuple[str, ...]] = [("", "median", "least", "GB/s", "times ours", "first call")]
    base = results[ours]["median_s"]
    for name, r in results.items():
        speed = f"{nbytes / r['median_s'] / 1e9:.1f}" if nbytes else ""
        ratio = f"{r['median_s'] / base:.2f}"
        rows.append(
            (name, unit(r["median_s"]), unit(r["least_s"]), speed, ratio, unit(r["first_s"]))
        )
    return rows


def write(device: str, family: str, results: dict[str, Any]) -> Path:
    """Merge a family's results into benchmarks/results/<device>.json and return its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{device.replace(':', '-')}.json"
    everything = json.loads(path.read_text()) if path.exists() else {}
    everything[family] = {
        "when": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **results,
    }
    path.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
    return path
