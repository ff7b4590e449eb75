"""Run every template family once under Oclgrind: no data race, no access out of bounds, no misuse of the API.

    python tests/oclgrind.py             both schedules, a line per family; exit 0 when all are clean or Oclgrind is not there
    python tests/oclgrind.py fft conv    families whose names begin with these

Oclgrind (Debian: apt install oclgrind) interprets kernels work-item by work-item, so sizes have to be tiny (families.py). For the GPU
schedule the backend is told that its device is a GPU. A family that does not reach the templates listed for it is an error, too.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from families import TEMPLATES, families

# Marks of errors in a log. Refused OpenCL 3 queries are harmless: the simulator implements 1.2.
TROUBLE = re.compile(
    r"Invalid (read|write)|data race|uninitiali[sz]ed|Error: +CL_\w+|barrier", re.I
)
HARMLESS = re.compile(r"Function: clGetDeviceInfo\n\s+Error: +CL_INVALID_VALUE")
SCHEDULES = ("cpu", "gpu")


def run(schedule: str, name: str) -> None:
    """Compute one family on the simulator; this process runs under Oclgrind."""
    import cltensor as torch
    from cltensor.codegen import source
    from cltensor.codegen.order import sort
    from cltensor.codegen.products import gemm_cpu
    from cltensor.ops import dense
    from cltensor.runtime import device, get_backend

    dense.WAITS = gemm_cpu.DIRECT_A = gemm_cpu.DIRECT_B = 0  # as for large matrices
    sort.CHOSEN_LANES = 64
    sort.TILE_LANES, sort.TILE_MOST, sort.TILE_ITEMS, sort.GRAIN = 32, 4, 2, 64  # as for long rows
    backend = get_backend(device("cpu"))
    lane = {"kind": "gpu", "lanes": 1} if schedule == "gpu" else {}
    backend.info = dataclasses.replace(backend.info, compute_units=2, **lane)

    def read(value: Any) -> None:
        for item in value if isinstance(value, tuple | list) else (value,):
            item.detach().tolist()

    read(families(torch)[name]())
    reached = {found.strip("/").removesuffix(".mako") for found in source._lookup(True)._collection}
    Path(os.environ["CLTENSOR_CACHE_DIR"], "reached").write_text(" ".join(reached))


CANARY = "__kernel void canary(__global int *a, long n) { a[n] = 1; }"


def run_canary() -> None:
    """Write past the end of a buffer, which Oclgrind must report; otherwise its silence about families means
    nothing."""
    import numpy as np

    from cltensor.runtime import device, get_backend

    backend = get_backend(device("opencl:0"))
    kernel = backend.kernel("canary", CANARY, (None, np.int64))
    backend.launch(kernel, (1,), (1,), [backend.alloc(256), 4096])
    backend.finish()


def examine(schedule: str, name: str) -> tuple[str, set[str]]:
    """Run one family under Oclgrind in a process of its own; return its complaints, and the templates reached."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "vendors")
        empty.mkdir()
        environment = os.environ | {
            "OCL_ICD_VENDORS": str(empty),
            "CLTENSOR_CACHE_DIR": folder,
            "PYTHONPATH": str(Path(__file__).parent.parent),
        }
        log = Path(folder, "log")
        done = subprocess.run(
            [
                # `restrict` in an inlined function and a prefetch become intrinsics that Oclgrind does not know.
                "oclgrind", "--data-races", "--check-api", "--local-mem-size", str(64 << 10), "--build-options", "-Drestrict= -DCLT_NO_PREFETCH", "--log", str(log),
                sys.executable, __file__, "--run", schedule, name,
            ],
            env=environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        text = HARMLESS.sub("", log.read_text() if log.exists() else "")
        if done.returncode:
            text += f"exit code {done.returncode}\n{done.stderr[-1500:]}"
        names = Path(folder, "reached")
        reached = set(names.read_text().split()) if names.exists() else set()
        return text if done.returncode or TROUBLE.search(text) else "", reached


def main(wanted: list[str]) -> int:
    """Examine the families asked for, or all."""
    if shutil.which("oclgrind") is None:
        print("Oclgrind is not installed: nothing examined")
        return 0
    sys.path.insert(0, str(Path(__file__).parent.parent))
    import cltensor as torch

    if not examine("canary", "")[0]:
        print("Oclgrind did not see a write out of bounds")
        return 1
    bad = 0
    for name in families(torch):
        if wanted and not any(name.startswith(w) for w in wanted):
            continue
        missing = set(TEMPLATES.get(name, "").split())
        for schedule in SCHEDULES:
            trouble, reached = examine(schedule, name)
            missing -= reached
            if schedule == SCHEDULES[-1] and missing:
                trouble += f"not reached: {', '.join(sorted(missing))}"
            bad += bool(trouble)
            print(f"{'BAD ' if trouble else 'ok  '} {schedule}  {name}", flush=True)
            if trouble:
                print(trouble[:3000])
    print(f"{bad} with complaints" if bad else "no race, no access out of bounds, no misuse")
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        schedule, name = sys.argv[2:4]
        run_canary() if schedule == "canary" else run(schedule, name)
    else:
        sys.exit(main(sys.argv[1:]))
