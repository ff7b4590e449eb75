"""Rows of a table by index, and the gradient: for each row the sum of the gradients of all its uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.hooks import type_string
from ...autograd.mode import unrecorded
from ...codegen.index import lookup as kernels
from .. import core
from ..changes import backend_of, like
from ..composite import in_one
from ..core import Tensor
from ..elsewhere import elsewhere
from ..operands import check_tensors
from ..replay import Replayed
from ..row import FUNCTIONS, public
from ..selection import where


def _rows(weight: Tensor, indices: Tensor) -> Tensor:
    """Return the rows of a table (V, D) at indices of any shape (…), without a grad node: (…, D)."""
    index = like(indices, weight)
    if not index.is_contiguous():
        index = index.contiguous()
    return _taken((weight, index))[0]


@Replayed.of_memory
def _taken(operands: Sequence[Tensor]) -> list[Tensor]:
    weight, index = operands
    flat = core.kernel_operand(index)._replace(shape=(index.numel(),), strides=(1,))
    table = core.kernel_operand(weight)
    found = kernels.index_select(backend_of(weight), table, 0, flat, describe=_out_of_range)
    shape = (*index.shape, table.shape[1])
    return [core.result(found._replace(shape=shape), weight.device)]


def _out_of_range(value: int, ordinal: int) -> Exception:
    return IndexError("index out of range in self")


def sparse_rows(rows: Tensor, flat: Tensor, shape: tuple[int, ...], padding: int) -> Tensor:
    """Return the gradient of a table as a sparse tensor of the rows that were used, without the padding row."""
    # Copied (or selected from), since the caller may write to the indices before an optimiser's step.
    flat = flat.to(dtypes.int64, copy=padding < 0)
    if padding >= 0:
        kept = (flat != padding).nonzero().reshape(-1)
        flat, rows = flat.index_select(0, kept), rows.index_select(0, kept)
    return elsewhere("sparse rows", (rows, flat, shape))


def _back(ctx: Any, g: Tensor) -> tuple:
    shape, indices = tuple(ctx.shapes[0]), ctx.indices
    if not ctx.sparse:
        return tuple(_table((g, indices), shape, ctx.padding_idx, ctx.scale_grad_by_freq))
    if ctx.scale_grad_by_freq:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
        )
    flat = indices.reshape(-1)
    return (sparse_rows(g.reshape(flat.numel(), shape[1]), flat, shape, ctx.padding_idx),)


@in_one
def _table(
    given: Sequence[Tensor], shape: tuple[int, int], padding: int, by_frequency: bool
) -> tuple[Tensor]:
    """Return the gradient of a table. given: the gradient of the rows that were looked up, and the indices."""
    g, indices = given
    flat = indices.reshape(-1)
    rows = g.reshape(flat.numel(), shape[1])
    if padding >= 0:
        rows = where((flat == padding).unsqueeze(1), 0.0, rows)
    if by_frequency:
        used = rows.new_zeros(shape[0]).index_add_(0, flat, rows.new_ones(flat.numel()))
        rows = rows / used.index_select(0, flat).unsqueeze(1)
    return (rows.new_zeros(shape).index_add(0, flat, rows),)


@public(method=False)
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look up rows of `weight` (V, D) by int32 or int64 indices of any shape (…); result (…, D).

    `sparse`: the gradient of `weight` is a sparse tensor of the rows that were used.
    """
    try:
        ndim, kind = weight.ndim, indices.dtype
    except AttributeError:
        check_tensors("embedding", ("weight", "indices"), weight, indices)
        raise
    if ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if kind is not dtypes.int64 and kind is not dtypes.int32:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{type_string(indices)} instead (while checking arguments for embedding)"
        )
    out = _rows(weight, indices)
    if graph.needs_grad(weight):
        saved = {
            "indices": indices,
            "padding_idx": padding_idx,
            "scale_grad_by_freq": scale_grad_by_freq,
            "sparse": sparse,
        }
        graph.record("EmbeddingBackward0", (weight,), out, _back, saved, _push)
    return out


def _push(ctx: Any, out: Tensor, weight: Tensor) -> Tensor:
    return embedding(weight, ctx.indices)


def renormalize(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the used rows of the table down, in place, so that no norm exceeds `max_norm`."""
    with unrecorded():
        flat = indices.reshape(-1).long()
        rows = _rows(weight, flat)
        norms = FUNCTIONS["norm"](rows, norm_type, 1, True)
        weight.index_copy_(0, flat, rows * where(norms > max_norm, max_norm / (norms + 1e-7), 1.0))
