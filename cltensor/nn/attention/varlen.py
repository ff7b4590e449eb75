"""`torch.nn.attention.varlen`: attention within sequences of different lengths, which follow each other in one tensor.

torch has it on CUDA only. Owns torch's arguments and paged keys; ops/nn/varlen.py computes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import creation, dtypes
from ...autograd import record as graph
from ...ops.nn.varlen import Places, attend
from ...tensor import Tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` is to return beside its output: `lse`, the logarithms of sums of exponentials of scores."""

    lse: bool = False


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """Compute softmax(q @ k.T * scale) @ v within each of N sequences, in one launch.

    query is (T_q, H_q, D), key and value (T_k, H_kv, D). Sequence i has the queries from cu_seq_q[i] to cu_seq_q[i + 1] and the keys of
    cu_seq_k alike (int32); `max_q` and `max_k` are the greatest lengths. The last query of a sequence is aligned with its
    last key, and window_size says how many keys before and behind a query's place it sees (-1: all), so (-1, 0) is causal. With
    `enable_gqa`, H_q / H_kv neighbouring query heads share a head of key and value.

    seqused_k (N,): how many keys of each sequence take part. block_table (N, pages): the pages of each sequence's keys in
    key and value (all pages, page size, H_kv, D). Both are for inference only. num_splits: of no effect, as results never depend on it.

    Returns the output (T_q, H_q, D); with return_aux.lse also the log-sum-exp of scores (H_q, T_q). Rows of no sequence are zero.
    ValueError for numbers of heads that do not fit; RuntimeError for dtypes and sizes that do not.
    """
    heads, shared = query.size(1), key.size(2 if block_table is not None else 1)
    if not enable_gqa and heads != shared:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={shared}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % shared:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={shared}."
        )
    if len(window_size) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window_size)}")
    if graph.needs_grad(query, key, value):
        for name, given in (("seqused_k", seqused_k), ("block_table", block_table)):
            if given is not None:
                raise RuntimeError(f"{name} is an inference-only parameter.")
    if block_table is not None:
        if seqused_k is None:
            raise RuntimeError("varlen_attn(): block_table needs seqused_k")
        key, value, cu_seq_k = _gathered(key, value, block_table)
        max_k = min(max_k, cu_seq_k.numel() and key.shape[0])
    if cu_seq_k is None:
        raise RuntimeError("varlen_attn(): cu_seq_k must be given unless block_table is")
    places = Places(cu_seq_q, cu_seq_k, seqused_k, max_q, max_k)
    window = (int(window_size[0]), int(window_size[1]))
    both = return_aux is not None and return_aux.lse
    out, lse = attend(query, key, value, places, scale, window, both)
    return (out, lse) if both else out


def _gathered(key: Tensor, value: Tensor, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Copy each sequence's pages behind each other; return keys, values and where each sequence begins."""
    count, pages = table.shape
    rows = table.reshape(-1).to(dtypes.int64).clamp(0, max(key.shape[0] - 1, 0))
    each = pages * key.shape[1]
    edges = creation.arange(0, (count + 1) * each, max(each, 1), dtype=dtypes.int32)
    keys, values = (x.index_select(0, rows).flatten(0, 1) for x in (key, value))
    return keys, values, edges[: count + 1].to(key.device)


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    **settings: Any,
) -> Any:
    """Write what `varlen_attn` computes to `out`, and return it (with the log-sum-exp, if asked for)."""
    aux = AuxRequest(lse=True)
    made, lse = varlen_attn(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, return_aux=aux, **settings
    )
    out.copy_(made)
    return (out, lse) if return_aux is not None and return_aux.lse else out
