"""Two LSTM cells that continue sines, in float64, fitted by L-BFGS through closures."""

from __future__ import annotations

from typing import Any

import numpy as np

from .weights import start

WIDTH, LENGTH, FUTURE = 5, 7, 2


def model_of(torch: Any) -> Any:
    nn = torch.nn

    class Sequence(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm1, self.lstm2 = nn.LSTMCell(1, WIDTH), nn.LSTMCell(WIDTH, WIDTH)
            self.linear = nn.Linear(WIDTH, 1)

        def forward(self, x: Any, future: int = 0) -> Any:
            outputs = []
            h1, c1, h2, c2 = (torch.zeros(x.size(0), WIDTH, dtype=torch.double) for _ in range(4))
            for now in x.split(1, dim=1):
                h1, c1 = self.lstm1(now, (h1, c1))
                h2, c2 = self.lstm2(h1, (h2, c2))
                outputs += [self.linear(h2)]
            for _ in range(future):
                h1, c1 = self.lstm1(outputs[-1], (h1, c1))
                h2, c2 = self.lstm2(h1, (h2, c2))
                outputs += [self.linear(h2)]
            return torch.cat(outputs, dim=1)

    return Sequence().double()


def run(torch: Any, steps: int) -> list[float]:
    phases = np.random.default_rng(4).uniform(0, 6, (6, 1))
    data = np.sin(phases + 0.5 * np.arange(LENGTH + 1)).astype("float64")
    source, target = torch.from_numpy(data[3:, :-1]), torch.from_numpy(data[3:, 1:])
    test = torch.from_numpy(data[:3, :-1])
    if torch.__name__ != "torch":
        source, target, test = (t.to(torch.get_default_device()) for t in (source, target, test))
    model, criterion = start(torch, model_of(torch)), torch.nn.MSELoss()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=2)
    losses = []
    for _ in range(steps):

        def closure() -> Any:
            optimizer.zero_grad()
            loss = criterion(model(source), target)
            loss.backward()
            losses.append(loss.item())
            return loss

        optimizer.step(closure)
    with torch.no_grad():
        assert model(test, future=FUTURE).shape == (3, LENGTH + FUTURE)
    return losses
