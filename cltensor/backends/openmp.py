"""`cltensor.backends.openmp`: OpenMP, which is not used."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False
