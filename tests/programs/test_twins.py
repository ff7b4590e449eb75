"""Twin trainings: with torch's weights and batches, losses are torch's, and memory does not grow.

The models are those of the programs in this folder, so that they share kernels.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from programs import gpt, gridworld, language_model, resnet
from programs.weights import floats, integers, start
from support import ct

KNOWS_TORCH = importlib.util.find_spec("torch") is not None
STEPS, BATCH = 50, 8


def mlp(torch: Any, model: Any, rng: np.random.Generator, dtype: str) -> Any:
    x = floats(torch, rng, BATCH, 2 * gridworld.SIDE, dtype=dtype)
    y = floats(torch, rng, BATCH, len(gridworld.MOVES), dtype=dtype)
    return torch.nn.functional.mse_loss(model(x), y)


def cnn(torch: Any, model: Any, rng: np.random.Generator, dtype: str) -> Any:
    x = floats(torch, rng, BATCH, 3, 8, 8, dtype=dtype)
    return torch.nn.functional.cross_entropy(model(x), integers(torch, rng, 3, BATCH))


def lstm(torch: Any, model: Any, rng: np.random.Generator, dtype: str) -> Any:
    shape = language_model.WINDOW, language_model.COLUMNS
    scores, _ = model(integers(torch, rng, 9, *shape), model.init_hidden(shape[1]))
    return torch.nn.functional.nll_loss(scores, integers(torch, rng, 9, *shape).view(-1))


def transformer(torch: Any, model: Any, rng: np.random.Generator, dtype: str) -> Any:
    drawn = integers(torch, rng, gpt.KINDS, gpt.BATCH, gpt.CONTEXT + 1)
    scores = model(drawn[:, :-1])
    return torch.nn.functional.cross_entropy(
        scores.view(-1, scores.size(-1)), drawn[:, 1:].reshape(-1)
    )


MODELS = {
    mlp: gridworld.model_of,
    cnn: resnet.model_of,
    lstm: lambda torch: language_model.model_of(torch, 9),
    transformer: gpt.model_of,
}
OPTIMIZERS = {
    mlp: ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    cnn: ("SGD", {"lr": 0.02, "momentum": 0.9, "weight_decay": 5e-4}),
    lstm: ("Adam", {"lr": 2e-3}),
    transformer: ("AdamW", {"lr": 1e-3, "weight_decay": 0.1}),
}


def losses(torch: Any, case: Callable, dtype: str) -> Iterator[float]:
    """Train without end; yield the loss of each step."""
    model = start(torch, MODELS[case](torch).to(getattr(torch, dtype)))
    name, settings = OPTIMIZERS[case]
    optimizer = getattr(torch.optim, name)(model.parameters(), **settings)
    rng = np.random.default_rng(0)
    while True:
        loss = case(torch, model, rng, dtype)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def same_as_torchs(found: list[float], case: Callable, dtype: str, rtol: float) -> None:
    """Assert that losses are finite and, where torch is installed, those of its twin training."""
    assert np.isfinite(found).all()
    if KNOWS_TORCH:
        import torch

        twin = losses(torch, case, dtype)
        np.testing.assert_allclose(found, [next(twin) for _ in found], rtol=rtol)


@pytest.mark.parametrize("case", MODELS, ids=lambda c: c.__name__)
def test_float32_twins_and_flat_memory(case: Callable, dev: Any) -> None:
    training = losses(ct, case, "float32")
    found = [next(training) for _ in range(STEPS)]
    bytes_counted = []
    ct.opencl.synchronize(dev)  # batch norms' statistics may be pending for a few steps
    for _ in range(2):
        ct.opencl.reset_peak_memory_stats(dev)
        for _ in range(3 * STEPS // 2):
            next(training)
        peak = ct.opencl.max_memory_allocated(dev)
        ct.opencl.synchronize(dev)
        bytes_counted.append((ct.opencl.memory_allocated(dev), peak))
    assert bytes_counted[0] == bytes_counted[1]
    same_as_torchs(found, case, "float32", 1e-4)


@pytest.mark.fp64
@pytest.mark.parametrize("case", MODELS, ids=lambda c: c.__name__)
def test_float64_twins(case: Callable) -> None:
    training = losses(ct, case, "float64")
    same_as_torchs([next(training) for _ in range(STEPS)], case, "float64", 1e-9)
