"""Multi-head attention as a function: projections, masks and heads around `scaled_dot_product_attention`.

Sequences come as (L, N, E). Where the batch is the outer dim in memory (a transpose of batch-first data), the
computation follows that memory order, so that nothing is copied. Knows nothing of modules.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from ... import dtypes
from ...dtypes import dtype
from ...errors import caller_level
from ..composite import Composite, named
from ..core import Tensor
from ..matmul import linear
from ..row import FUNCTIONS
from . import dropout
from .attention import scaled_dot_product_attention
from .padding import pad
from .softmax import softmax


def _require(holds: bool, message: str) -> None:
    """Raise the AssertionError that torch raises for arguments that do not fit."""
    if not holds:
        raise AssertionError(message)


def canonical_mask(
    mask: Tensor | None,
    name: str,
    other: dtype | None,
    other_name: str,
    target: dtype,
    check_other: bool = True,
) -> Tensor | None:
    """Return a mask as floats, for a bool mask -inf where it is True and 0 elsewhere; None for None.

    Warns if `check_other` and the mask's dtype differs from `other`, the dtype of the other mask.
    """
    if mask is None:
        return None
    _require(
        mask.dtype is dtypes.bool or mask.dtype.is_floating_point,
        f"only bool and floating types of {name} are supported",
    )
    if check_other and other is not None and mask.dtype is not other:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=caller_level(),
        )
    if mask.dtype is not dtypes.bool:
        return mask
    return FUNCTIONS["zeros_like"](mask, dtype=target).masked_fill(mask, -math.inf)


def none_or_dtype(mask: Tensor | None) -> dtype | None:
    """Return the dtype of a mask, None if there is no mask."""
    return None if mask is None else mask.dtype


def check_ranks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    padding: Tensor | None,
    mask: Tensor | None,
    heads: int,
) -> bool:
    """Return whether the inputs have a batch dim; raise torch's errors for ranks that do not fit each other."""
    _require(
        query.ndim in (2, 3),
        f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor",
    )
    batched = query.ndim == 3
    rank = query.ndim
    what = f"For {'batched' if batched else 'unbatched'} ({rank}-D) `query`, expected"
    _require(
        key.ndim == rank and value.ndim == rank,
        f"{what} `key` and `value` to be {rank}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively",
    )
    if padding is not None:
        _require(
            padding.ndim == rank - 1,
            f"{what} `key_padding_mask` to be `None` or {rank - 1}-D but found {padding.ndim}-D tensor instead",
        )
    if mask is not None:
        _require(
            mask.ndim in (2, 3),
            f"{what} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead",
        )
        if not batched and mask.ndim == 3:
            expected = (heads, query.shape[0], key.shape[0])
            _require(
                tuple(mask.shape) == expected,
                f"Expected `attn_mask` shape to be {expected} but got {mask.shape}",
            )
    return batched


def _batch_outside(x: Tensor) -> bool:
    """Return whether N is the outermost dim of (L, N, E) in memory."""
    return x.ndim == 3 and x.stride(1) > x.stride(0)


