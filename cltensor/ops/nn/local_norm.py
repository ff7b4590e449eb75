"""Local response normalisation: each element divided by a power of the mean square of its neighbouring channels."""

from __future__ import annotations

from ..composite import Composite
from ..core import Tensor
from .padding import constant_pad


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return `input` (N, C, …) divided by (k + alpha * m)^beta, where m is the mean of the squares of `size`
    neighbouring channels (Krizhevsky et al., 2012).
    """
    if input.ndim < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          "
            f"input (got {input.ndim} dimensions)"
        )
    if not input.numel():
        return input
    return _NORMALISED((input,), size, alpha, beta, k)[0]


def _normalised(input: Tensor, size: int, alpha: float, beta: float, k: float) -> tuple[Tensor]:
    trailing = (0, 0) * (input.ndim - 2)
    padded = constant_pad(input * input, (*trailing, size // 2, (size - 1) // 2))
    channels = input.shape[1]
    total = padded.narrow(1, 0, channels)
    for shift in range(1, size):
        total = total + padded.narrow(1, shift, channels)
    return (input / (total / size * alpha + k).pow(beta),)


_NORMALISED = Composite("DivBackward0", _normalised)
