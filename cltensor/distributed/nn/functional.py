"""Differentiable collectives, which return new tensors. The backward of each is the adjoint collective.

All members must run backward, too, and come to these collectives in the same order.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ...autograd import Function
from ...ops.row import FUNCTIONS
from .. import collectives as plain
from ..groups import get_rank, get_world_size
from ..reduction import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip

_EMPTY, _ZEROS = FUNCTIONS["empty_like"], FUNCTIONS["zeros_like"]


def _deprecated(name: str, instead: str = "") -> None:
    warnings.warn(
        f"torch.distributed.nn.functional.{name} is deprecated, use torch.distributed._functional_collectives.{instead or name} instead.",
        FutureWarning, stacklevel=3,
    )  # fmt: skip


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group, ctx.rank = src, group, get_rank(group)
        tensor = tensor.clone()
        plain.broadcast(tensor, src, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        mine = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grads[0])
        if ctx.src != ctx.rank:
            mine.zero_()
        return None, None, mine


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        outs = [_ZEROS(tensor) for _ in range(get_world_size(group))]
        here = get_rank(group) == dst
        plain.gather(tensor.contiguous(), outs if here else None, dst, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Any) -> Any:
        ctx.src, ctx.group = src, group
        if any(t.shape != tensors[0].shape for t in tensors):
            raise AssertionError
        out = _ZEROS(tensors[0])
        here = get_rank(group) == src
        plain.scatter(out, list(tensors) if here else None, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *_Gather.apply(ctx.src, ctx.group, grads[0]))


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        tensor = tensor.clone()
        plain.reduce(tensor, dst, op, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grads[0])


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, out: Any, *tensors: Any) -> Any:
        ctx.group = group
        out = out.contiguous()
        plain.reduce_scatter(out, [t.contiguous() for t in tensors], op, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, None, *_AllGather.apply(ctx.group, grads[0]))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        tensor = tensor.contiguous()
        outs = [_EMPTY(tensor) for _ in range(get_world_size(group))]
        plain.all_gather(outs, tensor, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        room = [_EMPTY(g) for g in grads]
        parts = _AllToAll.apply(ctx.group, room, *grads)
        return None, FUNCTIONS["stack"](list(parts)).sum(0)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outs: list[Any], *tensors: Any) -> Any:
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        plain.all_to_all(outs, [t.contiguous() for t in tensors], group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        room = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return (None, None, *_AllToAll.apply(ctx.group, room, *grads))


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, out: Any, out_sizes: Any, sizes: Any, tensor: Any) -> Any:
        ctx.group, ctx.shape, ctx.sizes = group, tensor.shape, (sizes, out_sizes)
        plain.all_to_all_single(out, tensor, out_sizes, sizes, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        room = grads[0].new_empty(ctx.shape)
        mine = _AllToAllSingle.apply(ctx.group, room, *ctx.sizes, grads[0].contiguous())
        return None, None, None, None, mine


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        tensor = tensor.contiguous().clone()
        plain.all_reduce(tensor, op, group)
        return tensor

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grads[0])


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the source's tensor."""
    _deprecated("broadcast")
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> Any:
    """Return every member's tensor in the destination, zeros elsewhere."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = None) -> Any:
    """Return this member's part of the source's tensors."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of all members' tensors; only the destination's result is defined."""
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(
    output: Any, input_list: Sequence[Any], op: Any = ReduceOp.SUM, group: Any = None
) -> Any:
    """Return, in member i, the reduction of all members' tensors number i."""
    _deprecated("reduce_scatter", "reduce_scatter_single")
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_gather(tensor: Any, group: Any = None) -> Any:
    """Return every member's tensor."""
    _deprecated("all_gather", "all_gather_single")
    return _AllGather.apply(group, tensor)


def all_to_all(
    output_tensor_list: list[Any], input_tensor_list: Sequence[Any], group: Any = None
) -> Any:
    """Return, in member j, every member's tensor number j."""
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
) -> Any:
    """Return, in member j, every member's part number j, concatenated along the first dim."""
    _deprecated("all_to_all_single")
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """Return the reduction of all members' tensors."""
    _deprecated("all_reduce")
    return _AllReduce.apply(op, group, tensor)
