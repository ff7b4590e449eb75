"""A hook that reduces nothing, to measure how long a step takes without communication."""

from __future__ import annotations

from typing import Any

from ....futures import Future
from ...reducer import GradBucket

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future[Any]:
    """Leave a bucket as it is: replicas drift apart."""
    future: Future[Any] = Future()
    future.set_result(bucket.buffer())
    return future
