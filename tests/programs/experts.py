"""A mixture of experts: every row goes to two of four small networks, found by `where` and gathered by index in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .weights import floats, integers, start

WIDTH, EXPERTS, CHOSEN, ROWS, CLASSES = 8, 4, 2, 10, 3


def model_of(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(WIDTH, 16), nn.SiLU(), nn.Linear(16, WIDTH))
                for _ in range(EXPERTS)
            )

        def forward(self, x: Any) -> Any:
            scores = self.gate(x)
            weights, chosen = torch.topk(scores, CHOSEN)
            weights = F.softmax(weights, dim=1, dtype=torch.float).to(x.dtype)
            result = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                row, place = torch.where(chosen == i)
                result[row] += weights[row, place, None] * expert(x[row])
            used = F.one_hot(chosen, EXPERTS).float().sum(1).mean(0)
            return result, EXPERTS * (used * scores.softmax(-1).mean(0)).sum()

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.mixture = nn.RMSNorm(WIDTH), Experts()
            self.head = nn.Linear(WIDTH, CLASSES)

        def forward(self, x: Any) -> Any:
            found, balance = self.mixture(self.norm(x))
            return self.head(x + found), balance

    return Net()


def run(torch: Any, steps: int) -> list[float]:
    rng = np.random.default_rng(0)
    x, y = floats(torch, rng, ROWS, WIDTH), integers(torch, rng, CLASSES, ROWS)
    model = start(torch, model_of(torch))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        scores, balance = model(x)
        loss = torch.nn.functional.cross_entropy(scores, y) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
