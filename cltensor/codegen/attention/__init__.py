"""The attention family: softmax(q k^T * scale + mask) v and its gradients, tile by tile, without a matrix of scores.

Operands have three batch dims (stride 0 where broadcast), then rows and columns, of any strides. Owns the schedules, the
division into tasks and the scratch memory. A kernel's key is dtypes and kind of mask, never a size. Knows nothing of
tensors, of dropout or of the gradient of a mask.

The log-sum-exp that `forward` returns is +inf for rows whose keys are all masked, so that their probabilities are zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...layouts import contiguous_strides, numel
from ..operand import Operand
from ..products.product import WIDE, accumulator
from . import cpu, gpu
from .asked import Attention, Ragged, result_like, slope

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend


def takes(
    backend: Backend,
    dt: dtype,
    batch: tuple[int, ...],
    length: int,
    keys: int,
    width: int,
    depth: int,
) -> bool:
    """Return whether the kernels take these sizes; empty and very large ones are left to plain ops."""
    if len(batch) > 3 or not numel(batch) * length * keys * width * depth:
        return False
    if max(length, keys) >= 1 << 27 or max(width, depth) >= 1 << 16:
        return False
    return backend.info.kind == "cpu" or gpu.takes(backend, dt, width, depth)


def forward(
    backend: Backend,
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None,
    causal: bool,
    scale: float,
    as_queries: bool = False,
    *,
    schedule: str | None = None,
) -> tuple[Operand, Operand]:
    """Compute (out, lse) for q [B, B', B'', L, E], k [..., S, E], v [..., S, Ev], mask [..., L, S] (bool or float).

    `out` has q's dtype and is dense, in q's order of dims in memory with `as_queries`, else row-major. `lse`, the
    log-sum-exp of each row's scores, is dense and of the accumulator's dtype. `schedule` is "cpu" or "gpu"; by default
    the device decides.
    """
    by_threads = backend.info.kind == "cpu" if schedule is None else schedule == "cpu"
    out = result_like(backend, q, q.dtype, v.shape[-1], as_queries)
    wide = WIDE[accumulator(q.dtype)]
    shape = q.shape[:-1]
    lse = Operand(
        backend.alloc(numel(shape) * wide.itemsize), wide, shape, contiguous_strides(shape)
    )
    asked = Attention(q, k, v, mask, causal, scale)
    (cpu.forward if by_threads else gpu.forward)(backend, asked, out, lse.buffer)
    return out, lse


def forward_ragged(
    backend: Backend,
    q: Operand,
    k: Operand,
    v: Operand,
    ragged: Ragged,
    out: Operand,
    lse: Operand,
    scale: float,
    *,
    schedule: str | None = None,
) -> None:
    """Compute attention within each of many sequences into `out` and `lse`, which are zero where there is no query.

    q is [N, H, G, T, E], `out` [N, H, G, T, Ev], k [N, H, G, T', E], v [N, H, G, T', Ev]: N sequences (stride 0) of queries and keys,
    whose places among T and T' `ragged` has, G queries' heads to a head of keys. `lse` is dense [H, G, T].
    """
    by_threads = backend.info.kind == "cpu" if schedule is None else schedule == "cpu"
    asked = Attention(q, k, v, None, False, scale, ragged)
    (cpu.forward if by_threads else gpu.forward)(backend, asked, out, lse.buffer)


def backward_ragged(
    backend: Backend,
    q: Operand,
    k: Operand,
    v: Operand,
    ragged: Ragged,
    known: dict[str, Operand],
    made: tuple[Operand, Operand, Operand],
    scale: float,
    want_q: bool = True,
    want_k: bool = True,
    *,
    schedule: str | None = None,
) -> None:
    """Compute the gradients of q, k and v, of the accumulator's dtype, into `made`, which are zeros before.

    known: `g`, the gradient of `out`; `lse` and `delta` [N, H, G, T], as of `backward`.
    """
    by_threads = backend.info.kind == "cpu" if schedule is None else schedule == "cpu"
    asked = Attention(q, k, v, None, False, scale, ragged)
    (cpu.backward if by_threads else gpu.backward)(backend, asked, known, want_q, want_k, made)


def backward(
    backend: Backend,
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None,
    g: Operand,
    lse: Operand,
    delta: Operand,
    causal: bool,
    scale: float,
    want_q: bool = True,
    want_k: bool = True,
    *,
    schedule: str | None = None,
) -> tuple[Operand, Operand, Operand]:
    """Compute the gradients of q, k and v from `g`, the gradient of `out`, in the accumulator's dtype.

    The results have the joint batch dims, also those of operands that are broadcast. `lse` is what `forward`
    returned, `delta` [..., L] the sum of out * g along each row. The results for what is not wanted (`want_q`: q;
    `want_k`: k and v) are left uninitialised.
    """
    by_threads = backend.info.kind == "cpu" if schedule is None else schedule == "cpu"
    wide = WIDE[accumulator(q.dtype)]
    made = (
        slope(backend, q, wide, q.shape[-1], q.shape[:-2]),
        slope(backend, k, wide, k.shape[-1], q.shape[:-2]),
        slope(backend, v, wide, v.shape[-1], q.shape[:-2]),
    )
    asked = Attention(q, k, v, mask, causal, scale)
    known = {"g": g, "lse": lse, "delta": delta}
    (cpu.backward if by_threads else gpu.backward)(backend, asked, known, want_q, want_k, made)
    return made
