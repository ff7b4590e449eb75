"""Whole programs in torch's style: losses fall, and equal torch's where torch is installed."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import numpy as np
import pytest
from programs import (
    experts,
    gpt,
    graph,
    gridworld,
    language_model,
    learning_to_learn,
    resnet,
    sine,
    vae,
)
from support import ct

CASES = [
    (gpt, 8), (resnet, 6), (vae, 12), (language_model, 8), (sine, 3), (gridworld, 24), (graph, 9), (experts, 9), (learning_to_learn, 6),
]  # fmt: skip
KNOWS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.mark.parametrize(("program", "steps"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_losses_are_torchs(program: ModuleType, steps: int) -> None:
    found = program.run(ct, steps)
    assert np.isfinite(found).all()
    third = len(found) // 3
    assert np.mean(found[-third:]) < np.mean(found[:third])
    if KNOWS_TORCH:
        import torch

        np.testing.assert_allclose(found, program.run(torch, steps), rtol=1e-4)
