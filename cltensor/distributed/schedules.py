"""Who sends what to whom: each collective in terms of one exchange between all members.

Note [Schedules]. Large reductions are divided into one shard for each member. All members send each member its shard;
that member reduces it, in the order of the ranks, and sends the result to all. A member sends and receives as much as
in a ring, 2 (n - 1) / n times its tensor, but in two rounds instead of 2 (n - 1), and each element is reduced in one
place, so that all have the same bits. Small tensors go whole to all members, which reduce them in the same order: one
round. A shard is reduced while it arrives, by pieces of 512 KiB. Large tensors are broadcast by shards, too: the root
sends each member one, and the members pass theirs on.

Owns the order of messages and of sums. Must not know sockets, threads or devices.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .reduction import reduce_into
from .transport import Mesh
from .wire import Memory, scratch

SMALL = 64 << 10  # bytes that are sent whole to every member
PIECE = 512 << 10  # bytes that are reduced at once
SEGMENT = 64 << 20  # bytes of a tensor that are reduced in one go: this bounds the scratch memory
_NOTHING = memoryview(b"")


def shards(count: int, size: int) -> list[tuple[int, int]]:
    """Divide elements among members: return where each member's shard begins and ends."""
    each, more = divmod(count, size)
    ends = [0]
    for i in range(size):
        ends.append(ends[-1] + each + (i < more))
    return list(itertools.pairwise(ends))


def _others(mesh: Mesh) -> list[int]:
    """Return the other members, the next rank first, so that not all send to the same member at once."""
    return [(mesh.rank + i) % mesh.size for i in range(1, mesh.size)]


