"""The transformer (Vaswani et al., arXiv 1706.03762): layers, stacks and the whole model.

They are built of attention, linear and norm layers.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

from ... import creation
from ...amp.state import is_autocast_enabled
from ...autograd import is_grad_enabled
from ...backends.mha import get_fastpath_enabled
from ...ops.nn.multihead import canonical_mask, none_or_dtype
from ...overrides import has_torch_function
from ...runtime import ACTIVE
from ...tensor import Tensor
from .. import functional as F
from .. import init
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .layer import own_init
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


def _get_activation_fn(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _causal_mask(size: int, device: Any, dtype: Any) -> Tensor:
    return creation.full((size, size), -math.inf, device=device, dtype=dtype).triu(1)


def _is_causal(mask: Tensor | None, hint: bool | None, x: Tensor, batch_first: bool) -> bool:
    """Return the hint `is_causal`, or, without one, whether the mask is the causal mask for the sequence."""
    if hint is not None or mask is None:
        return bool(hint)
    size = x.shape[1 if batch_first and x.ndim == 3 else 0]
    if tuple(mask.shape) != (size, size):
        return False
    same: Any = mask == _causal_mask(size, mask.device, mask.dtype)
    return bool(same.all())


def _clones(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class _Block(Module):
    """What encoder and decoder layers share: the names torch gives the parts, and the feed-forward network."""

    attentions: tuple[str, ...] = ("self_attn",)
    norms = 2
    self_attn: MultiheadAttention
    linear1: Linear
    linear2: Linear
    dropout: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"bias": bias, "device": device, "dtype": dtype}
        super().__init__()
        for name in self.attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, **made
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **made)
        self.norm_first = norm_first
        for i in range(1, self.norms + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, **made))
        for i in range(1, self.norms + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)
        relu = self.activation is F.relu or isinstance(self.activation, ReLU)
        gelu = self.activation is F.gelu or isinstance(self.activation, GELU)
        self.activation_relu_or_gelu = 1 if relu else 2 if gelu else 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _around(self, i: int, x: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """Add a block's result to its input, the i-th norm before the block or after the sum."""
        norm, drop = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        if self.norm_first:
            return x + drop(block(norm(x)))
        return norm(x + drop(block(x)))

    def _feed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _attend(
    attention: MultiheadAttention,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    causal: bool,
) -> Tensor:
    return attention(
        x,
        memory,
        memory,
        attn_mask=mask,
        key_padding_mask=padding,
        is_causal=causal,
        need_weights=False,
    )[0]


