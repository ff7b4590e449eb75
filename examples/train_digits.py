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

import numpy as np
from common import canvas, digits, parser, report, save, start
from tqdm import tqdm

if "--torch" in sys.argv:
    import torch
else:
    import cltensor as torch


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
    """A loss and an accuracy per epoch; the held-out digits and what the network says they are; how many steps it took."""

    losses: list[float]
    accuracies: list[float]
    images: np.ndarray
    labels: np.ndarray
    predicted: np.ndarray
    steps: int


def train(args: argparse.Namespace) -> Run:
    """Train and return the run. Nothing is chosen by the held-out digits."""
    x, y, test_x, test_y = [
        torch.tensor(a.reshape(-1, 64) if a.ndim > 1 else a) for a in digits(args.seed)
    ]
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
    return Run(losses, accuracies, *held_out, steps)


def draw(path: Path, run: Run) -> None:
    """Write the curves and a grid of 40 held-out digits, mistakes first and in red."""
    figure = canvas(11, 5)
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.3))
    epochs = range(1, len(run.losses) + 1)
    upper, lower = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    upper.semilogy(epochs, run.losses)
    upper.set_ylabel("training loss")
    lower.plot(epochs, [100 * a for a in run.accuracies])
    lower.set(xlabel="epoch", ylabel="held-out accuracy, %")

    wrong = run.predicted != run.labels
    rows, columns, pitch = 5, 8, 11
    sheet, shown = np.zeros((rows * pitch, columns * pitch)), figure.add_subplot(grid[:, 1])
    for place, i in enumerate(np.argsort(~wrong, kind="stable")[: rows * columns]):
        top, left = place // columns * pitch, place % columns * pitch
        sheet[top + 3 : top + 11, left + 1 : left + 9] = run.images[i].reshape(8, 8)
        said = f"{run.predicted[i]}" + (f" not {run.labels[i]}" if wrong[i] else "")
        shown.text(left + 0.5, top + 2, said, fontsize=9, color="red" if wrong[i] else "black")
    shown.imshow(sheet, cmap="gray_r")
    shown.set_title(f"{wrong.sum()} of {len(wrong)} held-out digits wrong")
    shown.axis("off")
    save(figure, path)


def main() -> int:
    options = parser(__doc__, "train_digits", epochs=20, batch=64, hidden=192, momentum=0.9)
    options.add_argument(
        "--lr", type=float, default=0.3, help="at first (default: 0.3); decays to 0 as a cosine"
    )
    args = options.parse_args()
    if args.quick:
        args.epochs = 2
    start(torch, args)
    ready = time.perf_counter()
    run = train(args)
    seconds = time.perf_counter() - ready
    draw(args.picture, run)
    right, count = (run.predicted == run.labels).sum(), len(run.labels)
    accuracy = f"{run.accuracies[-1]:.2%} ({right} of {count})"
    report(torch, args, seconds, run.steps, held_out_accuracy=accuracy)
    return 0 if args.quick or run.accuracies[-1] >= 0.96 else 1


if __name__ == "__main__":
    sys.exit(main())
