"""Collectives, which all members of a group call together, on tensors: `all_reduce`, `broadcast`, `all_gather`, ...

Owns torch's arguments and its checks of them. The collectives themselves are in process_group.py and below.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from ..tensor import Tensor
from .groups import (
    Backend,
    check_timeout,
    default_group,
    get_backend,
    group_or_default,
    outside,
    rank_in_group,
    rank_not_in_group,
)
from .reduction import ReduceOp, supports_complex
from .rendezvous import default_pg_timeout
from .wire import plain
from .work import Work

__all__ = [
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce", "all_reduce_coalesced", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "gather", "monitored_barrier", "reduce", "reduce_scatter", "reduce_scatter_single",
    "reduce_scatter_tensor", "scatter",
]  # fmt: skip


def check_tensor(value: Any, name: str) -> None:
    """Raise TypeError, in torch's words, unless given a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(value)} instead."
        )


def check_tensors(value: Any, name: str) -> None:
    """Raise TypeError, in torch's words, unless given a list of tensors."""
    if not isinstance(value, list):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got {type(value)} instead."
        )
    if not all(isinstance(t, Tensor) for t in value):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(value)} with elements of type {[type(t) for t in value]}."
        )


def _check_same_dtype(*given: Any) -> None:
    first: Any = None
    for some in given:
        for t in [some] if isinstance(some, Tensor) else some:
            kind = t.dtype.to_real() if t.dtype.is_complex else t.dtype
            if first is None:
                first = kind
            elif first is not kind:
                raise ValueError(
                    f"Invalid usage of tensors with different dtypesFound {first} and  {t.dtype}"
                )


