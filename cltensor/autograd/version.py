"""Version counters: they count in-place writes to a storage, so that modified saved tensors are detected.

Owns the two counter classes. A tensor, its views and `detach()` share one counter; every in-place
write adds one. Knows nothing of tensors or graphs.
"""

from __future__ import annotations


class VersionCounter:
    """Count the in-place writes to a storage."""

    # A class attribute until the first write: every tensor has a counter, few are written.
    value = 0


class InferenceVersion(VersionCounter):
    """The counter of a tensor made in inference mode; the class of its counter marks such a tensor."""
