"""`cltensor.nn.attention.bias`: causal masks of rectangles for `scaled_dot_product_attention`, which skips hidden keys.

CausalBias is a subclass of Tensor, so importing this module turns on `__torch_function__` dispatch in all functions:
nothing in the package imports it by itself.
"""

from __future__ import annotations

import enum
import warnings
from typing import Any

from ... import creation
from ...tensor import Tensor
from .. import functional

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """The corner that the diagonal of a non-square causal mask passes through."""

    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias(Tensor):
    """A causal mask (seq_len_q, seq_len_kv) to be given as `attn_mask`; the tensor itself is empty."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        """Make the mask. AssertionError for what is no CausalVariant; warns where rows of a LOWER_RIGHT would be all hidden."""
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        made: Any = super().__new__(cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            text = "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!"
            warnings.warn(text, stacklevel=3)
        return made

    def _materialize(self, device: Any = None) -> Tensor:
        """Return the mask as a tensor (seq_len_q, seq_len_kv) of booleans, on the cpu or the device given."""
        shift = 0
        if self.variant == CausalVariant.LOWER_RIGHT:
            shift = self.seq_len_kv - self.seq_len_q
        full = creation.ones(self.seq_len_q, self.seq_len_kv, dtype=bool, device=device or "cpu")
        return full.tril(shift)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle `scaled_dot_product_attention`; any other function gets the empty tensor that this is."""
        kwargs = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            return cls._dispatch(*args, **kwargs)
        above: Any = super()
        return above.__torch_function__(func, types, args, kwargs)

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        causal = attn_mask.variant == CausalVariant.UPPER_LEFT
        causal = causal or attn_mask.seq_len_q == attn_mask.seq_len_kv
        return functional.scaled_dot_product_attention(
            query,
            key,
            value,
            None if causal else attn_mask._materialize(query.device),
            dropout_p,
            causal,
            scale=scale,
            enable_gqa=enable_gqa,
        )

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        """Return the mask as it would be printed as a tensor."""
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """Return the mask that shows query i the keys 0 to i. AssertionError for other than two sizes."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """Return the mask that shows the last query all keys, and each query before it one key less.

    AssertionError for other than two sizes.
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
