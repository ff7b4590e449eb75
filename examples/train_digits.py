"""Train a multilayer perceptron on 1,797 handwritten digits, with tensors and autograd alone.

    python examples/train_digits.py             # on cltensor's default device
    python examples/train_digits.py --device opencl:0
    python examples/train_digits.py --torch     # the same lines on torch

The digits are scikit-learn's. A fifth of them, drawn by a seed, is held out. The curves and a grid
of held-out digits with their predictions go to examples/out/train_digits.png.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from pathlib import Path
from typing import NamedTuple

started = time.perf_counter()

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

if "--torch" in sys.argv:
    import torch
else:
    import cltensor as torch

HERE = Path(__file__).resolve().parent


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", action="store_true", help="run on torch instead of cltensor")
    parser.add_argument("--device", help="where the tensors live; the library's default if absent")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=192)
    parser.add_argument(
        "--lr", type=float, default=0.3, help="at the start; decays to 0 as a cosine"
    )
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=HERE / "out" / "train_digits.png")
    return parser.parse_args()


def split(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return training images and labels, then the held-out fifth."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = torch.tensor(digits.data[order] / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target[order], dtype=torch.int64)
    fifth = len(order) // 5
    return images[fifth:], labels[fifth:], images[:fifth], labels[:fifth]


def parameters(*widths: int) -> list[torch.Tensor]:
    """Return weight and bias of each layer; weights have variance 2 / inputs, as suits ReLU."""
    made = []
    for inputs, outputs in itertools.pairwise(widths):
        made.append((torch.randn(inputs, outputs) * math.sqrt(2 / inputs)).requires_grad_())
        made.append(torch.zeros(outputs, requires_grad=True))
    return made


def network(x: torch.Tensor, params: list[torch.Tensor]) -> torch.Tensor:
    """Map images (n, 64) to scores (n, 10)."""
    w1, b1, w2, b2 = params
    hidden = torch.addmm(b1, x, w1).relu()
    return torch.addmm(b2, hidden, w2)


class Run(NamedTuple):
    """A loss and an accuracy per epoch; the held-out digits and what the network says they are."""

    losses: list[float]
    accuracies: list[float]
    images: np.ndarray
    labels: np.ndarray
    predicted: np.ndarray


def train(args: argparse.Namespace) -> Run:
    """Train and return the run. Nothing is chosen by the held-out digits."""
    x, y, test_x, test_y = split(args.seed)
    params = parameters(64, args.hidden, 10)
    speed = [torch.zeros_like(p) for p in params]
    steps, step = args.epochs * math.ceil(len(x) / args.batch), 0
    losses, accuracies = [], []
    bar = tqdm(range(args.epochs), unit="epoch")
    for _ in bar:
        order = torch.randperm(len(x))
        shuffled_x, shuffled_y = x[order], y[order]  # one gather, so that a batch is a view
        total = torch.zeros(())
        for begin in range(0, len(x), args.batch):
            batch_x = shuffled_x[begin : begin + args.batch]
            batch_y = shuffled_y[begin : begin + args.batch]
            loss = torch.nn.functional.cross_entropy(network(batch_x, params), batch_y)
            grads = torch.autograd.grad(loss, params)
            rate = args.lr * 0.5 * (1 + math.cos(math.pi * step / steps))
            with torch.no_grad():
                for p, v, g in zip(params, speed, grads, strict=True):
                    v.mul_(args.momentum).add_(g)
                    p.sub_(v, alpha=rate)
                total += loss * len(batch_x)
            step += 1
        with torch.no_grad():
            predicted = network(test_x, params).argmax(1)
            accuracies.append((predicted == test_y).float().mean().item())
        losses.append(total.item() / len(x))
        bar.set_postfix(loss=f"{losses[-1]:.4f}", accuracy=f"{accuracies[-1]:.2%}")
    held_out = (t.cpu().numpy() for t in (test_x, test_y, predicted))
    return Run(losses, accuracies, *held_out)


def draw(path: Path, run: Run) -> None:
    """Write the curves and a grid of 40 held-out digits, mistakes first and in red."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.3))
    epochs = range(1, len(run.losses) + 1)
    upper, lower = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    upper.semilogy(epochs, run.losses)
    upper.set_ylabel("training loss")
    lower.plot(epochs, [100 * a for a in run.accuracies])
    lower.set(xlabel="epoch", ylabel="held-out accuracy, %")

    wrong = run.predicted != run.labels
    rows, columns, pitch = 5, 8, 11
    sheet, digits = np.zeros((rows * pitch, columns * pitch)), figure.add_subplot(grid[:, 1])
    for place, i in enumerate(np.argsort(~wrong, kind="stable")[: rows * columns]):
        top, left = place // columns * pitch, place % columns * pitch
        sheet[top + 3 : top + 11, left + 1 : left + 9] = run.images[i].reshape(8, 8)
        said = f"{run.predicted[i]}" + (f" not {run.labels[i]}" if wrong[i] else "")
        digits.text(left + 0.5, top + 2, said, fontsize=9, color="red" if wrong[i] else "black")
    digits.imshow(sheet, cmap="gray_r")
    digits.set_title(f"{wrong.sum()} of {len(wrong)} held-out digits wrong")
    digits.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.print_png(path)


def main() -> int:
    args = options()
    if args.device:
        torch.set_default_device(args.device)
    torch.manual_seed(args.seed)
    ready = time.perf_counter()
    run = train(args)
    trained = time.perf_counter()
    draw(args.picture, run)
    done = time.perf_counter()

    device = torch.zeros(1).device
    right, count = (run.predicted == run.labels).sum(), len(run.labels)
    print(f"held-out accuracy  {run.accuracies[-1]:.2%} ({right} of {count})")
    print(f"device             {device}, {torch.__name__} {torch.__version__}")
    if not args.torch:
        stats = torch.stats()
        print(
            f"kernels            {stats.launches} launches, {stats.builds} built, "
            f"{stats.disk_hits} read from the disk cache"
        )
        print(f"peak memory        {torch.opencl.max_memory_allocated(device):,} bytes")
    print(
        f"wall time          {trained - ready:.2f} s training, {done - trained:.2f} s picture, "
        f"{done - started:.2f} s with imports"
    )
    print(f"picture            {args.picture}")
    return 0 if run.accuracies[-1] >= 0.96 else 1


if __name__ == "__main__":
    sys.exit(main())
