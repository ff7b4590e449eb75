"""Batch normalisation over the batches of all processes.

Forward: each process sends its means, variances and counts to all, and all combine them in the same way. Backward: the
two sums that the gradient for the input needs are all-reduced; those for weight and bias stay local, as
DistributedDataParallel averages them.
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...autograd import Function
from ...ops.row import FUNCTIONS

__all__ = ["sync_batch_norm"]


def _dims(x: Any) -> list[int]:
    return [d for d in range(x.dim()) if d != 1]


def _per_channel(t: Any, x: Any) -> Any:
    return t.view(1, -1, *[1] * (x.dim() - 2))


class _SyncBatchNorm(Function):
    """The normalisation and its gradients."""

    @staticmethod
    def forward(
        ctx: Any, x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, eps: float, factor: float, group: Any
    ) -> Any:  # fmt: skip
        from ... import distributed

        channels, count = x.shape[1], x.numel() // x.shape[1]
        wide = x.float() if x.dtype in (dtypes.float16, dtypes.bfloat16) else x
        if count:
            var, mean = FUNCTIONS["var_mean"](wide, _dims(x), correction=0)
        else:
            mean = var = wide.new_zeros(channels)
        mine = FUNCTIONS["cat"]([mean, var, mean.new_full((1,), count)])
        size = distributed.get_world_size(group)
        everybody = mine.new_empty((size, 2 * channels + 1))
        distributed.all_gather(list(everybody.unbind(0)), mine, group)
        means, variances = everybody[:, :channels], everybody[:, channels:-1]
        counts = everybody[:, -1:]
        total = counts.sum()
        mean = (means * counts).sum(0) / total
        var = ((variances + (means - mean) ** 2) * counts).sum(0) / total
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), factor)
            unbiased = var * (total / (total - 1))
            running_var.lerp_(unbiased.to(running_var.dtype), factor)
        inverse = (var + eps).rsqrt()
        ctx.save_for_backward(x, weight, mean, inverse, total)
        ctx.group, ctx.has_bias = group, bias is not None
        out = (wide - _per_channel(mean, x)) * _per_channel(inverse, x)
        if weight is not None:
            out = out * _per_channel(weight, x)
        if bias is not None:
            out = out + _per_channel(bias, x)
        return out.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        from ... import distributed

        x, weight, mean, inverse, total = ctx.saved_tensors
        channels, needs = x.shape[1], ctx.needs_input_grad
        grad, centred = grads[0].to(mean.dtype), x.to(mean.dtype) - _per_channel(mean, x)
        sums = mean.new_zeros(2 * channels)
        if x.numel():
            sums[:channels] = grad.sum(_dims(x))
            sums[channels:] = (grad * centred).sum(_dims(x))
        by_weight = sums[channels:] * inverse if weight is not None and needs[1] else None
        by_bias = sums[:channels].clone() if ctx.has_bias and needs[2] else None
        by_x = None
        if needs[0]:
            everybody = sums.clone()
            distributed.all_reduce(everybody, group=ctx.group)
            everybody = everybody / total
            scale = inverse if weight is None else inverse * weight
            slope = everybody[channels:] * inverse * inverse
            by_x = grad - _per_channel(everybody[:channels], x) - centred * _per_channel(slope, x)
            by_x = (by_x * _per_channel(scale, x)).to(x.dtype)
        rest = (None,) * 5
        return (
            by_x,
            by_weight if by_weight is None else by_weight.to(weight.dtype),
            by_bias if by_bias is None or weight is None else by_bias.to(weight.dtype),
            *rest,
        )


def sync_batch_norm(
    x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, eps: float, factor: float, group: Any
) -> Any:  # fmt: skip
    """Normalise by the statistics of all members' batches together; running statistics move by `factor`."""
    return _SyncBatchNorm.apply(x, weight, bias, running_mean, running_var, eps, factor, group)
