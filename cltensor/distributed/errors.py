"""Errors between processes, under the names of torch's classes. Knows of nothing that raises them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """Something between processes failed."""


class DistBackendError(DistError):
    """A collective failed: a process is gone, too late, or in another collective.

    ranks: the ranks of those processes, if known.
    """

    def __init__(self, text: str = "", ranks: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.ranks = list(ranks)


class DistNetworkError(DistError):
    """A connection could not be made."""


class DistStoreError(DistError):
    """A store did not answer, or not in time."""


class QueueEmptyError(DistStoreError):
    """A store's queue was empty, and the call was not to wait."""


for _kind in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _kind.__module__ = "cltensor.distributed"
