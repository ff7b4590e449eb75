"""A variational autoencoder as usual: two heads, scaled noise, summed cross-entropy plus KL."""

from __future__ import annotations

from typing import Any

import numpy as np

from .weights import floats, start


def model_of(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc21, self.fc22 = nn.Linear(20, 16), nn.Linear(16, 3), nn.Linear(16, 3)
            self.fc3, self.fc4 = nn.Linear(3, 16), nn.Linear(16, 20)

        def encode(self, x: Any) -> Any:
            h = F.relu(self.fc1(x))
            return self.fc21(h), self.fc22(h)

        def forward(self, x: Any, noise: Any) -> Any:
            mu, logvar = self.encode(x.view(-1, 20))
            z = mu + noise * torch.exp(0.5 * logvar)
            return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar

    return VAE()


def run(torch: Any, steps: int) -> list[float]:
    model = start(torch, model_of(torch))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rng, losses = np.random.default_rng(2), []
    patterns = rng.random((4, 20)).round()
    for _ in range(steps):
        x = torch.tensor(patterns[rng.integers(0, 4, 8)], dtype=torch.float32).view(8, 4, 5)
        recon, mu, logvar = model(x, floats(torch, rng, 8, 3))
        bce = torch.nn.functional.binary_cross_entropy(recon, x.view(-1, 20), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss = bce + kld
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / len(x))
    return losses