def _project(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Apply a linear layer to (L, N, E), keeping the memory order of L and N."""
    if _batch_outside(x):
        return linear(x.transpose(0, 1), weight, bias).transpose(0, 1)
    return linear(x, weight, bias)


def project_packed(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Return the query, key and value projected by three weights stacked along dim 0; inputs that are one tensor share
    one matrix product.
    """
    width = query.shape[-1]
    if query is key is value:
        return tuple(_project(query, weight, bias).split(width, -1))
    w_q, w_k, w_v = weight.chunk(3)
    b_q, b_k, b_v = (None,) * 3 if bias is None else bias.chunk(3)
    if key is value:
        w_kv, b_kv = weight[width:], None if bias is None else bias[width:]
        k, v = _project(key, w_kv, b_kv).split(width, -1)
        return _project(query, w_q, b_q), k, v
    return _project(query, w_q, b_q), _project(key, w_k, b_k), _project(value, w_v, b_v)


def _project_apart(
    inputs: tuple[Tensor, ...], weights: tuple[Tensor | None, ...], bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Return query, key and value projected by a weight each, after checking the weights' shapes."""
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    width = inputs[0].shape[-1]
    for x, w, name in zip(inputs, weights, "qkv", strict=True):
        _require(w is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
        expected, full = (width, x.shape[-1]), {"q": "query", "k": "key", "v": "value"}[name]
        _require(
            tuple(w.shape) == expected,
            f"expecting {full} weights shape of {expected}, but got {w.shape}",
        )
    return tuple(_project(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True))


def _check_mask_shape(mask: Tensor, batch: int, heads: int, length: int, keys: int) -> Tensor:
    """Return `attn_mask` with three dims; RuntimeError for another shape than torch accepts."""
    expected = (length, keys) if mask.ndim == 2 else (batch * heads, length, keys)
    if mask.ndim not in (2, 3):
        raise RuntimeError(f"attn_mask's dimension {mask.ndim} is not supported")
    if tuple(mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {expected}."
        )
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def _heads(x: Tensor, heads: int) -> Tensor:
    """Return the view (N, heads, L, E / heads) of (L, N, E)."""
    return x.unflatten(-1, (heads, x.shape[-1] // heads)).permute(1, 2, 0, 3)


def _static(x: Tensor, name: str, batch: int, heads: int, width: int) -> Tensor:
    """Return a static key or value (N * heads, S, E / heads) as (N, heads, S, E / heads)."""
    for dim, expected in ((0, batch * heads), (2, width)):
        _require(
            x.shape[dim] == expected,
            f"expecting {name}.size({dim}) of {expected}, but got {x.shape[dim]}",
        )
    return x.reshape(batch, heads, *x.shape[1:])


def _widen(mask: Tensor | None) -> Tensor | None:
    """Extend a mask of floats by one key, which no query is kept from seeing; None for None."""
    return None if mask is None else pad(mask, (0, 1))


def _joint_mask(
    mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, keys: int
) -> Tensor | None:
    """Return the sum of both masks in a shape that broadcasts to (N, heads, L, S); None if there is no mask."""
    if mask is not None:
        whole = mask.shape[0] == 1
        mask = mask.unsqueeze(0) if whole else mask.reshape(batch, heads, *mask.shape[1:])
    if padding is None:
        return mask
    for dim, expected in enumerate((batch, keys)):
        _require(
            padding.shape[dim] == expected,
            f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got {padding.shape[dim]}",
        )
    padding = padding.reshape(batch, 1, 1, keys)
    return padding if mask is None else mask + padding


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Project query (L, N, E), key and value (S, N, ...), attend with `num_heads` heads, project the result (L, N, E).

    Unbatched inputs lack N. The masks are `attn_mask`, (L, S) or (N * heads, L, S), and `key_padding_mask`, (N, S): a
    bool mask is True where a query must not attend to a key, a float mask is added to the scores. Returns (result,
    weights): weights (N, L, S) are the mean over heads, or (N, heads, L, S) without `average_attn_weights`, or None
    without `need_weights`. AssertionError and RuntimeError in torch's words for shapes that do not fit.
    """
    batched = check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        one = query is key, key is value
        query = query.unsqueeze(1)
        key = query if one[0] else key.unsqueeze(1)
        value = key if one[1] else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    pairs = query.shape[0] * query.shape[1] * num_heads * key.shape[0]
    mask, padding, is_causal = _masks(
        query.dtype, attn_mask, key_padding_mask, is_causal, need_weights
    )
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    p = dropout_p if training else 0.0
    # Key and value that are the tensor before them are passed as None: `_attended` then projects them in one product.
    tensors = (
        query, None if key is query else key, None if value is key else value, in_proj_weight, in_proj_bias, q_proj_weight, k_proj_weight,
        v_proj_weight, bias_k, bias_v, static_k, static_v, out_proj_weight, out_proj_bias, mask, padding,
    )  # fmt: skip
    settings = (num_heads, use_separate_proj_weight, add_zero_attn, p, is_causal, need_weights, average_attn_weights)  # fmt: skip
    if p or pairs > SMALL:
        result, *weights = _attended(*tensors, *settings)
    else:
        result, *weights = _SMALL(tensors, *settings)
    seen = None
    if weights:
        seen = named("MeanBackward1" if average_attn_weights else "SoftmaxBackward0", weights[0])
    if batched:
        return result, seen
    return result.squeeze(1), seen if seen is None else seen.squeeze(0)


def _attended(
    query: Tensor, key: Tensor | None, value: Tensor | None, in_weight: Tensor | None, in_bias: Tensor | None, q_weight: Tensor | None,
    k_weight: Tensor | None, v_weight: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, static_k: Tensor | None,
    static_v: Tensor | None, out_weight: Tensor, out_bias: Tensor | None, mask: Tensor | None, padding: Tensor | None, heads: int, apart: bool,
    add_zero_attn: bool, p: float, is_causal: bool, need_weights: bool, average: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return (result, weights), or (result,) without `need_weights`. A key of None is the query, a value of None the
    key.
    """
    key = query if key is None else key
    value = key if value is None else value
    (length, batch, width), keys = query.shape, key.shape[0]
    if apart:
        q, k, v = _project_apart((query, key, value), (q_weight, k_weight, v_weight), in_bias)
    else:
        if in_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = project_packed(query, key, value, in_weight, in_bias)
    if mask is not None:
        mask = _check_mask_shape(mask, batch, heads, length, keys)
    if bias_k is not None and bias_v is not None:
        _require(static_k is None, "bias cannot be added to static key.")
        _require(static_v is None, "bias cannot be added to static value.")
        k, v = (
            FUNCTIONS["cat"]([x, b.expand(1, batch, width)]) for x, b in ((k, bias_k), (v, bias_v))
        )
        mask, padding = _widen(mask), _widen(padding)
    else:
        _require(bias_k is None, "bias_k is set but bias_v is None")
        _require(bias_v is None, "bias_v is set but bias_k is None")
    each = width // heads
    q, k, v = (
        _heads(x, heads) if fixed is None else _static(fixed, name, batch, heads, each)
        for x, fixed, name in ((q, None, ""), (k, static_k, "static_k"), (v, static_v, "static_v"))
    )
    if add_zero_attn:
        nothing = k.new_zeros(batch, heads, 1, each)
        k, v = (FUNCTIONS["cat"]([x, nothing], -2) for x in (k, v))
        mask, padding = _widen(mask), _widen(padding)
    mask = _joint_mask(mask, padding, batch, heads, k.shape[-2])
    if not need_weights:
        found = scaled_dot_product_attention(q, k, v, mask, p, is_causal)
        return (_merge(found, query, out_weight, out_bias),)
    _require(not is_causal or mask is not None, "FIXME: is_causal not implemented for need_weights")
    found, weights = _visible(q, k, v, mask, p)
    return _merge(found, query, out_weight, out_bias), weights.mean(1) if average else weights


# Elements, of the operands or of the attention weights, above which ops are called one by one: a Composite's gradient
# computes everything anew, which then costs more than the Python code it saves.
SMALL = 1 << 16
_SMALL = Composite("ViewBackward0", _attended, SMALL, copied=(14, 15))  # the masks


def _masks(
    dt: dtype, mask: Tensor | None, padding: Tensor | None, is_causal: bool, need_weights: bool
) -> tuple[Tensor | None, Tensor | None, bool]:
    """Return both masks as floats to add to the scores, and whether causality is left to the kernel instead of a mask."""
    padding = canonical_mask(padding, "key_padding_mask", none_or_dtype(mask), "attn_mask", dt)
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        return None, None, True
    mask = canonical_mask(mask, "attn_mask", None, "", dt, check_other=False)
    return mask, padding, is_causal and padding is None


def _check_sizes(
    query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, apart: bool
) -> None:
    found = query.shape[-1]
    _require(found == width, f"was expecting embedding dimension of {width}, but got {found}")
    _require(found % heads == 0, f"embed_dim {found} not divisible by num_heads {heads}")
    if apart:
        _require(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
    else:
        _require(
            key.shape == value.shape,
            f"key shape {key.shape} does not match value shape {value.shape}",
        )


def _visible(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float
) -> tuple[Tensor, Tensor]:
    """Return the attention's result and its probabilities, which the fused kernel does not return; op by op."""
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(-2, -1)
    weights = softmax(scores if mask is None else scores + mask, -1)
    if p:
        weights = dropout.apply(weights, p, True, False)
    return weights @ v, weights


def _merge(found: Tensor, query: Tensor, weight: Tensor, bias: Any) -> Tensor:
    """Join the heads (N, heads, L, E / heads) to (L, N, E) and project them, in the memory order of `query`."""
    if _batch_outside(query):
        return linear(found.transpose(1, 2).flatten(2), weight, bias).transpose(0, 1)
    return linear(found.permute(2, 0, 1, 3).flatten(2), weight, bias)
