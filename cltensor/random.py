"""`torch.random`: seeding, and the state of the generators. The generators themselves are in
`ops/random/generator.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from .ops import convert
from .ops.random.generator import Generator, default_for, default_generator, seed_all

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def manual_seed(seed: Any) -> Generator:
    """Seed the generators of all devices with a number in [-2**63, 2**64); return the generator of cpu.

    >>> torch.manual_seed(0).initial_seed()
    0
    """
    return seed_all(int(seed))


def seed() -> int:
    """Seed the generators of all devices with one number from the operating system; return it."""
    value = default_generator.seed()
    seed_all(value)
    return value


def initial_seed() -> int:
    """Return the seed of cpu's generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """Return the state of cpu's generator as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Put cpu's generator back into a state."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Sequence[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Leave the generators of cpu and of `devices` as they were when the block ends.

    `devices` are names or indices of devices; without it every generator in use is kept.
    """
    if not enabled:
        yield
        return
    if devices is None:
        from .ops.random.generator import defaults

        kept = [default_generator, *defaults.others.values()]
    else:
        names = [f"{device_type}:{d}" if isinstance(d, int) else d for d in devices]
        kept = [default_generator, *(default_for(convert.canonical(d)) for d in names)]
    saved = [(g, g.clone_state()) for g in kept]
    try:
        yield
    finally:
        for g, old in saved:
            g.go_back(old)


def thread_safe_generator() -> Generator | None:
    """Return None, which means the default generator: data loaders' workers are processes, each with its own."""
    return None