def all_reduce(mesh: Mesh, t: Memory, op: Any, kind: str = "all_reduce", root: int = -1) -> None:
    """Reduce all members' elements, for all of them or a root only."""
    number = mesh.begin()
    count, each = t.flat.numel(), t.flat.dtype.itemsize
    if mesh.size == 1:
        reduce_into(t.flat, [t.flat], op, 1)
    elif count * each * (mesh.size - 1) <= SMALL:
        _all_reduce_whole(mesh, number, t, op, kind, root)
    else:
        step = max(1, SEGMENT // each)
        for start in range(0, count, step):
            _all_reduce_shards(mesh, number, t, op, kind, start, min(count, start + step), root)


def _all_reduce_whole(mesh: Mesh, number: int, t: Memory, op: Any, kind: str, root: int) -> None:
    count = t.flat.numel()
    if root >= 0 and root != mesh.rank:
        mesh.transfer(kind, number, [(root, t.bytes)], [])
        return
    others = _others(mesh)
    room = scratch(t.flat, count * (mesh.size - 1))
    landing = {r: (i * count, (i + 1) * count) for i, r in enumerate(others)}
    outgoing = [] if root >= 0 else [(r, t.bytes) for r in others]
    mesh.transfer(kind, number, outgoing, [(r, room.part(*landing[r])) for r in others])
    operands = [
        t.flat if r == mesh.rank else room.flat[slice(*landing[r])] for r in range(mesh.size)
    ]
    reduce_into(t.flat, operands, op, mesh.size)


def _all_reduce_shards(
    mesh: Mesh, number: int, t: Memory, op: Any, kind: str, start: int, stop: int, root: int
) -> None:
    """Reduce the elements from `start` to `stop`, each member one shard of them."""
    places = [(start + a, start + b) for a, b in shards(stop - start, mesh.size)]
    outgoing = [(r, t.part(*places[r])) for r in _others(mesh)]
    mine = t.flat[slice(*places[mesh.rank])]
    _reduce_arriving(mesh, number, kind, outgoing, Shard(t, mine), op)
    others = _others(mesh)
    own = t.part(*places[mesh.rank])
    if root < 0:
        mesh.transfer(
            kind, number, [(r, own) for r in others], [(r, t.part(*places[r])) for r in others]
        )
    elif root == mesh.rank:
        mesh.transfer(kind, number, [], [(r, t.part(*places[r])) for r in others])
    else:
        mesh.transfer(kind, number, [(root, own)], [])


class Shard:
    """The shard that this member reduces: its own elements `own`, and where the result goes, `into`, by default in
    their place.
    """

    def __init__(self, memory: Memory, own: Any, into: Any = None) -> None:
        self.memory, self.own = memory, own
        self.into = own if into is None else into


def _reduce_arriving(
    mesh: Mesh, number: int, kind: str, outgoing: Sequence[Any], shard: Shard, op: Any
) -> None:
    """Reduce the others' elements of this member's shard with its own, piece by piece as they arrive."""
    count, each = shard.own.numel(), shard.own.dtype.itemsize
    others = _others(mesh)
    room = scratch(shard.own, count * len(others))
    landing = {r: i * count for i, r in enumerate(others)}
    piece = max(1, PIECE // each)
    done = 0

    def reduce(arrived: int) -> None:
        nonlocal done
        there = arrived // each
        while there - done >= piece or (there == count and done < count):
            stop = min(count, done + piece)
            operands = [
                shard.own[done:stop]
                if r == mesh.rank
                else room.flat[landing[r] + done : landing[r] + stop]
                for r in range(mesh.size)
            ]
            reduce_into(shard.into[done:stop], operands, op, mesh.size)
            done = stop

    incoming = [(r, room.part(landing[r], landing[r] + count)) for r in others]
    mesh.transfer(kind, number, outgoing, incoming, reduce)


def reduce_scatter(mesh: Mesh, parts: Sequence[Memory], out: Memory, op: Any) -> None:
    """Reduce all members' parts number i to member i's `out`."""
    number = mesh.begin()
    own = parts[mesh.rank]
    if mesh.size == 1:
        reduce_into(out.flat, [own.flat], op, 1)
        return
    outgoing = [(r, parts[r].bytes) for r in _others(mesh)]
    _reduce_arriving(mesh, number, "reduce_scatter", outgoing, Shard(own, own.flat, out.flat), op)


def broadcast(mesh: Mesh, t: Memory, root: int) -> None:
    """Copy the root's elements to all members."""
    number = mesh.begin()
    if mesh.size == 1:
        return
    if mesh.size == 2 or t.bytes.nbytes <= SMALL:
        if mesh.rank == root:
            mesh.transfer("broadcast", number, [(r, t.bytes) for r in _others(mesh)], [])
        else:
            mesh.transfer("broadcast", number, [], [(root, t.bytes)])
        return
    ranks = [(root + i) % mesh.size for i in range(1, mesh.size)]
    cut = shards(t.bytes.nbytes, len(ranks))
    place = {r: t.bytes[a:b] for r, (a, b) in zip(ranks, cut)}
    if mesh.rank == root:
        mesh.transfer("broadcast", number, [(r, place[r]) for r in ranks], [])
        return
    own = place[mesh.rank]
    mesh.transfer("broadcast", number, [], [(root, own)])
    peers = [r for r in _others(mesh) if r != root]
    mesh.transfer("broadcast", number, [(r, own) for r in peers], [(r, place[r]) for r in peers])


def all_gather(mesh: Mesh, t: Memory, outs: Sequence[Memory]) -> None:
    """Copy every member's elements to all members' `outs`."""
    number = mesh.begin()
    if t.bytes.nbytes:
        outs[mesh.rank].bytes[:] = t.bytes
    others = _others(mesh)
    outgoing = [(r, t.bytes) for r in others]
    mesh.transfer("all_gather", number, outgoing, [(r, outs[r].bytes) for r in others])


def gather(mesh: Mesh, t: Memory, outs: Sequence[Memory], root: int) -> None:
    """Copy every member's elements to the root's `outs`."""
    number = mesh.begin()
    if mesh.rank != root:
        mesh.transfer("gather", number, [(root, t.bytes)], [])
        return
    if t.bytes.nbytes:
        outs[root].bytes[:] = t.bytes
    mesh.transfer("gather", number, [], [(r, outs[r].bytes) for r in _others(mesh)])


def scatter(mesh: Mesh, out: Memory, parts: Sequence[Memory], root: int) -> None:
    """Copy the root's part number i to member i's `out`."""
    number = mesh.begin()
    if mesh.rank != root:
        mesh.transfer("scatter", number, [], [(root, out.bytes)])
        return
    if out.bytes.nbytes:
        out.bytes[:] = parts[root].bytes
    mesh.transfer("scatter", number, [(r, parts[r].bytes) for r in _others(mesh)], [])


def all_to_all(mesh: Mesh, outs: Sequence[memoryview], parts: Sequence[memoryview]) -> None:
    """Copy every member's part number j to member j. ValueError unless this member's own part fits."""
    number = mesh.begin()
    if parts[mesh.rank].nbytes:
        outs[mesh.rank][:] = parts[mesh.rank]
    others = _others(mesh)
    mesh.transfer(
        "all_to_all", number, [(r, parts[r]) for r in others], [(r, outs[r]) for r in others]
    )


def barrier(mesh: Mesh) -> None:
    """Return when all members have called this."""
    number = mesh.begin()
    others = _others(mesh)
    mesh.transfer(
        "barrier", number, [(r, _NOTHING) for r in others], [(r, _NOTHING) for r in others]
    )
