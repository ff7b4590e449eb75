"""The options by which `linear_cross_entropy` saves memory."""

from __future__ import annotations

import dataclasses
from typing import Any

from ... import dtypes

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("auto", "accurate", "balanced", "compact")
_AUTO = "aspect_ratio:2"


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Ask for pieces of the batch, whose logits are computed again in backward instead of kept.

    batch_chunk_size: rows per piece. chunking_method: "aspect_ratio:N" chooses them so that a piece's logits take an N-th
    of the input's memory. The other fields are accepted and change nothing: sums are always accumulated accurately.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto") and not self._factor():
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        floats = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
        if self.acc_dtype is not None and self.acc_dtype not in floats:
            raise ValueError(
                f"acc_dtype must be one of {{None, torch.float16, torch.bfloat16, torch.float32, torch.float64}}, got {self.acc_dtype!r}. Pass "
                "acc_dtype=None to let the op pick automatically."
            )

    def _factor(self) -> int:
        """Return N of "aspect_ratio:N", 0 for what is none."""
        method = _AUTO if self.chunking_method == "auto" else self.chunking_method or ""
        name, colon, factor = method.partition(":")
        factor = factor if colon else "1"
        return int(factor) if name == "aspect_ratio" and factor.isdigit() else 0

    def rows(self, batch: int, in_features: int, classes: int) -> int:
        """Return how many rows a piece has."""
        if self.batch_chunk_size is not None:
            return self.batch_chunk_size
        if self.chunking_method is None:
            return max(batch, 1)
        fitting = -(-batch // -(-classes // max(in_features, 1)))
        return max((1 << (max(fitting, 1) - 1).bit_length()) // self._factor(), 1)
