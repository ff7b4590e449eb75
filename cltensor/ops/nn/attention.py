"""Attention: `scaled_dot_product_attention`. The multi-head form around it is in multihead.py.

Owns torch's checks, the choice between the tiled kernel (codegen/attention/, which never holds a matrix of scores) and
the composition of plain ops, and the node of the kernel's gradient. The composition is also what a second derivative,
dropout, the gradient of a mask and unusual shapes use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import dtypes, layouts
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...codegen import attention as kernels
from ...dtypes import C_NAMES
from ...runtime import get_backend
from ...size import Size
from ...storage import new_storage
from .. import core
from ..convert import wide
from ..core import Tensor
from ..kinds import Sizes
from ..operands import check_tensor
from ..refusals import no_kernel
from ..replay import Replayed
from ..row import FUNCTIONS
from . import dropout
from .softmax import softmax

NODE = "ScaledDotProductFlashAttentionForCpuBackward0"

# ------------------------------------------------------------------------------------------- attention


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute softmax(query @ key.T * scale + mask) @ value (Vaswani et al., arXiv 1706.03762).

    query is (..., Hq, L, E), key (..., H, S, E), value (..., H, S, Ev); the result is (..., Hq, L, Ev). A bool mask says what
    takes part, a float mask is added; both broadcast to (..., Hq, L, S). `is_causal` lets row i see the keys up to i.
    With `enable_gqa`, Hq / H neighbouring query heads share a head of key and value. A row that sees nothing gives zeros.
    RuntimeError in torch's words for dtypes, devices, ranks and sizes that do not fit.
    """
    _check(query, key, value, attn_mask, dropout_p)
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        )
    # Where torch's flash kernel would take the operands, the result is laid out as that kernel's is; else it is dense.
    lies = query.ndim == 4 and query.shape[-1] == value.shape[-1]
    lies = lies and query.stride(-1) == key.stride(-1) == value.stride(-1) == 1
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    if enable_gqa:
        _check_groups(query, key, value)
        if key.shape[-3] == value.shape[-3] != query.shape[-3]:
            return _grouped(query, key, value, attn_mask, dropout_p, is_causal, scale, lies)
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    return _attend(query, key, value, attn_mask, dropout_p, is_causal, scale, lies)


def _check(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float
) -> None:
    named = {"query": query, "key": key, "value": value}
    for position, (name, x) in enumerate(named.items()):
        check_tensor("scaled_dot_product_attention", name, position + 1, x)

    def told(what: str, values: list[Any]) -> str:
        q, k, v = values
        return f"query.{what}: {q} key.{what}: {k} and value.{what}: {v} instead."

    if not query.dtype is key.dtype is value.dtype:
        names = [C_NAMES[x.dtype.name] for x in named.values()]
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got {told('dtype', names)}"
        )
    if not query.device == key.device == value.device:
        places = [x.device for x in named.values()]
        raise RuntimeError(
            f"Expected query, key, and value to have the same device type, but got {told('device', places)}"
        )
    if min(x.ndim for x in named.values()) < 2:
        ranks = [x.ndim for x in named.values()]
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got {told('dim', ranks)}"
        )
    if mask is not None and mask.dtype not in (dtypes.bool, dtypes.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {C_NAMES[mask.dtype.name]} and  query.dtype: {C_NAMES[query.dtype.name]} instead."
        )
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    if query.dtype.category < 2:
        raise RuntimeError(f"expected scalar type Float but found {query.dtype.scalar_name}")
    if query.dtype.category > 2:
        raise no_kernel("softmax_lastdim_kernel_impl", query.dtype)


def _check_groups(query: Tensor, key: Tensor, value: Tensor) -> None:
    if any(
        x.ndim < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3] for x in (query, key, value)
    ):
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query"
        )


def _grouped(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    causal: bool,
    scale: float,
    as_query: bool,
) -> Tensor:
    """Return the attention of groups of query heads, along whose new dim a head of key and value broadcasts."""
    heads, groups = key.shape[-3], query.shape[-3] // key.shape[-3]
    if mask is not None and mask.ndim > 2:
        mask = mask.unsqueeze(-3) if mask.shape[-3] == 1 else mask.unflatten(-3, (heads, groups))
    out = _attend(
        query.unflatten(-3, (heads, groups)),
        key.unsqueeze(-3),
        value.unsqueeze(-3),
        mask,
        dropout_p,
        causal,
        scale,
        as_query,
    )
    return out.flatten(-4, -3)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    causal: bool,
    scale: float,
    as_query: bool,
) -> Tensor:
    shapes = _shapes(query, key, value, mask)
    plain = dropout_p == 0 and not (mask is not None and graph.needs_grad(mask))
    if plain and shapes is not None:
        backend = get_backend(query.device)
        if kernels.takes(backend, query.dtype, *shapes):
            return _fused(query, key, value, mask, causal, scale, shapes, as_query)
    return _composed(query, key, value, mask, dropout_p, causal, scale)


