"""`cltensor.nn.attention`: torch's choice among kernels of `scaled_dot_product_attention`; here there is one."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence

from . import flex_attention, varlen

__all__ = ["SDPBackend", "flex_attention", "sdpa_kernel", "varlen"]


class SDPBackend(enum.IntEnum):
    """Names of torch's kernels."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(
    backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Accept a choice for the duration of a block. AssertionError for what is not an SDPBackend."""
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not all(isinstance(b, SDPBackend) for b in chosen):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances"
        )
    yield
