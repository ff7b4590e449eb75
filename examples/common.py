"""What the examples share besides torch: options, scikit-learn's digits, pictures, a table."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

STARTED = time.perf_counter()
HERE = Path(__file__).resolve().parent


def parser(doc: str, name: str, **numbers: Any) -> argparse.ArgumentParser:
    """Return a parser with every example's options, and a `--key` for each of `numbers`."""
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    made.add_argument("--torch", action="store_true", help="run on torch instead of cltensor")
    made.add_argument("--device", help="where the tensors live; the library's default if absent")
    made.add_argument("--quick", action="store_true", help="a few steps, to see that it runs")
    made.add_argument("--seed", type=int, default=0, help="of random numbers (default: 0)")
    made.add_argument(
        "--picture", type=Path, default=HERE / "out" / f"{name}.png", help="where it is drawn"
    )
    for key, default in numbers.items():
        made.add_argument(
            f"--{key}", type=type(default), default=default, help=f"default: {default}"
        )
    return made


def start(torch: Any, args: argparse.Namespace) -> None:
    """Choose the device and seed the generators."""
    if args.device:
        torch.set_default_device(args.device)
    torch.manual_seed(args.seed)


def digits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return images (n, 8, 8) from 0 to 1 and labels for training, then the held-out fifth."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(seed).permutation(len(found.target))
    images, labels = found.images[order].astype(np.float32) / 16, found.target[order]
    fifth = len(order) // 5
    return images[fifth:], labels[fifth:], images[:fifth], labels[:fifth]


def canvas(width: float, height: float) -> Any:
    """Return an empty figure that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def sheet(images: np.ndarray, columns: int) -> np.ndarray:
    """Lay images (n, 8, 8) out in rows with a margin of one."""
    rows = -(-len(images) // columns)
    laid = np.zeros((rows * 9 + 1, columns * 9 + 1))
    for i, image in enumerate(images):
        top, left = i // columns * 9 + 1, i % columns * 9 + 1
        laid[top : top + 8, left : left + 8] = image
    return laid


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def report(torch: Any, args: argparse.Namespace, seconds: float, steps: int, **rows: Any) -> None:
    """Print the example's own rows, then device, launches, memory and time."""
    device = torch.zeros(1).device
    table = dict(rows)
    table["device"] = f"{device}, {torch.__name__} {torch.__version__}"
    if not args.torch:
        stats = torch.stats()
        table["kernels"] = (
            f"{stats.launches:,} launches, {stats.builds} built, "
            f"{stats.disk_hits} read from the disk cache"
        )
        table["peak memory"] = f"{torch.opencl.max_memory_allocated(device):,} bytes"
    per_step = f" for {steps:,} steps ({1000 * seconds / steps:.2f} ms each)" if steps else ""
    total = time.perf_counter() - STARTED
    table["wall time"] = f"{seconds:.2f} s{per_step}, {total:.2f} s in all"
    table["picture"] = args.picture
    width = max(map(len, table)) + 2
    sys.stderr.flush()
    for name, value in table.items():
        print(f"{name.replace('_', ' '):{width}}{value}")
