"""The native functions of `layer_norm`, `dropout` and similar ones, which also return what torch saves for backward.

Owns their forms of arguments and results. What is computed is the plain functions'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..dtypes import dtype
from .convert import wide
from .core import Tensor
from .dims import one_dim
from .nn.normalization import batch_parts, group_parts, layer_parts
from .nn.normalized import statistics
from .nn.softmax import log_softmax, softmax, softmax_back
from .random.draws import keep_mask
from .row import FUNCTIONS, operator, public
from .values import into


@public(method=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return `layer_norm`, the mean and the reciprocal deviation."""
    out, mean, _, rstd = layer_parts(input, normalized_shape, weight, bias, eps)
    kind = input.dtype if weight is None else weight.dtype
    shape = [*input.shape[: input.ndim - len(normalized_shape)], *[1] * len(normalized_shape)]
    return out, mean.to(kind).reshape(shape), rstd.to(kind).reshape(shape)


@public(method=False)
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return `group_norm` of N samples of C channels of HxW numbers, the mean and the reciprocal deviation of each group."""
    out, mean, _, rstd = group_parts(input.reshape(N, C, HxW), group, weight, bias, eps)
    # Mean and deviation are differentiable here, unlike those of the other norms.
    if graph.needs_grad(input):
        numbers = wide(input).reshape(N, group, C // group * HxW)
        mean, _, rstd = statistics(numbers, (2,), eps)
    kind = input.dtype if weight is None else weight.dtype
    stats = [v.to(kind).reshape(N, group) for v in (mean, rstd)]
    return out.reshape(input.shape), stats[0], stats[1]


@public(method=False)
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, *, out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return `batch_norm`, and in training the mean and the reciprocal deviation of each channel; else empty tensors."""
    parts = batch_parts(input, running_mean, running_var, weight, bias, training, momentum, eps)
    given = [t.dtype for t in (weight, running_mean) if t is not None]
    kind = given[0] if given else input.dtype
    if len(parts) == 1:
        found = (parts[0], *[input.new_empty(0, dtype=kind) for _ in range(2)])
    else:
        value, mean, _, rstd = parts
        found = (value, mean.reshape(-1).to(kind), rstd.reshape(-1).to(kind))
    if out is None:
        return found
    return tuple(
        [into(v, o, "native_batch_norm", (input,)) for v, o in zip(found, out, strict=True)]
    )


@public(method=False)
def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any, out: Sequence[Tensor] | None = None, **named: Any
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return `native_batch_norm`: of running_mean, running_var, training, momentum and eps, or of the last three alone."""
    if len(rest) + len(named) == 3:
        rest = (None, None, *rest)
    return native_batch_norm(input, weight, bias, *rest, out=out, **named)


@operator()
def _batch_norm_with_update(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: float, eps: float
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return `native_batch_norm` in training, and an empty tensor for what other devices reserve for backward."""
    found = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*found, input.new_empty(0, dtype=dtypes.uint8))


def _dropout_back(ctx: Any, g: Tensor) -> Tensor:
    return g * ctx.result1 * ctx.scale


@public(method=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return the input with dropped elements zeroed and the others scaled, and the mask of kept elements."""
    if train is False or not input.numel():
        return input.clone(), FUNCTIONS["ones_like"](input, dtype=dtypes.bool)
    with unrecorded():
        shape = tuple(input.shape)
        keep = (
            input.new_full(shape, p == 0, dtype=dtypes.bool)
            if p in (0, 1)
            else keep_mask(shape, 1 - p, input.device)
        )
        keep = keep.to(dtypes.bool)
        scale = 0.0 if p == 1 else 1 / (1 - p)
        out = input * keep * scale
    if graph.needs_grad(input):
        graph.record(
            "NativeDropoutBackward0",
            (input,),
            out,
            _dropout_back,
            {"result1": keep, "scale": scale},
        )
    return out, keep


@operator()
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Return the gradient of `native_dropout`'s elements that are kept."""
    return grad_output * mask * scale


@public(method=False)
def _safe_softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """Return `softmax` with zeros where all is -inf, which gives NaN otherwise."""
    with unrecorded():
        value = softmax(input, dim, dtype)
        masked = (input == -float("inf")).all(dim, True)
        value = FUNCTIONS["where"](masked, 0.0, value)
    if graph.needs_grad(input):
        at = one_dim("softmax", dim, input.ndim)
        graph.record(
            "SafeSoftmaxBackward0", (input,), value, softmax_back, {"result": value, "dim": at}
        )
    return value


def _widened(name: str, half_to_float: bool) -> None:
    if half_to_float:
        raise RuntimeError(f"{name} with half to float conversion is not supported on CPU")


@public(method=False)
def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return `softmax`. RuntimeError for `half_to_float`, which only other devices have."""
    _widened("softmax", half_to_float)
    return softmax(input, dim)


@public(method=False)
def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return `log_softmax`. RuntimeError for `half_to_float`, which only other devices have."""
    _widened("log_softmax", half_to_float)
    return log_softmax(input, dim)
