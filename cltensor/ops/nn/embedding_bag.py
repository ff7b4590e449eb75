"""Bags of rows of a table reduced to one row each, without materialising the rows that are read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.hooks import type_string
from ...codegen.index import bag as family
from ...errors import caller_level
from ...runtime import get_backend
from .. import core
from ..composite import settled
from ..core import Tensor
from ..replay import Replayed
from ..row import FUNCTIONS, public
from ..selection import where
from .embedding import renormalize, sparse_rows

_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_INDICES = (dtypes.int64, dtypes.int32)


def _check(
    weight: Tensor, indices: Tensor, offsets: Tensor, mode: int, scale: Tensor | None
) -> None:
    for t in (indices, offsets):
        if t.dtype not in _INDICES:
            raise _wrong_type("indices", "Long, Int", t)
        if t.ndim != 1:
            raise RuntimeError(
                f"embedding_bag: indices and offsets have to be 1-D, but got {t.ndim} dimensions"
            )
    if weight.dtype not in _FLOATS:
        raise _wrong_type("weight", "Half, BFloat16, Float, Double", weight)
    if mode not in (0, 1, 2):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if scale is not None:
        if mode:
            raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
        if scale.dtype is not weight.dtype:
            raise RuntimeError(
                "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but "
                f"type {type_string(weight)} does not equal {type_string(scale)} "
                "(while checking arguments for embedding_bag)"
            )
        if scale.ndim != 1 or scale.numel() != indices.numel():
            raise RuntimeError(
                "Expected per_sample_weights.value().numel() == indices.numel() to be true, but got false.  "
                "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
            )


def _wrong_type(name: str, allowed: str, t: Tensor) -> RuntimeError:
    return RuntimeError(
        f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: {allowed}; but got "
        f"{type_string(t)} instead (while checking arguments for embedding_bag)"
    )


def _by_weight(ctx: Any, g: Tensor) -> Tensor:
    shape, indices, bag_of, size = ctx.shapes[0], ctx.indices, ctx.offset2bag, ctx.bag_size
    if ctx.mode == 2:
        return g.new_zeros(shape).scatter_add_(
            0, ctx.maximum_indices, where((size > 0).unsqueeze(1), g, 0.0)
        )
    if ctx.mode == 1:
        g = g / size.clamp(min=1).unsqueeze(1)
    rows = g.index_select(0, bag_of)
    if ctx.per_sample_weights is not None:
        rows = rows * ctx.per_sample_weights.unsqueeze(1)
    if ctx.sparse:
        if ctx.scale_grad_by_freq:
            raise RuntimeError(
                "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
            )
        return sparse_rows(rows, indices, shape, ctx.padding_idx)
    if ctx.padding_idx >= 0:
        rows = where((indices == ctx.padding_idx).unsqueeze(1), 0.0, rows)
    if ctx.scale_grad_by_freq:
        used = g.new_zeros(shape[0]).index_add_(0, indices, g.new_ones(indices.numel()))
        rows = rows / used.index_select(0, indices).unsqueeze(1)
    return g.new_zeros(shape).index_add_(0, indices, rows)


def _by_scale(ctx: Any, g: Tensor) -> Tensor:
    rows = ctx.weight.index_select(0, ctx.indices)
    each = (g.index_select(0, ctx.offset2bag) * rows).sum(1)
    return each if ctx.padding_idx < 0 else where(ctx.indices == ctx.padding_idx, 0.0, each)


def _back(ctx: Any, g: Tensor, *_: Any) -> tuple:
    return (
        _by_weight(ctx, g) if ctx.needs[0] else None,
        _by_scale(ctx, g) if ctx.needs[1] else None,
    )


@public("embedding_bag", method=False)
def reduce_bags(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Reduce rows of `weight` (V, D) in bags of 1-D indices, each beginning at an offset; mode 0 sum, 1 mean, 2 max.

    Returns the rows (B, D), the bag of each index, the number of rows in each bag, and for max the row of each element. RuntimeError
    for indices and offsets out of range.
    """
    _check(weight, indices, offsets, mode, per_sample_weights)
    if include_last_offset:
        if not offsets.numel():
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        offsets = offsets[:-1]
    padding = -1 if padding_idx is None else _wrap(padding_idx, weight.shape[0])
    scale = per_sample_weights
    given = [weight, indices, offsets, *([] if scale is None else [scale])]
    out, size, bag_of, *most = _reduced([t.detach() for t in given], mode, padding)
    best = most[0] if most else size
    if not mode:
        size = best = FUNCTIONS["zeros_like"](size)
    if graph.needs_grad(weight, scale):
        saved = {
            "weight": weight if graph.needs_grad(scale) else None,
            "indices": indices,
            "offset2bag": bag_of,
            "bag_size": size,
            "maximum_indices": best,
            "per_sample_weights": scale,
            "mode": mode,
            "padding_idx": padding,
            "scale_grad_by_freq": scale_grad_by_freq,
            "sparse": sparse,
        }
        graph.record("EmbeddingBagBackward0", (weight, scale), out, _back, saved)
    return out, bag_of, size, best


@Replayed.of_memory
def _reduced(given: Sequence[Tensor], mode: int, padding: int) -> list[Tensor]:
    backend, dev = get_backend(given[0].device), given[0].device
    table, at, starts, *scale = map(core.kernel_operand, given)
    found = family.bags(
        backend, table, at, starts, family.KINDS[mode], padding, scale[0] if scale else None
    )
    return [core.result(x, dev) for x in found if x is not None]


def _wrap(padding_idx: int, rows: int) -> int:
    if not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
        )
    return padding_idx % rows


@Replayed.of_memory
def _starts(given: Sequence[Tensor]) -> list[Tensor]:
    """Return where each bag of a batch begins, all bags having one length."""
    (input,) = given
    bags, length = input.shape
    alike = {"dtype": input.dtype, "device": input.device}
    if not length:
        return settled([FUNCTIONS["zeros"](bags, **alike)])
    return settled([FUNCTIONS["arange"](0, bags * length, length, **alike)])


def _flattened(
    input: Tensor, offsets: Tensor | None, scale: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Turn a batch of bags of one length into indices and offsets."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                f"However, found offsets of type {type(offsets)}"
            )
        (starts,) = _starts((input,))
        return input.reshape(-1), starts, None if scale is None else scale.reshape(-1)
    if input.ndim != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, scale


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Reduce bags of rows of `weight` (V, D) to one row each; result (B, D).

    Of 2-D indices (B, L) each row is a bag; of 1-D indices a bag begins at each offset. mode: "sum" (optionally
    weighted by `per_sample_weights`), "mean", "max". An empty bag gives zeros; indices equal to `padding_idx` are left
    out.
    """
    if weight.dtype is dtypes.int64 and input.dtype.is_floating_point:
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. "
            "Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=caller_level(),
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim == 2:
        include_last_offset = False
    flat, starts, scale = _flattened(input, offsets, per_sample_weights)
    if mode not in family.KINDS:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        renormalize(weight, flat, max_norm, norm_type)
    if scale is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    return reduce_bags(
        weight, flat, starts, scale_grad_by_freq, family.KINDS.index(mode), sparse, scale,
        include_last_offset, padding_idx,
    )[0]  # fmt: skip
