"""Attention within each of many sequences that follow each other in memory: `varlen_attn` of torch.nn.attention.varlen.

One launch computes all sequences (codegen/attention/, `Ragged`): nothing is padded, and there is no matrix of scores. Plain
ops over a mask of sequences take second derivatives, and sizes that the kernels do not take. Owns the checks of operands
and the node of the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import dtypes
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...codegen import attention as kernels
from ...codegen.attention.asked import Ragged
from ...runtime import get_backend
from .. import core
from ..convert import wide
from ..core import Tensor
from ..kinds import Sizes
from ..replay import Replayed
from ..row import FUNCTIONS
from .attention import composed_gradients, composed_weights

NODE = "VarlenAttnBackward0"


class Places(NamedTuple):
    """Where sequences are: int32 offsets [N + 1] of queries and of keys, how many keys of each are used (None: all), and
    the lengths of the longest."""

    q_edges: Tensor
    k_edges: Tensor
    used: Tensor | None
    queries: int
    keys: int

    @property
    def tensors(self) -> list[Tensor]:
        return [self.q_edges, self.k_edges, *([] if self.used is None else [self.used])]


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    places: Places,
    scale: float | None = None,
    window: tuple[int, int] = (-1, -1),
    sums: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the attention (T, H, Ev) of queries (T, H, E) to keys (T', H', E) and values (T', H', Ev) of the same
    sequence, and each row's log-sum-exp (H, T).

    The last query of a sequence is aligned with its last key; the window says how many keys before and behind its
    place a query sees, -1 for all. H is a multiple of H'. Rows of no sequence, and those that see nothing, are zero;
    the log-sum-exp of rows of no sequence is zero with `sums`, else uninitialised.
    """
    _check(query, key, value, places)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    left, right = (max(int(w), -1) for w in window)
    places = places._replace(
        queries=min(max(int(places.queries), 0), query.shape[0]),
        keys=min(max(int(places.keys), 0), key.shape[0]),
    )
    with unrecorded():
        out, lse = _forward(query, key, value, places, scale, (left, right), sums)
    if graph.needs_grad(query, key, value):
        saved = {"query": query, "key": key, "value": value, "output": out, "logsumexp": lse}
        saved |= {"places": places, "scale": scale, "window": (left, right)}
        graph.record(NODE, (query, key, value), out, _back, saved)
    return out, lse


def _check(query: Tensor, key: Tensor, value: Tensor, places: Places) -> None:
    named = {"query": query, "key": key, "value": value}
    for name, x in named.items():
        if x.ndim != 3:
            raise RuntimeError(
                f"varlen_attn(): {name} must have shape (total, heads, head_dim), but got {list(x.shape)}"
            )
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            "varlen_attn(): query, key, and value must have the same dtype, but got "
            f"{query.dtype}, {key.dtype} and {value.dtype}"
        )
    if query.dtype.category != 2:
        raise RuntimeError(
            f"varlen_attn(): expected floating point operands, but got {query.dtype}"
        )
    core.common_device((query, key, value, *places.tensors))
    (_, heads, width), (rows, shared, _) = query.shape, value.shape
    if key.shape != (rows, shared, width) or (shared and heads % shared):
        raise RuntimeError(
            f"varlen_attn(): sizes do not fit: query {list(query.shape)}, key {list(key.shape)}, value {list(value.shape)}"
        )
    for name, x in zip(("cu_seq_q", "cu_seq_k", "seqused_k"), places.tensors, strict=False):
        if x.dtype is not dtypes.int32:
            raise RuntimeError(f"varlen_attn(): {name} must have dtype int32, but got {x.dtype}")
        if x.ndim != 1:
            raise RuntimeError(f"varlen_attn(): {name} must have one dim, but got {list(x.shape)}")
    count = places.q_edges.shape[0] - 1
    fits = count >= 0 and places.k_edges.shape[0] == count + 1
    if not fits or (places.used is not None and places.used.shape[0] != count):
        raise RuntimeError(
            "varlen_attn(): cu_seq_q and cu_seq_k must have one element more than there are sequences, and seqused_k as many as "
            f"there are, but got {[x.shape[0] for x in places.tensors]}"
        )


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    places: Places,
    scale: float,
    window: tuple[int, int],
    sums: bool,
) -> tuple[Tensor, Tensor]:
    (total, heads, _), depth = query.shape, value.shape[-1]
    zeros = FUNCTIONS["zeros"]
    if not _takes(query, value, places):
        return _composed(query, key, value, places, scale, window)
    out = zeros(total, heads, depth, dtype=query.dtype, device=query.device)
    lse = FUNCTIONS["zeros" if sums else "empty"](
        heads, total, dtype=wide(query[:0]).dtype, device=query.device
    )
    operands = [out, lse, query.detach(), key.detach(), value.detach(), *places.tensors]
    _attended(operands, scale, *window, Sizes((places.queries, places.keys)))
    return out, lse


