"""`cltensor.backends.cudnn`: settings of cuDNN, which is not used; they are stored without effect.

Convolutions are the package's own kernels, and always deterministic.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Return False."""
    return False


def version() -> int | None:
    """Return None."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Return False."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[bool, bool, int, bool, bool]:
    """Store the settings that are not None; return all previous ones."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    before = (enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    globals().update({n: v for n, v in zip(names, given, strict=True) if v is not None})
    return before


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Store the settings for the duration of a block."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
