"""`cltensor.backends.mkldnn`: settings of oneDNN, which is not used; they are stored without effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

enabled = True
deterministic = False
allow_tf32: bool | None = None
fp32_precision = "none"
_NAMES = ("enabled", "deterministic", "allow_tf32", "fp32_precision")


def is_available() -> bool:
    """Return False."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = "none",
) -> tuple[bool, bool, bool | None, str]:
    """Store the settings that are not None; return all previous ones."""
    given = (_enabled, _deterministic, _allow_tf32, _fp32_precision)
    before = (enabled, deterministic, allow_tf32, fp32_precision)
    globals().update({n: v for n, v in zip(_NAMES, given, strict=True) if v is not None})
    return before


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool | None = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Store the settings for the duration of a block."""
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        globals().update(zip(_NAMES, before, strict=True))
