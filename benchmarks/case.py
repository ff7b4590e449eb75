"""What a benchmark is: a program in torch's API that knows what it moves and computes.

A case is written once and runs on every library that has torch's names; other libraries join a case through a function of
their own. Nothing here measures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Run = Callable[[], Any]


class Kit:
    """A library with torch's names, and where its tensors live; inputs are the same in every library."""

    def __init__(self, name: str, torch: Any, device: str, wait: Callable[[], None]) -> None:
        self.name, self.torch, self.device, self.wait = name, torch, device, wait

    def rand(self, *shape: int, seed: int = 0, dtype: str = "float32", grad: bool = False) -> Any:
        """Uniform numbers in [-1, 1), the same in every library."""
        values = np.random.default_rng(seed).random(shape, dtype=np.float32) * 2 - 1
        t = self.put(values).to(getattr(self.torch, dtype))
        return t.requires_grad_() if grad else t

    def randint(self, high: int, *shape: int, seed: int = 0) -> Any:
        """Indices in [0, high), the same in every library."""
        return self.put(np.random.default_rng(seed).integers(0, high, shape))

    def put(self, values: np.ndarray) -> Any:
        """Copy an array to the device."""
        return self.torch.tensor(values, device=self.device)


@dataclass(frozen=True)
class Case:
    """One thing to time.

    make: given a Kit, prepares inputs and returns what is timed. bytes, flops: what one run has to move and compute at least.
    bar: the ratio to torch eager that the project wants to reach. others: the same program for libraries with other names:
    a function of the case's numpy seed that returns what is timed. check: compare the first result with torch's.
    """

    family: str
    name: str
    make: Callable[[Kit], Run]
    bytes: float = 0.0
    flops: float = 0.0
    bar: float | None = None
    quick: bool = False
    check: bool = True
    tolerance: float = 1e-3
    others: dict[str, Callable[[], Run]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.family}: {self.name}"


def backward(kit: Kit, fn: Callable[..., Any], *inputs: Any) -> Run:
    """Forward and backward to every input that wants a gradient."""
    wanted = [x for x in inputs if x.requires_grad]

    def run() -> Any:
        out = fn(*inputs)
        return kit.torch.autograd.grad(out if out.ndim == 0 else out.sum(), wanted)

    return run
