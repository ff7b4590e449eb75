"""Version counters: how often a storage was written, so that stale saved tensors are found.

Owns the two counter classes. A tensor, its views and `detach()` share one counter; every in-place
write adds one. Knows nothing of tensors or graphs.
"""

from __future__ import annotations


class VersionCounter:
    """Count the in-place writes to a storage."""

    value = 0  # of the class until the first write: every tensor has a counter, few are written


class InferenceVersion(VersionCounter):
    """The counter of a tensor born in inference mode: its type is what marks such a tensor."""
