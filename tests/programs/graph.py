"""Nodes of a graph are told apart by a convolution over edges and by attention to neighbours, with gathers and scattered sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from .weights import floats, integers, start

NODES, EDGES, FEATURES, WIDTH, CLASSES = 12, 30, 5, 8, 3


def model_of(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Convolution(nn.Module):
        def __init__(self, columns: int, width: int) -> None:
            super().__init__()
            self.lin = nn.Linear(columns, width, bias=False)
            self.bias = nn.Parameter(torch.zeros(width))

        def forward(self, x: Any, edges: Any) -> Any:
            loops = torch.arange(x.size(0))
            row, col = torch.cat([edges, torch.stack([loops, loops])], dim=1)
            degree = torch.zeros(x.size(0)).scatter_add_(0, col, torch.ones(col.size(0)))
            scale = degree.pow(-0.5)
            scale[scale == float("inf")] = 0
            x, weight = self.lin(x), (scale[row] * scale[col]).view(-1, 1)
            return torch.zeros_like(x).index_add(0, col, weight * x[row]) + self.bias

    class Attention(nn.Module):
        def __init__(self, columns: int, width: int) -> None:
            super().__init__()
            self.lin = nn.Linear(columns, width)
            self.pair = nn.Parameter(torch.zeros(2 * width))

        def forward(self, x: Any, edges: Any) -> Any:
            (row, col), h = edges, self.lin(x)
            score = F.leaky_relu(torch.cat([h[row], h[col]], dim=-1) @ self.pair, 0.2)
            most = torch.full((x.size(0),), -1e9).scatter_reduce(0, col, score, "amax")
            share = (score - most[col]).exp()
            total = torch.zeros(x.size(0)).index_add_(0, col, share)
            share = share / (total[col] + 1e-16)
            place = col.unsqueeze(1).expand(-1, h.size(1))
            return torch.zeros_like(h).scatter_add(0, place, share.unsqueeze(1) * h[row])

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = Convolution(FEATURES, WIDTH), Convolution(WIDTH, CLASSES)
            self.neighbours = Attention(WIDTH, WIDTH)

        def forward(self, x: Any, edges: Any) -> Any:
            x = F.relu(self.first(x, edges))
            x = F.elu(self.neighbours(x, edges))
            return F.log_softmax(self.last(x, edges), dim=1)

    return Net()


def run(torch: Any, steps: int) -> list[float]:
    rng = np.random.default_rng(0)
    edges, x = integers(torch, rng, NODES, 2, EDGES), floats(torch, rng, NODES, FEATURES)
    y, known = integers(torch, rng, CLASSES, NODES), torch.tensor(rng.random(NODES) > 0.3)
    model = start(torch, model_of(torch))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(model(x, edges)[known], y[known])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
