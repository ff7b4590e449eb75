"""Load a network that torch trained and saved, and ask it about digits that it has not seen.

    python examples/load_torch_checkpoint.py            # on cltensor's default device
    python examples/load_torch_checkpoint.py --torch    # the same lines on torch

Where torch is installed, a child process trains the network with it and saves its state_dict;
elsewhere the file kept in examples/data, written that way, is read. The digits are scikit-learn's;
this process does not import torch. What the network is least sure about goes to
examples/out/load_torch_checkpoint.png.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import HERE, canvas, digits, parser, report, save, sheet, start

if {"--torch", "--write"} & {*sys.argv}:
    import torch
else:
    import cltensor as torch

nn = torch.nn
KEPT = HERE / "data" / "digits_mlp.pt"


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 10)
    )


def tensors(images: np.ndarray, labels: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.tensor(images.reshape(-1, 64), dtype=torch.float32)
    return x, torch.tensor(labels, dtype=torch.int64)


def write(path: Path, seed: int, epochs: int) -> None:
    """Train the network and save it with its seed; this part runs on torch."""
    x, y = tensors(*digits(seed)[:2])
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # its matrices are too small to share
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"state_dict": model.state_dict(), "seed": seed, "by": str(torch.__version__)}, path)


def checkpoint(args: argparse.Namespace) -> tuple[dict, str]:
    """Return what is in a checkpoint that torch wrote, and where it came from."""
    device = torch.get_default_device()
    if args.kept or importlib.util.find_spec("torch") is None:
        return torch.load(KEPT, map_location=device), f"{KEPT.name}, kept with the examples"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pt")
        words = ["--write", path, "--seed", args.seed, "--epochs", args.epochs]
        subprocess.run([sys.executable, __file__, *map(str, words)], check=True)
        size = path.stat().st_size
        return torch.load(path, map_location=device), f"written by a child process, {size:,} bytes"


def main() -> int:
    options = parser(__doc__, "load_torch_checkpoint", epochs=20)
    options.add_argument("--kept", action="store_true", help="read the file kept in examples/data")
    options.add_argument("--write", type=Path, help="train with torch, save there, and stop")
    args = options.parse_args()
    if args.write:
        write(args.write, args.seed, args.epochs)
        return 0
    args.kept |= args.quick
    start(torch, args)
    found, origin = checkpoint(args)
    images, labels = digits(found["seed"])[2:]
    x, y = tensors(images, labels)

    ready = time.perf_counter()
    model = network()
    said = model.load_state_dict(found["state_dict"])
    with torch.no_grad():
        chances = model.eval()(x).softmax(1)
    sure, predicted = chances.max(1)
    accuracy = (predicted == y).float().mean().item()
    seconds = time.perf_counter() - ready

    least = sure.argsort()[:40].cpu().numpy()
    figure = canvas(8, 4.4)
    axes = figure.subplots()
    axes.imshow(sheet(images[least], 10), cmap="gray_r")
    axes.set_title("the 40 digits it is least sure about, from the least")
    axes.axis("off")
    save(figure, args.picture)
    report(
        torch,
        args,
        seconds,
        0,
        checkpoint=f"{origin}; by torch {found['by']}",
        keys=said,
        held_out_accuracy=f"{accuracy:.2%} of {len(y)}",
    )
    return 0 if accuracy >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
