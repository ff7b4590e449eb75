"""Optimiser steps and whole training steps, written as torch programs."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from benchmarks.case import Case, Kit, Make, Run


def _optimiser(name: str, count: int, size: int, **how: Any) -> Make:
    def make(kit: Kit) -> Run:
        params = [kit.rand(size, seed=k).requires_grad_() for k in range(count)]
        for p in params:
            p.grad = kit.rand(size, seed=1000)
        step = getattr(kit.torch.optim, name)(params, lr=1e-3, **how)

        def run() -> Any:
            step.step()
            return params[0].detach()

        return run

    return make


def _step(name: str, arrays: int, count: int, size: int, quick: bool = False, **how: Any) -> Case:
    """Return an optimiser's case; arrays: how many arrays as large as all parameters a step reads and writes."""
    words = "".join(f", {k}" for k in how)
    label = f"{name}{words}, {count} tensors, {count * size / 1e6:g} M parameters"
    make = _optimiser(name, count, size, **how)
    return Case("optimiser", label, make, 4.0 * arrays * count * size, bar=2 if quick else None, quick=quick, bound="update")  # fmt: skip


def _fit(kit: Kit, model: Any, loss: Any, lr: float = 1e-2, recorded: bool = True) -> Run:
    """Return a step of training a model by SGD; `recorded`: as a recording, if the library can make one."""
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

    return kit.recorded(run) if recorded else run


def _mlp(kit: Kit, recorded: bool = True) -> Run:
    x, y = kit.rand(128, 784), kit.randint(10, 128)
    if kit.name == "jax":
        return _mlp_in_jax(kit, x, y)
    nn = kit.torch.nn
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    return _fit(kit, model, lambda m: nn.functional.cross_entropy(m(x), y), recorded=recorded)


def _mlp_in_jax(kit: Kit, x: Any, y: Any) -> Run:
    """Return the step of `_mlp` for jax, as a compiled function from weights to new weights."""
    import jax

    sizes = (784, 512, 256, 10)
    weights = [(kit.rand(n, m) / m**0.5, kit.rand(n)) for m, n in itertools.pairwise(sizes)]

    def loss(weights: Any) -> Any:
        h = x
        for k, (w, b) in enumerate(weights):
            h = (jax.nn.relu(h) if k else h) @ w.T + b
        return -jax.nn.log_softmax(h)[jax.numpy.arange(len(y)), y].mean()

    @jax.jit
    def step(weights: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(weights)
        return value, jax.tree.map(lambda w, g: w - 1e-2 * g, weights, grads)

    def run() -> Any:
        nonlocal weights
        value, weights = jax.block_until_ready(step(weights))
        return value

    return run


def _cnn(kit: Kit, recorded: bool = True) -> Run:
    nn = kit.torch.nn
    x, y = kit.rand(64, 1, 28, 28), kit.randint(10, 64)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return _fit(kit, model, lambda m: nn.functional.cross_entropy(m(x), y), recorded=recorded)


def _lstm(kit: Kit, recorded: bool = True) -> Run:
    nn = kit.torch.nn
    x, y = kit.rand(64, 32, 64), kit.rand(64, 32, 128, seed=1)
    loss = nn.functional.mse_loss
    return _fit(kit, nn.LSTM(64, 128), lambda m: loss(m(x)[0], y), recorded=recorded)


def _gpt(kit: Kit, recorded: bool = True) -> Run:
    torch, nn = kit.torch, kit.torch.nn
    vocabulary, width, length, batch = 64, 128, 128, 8

    class Block(nn.Module):
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

    class GPT(nn.Module):
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
    loss = nn.functional.cross_entropy
    return _fit(kit, GPT(), lambda m: loss(m(x).view(-1, vocabulary), y), 1e-3, recorded)


def _products(*shapes: tuple[int, int, int]) -> float:
    """Return the operations of a training step's products (m, k, n): forward, and backward to weights and inputs.

    The first product's input is the network's, and needs no gradient.
    """
    each = [2.0 * m * k * n for m, k, n in shapes]
    return 3 * sum(each) - each[0]


MLP = _products((128, 784, 512), (128, 512, 256), (128, 256, 10))
CNN = _products((64 * 784, 25, 6), (64 * 100, 150, 16), (64, 400, 120), (64, 120, 84), (64, 84, 10))
LSTM = _products((64 * 32, 64, 512), (64 * 32, 128, 512))
TOKENS = 8 * 128
# Products of a layer: with all its weights together; of scores and of values, each by halves (causal). There are four
# layers. The empty first product stands for the embedding.
BLOCK = [(TOKENS, 128, 12 * 128), (TOKENS, 128, 128)]
GPT = _products((0, 0, 0), *BLOCK * 4, (TOKENS, 128, 64))


def _training(name: str, make: Any, flops: float, bar: float, also: tuple[str, ...] = ()) -> list[Case]:  # fmt: skip
    """Return two cases of a training step: recorded, which has the bar, and run as ordinary Python."""
    as_written = functools.partial(make, recorded=False)
    return [
        Case("training", f"{name}, captured", make, flops=flops, bar=bar, quick=True, check=False, also=also),
        Case("training", f"{name}, as written", as_written, flops=flops, check=False),
    ]  # fmt: skip


CASES = [
    _step("Adam", 7, 100, 100_000, quick=True),
    _step("AdamW", 7, 100, 100_000),
    _step("SGD", 3, 100, 100_000),
    _step("SGD", 5, 100, 100_000, momentum=0.9),
    _step("Adam", 7, 1000, 1000),
    *_training("MLP 784-512-256-10, batch 128", _mlp, MLP, 1.2, ("jax",)),
    *_training("LeNet-like CNN, batch 64", _cnn, CNN, 0.7),
    *_training("LSTM 64-128, T64, batch 32", _lstm, LSTM, 1.0),
    *_training("GPT 4 layers d128 T128, batch 8", _gpt, GPT, 1.0),
]