def _takes(query: Tensor, value: Tensor, places: Places) -> bool:
    backend = get_backend(query.device)
    batch = (places.q_edges.shape[0] - 1, *query.shape[1:2])
    sizes = (max(query.shape[0], 1), value.shape[0], query.shape[2], value.shape[2])
    longest = places.queries * places.keys > 0
    return longest and kernels.takes(backend, query.dtype, batch, *sizes)


@Replayed.of_memory
def _attended(
    operands: Sequence[Tensor], scale: float, left: int, right: int, longest: tuple[int, int]
) -> list[Tensor]:
    out, lse, query, key, value, *edges = operands
    count, shared = edges[0].shape[0] - 1, key.shape[1]
    ragged = _ragged(edges, left, right, longest)
    q, k, v, made = (_heads(x, count, shared, query.shape[1]) for x in (query, key, value, out))
    sums = core.kernel_operand(lse)
    kernels.forward_ragged(get_backend(out.device), q, k, v, ragged, made, sums, scale)
    return []


def _ragged(edges: Sequence[Tensor], left: int, right: int, longest: tuple[int, int]) -> Ragged:
    q_edges, k_edges, *used = (core.kernel_operand(x) for x in edges)
    return Ragged(q_edges, k_edges, used[0] if used else None, *longest, left, right)


def _heads(x: Tensor, count: int, shared: int, heads: int) -> Any:
    """Describe (T, heads, E), or (T, shared, E) to be read by groups of heads, as [sequences, shared, groups, T, E]."""
    op = core.kernel_operand(x)
    (rows, own, cols), (row, head, col) = op.shape, op.strides
    groups = heads // shared
    inner = head if own == heads else 0
    return op._replace(
        shape=(count, shared, groups, rows, cols),
        strides=(0, head * groups if own == heads else head, inner, row, col),
    )


def _rows(x: Tensor, count: int, shared: int) -> Any:
    """Describe numbers of rows (heads, T) as [sequences, shared, groups, T]."""
    op = core.kernel_operand(x)
    (heads, rows), (head, row) = op.shape, op.strides
    groups = heads // shared
    return op._replace(shape=(count, shared, groups, rows), strides=(0, head * groups, head, row))


def _back(ctx: Any, g: Tensor) -> tuple:
    query, key, value, places = ctx.query, ctx.key, ctx.value, ctx.places
    if graph.needs_grad(query, key, value, g) or not _takes(query, value, places):
        seen = _seen(query, key, places, ctx.window)
        q, k, v, slope = (_by_heads(x, query.shape[1]) for x in (query, key, value, g))
        found = composed_gradients(q, k, v, seen, False, ctx.scale, slope)
        return tuple(
            _of_groups(x.transpose(0, 1), like)
            for x, like in zip(found, (query, key, value), strict=True)
        )
    delta = (wide(g) * wide(ctx.output)).sum(-1).t()
    zeros = FUNCTIONS["zeros"]
    heads, acc = query.shape[1], ctx.logsumexp.dtype
    made = [
        zeros(x.shape[0], heads, x.shape[2], dtype=acc, device=x.device)
        for x in (query, key, value)
    ]
    operands = [*made, g, ctx.logsumexp, delta, query, key, value, *places.tensors]
    needs = ctx.needs[0], ctx.needs[1] or ctx.needs[2]
    longest = Sizes((places.queries, places.keys))
    _sloped([x.detach() for x in operands], ctx.scale, *ctx.window, longest, *needs)
    return tuple(
        _of_groups(x, like) if need else None
        for x, like, need in zip(made, (query, key, value), ctx.needs[:3], strict=True)
    )


