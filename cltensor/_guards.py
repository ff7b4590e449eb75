"""`torch._guards`: what a compiler's tracing is under way, of which there is none here."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def active_fake_mode() -> None:
    """Return None: no mode without values is entered."""


def detect_fake_mode(inputs: Any = None) -> None:
    """Return None: no tensor is without values."""
