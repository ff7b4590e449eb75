"""`cltensor.backends.opt_einsum`: `einsum` orders its contractions itself."""

from __future__ import annotations

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Return False."""
    return False
