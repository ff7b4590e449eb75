"""`cltensor.backends.cuda`: settings of CUDA's libraries, stored without effect.

float32 products are always computed in float32, and attention has no alternative implementations to choose from.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class _Matmul:
    allow_tf32: bool = False
    allow_fp16_reduced_precision_reduction: bool = True
    allow_bf16_reduced_precision_reduction: bool = True
    allow_fp16_accumulation: bool = False
    fp32_precision: str = "none"


matmul = _Matmul()
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built() -> bool:
    """Return False."""
    return False


def flash_sdp_enabled() -> bool:
    """Return what `enable_flash_sdp` was told."""
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Store the setting, which has no effect."""
    _sdp["flash"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """Return what `enable_mem_efficient_sdp` was told."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Store the setting, which has no effect."""
    _sdp["mem_efficient"] = enabled


def math_sdp_enabled() -> bool:
    """Return what `enable_math_sdp` was told."""
    return _sdp["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Store the setting, which has no effect."""
    _sdp["math"] = enabled


def cudnn_sdp_enabled() -> bool:
    """Return what `enable_cudnn_sdp` was told."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Store the setting, which has no effect."""
    _sdp["cudnn"] = enabled


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Deprecated: accept a choice of implementations for a block, without effect, as `sdpa_kernel` does."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please see "
        "`torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
        stacklevel=3,
    )
    yield
