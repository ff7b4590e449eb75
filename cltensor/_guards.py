"""`torch._guards`: functions that tell which compiler's tracing is in progress; here there is never any."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def active_fake_mode() -> None:
    """Return None: there are no modes that make fake tensors."""


def detect_fake_mode(inputs: Any = None) -> None:
    """Return None: there are no fake tensors."""
