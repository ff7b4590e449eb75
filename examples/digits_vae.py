"""Train a variational autoencoder on scikit-learn's handwritten digits and draw new ones.

    python examples/digits_vae.py               # on cltensor's default device
    python examples/digits_vae.py --torch       # the same lines on torch

Pixels are numbers from 0 to 1, so that likelihoods are densities, and the bound on the negative log-
likelihood may be negative; it is measured on a fifth of the digits, held out, in nats per image.
Digits, what becomes of them on the way through eight numbers, and digits from random numbers go to
examples/out/digits_vae.png.
"""

from __future__ import annotations

import argparse
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
distributions = torch.distributions


class VAE(nn.Module):
    """An encoder from images (n, 64) to normal distributions, and a decoder to pixels' scores."""

    def __init__(self, width: int, latent: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.SiLU(), nn.Linear(width, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, width), nn.SiLU(), nn.Linear(width, 64))
        self.prior = distributions.Normal(torch.zeros(latent), torch.ones(latent))

    def posterior(self, x: torch.Tensor) -> distributions.Normal:
        mean, log_scale = self.encoder(x).chunk(2, dim=-1)
        return distributions.Normal(mean, log_scale.exp())

    def ink(self, z: torch.Tensor) -> distributions.ContinuousBernoulli:
        return distributions.ContinuousBernoulli(logits=self.decoder(z))

    def bound(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what a decoded sample loses and the distance from posterior to prior, per image."""
        posterior = self.posterior(x)
        lost = -self.ink(posterior.rsample()).log_prob(x).sum(-1)
        distance = distributions.kl_divergence(posterior, self.prior).sum(-1)
        return lost.mean(), distance.mean()


class Run(NamedTuple):
    """The bound on both parts per epoch, with its two terms for the held-out digits; steps."""

    training: list[float]
    held_out: list[tuple[float, float]]
    steps: int


def train(args: argparse.Namespace, model: VAE, x: torch.Tensor, test_x: torch.Tensor) -> Run:
    dataset = torch.utils.data.TensorDataset(x)
    loader = torch.utils.data.DataLoader(dataset, args.batch, shuffle=True, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    training, held_out = [], []
    bar = tqdm(range(args.epochs), unit="epoch")
    for _ in bar:
        total = torch.zeros(())
        for (batch,) in loader:
            loss = sum(model.bound(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        schedule.step()
        with torch.no_grad():
            lost, distance = model.bound(test_x)
        training.append(total.item() / len(loader))
        held_out.append((lost.item(), distance.item()))
        bar.set_postfix(training=f"{training[-1]:.2f}", held_out=f"{sum(held_out[-1]):.2f}")
    return Run(training, held_out, args.epochs * len(loader))


def draw(args: argparse.Namespace, run: Run, model: VAE, images: torch.Tensor) -> None:
    """Write the curves, held-out digits over their reconstructions, and digits from the prior."""
    with torch.no_grad():
        again = model.ink(model.posterior(images).mean).mean
        new = model.ink(model.prior.sample((80,))).mean
    figure = canvas(13, 4)
    curves, through, fresh = figure.subplots(1, 3)
    curves.plot(run.training, label="training")
    curves.plot([sum(terms) for terms in run.held_out], label="held out")
    curves.set(xlabel="epoch", ylabel="bound, nats per image")
    curves.legend()
    rows = [t.reshape(4, 10, 8, 8) for t in (images, again)]
    pairs = torch.stack(rows, dim=1).reshape(80, 8, 8)
    for axes, shown, title in (
        (through, pairs, "held-out digits, each row over its reconstruction"),
        (fresh, new.reshape(80, 8, 8), "decoded from random numbers"),
    ):
        axes.imshow(sheet(shown.cpu().numpy(), 10), cmap="gray_r", vmin=0, vmax=1)
        axes.set_title(title, fontsize=9)
        axes.axis("off")
    save(figure, args.picture)


def main() -> int:
    options = parser(__doc__, "digits_vae", epochs=60, batch=64, width=192, latent=8, lr=3e-3)
    args = options.parse_args()
    if args.quick:
        args.epochs, args.batch = 1, 512
    start(torch, args)
    train_images, _, test_images, _ = digits(args.seed)
    x, test_x = (
        torch.tensor(a.reshape(-1, 64), dtype=torch.float32) for a in (train_images, test_images)
    )
    model = VAE(args.width, args.latent)
    ready = time.perf_counter()
    run = train(args, model, x, test_x)
    seconds = time.perf_counter() - ready
    draw(args, run, model, test_x[:40])
    lost, distance = run.held_out[-1]
    report(
        torch,
        args,
        seconds,
        run.steps,
        training_bound=f"{run.training[-1]:.2f} nats per image",
        held_out_bound=f"{lost + distance:.2f} ({lost:.2f} lost, {distance:.2f} distance)",
    )
    return (
        0
        if np.isfinite(lost + distance) and (args.quick or lost + distance < run.training[0])
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
