"""Messages from one process to another: `send`, `recv`, their asynchronous forms, and batches of them.

Owns torch's arguments and its checks of them. The messages themselves are in mail.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .collectives import check_tensor
from .groups import (
    get_global_rank,
    get_rank,
    group_or_default,
    outside,
    rank_in_group,
)
from .work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def check_not_self(group: Any, rank: int, which: str) -> None:
    """Raise ValueError for a message from a process to itself."""
    if group.rank() == rank:
        raise ValueError(
            f"Invalid {which} rank: {which} rank should not be the same as the rank of the current process."
        )


def _send(tensor: Any, to: int, group: Any, tag: int, later: bool) -> Work | None:
    check_tensor(tensor, "tensor")
    if outside(group, "isend" if later else "send"):
        return None
    return group.send([tensor], to, tag, later)


def isend(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to send a tensor, which must not be written to before the returned work is done."""
    group = group_or_default(group)
    return _send(tensor, rank_in_group(group, dst, group_dst), group, tag, True)


def irecv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to receive a tensor, which must not be read before the returned work is done; without a source, from any
    member.
    """
    check_tensor(tensor, "tensor")
    if outside(group, "irecv"):
        return None
    group = group_or_default(group)
    if src is None and group_src is None:
        return group.recv_anysource([tensor], tag)
    return group.recv([tensor], rank_in_group(group, src, group_src), tag)


def send(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor. ValueError if the destination is this process itself."""
    group = group_or_default(group)
    to = rank_in_group(group, dst, group_dst)
    check_not_self(group, to, "destination")
    work = _send(tensor, to, group, tag, False)
    if work is not None:
        work.wait()


def recv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor, and return the sender's rank in the world, -1 in a process outside the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is not None:
        return src
    group = group_or_default(group)
    return get_global_rank(group, work.source_rank() if group_src is None else group_src)


class P2POp:
    """A message for `batch_isend_irecv`: `isend` or `irecv`, a tensor, and the peer that receives or sends it."""

    def __init__(
        self,
        op: Callable,
        tensor: Any,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = group_or_default(group)
        self.peer = rank_in_group(self.group, peer, group_peer, in_world=True)
        self.group_peer = rank_in_group(self.group, peer, group_peer)

    def __repr__(self) -> str:
        here, there = get_rank(self.group), self.group_peer
        source, to = (here, there) if self.op is isend else (there, here)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, group_dst={to},  {self.tensor.shape}, "
            f"{self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several messages of one group; return the work of each."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``."
        )
    if any(p.group != p2p_op_list[0].group for p in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for p in p2p_op_list:
        name = "group_dst" if p.op is isend else "group_src"
        work = p.op(p.tensor, group=p.group, tag=p.tag, **{name: p.group_peer})
        if work is not None:
            works.append(work)
    return works
