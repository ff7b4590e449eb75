"""Every template family once under Oclgrind: no data race, no access out of bounds, no misuse of the API.

    python tests/oclgrind.py             both schedules, a line per family; exit 0 when all are clean or Oclgrind is not there
    python tests/oclgrind.py fft conv    families whose names begin so

Oclgrind (Debian: apt install oclgrind) interprets kernels work-item by work-item, so sizes are tiny, odd and just past a
vector or a tile. The GPU schedule runs by telling the backend that its device is one.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What is wrong in a log; queries of OpenCL 3 that a 1.2 simulator refuses are not.
TROUBLE = re.compile(
    r"Invalid (read|write)|data race|uninitiali[sz]ed|Error: +CL_\w+|barrier", re.I
)
HARMLESS = re.compile(r"Function: clGetDeviceInfo\n\s+Error: +CL_INVALID_VALUE")
SCHEDULES = ("cpu", "gpu")


def families(torch: Any) -> dict[str, Callable[[], Any]]:
    """Return a small computation for each family; what it returns is read back."""
    F = torch.nn.functional

    def r(*shape: int) -> Any:
        return torch.linspace(-1, 1, max(1, torch.Size(shape).numel())).reshape(shape)

    def grads(fn: Callable, *xs: Any) -> Any:
        xs = [x.detach().clone().requires_grad_() for x in xs]
        out = fn(*xs)
        return torch.autograd.grad((out * out).sum(), xs)

    def writes() -> Any:
        x = r(5, 7)
        x[1:4, ::3] = 2.0
        x[:, torch.tensor([0, 6])] += 1
        return x.index_add(0, torch.tensor([0, 4, 4]), r(3, 7))

    def adam() -> Any:
        params = [r(n).requires_grad_() for n in (1, 17, 33)]
        step = torch.optim.Adam(params, lr=0.1)
        for p in params:
            p.grad = r(*p.shape)
        step.step()
        return params

    index = torch.tensor([[0, 2], [1, 1], [3, 0]])
    return {
        "pointwise": lambda: (r(37) * 2 + r(37)).sigmoid() * r(37),
        "pointwise broadcast": lambda: r(5, 1) + r(1, 19) * r(5, 19).t().contiguous().t(),
        "pointwise half": lambda: r(33).half() * 2 + r(33).bfloat16(),
        "pointwise complex": lambda: torch.complex(r(9), r(9)) * 1j,
        "copy transposed": lambda: torch.cat((r(70, 77).t(), r(70, 77).t())),
        "flip, roll, cat": lambda: torch.cat((r(3, 5).flip(0, 1), r(3, 5).roll(2, 1)), 1),
        "pad": lambda: F.pad(r(1, 2, 5), (2, 1), mode="reflect"),
        "reduce all": lambda: (r(517) * 2).sum(),
        "reduce rows": lambda: r(6, 37).amax(1),
        "reduce columns": lambda: r(37, 6).var(0),
        "argmax": lambda: r(5, 41).argmax(1),
        "softmax": lambda: grads(lambda x: x.softmax(1), r(3, 37)),
        "log_softmax columns": lambda: grads(lambda x: x.log_softmax(0), r(37, 3)),
        "layer_norm": lambda: grads(lambda x: F.layer_norm(x, (19,)), r(3, 19)),
        "scan": lambda: r(3, 67).cumsum(1),
        "scan max": lambda: r(67, 3).cummax(0),
        "sort": lambda: r(3, 67).sort(1, descending=True),
        "sort long": lambda: r(1500).flip(0).sort(),
        "topk": lambda: r(3, 67).topk(5),
        "searchsorted": lambda: torch.searchsorted(r(33), r(7)),
        "gather": lambda: r(4, 5).gather(0, index),
        "scatter_add": lambda: r(4, 5).scatter_add(0, index, r(3, 2)),
        "indexing": writes,
        "mask": lambda: r(7, 5)[r(7, 5) > 0],
        "nonzero": lambda: (r(67) > 0.3).nonzero(),
        "unique": lambda: (r(33) * 4).round().unique(return_inverse=True),
        "gemm": lambda: r(17, 9) @ r(9, 35),
        "gemm batched": lambda: r(2, 5, 7) @ r(2, 7, 3),
        "gemm long": lambda: r(3, 530) @ r(530, 2),
        "gemv": lambda: r(17, 33) @ r(33),
        "random": lambda: torch.rand(33) + torch.randn(33),
        "conv2d": lambda: grads(lambda x, w: F.conv2d(x, w, padding=1), r(1, 3, 5, 6), r(4, 3, 3, 3)),
        "conv2d grouped": lambda: grads(
            lambda x, w: F.conv2d(x, w, stride=2, groups=2), r(1, 4, 5, 5), r(4, 2, 3, 3)
        ),
        "conv transposed": lambda: F.conv_transpose2d(r(1, 2, 3, 3), r(2, 3, 3, 3), stride=2),
        "fold": lambda: F.fold(F.unfold(r(1, 2, 5, 5), 3, padding=1), (5, 5), 3, padding=1),
        "max_pool2d": lambda: grads(lambda x: F.max_pool2d(x, 3, 2, 1), r(1, 2, 7, 7)),
        "avg_pool2d": lambda: grads(lambda x: F.avg_pool2d(x, 2), r(1, 2, 7, 6)),
        "adaptive pooling": lambda: grads(lambda x: F.adaptive_avg_pool2d(x, 3), r(1, 2, 7, 5)),
        "interpolate": lambda: grads(
            lambda x: F.interpolate(x, size=(7, 3), mode="bilinear"), r(1, 2, 4, 5)
        ),
        "grid_sample": lambda: grads(
            lambda x, g: F.grid_sample(x, g, align_corners=False), r(1, 2, 4, 5), r(1, 3, 3, 2)
        ),
        "attention": lambda: grads(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            r(1, 2, 19, 8), r(1, 2, 19, 8), r(1, 2, 19, 8),
        ),
        "ctc_loss": lambda: F.ctc_loss(
            r(5, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 1]]), (5, 4), (2, 1)
        ),
        "embedding_bag": lambda: F.embedding_bag(index, r(4, 5)),
        "fft": lambda: torch.fft.fft(r(3, 30)),
        "fft prime": lambda: torch.fft.ifft(torch.fft.fft(r(2, 37))),
        "rfft": lambda: torch.fft.irfft(torch.fft.rfft(r(3, 16)), 16),
        "multi-tensor step": adam,
    }  # fmt: skip


def run(schedule: str, name: str) -> None:
    """Compute one family on the simulator; runs under Oclgrind."""
    import cltensor as torch
    from cltensor.runtime import device, get_backend

    backend = get_backend(device("cpu"))
    if schedule == "gpu":
        backend.info = dataclasses.replace(backend.info, kind="gpu", lanes=1)

    def read(value: Any) -> None:
        for item in value if isinstance(value, tuple | list) else (value,):
            item.detach().tolist()

    read(families(torch)[name]())


CANARY = "__kernel void canary(__global int *a, long n) { a[n] = 1; }"


def run_canary() -> None:
    """Write past the end of a buffer: Oclgrind has to say so, or its silence means nothing."""
    import numpy as np

    from cltensor.runtime import device, get_backend

    backend = get_backend(device("opencl:0"))
    kernel = backend.kernel("canary", CANARY, (None, np.int64))
    backend.launch(kernel, (1,), (1,), [backend.alloc(256), 4096])
    backend.finish()


def examine(schedule: str, name: str) -> str:
    """Run one family under Oclgrind in a process of its own and return what it complains of."""
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
                "oclgrind", "--data-races", "--check-api", "--log", str(log),
                sys.executable, __file__, "--run", schedule, name,
            ],
            env=environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        text = HARMLESS.sub("", log.read_text() if log.exists() else "")
        if done.returncode:
            text += f"exit code {done.returncode}\n{done.stderr[-1500:]}"
        return text if done.returncode or TROUBLE.search(text) else ""


def main(wanted: list[str]) -> int:
    """Examine the families asked for, or all."""
    if shutil.which("oclgrind") is None:
        print("Oclgrind is not installed: nothing examined")
        return 0
    sys.path.insert(0, str(Path(__file__).parent.parent))
    import cltensor as torch

    if not examine("canary", ""):
        print("Oclgrind did not see a write out of bounds")
        return 1
    bad = 0
    for name in families(torch):
        if wanted and not any(name.startswith(w) for w in wanted):
            continue
        for schedule in SCHEDULES:
            trouble = examine(schedule, name)
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
