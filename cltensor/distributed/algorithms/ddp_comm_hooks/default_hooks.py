"""Hooks that average gradients, in their own dtype or in a 16-bit one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import dtypes
from ....futures import Future
from ...collectives import all_reduce
from ...groups import default_group
from ...reducer import GradBucket

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip

Hook = Callable[[Any, Any], Future[Any]]


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average a bucket, as is done without a hook."""
    group, buffer = process_group or default_group(), bucket.buffer()
    buffer.div_(group.size())
    future = all_reduce(buffer, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


def _compressed(dtype: Any, process_group: Any, bucket: GradBucket) -> Future[Any]:
    group, buffer = process_group or default_group(), bucket.buffer()
    small = buffer.to(dtype).div_(group.size())
    future = all_reduce(small, group=group, async_op=True).get_future()
    return future.then(lambda done: buffer.copy_(done.value()[0]))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average a bucket in float16."""
    return _compressed(dtypes.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average a bucket in bfloat16."""
    return _compressed(dtypes.bfloat16, process_group, bucket)


def _wrapped(dtype: Any, hook: Hook) -> Hook:
    def compressing(hook_state: Any, bucket: GradBucket) -> Future[Any]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(hook_state, bucket).then(lambda done: buffer.copy_(done.value()))

    return compressing


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that runs another one on buckets cast to float16."""
    return _wrapped(dtypes.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that runs another one on buckets cast to bfloat16."""
    return _wrapped(dtypes.bfloat16, hook)
