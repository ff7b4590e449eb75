"""`cltensor.backends.cuda`: settings of CUDA's libraries, stored without effect.

float32 products are always computed in float32, and attention has no alternative implementations to choose from.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..reexport import absent


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


_reduced = False


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Return what `allow_fp16_bf16_reduction_math_sdp` was told."""
    return _reduced


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Store the setting, which has no effect: sums of 16-bit numbers are made in float32."""
    global _reduced
    _reduced = enabled


(SDPAParams,) = absent(__name__, "SDPAParams", "attention has one implementation for each device")


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Return False: torch's implementations of attention are not there."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def is_flash_attention_available() -> bool:
    """Return False: torch's implementations of attention are not there."""
    return False


is_ck_sdpa_available = is_flash_attention_available


def _preferred(what: str, choices: str) -> Any:
    def call(backend: Any = None) -> str:
        if backend is not None and backend != "default":
            if backend in choices.split(", "):
                raise RuntimeError(
                    f"backends.cuda.{what}: {backend} is CUDA's, devices are OpenCL's"
                )
            raise RuntimeError(f"Unknown input value. Choose from: {choices}.")
        return "default"

    call.__name__ = call.__qualname__ = what
    call.__doc__ = 'Return "default"; RuntimeError for the name of a library, as there are none.'
    return call


preferred_linalg_library = _preferred("preferred_linalg_library", "default, cusolver, magma")
preferred_blas_library = _preferred(
    "preferred_blas_library", "default, cublas, hipblas, cublaslt, hipblaslt, ck"
)


class _Plans:
    """cuFFT's cache of plans of a device: always empty, as there is no cuFFT."""

    size = max_size = 0

    def clear(self) -> None:
        """Do nothing: there are no plans."""

    def __getitem__(self, device: Any) -> _Plans:
        return self


cufft_plan_cache = _Plans()