class TransformerEncoderLayer(_Block):
    """Self-attention and a feed-forward network, each with dropout, a residual sum and a layer norm (first, with `norm_first`)."""

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Map (S, N, E) to the same; masks as in `MultiheadAttention`."""
        padding = canonical_mask(
            src_key_padding_mask,
            "src_key_padding_mask",
            none_or_dtype(src_mask),
            "src_mask",
            src.dtype,
        )
        mask = canonical_mask(src_mask, "src_mask", None, "", src.dtype, check_other=False)
        x = self._around(1, src, lambda y: _attend(self.self_attn, y, y, mask, padding, is_causal))
        return self._around(2, x, self._feed)


class TransformerDecoderLayer(_Block):
    """Self-attention, attention to the encoder's result and a feed-forward network, each in a residual sum with a layer norm."""

    attentions = ("self_attn", "multihead_attn")
    norms = 3
    multihead_attn: MultiheadAttention

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Map tgt (T, N, E) with memory (S, N, E) to (T, N, E); masks as in `MultiheadAttention`."""
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory_mask, memory_key_padding_mask, memory_is_causal
        x = self._around(1, tgt, lambda y: _attend(self.self_attn, y, y, *own))
        x = self._around(2, x, lambda y: _attend(self.multihead_attn, y, memory, *other))
        return self._around(3, x, self._feed)


class TransformerEncoder(Module):
    """A stack of `num_layers` copies of an encoder layer, and a norm."""

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor = self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _why_not_nested(encoder_layer) if enable_nested_tensor else ""
        if reason:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}",
                stacklevel=2,
            )
            self.use_nested_tensor = False

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Pass (S, N, E) through the layers in turn; with `is_causal` None the mask is inspected for being causal."""
        padding = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", none_or_dtype(mask), "mask", src.dtype
        )
        mask = canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        padded = self._padded(src, mask, padding)
        if padded is not None:
            padding = creation.zeros(padded.shape, dtype=src.dtype, device=src.device)
            padding = padding.masked_fill(padded, -math.inf)
        causal = _is_causal(mask, is_causal, src, self.layers[0].self_attn.batch_first)
        out = src
        for layer in self.layers:
            out = layer(out, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padded is not None:
            out = out.masked_fill(padded.unsqueeze(-1), 0)
        return out if self.norm is None else self.norm(out)

    def _padded(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Return the places (N, S) that torch leaves out by means of a nested tensor, or None where it computes all.

        torch does so in inference: places from each sequence's length on are left out and come back as zeros. With
        `mask_check` the padding must lie on the right, which reads the mask's values on the host; that is not done
        while launches are recorded.
        """
        layer = self.layers[0]
        if padding is None or mask is not None or not self.use_nested_tensor or layer.training:
            return None
        if src.ndim != 3 or src.is_meta or not get_fastpath_enabled() or is_autocast_enabled():
            return None
        attention = layer.self_attn
        parts = (
            attention,
            attention.out_proj,
            layer.norm1,
            layer.norm2,
            layer.linear1,
            layer.linear2,
        )
        used = [src, *(p for part in parts for p in part.parameters(recurse=False))]
        if has_torch_function(used) or (is_grad_enabled() and any(t.requires_grad for t in used)):
            return None
        kept = padding == 0
        places = creation.arange(src.shape[1], device=src.device)
        padded: Tensor = places >= kept.sum(1, keepdim=True)
        if not self.mask_check:
            return padded
        if ACTIVE.recorder is not None:
            return None
        return padded if bool((kept != padded).all()) else None


def _why_not_nested(layer: Any) -> str:
    """Return torch's reason not to use nested tensors for a layer, or ""; `_padded` does what these would do."""
    name = "encoder_layer"
    if not isinstance(layer, TransformerEncoderLayer):
        return f"{name} was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = (
        (layer.norm_first, f"{name}.norm_first was True"),
        (
            not attention.batch_first,
            f"{name}.self_attn.batch_first was not True(use batch_first for better inference performance)",
        ),
        (
            not attention._qkv_same_embed_dim,
            f"{name}.self_attn._qkv_same_embed_dim was not True",
        ),
        (attention.in_proj_bias is None, f"{name}.self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, f"{name}.activation_relu_or_gelu was not True"),
        (
            layer.norm1.eps != layer.norm2.eps,
            f"{name}.norm1.eps was not equal to {name}.norm2.eps",
        ),
        (attention.num_heads % 2 == 1, f"{name}.self_attn.num_heads is odd"),
    )
    return next((text for holds, text in reasons if holds), "")


class TransformerDecoder(Module):
    """A stack of `num_layers` copies of a decoder layer, and a norm."""

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Pass tgt (T, N, E) through the layers in turn, each attending to memory (S, N, E)."""
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self.layers[0].self_attn.batch_first)
        out = tgt
        for layer in self.layers:
            out = layer(
                out,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return out if self.norm is None else self.norm(out)


class Transformer(Module):
    """Encoder and decoder: src (S, N, E) and tgt (T, N, E) to (T, N, E), or with N first given `batch_first`."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(*shared)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(*shared), num_decoder_layers, norm()
            )
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encode src, and decode tgt with what came out; a bool mask marks what is not to be seen, a float mask is added."""
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the (sz, sz) causal mask to be added: -inf above the diagonal, else 0."""
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)


own_init(TransformerDecoderLayer, TransformerEncoderLayer)