def _shapes(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[tuple[int, ...], int, int, int, int] | None:
    """Return the broadcast batch dims and L, S, E, Ev; None if sizes do not fit, for which the composition raises."""
    (length, width), (keys, depth) = query.shape[-2:], value.shape[-2:]
    if key.shape[-2:] != (keys, width):
        return None
    batches = [x.shape[:-2] for x in (query, key, value)]
    try:
        joint = tuple(layouts.broadcast_shapes(*batches))
        if mask is not None:
            full = (*joint, length, keys)
            if tuple(layouts.broadcast_shapes(mask.shape, full)) != full:
                return None
    except RuntimeError:
        return None
    return joint, length, keys, width, depth


def composed_weights(
    query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> Tensor:
    """Return the probabilities (..., L, S) by plain ops; rows that see nothing are zero."""
    scores = (query * scale) @ key.transpose(-2, -1)
    if mask is not None:
        if mask.dtype is dtypes.bool:
            scores = scores.masked_fill(mask.logical_not(), -math.inf)
        else:
            scores = scores + mask.to(scores.dtype)
    if causal:
        seen = FUNCTIONS["ones"](scores.shape[-2:], dtype=dtypes.bool, device=scores.device).tril()
        scores = scores.masked_fill(seen.logical_not(), -math.inf)
    if mask is None or not scores.shape[-1]:
        return softmax(scores, -1)
    dead = (scores.detach() == -math.inf).all(-1, True)
    return softmax(scores.masked_fill(dead, 0), -1).masked_fill(dead, 0)


def _composed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    causal: bool,
    scale: float,
) -> Tensor:
    weights = composed_weights(wide(query), wide(key), mask, causal, scale)
    if dropout_p:
        weights = dropout.apply(weights, dropout_p, True, False)
    return (weights @ wide(value)).to(query.dtype)


# ------------------------------------------------------------------------------------------- the kernel


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    shapes: tuple,
    as_query: bool,
) -> Tensor:
    operands = [query, key, value]
    if mask is not None:
        operands.append(mask)
    result, lse = _attended(operands, causal, scale, Sizes(shapes), as_query)
    if graph.needs_grad(query, key, value):
        saved = {"query": query, "key": key, "value": value, "attn_mask": mask, "output": result}
        saved |= {"logsumexp": lse}
        saved |= {"is_causal": causal, "scale": scale, "joint": shapes}
        graph.record(NODE, (query, key, value), result, _back, saved)
    return result


@Replayed.of_memory
def _attended(
    operands: Sequence[Tensor], causal: bool, scale: float, shapes: tuple, as_query: bool
) -> list[Tensor]:
    """Return the result and, for each row, the logarithm of the sum of exponentials of its scores."""
    batch, length, _, _, depth = shapes
    query, key, value, *mask = operands
    q, k, v, seen = _operands(query, key, value, mask[0] if mask else None, shapes)
    out, lse = kernels.forward(get_backend(query.device), q, k, v, seen, causal, scale, as_query)
    return [
        _tensor(out, (*batch, length, depth), query.device),
        _tensor(lse, (*batch, length), query.device),
    ]


def _operands(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, shapes: tuple
) -> list[Any]:
    """Expand to three batch dims and describe the memory of each to the kernel."""
    batch, length, keys, width, depth = shapes
    ones = (1,) * (3 - len(batch))

    def side(x: Tensor | None, rows: int, cols: int) -> Any:
        if x is None:
            return None
        wide = x.detach().expand(*ones, *batch, rows, cols)
        return core.kernel_operand(wide)

    return [
        side(query, length, width),
        side(key, keys, width),
        side(value, keys, depth),
        side(mask, length, keys),
    ]


def _tensor(op: Any, shape: tuple[int, ...], dev: Any) -> Tensor:
    """Wrap a result of the kernel, dense in some order of its dims, without the batch dims that were added."""
    backend = get_backend(dev)
    strides = op.strides[len(op.shape) - len(shape) :]
    storage = new_storage(backend, op.buffer, layouts.numel(shape) * op.dtype.itemsize)
    return core.make(storage, Size(shape), op.dtype, dev, strides)


def _back(ctx: Any, g: Tensor) -> tuple:
    q, k, v, mask = ctx.query, ctx.key, ctx.value, ctx.attn_mask
    if graph.needs_grad(q, k, v, g):
        return composed_gradients(q, k, v, mask, ctx.is_causal, ctx.scale, g)
    operands = [g, ctx.output, ctx.logsumexp, q, k, v]
    if mask is not None:
        operands.append(mask)
    return tuple(_sloped(operands, ctx.is_causal, ctx.scale, Sizes(ctx.joint), ctx.needs[:3]))


@Replayed.of_memory
def _sloped(
    operands: Sequence[Tensor], causal: bool, scale: float, shapes: tuple, needs: tuple[bool, ...]
) -> list[Tensor | None]:
    """Return the gradients for query, key and value; None for those not needed."""
    with unrecorded():
        g, out, lse, query, key, value, *mask = [x.detach() for x in operands]
        delta = (wide(g) * wide(out)).sum(-1)
    batch, length, keys, width, depth = shapes
    q, k, v, seen = _operands(query, key, value, mask[0] if mask else None, shapes)
    ones = (1,) * (3 - len(batch))
    sums, means = (core.kernel_operand(x.expand(*ones, *batch, length)) for x in (lse, delta))
    grad = core.kernel_operand(g.expand(*ones, *batch, length, depth))
    found = kernels.backward(
        get_backend(g.device), q, k, v, seen, grad, sums, means, causal, scale, needs[0], needs[1] or needs[2]
    )  # fmt: skip
    sizes = ((length, width), (keys, width), (keys, depth))
    return [
        _tensor(op, (*batch, *size), g.device) if need else None
        for op, size, need in zip(found, sizes, needs, strict=True)
    ]


def composed_gradients(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float, g: Tensor
) -> tuple:
    """Return the gradients by plain ops, so that they can be differentiated again."""
    q, k, v, g = (wide(x) for x in (q, k, v, g))
    weights = composed_weights(q, k, mask, causal, scale)
    along = g @ v.transpose(-2, -1)
    slope = weights * (along - (along * weights).sum(-1, True)) * scale
    return slope @ k, slope.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ g
