"""`cltensor.backends.mkldnn`: a library that is not here."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False
