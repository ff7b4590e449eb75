"""A residual network: batch norm, strides, projected shortcuts; SGD with falling rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from .weights import floats, integers, start


def model_of(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
            self.norm1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.norm2 = nn.BatchNorm2d(outputs)
            self.shortcut = nn.Sequential()
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False),
                    nn.BatchNorm2d(outputs),
                )

        def forward(self, x: Any) -> Any:
            out = F.relu(self.norm1(self.conv1(x)))
            out = self.norm2(self.conv2(out))
            out += self.shortcut(x)
            return F.relu(out)

    class ResNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(
                nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True)
            )
            self.layers = nn.Sequential(Block(4, 4, 1), Block(4, 8, 2))
            self.pool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            x = self.pool(self.layers(self.stem(x)))
            return self.fc(torch.flatten(x, 1))

    return ResNet()


def run(torch: Any, steps: int) -> list[float]:
    model = start(torch, model_of(torch))
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [steps // 2], gamma=0.5)
    rng, losses = np.random.default_rng(1), []
    x, y = floats(torch, rng, 8, 3, 8, 8), integers(torch, rng, 3, 8)
    for _ in range(steps):
        model.train()
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        _, predicted = torch.max(model(x).data, 1)
        assert 0 <= (predicted == y).sum().item() <= 8
    assert model.state_dict()["stem.1.num_batches_tracked"].item() == steps
    return losses
