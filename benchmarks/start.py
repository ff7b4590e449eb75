"""Start-up times: import, and the first result of a fresh process with an empty and with a filled kernel cache.

Every library's Python byte code has been compiled before, as it is after an installation by pip.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from typing import Any

FIRST = (
    "import {0} as t; x = t.ones(1000, device='{1}'); z = t.sigmoid(x * x + 2) * x; "
    "assert z.sum().item() > 0"
)


def seconds(program: str, **environment: str) -> float:
    """Return the wall time of a fresh Python process."""
    given = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], env={**given, **environment}, check=True)
    return time.perf_counter() - begin


def measure(rounds: int = 5, device: str = "cpu", of_torch: str = "cpu") -> dict[str, Any]:
    """Return the median seconds of each kind of start, measured in turns. First results are computed on `device` by
    cltensor, on `of_torch` by torch."""
    first = FIRST.format("cltensor", device)
    programs = {"import cltensor": "import cltensor"}
    if find_spec("torch") is not None:
        programs |= {
            "import torch": "import torch",
            "torch, first result": FIRST.format("torch", of_torch),
        }
    for program in programs.values():
        seconds(program)  # writes the byte code
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for state in ("cold", "warm"):
                # NVIDIA's driver has a cache of compiled kernels, too.
                took = seconds(first, CLTENSOR_CACHE_DIR=folder, CUDA_CACHE_PATH=f"{folder}/nvidia")
                times.setdefault(f"cltensor, first result, {state}", []).append(took)
        for name, program in programs.items():
            times.setdefault(name, []).append(seconds(program))
    return {name: statistics.median(values) for name, values in times.items()}


def lines(found: dict[str, float]) -> list[str]:
    """Return lines with the measured times, and torch's in multiples of ours."""
    out = [f"{name:32} {value:.2f} s" for name, value in found.items()]
    if "torch, first result" in found:
        warm = found["torch, first result"] / found["cltensor, first result, warm"]
        brought = found["import torch"] / found["import cltensor"]
        out.append(
            f"torch takes {warm:.2f} times as long to a first result, {brought:.2f} times to import"
        )
    return out