def _ended(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


def _check_complex(tensors: Iterable[Any], op: Any) -> None:
    if any(t.is_complex() for t in tensors) and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")


def all_reduce(
    tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Reduce a tensor over all members, in place. Returns the work where `async_op`."""
    check_tensor(tensor, "tensor")
    if outside(group, "all_reduce"):
        return None
    _check_complex([tensor], op)
    return _ended(group_or_default(group).allreduce([tensor], op, async_op), async_op)


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Reduce several tensors over all members, in place. Returns a future where `async_op`."""
    warnings.warn(
        "`torch.distributed.all_reduce_coalesced` will be deprecated. If you must use it, please revisit our documentation later at "
        "https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    check_tensors(tensors, "tensor")
    _check_same_dtype(tensors)
    if outside(group, "all_reduce_coalesced"):
        return None
    _check_complex(tensors, op)
    work = group_or_default(group).allreduce(tensors, op, async_op)
    return work.get_future() if async_op else _ended(work, False)


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Reduce a tensor over all members, in place on the destination only."""
    group = group_or_default(group)
    root = -1 if rank_not_in_group(group) else rank_in_group(group, dst, group_dst)
    check_tensor(tensor, "tensor")
    if outside(group, "reduce"):
        return None
    return _ended(group.reduce(tensor, root, op, async_op), async_op)


def broadcast(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Copy the source's tensor to all members, in place."""
    group = group_or_default(group)
    root = -1 if rank_not_in_group(group) else rank_in_group(group, src, group_src)
    check_tensor(tensor, "tensor")
    if outside(group, "broadcast"):
        return None
    return _ended(group.broadcast(tensor, root, async_op), async_op)


def all_gather(
    tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False
) -> Any:
    """Write every member's tensor to `tensor_list`, which has a tensor for each member."""
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    _check_same_dtype(tensor_list, tensor)
    if outside(group, "all_gather"):
        return None
    outs = [plain(t) for t in tensor_list]
    return _ended(group_or_default(group).allgather(outs, plain(tensor), async_op), async_op)


def all_gather_single(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Any:
    """Write every member's tensor to one tensor: concatenated along the first dim, or stacked along a new one."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    if outside(group, "all_gather_single"):
        return None
    work = group_or_default(group).all_gather_single(output_tensor, input_tensor, async_op)
    return _ended(work, async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Any:
    """Do as `all_gather_single`, the new name of this function."""
    warnings.warn(
        "`torch.distributed.all_gather_into_tensor` is deprecated. Please use `torch.distributed.all_gather_single` instead.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Any:
    """Write every member's list of tensors to a list of lists, one for each member.

    Returns a future where `async_op`.
    """
    warnings.warn(
        "`torch.distributed.all_gather_coalesced` will be deprecated. If you must use it, please revisit our documentation later at "
        "https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    if outside(group, "all_gather_coalesced"):
        return None
    check_tensors(input_tensor_list, "input_tensor_list")
    _check_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outs in output_tensor_lists:
        check_tensors(outs, "output_tensor_lists")
        _check_same_dtype(outs)
    pg, works = group_or_default(group), []
    for i, t in enumerate(input_tensor_list):
        works.append(pg.allgather([outs[i] for outs in output_tensor_lists], t, async_op))
    if async_op:
        return works[-1].get_future()
    for work in works:
        work.wait()
    return None


def _check_list(rank: int, root: int, tensors: Any, name: str, which: str) -> None:
    if rank == root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {which} rank.")
    if rank != root and tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{which} ranks.")


def gather(
    tensor: Any,
    gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Write every member's tensor to the destination's list."""
    check_tensor(tensor, "tensor")
    if gather_list:
        check_tensors(gather_list, "gather_list")
    outs = gather_list or []
    _check_same_dtype(tensor, outs)
    group = group_or_default(group)
    if outside(group, "gather"):
        return None
    root = rank_in_group(group, 0 if dst is None and group_dst is None else dst, group_dst)
    _check_list(group.rank(), root, outs, "gather_list", "destination")
    return _ended(group.gather(plain(tensor), [plain(t) for t in outs], root, async_op), async_op)


def scatter(
    tensor: Any,
    scatter_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Write tensor number i of the source's list to member i's tensor."""
    check_tensor(tensor, "tensor")
    if scatter_list:
        check_tensors(scatter_list, "scatter_list")
    parts = scatter_list or []
    _check_same_dtype(tensor, parts)
    group = group_or_default(group)
    if outside(group, "scatter"):
        return None
    root = rank_in_group(group, 0 if src is None and group_src is None else src, group_src)
    _check_list(group.rank(), root, parts, "scatter_list", "source")
    return _ended(group.scatter(plain(tensor), [plain(t) for t in parts], root, async_op), async_op)


def reduce_scatter(
    output: Any,
    input_list: list[Any],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Write the reduction of all members' tensors number i to member i's output."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    _check_same_dtype(output, input_list)
    if outside(group, "reduce_scatter"):
        return None
    parts = [plain(t) for t in input_list]
    return _ended(
        group_or_default(group).reduce_scatter(plain(output), parts, op, async_op), async_op
    )


def reduce_scatter_single(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Write the reduction of all members' parts number i, divided along the first dim, to member i's output."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if outside(group, "reduce_scatter_single"):
        return None
    return _ended(
        group_or_default(group).reduce_scatter_single(output, input, op, async_op), async_op
    )


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Do as `reduce_scatter_single`, the new name of this function."""
    warnings.warn(
        "`torch.distributed.reduce_scatter_tensor` is deprecated. Please use `torch.distributed.reduce_scatter_single` instead.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    return reduce_scatter_single(output, input, op, group, async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Divide the input along its first dim among all members, evenly or by sizes; write the parts received to the
    output.
    """
    if outside(group, "all_to_all_single"):
        return None
    check_tensor(output, "output")
    check_tensor(input, "input")
    _check_same_dtype(output, input)
    work = group_or_default(group).all_to_all_single(
        output, input, output_split_sizes or [], input_split_sizes or [], async_op
    )
    return _ended(work, async_op)


def all_to_all(
    output_tensor_list: list[Any],
    input_tensor_list: list[Any],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Send tensor j of the inputs to member j; write to tensor i of the outputs what member i sends."""
    if outside(group, "all_to_all"):
        return None
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    _check_same_dtype(output_tensor_list, input_tensor_list)
    work = group_or_default(group).alltoall(output_tensor_list, input_tensor_list, async_op)
    return _ended(work, async_op)


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Any:
    """Return when all members have called this."""
    if outside(group, "barrier"):
        return None
    work = group_or_default(group).barrier(async_op)
    if async_op:
        return work
    work.wait(timeout)
    return None


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Return when all members have called this; after the timeout, rank 0's error names the first that has not, or all.

    wait_all_ranks: name all of them.
    """
    if outside(group, "monitored_barrier"):
        return
    if get_backend(group) not in (Backend.GLOO, Backend.UNDEFINED):
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    if timeout is None:
        timeout = default_pg_timeout
    elif isinstance(timeout, float):
        warnings.warn(
            f"Please specify timeout arg as a timedelta. Converting current value of {timeout} assuming it represents seconds",
            stacklevel=2,
        )
        timeout = timedelta(seconds=timeout)
    check_timeout(timeout)
    (default_group() if group is None else group).monitored_barrier(timeout, wait_all_ranks)
