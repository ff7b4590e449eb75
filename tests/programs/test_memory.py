"""The trainings of test_twins.py need at most a fifth more memory than torch's, as the allocators count it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from programs.test_twins import MODELS, losses
from support import ct

torch = pytest.importorskip("torch")


def train(module: Any, case: Callable, steps: int) -> None:
    training = losses(module, case, "float32")
    for _ in range(steps):
        next(training)


def torchs_peak(case: Callable) -> int:
    """Return the most bytes held at once: model, optimiser state, saved tensors and temporary memory of kernels."""
    train(torch, case, 1)
    with torch.profiler.profile(profile_memory=True) as profile:
        train(torch, case, 3)
    held = peak = 0
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def our_peak(case: Callable, dev: Any) -> int:
    """Return the most bytes that cltensor held at once beyond those held before the training."""
    train(ct, case, 1)  # allocates what the process keeps for good, so that it is not counted
    gc.collect()
    ct.opencl.synchronize(dev)
    before = ct.opencl.memory_allocated(dev)
    ct.opencl.reset_peak_memory_stats(dev)
    train(ct, case, 10)  # running statistics may stay pending for this many steps
    return ct.opencl.max_memory_allocated(dev) - before


@pytest.mark.parametrize("case", MODELS, ids=lambda c: c.__name__)
def test_peak(case: Callable, dev: Any) -> None:
    assert our_peak(case, dev) <= 1.2 * torchs_peak(case)
