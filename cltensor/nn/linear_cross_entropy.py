"""`linear_cross_entropy`: a linear map and the cross entropy of its result, for chunks of the batch if memory is short.

Owns the checks and the chunks; the linear map and the cross entropy are functions of their own elsewhere.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .. import dtypes
from ..ops.matmul import linear
from ..ops.nn.losses import cross_entropy
from ..ops.row import FUNCTIONS
from ..tensor import Tensor

if TYPE_CHECKING:
    from .modules.linear_cross_entropy_options import LinearCrossEntropyOptions

__all__ = ["linear_cross_entropy"]

_IGNORED = -100


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
) -> Tensor:  # fmt: skip
    """Cross entropy of `linear(input, linear_weight, linear_bias)`: input (N, D) or (D), linear_weight (C, ..., D).

    With options, pieces of the batch are computed one after another and their logits are not kept.
    """
    _check(input, linear_weight, linear_bias)
    shape = tuple(linear_weight.shape[:-1])
    if tuple(target.shape) == (*input.shape[:-1], *shape) and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = _IGNORED if ignore_index is None else ignore_index
    if options is not None and _in_pieces(reduction, label_smoothing, target, shape[1:]):
        return _pieces(
            input, linear_weight, target, linear_bias, weight, reduction, ignored, options
        )
    return cross_entropy(
        _logits(input, linear_weight, linear_bias),
        target,
        weight,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _logits(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    flat = weight.reshape(-1, weight.shape[-1])
    out = linear(input, flat, None if bias is None else bias.reshape(-1))
    return out if weight.ndim == 2 else out.reshape((*input.shape[:-1], *weight.shape[:-1]))


def _check(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if weight.ndim < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.ndim}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}"
        )
    if weight.ndim > 2 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires batched input, (N, {input.shape[-1]}), got unbatched"
            f" input with shape {tuple(input.shape)}"
        )


def _in_pieces(reduction: str, smoothing: float, target: Tensor, extra: tuple[int, ...]) -> bool:
    known = reduction in ("mean", "sum", "none")
    if known and smoothing == 0.0 and target.dtype is dtypes.int64 and not extra:
        return True
    warnings.warn(
        "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, label_smoothing == 0, target.dtype"
        f" == int64, out_features == (). Got reduction={reduction!r}, label_smoothing={smoothing}, target.dtype={target.dtype}, "
        f"out_features={extra}.",
        stacklevel=3,
    )
    return False


def _pieces(
    input: Tensor, linear_weight: Tensor, target: Tensor, bias: Tensor | None,
    weight: Tensor | None, reduction: str, ignored: int, options: LinearCrossEntropyOptions,
) -> Tensor:  # fmt: skip
    from ..utils.checkpoint import checkpoint  # it needs modules, which need this

    single = input.ndim == 1
    x, y = (input.unsqueeze(0), target.unsqueeze(0)) if single else (input, target)
    inner = "none" if reduction == "none" else "sum"

    def piece(rows: Tensor, classes: Tensor) -> Tensor:
        logits = linear(rows, linear_weight, bias)
        return cross_entropy(logits, classes, weight, ignore_index=ignored, reduction=inner)

    size = options.rows(x.shape[0], x.shape[1], linear_weight.shape[0])
    losses = [
        checkpoint(piece, x[i : i + size], y[i : i + size], use_reentrant=False)
        for i in range(0, max(x.shape[0], 1), size)
    ]
    if reduction == "none":
        each = FUNCTIONS["cat"](losses)
        return each.squeeze(0) if single else each
    total = sum(losses[1:], losses[0])
    if reduction == "sum":
        return total
    counted = y != ignored
    if weight is None:
        return total / counted.sum()
    return total / weight[y.masked_fill(~counted, 0)].masked_fill(~counted, 0).sum()
