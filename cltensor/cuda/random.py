"""`torch.cuda.random`: the generators of GPUs, seeded and put back into states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ops.convert import canonical
from ..ops.random.generator import Generator, default_for
from .devices import device_count, is_available, named

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def default_generators() -> tuple[Generator, ...]:
    """Return the generators of all GPUs, by index."""
    return tuple(default_for(canonical(named(i))) for i in range(device_count()))


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator; do nothing if there is no GPU."""
    if is_available():
        default_for(canonical(named(None))).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs."""
    for i in range(device_count()):
        default_for(canonical(named(i))).manual_seed(int(seed))


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of a GPU's generator as a uint8 tensor."""
    return default_for(canonical(named(device))).get_state()


def get_rng_state_all() -> list[Any]:
    """Return the states of all GPUs' generators."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Put a GPU's generator back into a state."""
    default_for(canonical(named(device))).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Put all GPUs' generators back into states."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def seed() -> None:
    """Seed the current GPU's generator with a number from the operating system; do nothing if there is no GPU."""
    if is_available():
        default_for(canonical(named(None))).seed()


def seed_all() -> None:
    """Seed the generators of all GPUs with one number from the operating system."""
    shared: int | None = None
    for i in range(device_count()):
        generator = default_for(canonical(named(i)))
        if shared is None:
            shared = generator.seed()
        else:
            generator.manual_seed(shared)


def initial_seed() -> int:
    """Return the seed of the current GPU's generator."""
    return default_for(canonical(named(None))).initial_seed()
