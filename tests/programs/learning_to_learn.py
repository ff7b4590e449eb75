"""Weights from which one step of descent fits any sine: gradients through gradients, and a module called as a function."""

from __future__ import annotations

from typing import Any

import numpy as np

from .weights import start

TASKS, POINTS, WIDTH = 2, 5, 8


def model_of(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(1, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))


def run(torch: Any, steps: int) -> list[float]:
    rng, func = np.random.default_rng(0), torch.func
    model = start(torch, model_of(torch))
    weights = dict(model.named_parameters())
    optimizer = torch.optim.Adam(weights.values(), lr=0.05)

    def loss_of(given: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.mse_loss(func.functional_call(model, given, (x,)), y)

    points = rng.uniform(-2, 2, (2, TASKS, POINTS, 1))
    values = np.sin(points + np.array([0.3, 0.9])[:, None, None])
    x, y = (torch.tensor(v, dtype=torch.float32) for v in (points, values))
    losses = []
    for _ in range(steps):
        total = 0.0
        for task in range(TASKS):
            first = loss_of(weights, x[0, task], y[0, task])
            slopes = torch.autograd.grad(first, tuple(weights.values()), create_graph=True)
            stepped = {n: w - 0.1 * s for (n, w), s in zip(weights.items(), slopes, strict=True)}
            total = total + loss_of(stepped, x[1, task], y[1, task])
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        losses.append(total.item())
    slope = func.vmap(func.jacrev(lambda v: func.functional_call(model, weights, (v,))))
    assert slope(x[0, 0]).shape == (POINTS, 1, 1)
    return losses