@Replayed.of_memory
def _sloped(
    operands: Sequence[Tensor],
    scale: float,
    left: int,
    right: int,
    longest: tuple[int, int],
    want_q: bool,
    want_k: bool,
) -> list[Tensor]:
    made, (g, lse, delta, query, key, value, *edges) = operands[:3], operands[3:]
    count, shared, heads = edges[0].shape[0] - 1, key.shape[1], query.shape[1]
    q, k, v, slope = (_heads(x, count, shared, heads) for x in (query, key, value, g))
    known = {"g": slope, "lse": _rows(lse, count, shared), "delta": _rows(delta, count, shared)}
    dq, dk, dv = (_heads(x, count, shared, heads) for x in made)
    ragged = _ragged(edges, left, right, longest)
    backend = get_backend(g.device)
    kernels.backward_ragged(backend, q, k, v, ragged, known, (dq, dk, dv), scale, want_q, want_k)
    return []


def _of_groups(x: Tensor, like: Tensor) -> Tensor:
    """Sum a gradient (T, heads, E) over the heads that share a head of `like`."""
    shared = like.shape[1]
    return x if x.shape[1] == shared else x.unflatten(1, (shared, -1)).sum(2)


# ------------------------------------------------------------------------------------------- plain ops


def _by_heads(x: Tensor, heads: int) -> Tensor:
    """Return (T, heads or shared, E) as (heads, T, E)."""
    if x.shape[1] != heads:
        x = x.repeat_interleave(heads // x.shape[1], 1)
    return x.transpose(0, 1)


def _seen(query: Tensor, key: Tensor, places: Places, window: tuple[int, int]) -> Tensor:
    """Return which keys (T, T') each query sees."""
    q_edges, k_edges = (x.to(dtypes.int64) for x in places.tensors[:2])
    rows = FUNCTIONS["arange"](query.shape[0], device=query.device).unsqueeze(1)
    cols = FUNCTIONS["arange"](key.shape[0], device=query.device).unsqueeze(0)
    seen = FUNCTIONS["zeros"](query.shape[0], key.shape[0], dtype=dtypes.bool, device=query.device)
    for i in range(q_edges.shape[0] - 1):
        first, end, begin = q_edges[i], q_edges[i + 1], k_edges[i]
        keys = (k_edges[i + 1] - begin).clamp(0, places.keys)
        if places.used is not None:
            keys = keys.minimum(places.used[i])
        queries = (end - first).clamp(0, places.queries)
        at = cols - begin - (rows - first) - (keys - queries)
        own = (rows >= first) & (rows < first + queries) & (cols >= begin) & (cols < begin + keys)
        if window[0] >= 0:
            own = own & (at >= -window[0])
        if window[1] >= 0:
            own = own & (at <= window[1])
        seen = seen | own
    return seen


def _composed(
    query: Tensor, key: Tensor, value: Tensor, places: Places, scale: float, window: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    seen = _seen(query, key, places, window)
    q, k, v = (wide(_by_heads(x, query.shape[1])) for x in (query, key, value))
    out = (composed_weights(q, k, seen, False, scale) @ v).transpose(0, 1).to(query.dtype)
    scores = ((q * scale) @ k.transpose(-2, -1)).masked_fill(~seen, -math.inf)
    lse = scores.logsumexp(-1) if key.shape[0] else scores.new_zeros(scores.shape[:-1])
    return out, lse.masked_fill(~seen.any(-1), math.inf)
