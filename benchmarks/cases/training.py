"""Optimiser steps and whole training steps, written as torch programs."""

from __future__ import annotations

from typing import Any

from benchmarks.case import Case, Kit, Run


def _adam(kit: Kit) -> Run:
    params = [kit.rand(100_000, seed=s).requires_grad_() for s in range(100)]
    for p in params:
        p.grad = kit.rand(100_000, seed=1000)
    step = kit.torch.optim.Adam(params, lr=1e-3)

    def run() -> Any:
        step.step()
        return params[0].detach()

    return run


def _fit(kit: Kit, model: Any, loss: Any, lr: float = 1e-2) -> Run:
    """A step of SGD, recorded where the library can."""
    model.to(kit.device)
    seed = 100
    with kit.torch.no_grad():
        for p in model.parameters():
            p.copy_(kit.rand(*p.shape, seed=seed) / max(1, p[0].numel()) ** 0.5)
            seed += 1
    step = kit.torch.optim.SGD(model.parameters(), lr=lr)

    def run() -> Any:
        step.zero_grad()
        value = loss(model)
        value.backward()
        step.step()
        return value.detach()

    return getattr(kit.torch, "capture", lambda fn: fn)(run)


def _mlp(kit: Kit) -> Run:
    nn = kit.torch.nn
    x, y = kit.rand(128, 784), kit.randint(10, 128)
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    return _fit(kit, model, lambda m: nn.functional.cross_entropy(m(x), y))


def _cnn(kit: Kit) -> Run:
    nn = kit.torch.nn
    x, y = kit.rand(64, 1, 28, 28), kit.randint(10, 64)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return _fit(kit, model, lambda m: nn.functional.cross_entropy(m(x), y))


def _lstm(kit: Kit) -> Run:
    nn = kit.torch.nn
    x, y = kit.rand(64, 32, 64), kit.rand(64, 32, 128, seed=1)
    return _fit(kit, nn.LSTM(64, 128), lambda m: nn.functional.mse_loss(m(x)[0], y))


def _gpt(kit: Kit) -> Run:
    torch, nn = kit.torch, kit.torch.nn
    vocabulary, width, length, batch = 64, 128, 128, 8

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = self.qkv(self.one(x)).view(b, t, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(nn.functional.gelu(self.up(self.two(x))))

    class GPT(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(4)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
            return self.head(self.norm(self.blocks(x)))

    tokens = kit.randint(vocabulary, batch, length + 1)
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)
    return _fit(
        kit, GPT(), lambda m: nn.functional.cross_entropy(m(x).view(-1, vocabulary), y), 1e-3
    )


CASES = [
    Case("optimiser", "Adam, 100 tensors, 10 M parameters", _adam, 4.0 * 7e7, bar=2, quick=True),
    Case(
        "training",
        "MLP 784-512-256-10, batch 128, captured",
        _mlp,
        bar=1.2,
        quick=True,
        check=False,
    ),
    Case("training", "LeNet-like CNN, batch 64, captured", _cnn, bar=0.7, quick=True, check=False),
    Case(
        "training", "LSTM 64-128, T64, batch 32, captured", _lstm, bar=1.0, quick=True, check=False
    ),
    Case(
        "training",
        "GPT 4 layers d128 T128, batch 8, captured",
        _gpt,
        bar=1.0,
        quick=True,
        check=False,
    ),
]
