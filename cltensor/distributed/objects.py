"""Collectives and messages of Python objects: pickled, and sent as tensors of bytes.

As with every pickle, other processes must be trusted: unpickling what they send can run code.
"""

from __future__ import annotations

import pickle
from typing import Any

from .. import dtypes
from ..ops.row import FUNCTIONS
from ..runtime import device as _device
from .collectives import all_gather, broadcast, gather, scatter
from .groups import get_world_size, group_or_default, outside, rank_in_group
from .point_to_point import check_not_self, recv, send

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list", "send_object_list",
]  # fmt: skip

_CPU = _device("cpu")


def _pickled(obj: Any) -> Any:
    from ..creation import frombuffer

    return frombuffer(bytearray(pickle.dumps(obj)), dtype=dtypes.uint8)


def _unpickled(t: Any, size: int) -> Any:
    return pickle.loads(t[:size].numpy().tobytes())


def _bytes(count: int) -> Any:
    return FUNCTIONS["empty"]((count,), dtype=dtypes.uint8, device=_CPU)


def _sizes(*sizes: int) -> Any:
    made = FUNCTIONS["zeros"]((len(sizes),), dtype=dtypes.int64, device=_CPU)
    for i, size in enumerate(sizes):
        made[i] = size
    return made


def _padded(t: Any, size: int) -> Any:
    """Return bytes padded to `size`, with undefined content."""
    made = _bytes(size)
    made[: t.numel()] = t
    return made


def _all_sizes(mine: int, group: Any) -> list[int]:
    """Return how many bytes each member has, given this one's number."""
    found = [_sizes(0) for _ in range(get_world_size(group))]
    all_gather(found, _sizes(mine), group)
    return [int(size) for size in found]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write every member's object to `object_list`, which has a place for each member."""
    if outside(group, "all_gather_object"):
        return
    mine = _pickled(obj)
    sizes = _all_sizes(mine.numel(), group)
    outs = [_bytes(max(sizes)) for _ in sizes]
    all_gather(outs, _padded(mine, max(sizes)), group)
    for i, (out, size) in enumerate(zip(outs, sizes)):
        object_list[i] = _unpickled(out, size)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Write every member's object to the destination's list."""
    group = group_or_default(group)
    if outside(group, "gather_object"):
        return
    root = rank_in_group(group, 0 if dst is None and group_dst is None else dst, group_dst)
    here = group.rank() == root
    if here and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not here and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    mine = _pickled(obj)
    sizes = _all_sizes(mine.numel(), group)
    outs = [_bytes(max(sizes)) for _ in sizes] if here else None
    gather(_padded(mine, max(sizes)), outs, group=group, group_dst=root)
    if outs is not None and object_gather_list is not None:
        for i, (out, size) in enumerate(zip(outs, sizes)):
            object_gather_list[i] = _unpickled(out, size)


def _joined(objects: list[Any]) -> tuple[Any, Any]:
    """Return the sizes of pickled objects, and their bytes side by side."""
    parts = [_pickled(obj) for obj in objects]
    return _sizes(*[p.numel() for p in parts]), FUNCTIONS["cat"](parts)


def _divide(objects: list[Any], sizes: Any, data: Any) -> None:
    at = 0
    for i, size in enumerate(sizes.tolist()):
        objects[i] = _unpickled(data[at : at + size], size)
        at += size


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to a process, which must receive a list of the same length."""
    group = group_or_default(group)
    to = rank_in_group(group, dst, group_dst)
    check_not_self(group, to, "destination")
    sizes, data = _joined(object_list)
    send(sizes, group=group, group_dst=to)
    send(data, group=group, group_dst=to)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects into a list of the same length as sent; return the sender's rank, -1 in a process outside the
    group.
    """
    group = group_or_default(group)
    source = rank_in_group(group, src, group_src)
    check_not_self(group, source, "source")
    if outside(group, "recv_object_list"):
        return -1
    sizes = _sizes(*[0] * len(object_list))
    rank = recv(sizes, group=group, group_src=source)
    data = _bytes(int(sizes.sum()))
    recv(data, group=group, group_src=source)
    _divide(object_list, sizes, data)
    return rank


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Write the source's objects to every member's list, which must have the same length."""
    group = group_or_default(group)
    if outside(group, "broadcast_object_list"):
        return
    root = rank_in_group(group, 0 if src is None and group_src is None else src, group_src)
    here = group.rank() == root
    sizes, data = _joined(object_list) if here else (_sizes(*[0] * len(object_list)), None)
    broadcast(sizes, group=group, group_src=root)
    if data is None:
        data = _bytes(int(sizes.sum()))
    broadcast(data, group=group, group_src=root)
    if not here:
        _divide(object_list, sizes, data)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Write object number i of the source's input list to the first place of member i's output list."""
    group = group_or_default(group)
    if outside(group, "scatter_object_list"):
        return
    root = rank_in_group(group, 0 if src is None and group_src is None else src, group_src)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    here = group.rank() == root
    if here and scatter_object_input_list is None:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    parts = [_pickled(obj) for obj in (scatter_object_input_list or ())] if here else []
    most, mine = _sizes(max([p.numel() for p in parts], default=0)), _sizes(0)
    broadcast(most, group=group, group_src=root)
    out = _bytes(int(most))
    padded = [_padded(p, int(most)) for p in parts]
    scatter(out, padded or None, group=group, group_src=root)
    sizes = [_sizes(p.numel()) for p in parts]
    scatter(mine, sizes or None, group=group, group_src=root)
    scatter_object_output_list[0] = _unpickled(out, int(mine))
