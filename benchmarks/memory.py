"""Peak memory of trainings: the peak of a fresh process, less the memory it held once its library was ready.

For host memory this works on Linux only, whose kernel counts the peak and can reset it. For a device with memory of its own the library
counts the memory of its tensors.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import cases, kits
from benchmarks.case import Case, Kit

# Linux's memory counters of this process; writing "5" to the second file resets the peak.
STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
STEPS = 3  # of training that are measured, and before that


def measure(device: str, threads: int) -> dict[str, dict[str, int]]:
    """Return the bytes of every training case, for cltensor and torch; nothing where the system does not count them."""
    if not (FORGET.exists() or _apart(kits.ours(device))):
        return {}
    libraries = ["cltensor", *(["torch"] if find_spec("torch") is not None else [])]
    found: dict[str, dict[str, int]] = {}
    for case in cases.load(["training"]):
        for library in libraries:
            command = [sys.executable, "-m", "benchmarks.memory", case.label, library, device, str(threads)]  # fmt: skip
            for _ in range(2):  # the first may compile kernels
                done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.setdefault(case.label, {})[library] = json.loads(done.stdout.splitlines()[-1])
    return found


def lines(found: dict[str, dict[str, int]]) -> list[str]:
    """Return a line for each case, with our peak as a share of torch's."""
    out = []
    for label, held in found.items():
        text = ", ".join(f"{library} {n / 1e6:.1f} MB" for library, n in held.items())
        if "torch" in held:
            text += f": {held['cltensor'] / max(1, held['torch']):.2f} of torch's"
        out.append(f"{label:56} {text}")
    return out


def _count(name: str) -> int:
    """Return one of the system's memory counters for this process, in bytes."""
    line = next(x for x in STATUS.read_text().splitlines() if x.startswith(name))
    return int(line.split()[1]) * 1024


def _train_a_little(kit: Kit) -> None:
    """Run a few steps of another training, so that the library loads what it needs and keeps for any training."""
    nn = kit.torch.nn
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 8))
    model.to(kit.device)
    optimizer = kit.torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        nn.functional.cross_entropy(model(kit.rand(16, 1, 8, 8)), kit.randint(8, 16)).backward()
        optimizer.step()
    kit.wait()


def _apart(kit: Kit) -> Any:
    """Return the module that counts memory under torch's names, for a device with memory of its own; None for host
    memory."""
    if kit.name == "torch":
        return kit.torch.cuda if kit.device == "cuda" else None
    opencl = kit.torch.opencl
    return None if opencl.get_device_properties(kit.device).host_shared else opencl


def held(case: Case, library: str, device: str, threads: int) -> int:
    """Return the peak bytes of a few training steps in this process, less those held before the case's tensors were
    made."""
    kit = kits.ours(device)
    if library != kit.name:
        (kit,) = kits.peers(device, threads, [library])
    _train_a_little(kit)
    counter = _apart(kit)
    if counter is not None:
        before = counter.memory_allocated(kit.device)
        counter.reset_peak_memory_stats(kit.device)
    else:
        before = _count("VmRSS")
        FORGET.write_text("5")
    run = case.make(kit)
    for _ in range(STEPS):
        run()
        kit.wait()
    if counter is not None:
        return counter.max_memory_allocated(kit.device) - before
    return _count("VmHWM") - before


if __name__ == "__main__":
    label, library, device, threads = sys.argv[1:]
    (case,) = [c for c in cases.load(["training"]) if c.label == label]
    print(held(case, library, device, int(threads)))
