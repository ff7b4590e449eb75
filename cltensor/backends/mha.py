"""`cltensor.backends.mha`: whether encoders skip padded positions in inference, as torch's fast path does."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """Return whether `nn.TransformerEncoder` may write zeros for padded positions in inference (default: True)."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Set what `get_fastpath_enabled` returns."""
    global _enabled
    _enabled = value
