"""Train a convolutional network on scikit-learn's 1,797 handwritten digits.

    python examples/digits_cnn.py               # on cltensor's default device
    python examples/digits_cnn.py --torch       # the same lines on torch
    python examples/digits_cnn.py --capture     # record a training step, then play its launches

A fifth of the digits, drawn by a seed, is held out. The curves and the held-out digits that the
network gets wrong go to examples/out/digits_cnn.png.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import NamedTuple

import numpy as np
from common import canvas, digits, parser, report, save, sheet, start
from tqdm import tqdm

if "--torch" in sys.argv:
    import torch
else:
    import cltensor as torch

nn = torch.nn
DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset


class Network(nn.Module):
    """Two pairs of convolutions, each pair halving the image, and a linear layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *self.pair(1, width), nn.MaxPool2d(2), *self.pair(width, 2 * width), nn.MaxPool2d(2)
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(2 * width * 4, 10))

    @staticmethod
    def pair(inputs: int, outputs: int) -> list[nn.Module]:
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers.append(nn.Conv2d(channels, outputs, 3, padding=1, bias=False))
            layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
        return layers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x))


class Run(NamedTuple):
    """A loss and an accuracy per epoch; what the network says the held-out digits are; steps."""

    losses: list[float]
    accuracies: list[float]
    predicted: np.ndarray
    steps: int


def tensors(images: np.ndarray, labels: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    device = torch.get_default_device()
    x = torch.tensor(images, dtype=torch.float32, device=device).unsqueeze(1)
    return x, torch.tensor(labels, dtype=torch.int64, device=device)


def train(args: argparse.Namespace, data: tuple[np.ndarray, ...]) -> Run:
    """Train and return the run. Nothing is chosen by the held-out digits."""
    train_x, train_y = tensors(*data[:2])
    test_x, test_y = tensors(*data[2:])
    loader = DataLoader(
        TensorDataset(train_x, train_y), batch_size=args.batch, shuffle=True, drop_last=True
    )
    model = Network(args.width)
    # A recorded step rereads tensors only.
    rate = torch.tensor(args.lr) if args.capture else args.lr
    optimizer = torch.optim.Adam(
        model.parameters(), rate, weight_decay=1e-4, capturable=args.capture
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        max_lr=args.lr,
        epochs=args.epochs,
        steps_per_epoch=len(loader),
        cycle_momentum=False,
    )

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    if args.capture:
        step = torch.capture(step)
    losses, accuracies, steps = [], [], 0
    bar = tqdm(range(args.epochs), unit="epoch")
    for _ in bar:
        model.train()
        total, batches = torch.zeros(()), 3 if args.quick else len(loader)
        for x, y in itertools.islice(loader, batches):
            total += step(x, y)
            schedule.step()
        steps += batches
        losses.append(total.item() / batches)
        model.eval()
        with torch.no_grad():
            predicted = model(test_x).argmax(1)
        accuracies.append((predicted == test_y).float().mean().item())
        bar.set_postfix(loss=f"{losses[-1]:.4f}", accuracy=f"{accuracies[-1]:.2%}")
    return Run(losses, accuracies, predicted.cpu().numpy(), steps)


def draw(args: argparse.Namespace, run: Run, images: np.ndarray, labels: np.ndarray) -> None:
    """Write the curves and the wrong digits, with what they are and what the network says."""
    figure = canvas(10, 4)
    loss, accuracy, wrong = figure.subplots(1, 3)
    epochs = range(1, len(run.losses) + 1)
    loss.semilogy(epochs, run.losses)
    loss.set(xlabel="epoch", ylabel="training loss")
    accuracy.plot(epochs, [100 * a for a in run.accuracies])
    accuracy.set(xlabel="epoch", ylabel="held-out accuracy, %")
    missed = np.flatnonzero(run.predicted != labels)
    said = [f"{run.predicted[i]} not {labels[i]}" for i in missed[:12]]
    wrong.imshow(sheet(images[missed[:12]], 4), cmap="gray_r")
    wrong.set_title(
        f"{len(missed)} of {len(labels)} wrong: " + ", ".join(said), fontsize=8, wrap=True
    )
    wrong.axis("off")
    save(figure, args.picture)


def main() -> int:
    options = parser(__doc__, "digits_cnn", epochs=15, batch=64, width=24, lr=0.01)
    options.add_argument(
        "--capture", action="store_true", help="replay the training step by cltensor.capture"
    )
    args = options.parse_args()
    if args.quick:
        args.epochs, args.width = 1, 8
    start(torch, args)
    data = digits(args.seed)
    ready = time.perf_counter()
    run = train(args, data)
    seconds = time.perf_counter() - ready
    draw(args, run, *data[2:])
    right = (run.predicted == data[3]).sum()
    report(
        torch,
        args,
        seconds,
        run.steps,
        held_out_accuracy=f"{run.accuracies[-1]:.2%} ({right} of {len(data[3])})",
        training_loss=f"{run.losses[-1]:.4f}",
    )
    return 0 if args.quick or run.accuracies[-1] >= 0.985 else 1


if __name__ == "__main__":
    sys.exit(main())
