"""Layers on jagged tensors: linear maps, products, norms, embeddings and attention, computed on the values."""

from __future__ import annotations

from typing import Any

from ..nn import functional as NF
from ..ops.nn.varlen import Places, attend
from .shape import from_padded, inner, stacked, to_padded_tensor, unbind
from .table import op
from .tensor import JaggedTensor, compact, make


def _last(x: Any, name: str, dims: int = 1) -> None:
    """Refuse a function of the last dims where one of them is ragged."""
    if not isinstance(x, JaggedTensor):
        raise RuntimeError(f"{name}(): expected a NestedTensor of jagged layout as input")
    if x._at >= x.ndim - dims:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")


@op("linear")
def linear(input: JaggedTensor, weight: Any, bias: Any = None) -> JaggedTensor:
    """x @ weight.T + bias."""
    _last(input, "linear")
    return make(NF.linear(input._v, weight, bias), input._pattern, input._at)


@op("layer_norm")
def layer_norm(
    input: JaggedTensor,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> JaggedTensor:
    """Normalise the last dims."""
    _last(input, "layer_norm", len(normalized_shape))
    made = NF.layer_norm(input._v, normalized_shape, weight, bias, eps)
    return make(made, input._pattern, input._at)


@op("rms_norm")
def rms_norm(
    input: JaggedTensor, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> JaggedTensor:
    """Divide the last dims by the root of their mean square."""
    _last(input, "rms_norm", len(normalized_shape))
    made = NF.rms_norm(input._v, normalized_shape, weight, eps)
    return make(made, input._pattern, input._at)


@op("normalize")
def normalize(
    input: JaggedTensor, p: float = 2.0, dim: int = -1, eps: float = 1e-12
) -> JaggedTensor:
    """Divide by the norm along a dim other than the batch and the ragged one."""
    made = NF.normalize(input._v, p, inner(input, dim, "normalize"), eps)
    return make(made, input._pattern, input._at)


@op("embedding")
def embedding(input: JaggedTensor, weight: Any, *settings: Any, **named: Any) -> JaggedTensor:
    """Rows of a table for jagged indices."""
    if not isinstance(input, JaggedTensor):
        raise RuntimeError("embedding(): expected a NestedTensor of indices and a dense weight")
    return make(NF.embedding(input._v, weight, *settings, **named), input._pattern, input._at)


@op("matmul", "bmm", "mm")
def matmul(input: Any, other: Any) -> Any:
    """Products with a dense matrix, with a dense matrix per sequence, and of two jagged ones over their ragged dim."""
    a, b = input, other

    def refuse() -> RuntimeError:
        shapes = [tuple(x.shape) if isinstance(x, JaggedTensor) else x.shape for x in (a, b)]
        return RuntimeError(
            f"matmul(): not supported between inputs of shapes {shapes[0]} and {shapes[1]}"
        )

    if isinstance(a, JaggedTensor) and isinstance(b, JaggedTensor):
        same = a._pattern is b._pattern and a.ndim == b.ndim
        if same and a._at == a.ndim - 1 and b._at == b.ndim - 2:
            return to_padded_tensor(a, 0.0) @ to_padded_tensor(b, 0.0)
        if same and a._at == b._at < a.ndim - 2:
            return make(a._v @ b._v, a._pattern, a._at)
        raise refuse()
    if not isinstance(a, JaggedTensor):
        raise refuse()
    if a._at < a.ndim - 1 and b.ndim <= 2:
        return make(a._v @ b, a._pattern, a._at)
    if b.ndim == a.ndim and a._at == a.ndim - 2 and b.shape[0] in (1, len(a)):
        return from_padded(to_padded_tensor(a, 0.0) @ b, a)
    if b.ndim == a.ndim and a._at < a.ndim - 2 and b.shape[0] == b.shape[a._at] == 1:
        return make(a._v @ b.squeeze(0), a._pattern, a._at)
    raise refuse()


@op("rmatmul")
def rmatmul(self: Any, other: Any) -> Any:
    """other @ self."""
    return matmul(other, self)


def _rows_first(x: JaggedTensor) -> Any:
    """Return values (T, H, E) of a tensor (B, H, ragged, E) or (B, ragged, E)."""
    x = compact(x)
    return x._v.unsqueeze(1) if x.ndim == 3 else x._v.transpose(0, 1)


@op("scaled_dot_product_attention")
def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> JaggedTensor:
    """Attention within each sequence of (B, H, ragged, E) or (B, ragged, E), in one launch without dropout.

    Causal attention of other keys than there are queries, and dropout, take the sequences one by one.
    """
    named = {"query": query, "key": key, "value": value}
    if not all(isinstance(x, JaggedTensor) for x in named.values()):
        kinds = [f"{name}.is_nested: {isinstance(x, JaggedTensor)}" for name, x in named.items()]
        raise ValueError(
            f"Expected query, key, and value to all be nested tensors of jagged layout, but got {', '.join(kinds)}"
        )
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    if any(
        x.ndim not in (3, 4) or x._at != x.ndim - 2 or x.ndim != query.ndim for x in named.values()
    ):
        shapes = [tuple(x.shape) for x in named.values()]
        raise ValueError(
            f"scaled_dot_product_attention(): expected nested tensors of shapes (B, H, ragged, E), but got {shapes}"
        )
    if key._pattern is not value._pattern or len(key) != len(query):
        raise ValueError(
            "scaled_dot_product_attention(): expected key and value of the same sequence lengths, as many as queries"
        )
    q, k = query._pattern.packed, key._pattern.packed
    if dropout_p or (is_causal and q is not k):
        parts = zip(unbind(query), unbind(key), unbind(value), strict=True)
        made = [
            NF.scaled_dot_product_attention(
                a, b, c, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )
            for a, b, c in parts
        ]
        return make(stacked(made, query._at)._v, q, query._at)
    if not enable_gqa and query.ndim == 4 and not query.shape[1] == key.shape[1] == value.shape[1]:
        raise RuntimeError(
            f"scaled_dot_product_attention(): numbers of heads differ: {query.shape[1]}, {key.shape[1]}, {value.shape[1]}"
        )
    places = Places(q.edges, k.edges, None, q.longest, k.longest)
    window = (-1, 0) if is_causal else (-1, -1)
    rows, keys, values = (_rows_first(x) for x in (query, key, value))
    out, _ = attend(rows, keys, values, places, scale, window)
    return make(out.squeeze(1) if query.ndim == 3 else out.transpose(0, 1), q, query._at)
