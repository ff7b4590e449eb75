"""`MultiheadAttention` of a nested tensor of strided layout: attention to itself in inference, which torch calls a fast path.

The sequences are computed together, as one jagged tensor. Owns torch's reasons to refuse anything else.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

from .. import creation
from ..amp.state import is_autocast_enabled
from ..autograd import is_grad_enabled
from ..backends.mha import get_fastpath_enabled
from ..nn import functional as NF
from .layers import attention
from .ragged import Ragged
from .shape import to_padded_tensor
from .tensor import StridedNestedTensor, flat, make


def attend_to_itself(
    module: Any, given: tuple[Any, Any, Any], masked: bool, need_weights: bool, average: bool
) -> tuple[Any, Any]:
    """Return what `module` makes of (query, key, value), nested alike, and the padded weights if needed, else None.

    AssertionError where torch has no fast path.
    """
    if reason := _why_not(module, *given, masked):
        raise AssertionError(
            "MultiheadAttention does not support NestedTensor outside of its fast path. "
            f"The fast path was not hit because {reason}"
        )
    x = given[0]
    width, heads = module.embed_dim, module.num_heads
    rows = x._v.reshape(-1, width)
    lengths = [shape[0] for shape in x._pattern]
    offsets = creation.tensor([0, *accumulate(lengths)], device=rows.device)
    pattern = Ragged.of(offsets, None, max(lengths), min(lengths))
    projected = NF.linear(rows, module.in_proj_weight, module.in_proj_bias)
    projected = projected.unflatten(-1, (3, heads, module.head_dim)).transpose(0, 2)
    q, k, v = [make(projected[:, i], pattern, 2) for i in range(3)]
    mixed = attention(q, k, v)._v.transpose(0, 1).reshape(-1, width)
    out = flat(module.out_proj(mixed).reshape(-1), x._pattern)
    return out, _weights(q, k, lengths, average) if need_weights else None


def _weights(q: Any, k: Any, lengths: list[int], average: bool) -> Any:
    """Return the weights (B, L, L), or (B, H, L, L) if they are not to be averaged; zero outside of the sequences."""
    queries, keys = to_padded_tensor(q, 0.0), to_padded_tensor(k, 0.0)
    places = creation.arange(max(lengths), device=queries.device)
    outside = places >= creation.tensor(lengths, device=queries.device).unsqueeze(1)
    scores = (queries @ keys.mT) / math.sqrt(queries.shape[-1])
    weights = scores.masked_fill(outside[:, None, None], -math.inf).softmax(-1)
    weights = weights.masked_fill(outside[:, None, :, None], 0.0)
    return weights.mean(1) if average else weights


def _why_not(module: Any, query: Any, key: Any, value: Any, masked: bool) -> str:
    """Return torch's reason not to take its fast path, or ""."""
    parameters = (
        module.in_proj_weight,
        module.in_proj_bias,
        module.out_proj.weight,
        module.out_proj.bias,
    )
    other = next(
        (
            f"dtypes of query ({query.dtype}) and self.{name} ({p.dtype}) don't match"
            for name, p in zip(("in_proj_bias", "in_proj_weight"), parameters[1::-1], strict=True)
            if p is not None and p.dtype is not query.dtype
        ),
        "",
    )
    learns = any(t is not None and t.requires_grad for t in (query, *parameters))
    reasons = (
        (not get_fastpath_enabled(), "torch.backends.mha.get_fastpath_enabled() was not True"),
        (
            query.dim() != 3,
            f"input not batched; expected query.dim() of 3 but got {query.dim()}",
        ),
        (
            query is not key or key is not value,
            "non-self attention was used (query, key, and value are not the same Tensor)",
        ),
        (other, other),
        (module.in_proj_weight is None, "in_proj_weight was None"),
        (module.training, "training is enabled"),
        (module.num_heads % 2, "self.num_heads is not even"),
        (not module.batch_first, "batch_first was not True"),
        (module.bias_k is not None, "self.bias_k was not None"),
        (module.add_zero_attn, "add_zero_attn was enabled"),
        (
            masked,
            "supplying both src_key_padding_mask and src_mask at the same time"
            + 34 * " "
            + "is not supported with NestedTensor input",
        ),
        (is_autocast_enabled(), "autocast is enabled"),
        (
            not isinstance(query, StridedNestedTensor),
            "some Tensor argument has_torch_function",
        ),
        (
            is_grad_enabled() and learns,
            "grad is enabled and at least one of query or the input/output projection weights or biases requires_grad",
        ),
    )
    return next((text for holds, text in reasons if holds), "")
