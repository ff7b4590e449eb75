"""Weights and batches that both libraries get from numpy, whatever their own generators give."""

from __future__ import annotations

from typing import Any

import numpy as np


def start(torch: Any, module: Any, seed: int = 0) -> Any:
    """Fill a module's parameters: matrices within 1 / sqrt(inputs), scales near one."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, p in module.named_parameters():
            shape = tuple(p.shape)
            reach = float(np.prod(shape[1:])) ** -0.5 if len(shape) > 1 else 0.1
            values = rng.uniform(-reach, reach, shape)
            if len(shape) == 1 and name.endswith("weight"):
                values += 1
            p.copy_(torch.tensor(values, dtype=p.dtype))
    return module


def floats(torch: Any, rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Any:
    return torch.tensor(rng.standard_normal(shape), dtype=getattr(torch, dtype))


def integers(torch: Any, rng: np.random.Generator, high: int, *shape: int) -> Any:
    return torch.tensor(rng.integers(0, high, shape), dtype=torch.int64)
