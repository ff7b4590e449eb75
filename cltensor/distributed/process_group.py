"""`ProcessGroup`: one member's view of a group of processes, and the checks made before anything is sent.

The checks and their messages are those of torch's gloo. Which groups there are is known to groups.py; the functions
that users call are in collectives.py and point_to_point.py.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .. import dtypes
from . import reduction, schedules
from .errors import DistBackendError
from .mail import ANY, Mail
from .reduction import ReduceOp
from .sparse_sums import SparseSum
from .store import Store
from .transport import Mesh
from .wire import Memory, plain
from .work import Lane, Work

__all__ = ["ProcessGroup"]

_SENT = (
    dtypes.bool, dtypes.uint8, dtypes.int8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64,
)  # fmt: skip


class BackendType(enum.IntEnum):
    """Kinds of groups that torch knows."""

    UNDEFINED = 0
    GLOO = 1
    NCCL = 2
    UCC = 3
    MPI = 4
    XCCL = 5
    CUSTOM = 6


class ProcessGroup:
    """A group of processes, seen from one member. Ranks are those within the group."""

    BackendType = BackendType

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta,
        group_name: str = "",
        group_desc: str = "undefined",
    ) -> None:
        self._rank, self._size = rank, size
        self.group_name, self.group_desc = group_name, group_desc
        self.bound_device_id = None
        self._timeout = timeout
        self._mesh = Mesh(store, rank, size, timeout.total_seconds())
        self._mail = Mail(self._mesh, f"group {group_name}")
        self._lane = Lane(f"group {group_name}")

    def rank(self) -> int:
        """Return this process's number in the group."""
        return self._rank

    def size(self) -> int:
        """Return how many processes are in the group."""
        return self._size

    def name(self) -> str:
        """Return "gloo"."""
        return "gloo"

    _get_backend_name = name

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time without progress after which a collective or message fails."""
        self._timeout, self._mesh.timeout = timeout, timeout.total_seconds()

    def shutdown(self) -> None:
        """Finish collectives and messages that were begun, then close the connections."""
        self._lane.end()
        self._lane.drain(self._mesh.timeout)
        self._mail.close()
        self._mesh.close()

    def abort(self) -> None:
        """Close the connections at once: collectives and messages under way fail."""
        self._mesh.close("the process group was aborted")

    # --- checks

    def _fail(self, call: str, text: str) -> RuntimeError:
        return RuntimeError(f"ProcessGroupGloo::{call}: {text}")

    def _check_root(self, call: str, root: int) -> None:
        if not 0 <= root < self._size:
            raise self._fail(call, f"invalid root rank: {root}")

    def _check_alike(self, call: str, tensors: Sequence[Any], like: Any) -> None:
        for i, t in enumerate(tensors):
            if t.dtype is not like.dtype:
                raise self._fail(
                    call,
                    f"invalid tensor type at index {i} (expected {like.type()}, got {t.type()})",
                )
            if t.shape != like.shape:
                raise self._fail(
                    call,
                    f"invalid tensor size at index {i} (expected {_size(like)}, got {_size(t)})",
                )

    def _check_dtype(self, t: Any) -> None:
        if t.dtype not in _SENT:
            raise RuntimeError("Invalid scalar type")

    def _do(
        self,
        piece: Callable[[], None],
        memories: Sequence[Memory],
        results: Sequence[Any],
        async_op: bool,
    ) -> Work:
        """Run a collective after all that were begun before, then deliver what was received; return its work."""

        def whole() -> None:
            try:
                piece()
            finally:
                for memory in memories:
                    memory.deliver()

        return self._lane.do(whole, Work(results), async_op)

    # --- collectives

    def allreduce(self, tensors: Any, op: Any = ReduceOp.SUM, async_op: bool = True) -> Work:
        """Reduce each of the tensors over all members, in place."""
        tensors = tensors if isinstance(tensors, list | tuple) else [tensors]
        op = getattr(op, "reduceOp", op)
        if not all(t._strided for t in tensors):
            return self._allreduce_sparse(tensors, op, async_op)
        for t in tensors:
            self._check_dtype(plain(t))
            reduction.check(op, t, "allreduce")
        memories = [Memory(t, True) for t in tensors]

        def piece() -> None:
            for memory in memories:
                schedules.all_reduce(self._mesh, memory, op)

        return self._do(piece, memories, tensors, async_op)

    allreduce_coalesced = allreduce

    def _allreduce_sparse(self, tensors: Any, op: Any, async_op: bool) -> Work:
        if op is not ReduceOp.SUM:
            raise self._fail(
                "allreduce",
                "unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)",
            )
        if len(tensors) != 1 or tensors[0]._strided:
            raise self._fail("allreduce", "requires a single tensor where one is sparse")
        part = SparseSum(tensors[0])
        return self._do(lambda: part.run(self._mesh), part.sent, tensors, async_op)

    def reduce(self, t: Any, root: int, op: Any = ReduceOp.SUM, async_op: bool = True) -> Work:
        """Reduce a tensor over all members, in place on the root."""
        self._check_root("reduce", root)
        self._check_dtype(t)
        reduction.check(op, t, "reduce")
        memory = Memory(t, True)
        return self._do(
            lambda: schedules.all_reduce(self._mesh, memory, op, "reduce", root), [memory], [t], async_op
        )  # fmt: skip

    def broadcast(self, t: Any, root: int, async_op: bool = True) -> Work:
        """Copy the root's tensor to all members."""
        t, root = (t[0] if isinstance(t, list | tuple) else t), getattr(root, "rootRank", root)
        self._check_root("broadcast", root)
        self._check_dtype(plain(t))
        memory = Memory(t, root != self._rank)
        return self._do(
            lambda: schedules.broadcast(self._mesh, memory, root), [memory], [t], async_op
        )

    def allgather(self, outs: Sequence[Any], t: Any, async_op: bool = True) -> Work:
        """Copy every member's tensor to all members' `outs`."""
        call = "allgather"
        if len(outs) != self._size:
            raise self._fail(
                call,
                f"invalid output tensor list at index 0 (expected length {self._size}, got {len(outs)})",
            )
        self._check_alike(call, outs, t)
        self._check_dtype(plain(t))
        mine, memories = Memory(t, False), [Memory(o, True, False) for o in outs]
        return self._do(
            lambda: schedules.all_gather(self._mesh, mine, memories), [mine, *memories], outs, async_op
        )  # fmt: skip

    def all_gather_single(self, out: Any, t: Any, async_op: bool = True) -> Work:
        """Copy every member's tensor to all members' `out`, concatenated along the first dim or stacked along a new
        one.
        """
        out, t = plain(out), plain(t)
        parts = _parts(out, self._size, t)
        self._check_alike("allgather", parts, t)
        self._check_dtype(t)
        mine = Memory(t, False)
        whole, memories = self._divided(out, parts, True)
        return self._do(
            lambda: schedules.all_gather(self._mesh, mine, memories), [mine, *whole], [out], async_op
        )  # fmt: skip

    def _divided(
        self, t: Any, parts: Sequence[Any], written: bool
    ) -> tuple[list[Memory], list[Memory]]:
        """Return the memories to deliver afterwards, and the memory of each part.

        `written`: whether the parts are received. They are of `t` itself if the host shares its memory, else of one
        copy.
        """
        if t.is_contiguous() and t._storage.backend.info.host_shared:
            memories = [Memory(p, written, not written) for p in parts]
            return memories, memories
        whole = Memory(t, written)
        rows = whole.flat.view(len(parts), -1)
        memories = [Memory(rows[i], written) for i in range(len(parts))]
        return [*memories, whole], memories

    def gather(self, t: Any, outs: Sequence[Any], root: int, async_op: bool = True) -> Work:
        """Copy every member's tensor to the root's `outs`."""
        self._check_root("gather", root)
        self._check_dtype(plain(t))
        if root == self._rank:
            if len(outs) != self._size:
                raise self._fail(
                    "gather",
                    f"Incorrect output list size {len(outs)}. Output list size should be {self._size}, same as size of the process group.",
                )
            self._check_alike("gather", outs, t)
        mine, memories = Memory(t, False), [Memory(o, True, False) for o in outs]
        return self._do(
            lambda: schedules.gather(self._mesh, mine, memories, root), [mine, *memories], outs, async_op
        )  # fmt: skip

    def scatter(self, out: Any, parts: Sequence[Any], root: int, async_op: bool = True) -> Work:
        """Copy the root's part number i to member i's `out`."""
        self._check_root("scatter", root)
        self._check_dtype(plain(out))
        if root == self._rank:
            if len(parts) != self._size:
                raise self._fail(
                    "scatter",
                    f"Incorrect input list size {len(parts)}. Input list size should be {self._size}, same as size of the process group.",
                )
            self._check_alike("scatter", parts, out)
        memory, memories = Memory(out, True, False), [Memory(p, False) for p in parts]
        return self._do(
            lambda: schedules.scatter(self._mesh, memory, memories, root), [memory, *memories], [out], async_op
        )  # fmt: skip

    def reduce_scatter(
        self, out: Any, parts: Sequence[Any], op: Any = ReduceOp.SUM, async_op: bool = True
    ) -> Work:
        """Reduce all members' parts number i to member i's `out`."""
        call = "reduce_scatter"
        if len(parts) != self._size:
            raise self._fail(
                call,
                f"invalid input tensor list at index 0 (expected length {self._size}, got {len(parts)})",
            )
        self._check_alike(call, [parts[self._rank]], out)
        self._check_dtype(plain(out))
        reduction.check(op, out, call)
        memory, memories = Memory(out, True, False), [Memory(p, False) for p in parts]
        return self._do(
            lambda: schedules.reduce_scatter(self._mesh, memories, memory, op), [memory, *memories], [out], async_op
        )  # fmt: skip

    def reduce_scatter_single(
        self, out: Any, t: Any, op: Any = ReduceOp.SUM, async_op: bool = True
    ) -> Work:
        """Reduce a tensor over all members, each of which gets one part of it, divided along the first dim."""
        out, t = plain(out), plain(t)
        if out.numel() * self._size != t.numel():
            raise self._fail(
                "reduce_scatter", f"Check failed: outputShape[0] * worldSize == inputShape[0] ({out.numel() * self._size} vs. {t.numel()})"
            )  # fmt: skip
        self._check_dtype(out)
        reduction.check(op, out, "reduce_scatter")
        memory = Memory(out, True, False)
        whole, memories = self._divided(t, _parts(t, self._size, out), False)
        return self._do(
            lambda: schedules.reduce_scatter(self._mesh, memories, memory, op), [memory, *whole], [out], async_op
        )  # fmt: skip

    def alltoall(self, outs: Sequence[Any], parts: Sequence[Any], async_op: bool = True) -> Work:
        """Copy every member's part number j to member j's `outs`."""
        for given in (outs, parts):
            if len(given) != self._size:
                raise self._fail(
                    "alltoall", f"invalid tensor list (expected length {self._size}, got {len(given)})"
                )  # fmt: skip
        for t in (*outs, *parts):
            self._check_dtype(plain(t))
        if outs[self._rank].numel() != parts[self._rank].numel():
            raise self._fail(
                "alltoall",
                f"invalid tensor size at index {self._rank} (expected {_size(parts[self._rank])}, got {_size(outs[self._rank])})",
            )
        into, of = [Memory(o, True, False) for o in outs], [Memory(p, False) for p in parts]
        return self._do(
            lambda: schedules.all_to_all(self._mesh, [m.bytes for m in into], [m.bytes for m in of]), [*into, *of], outs, async_op
        )  # fmt: skip

    def all_to_all_single(
        self,
        out: Any,
        t: Any,
        out_sizes: Sequence[int],
        sizes: Sequence[int],
        async_op: bool = True,
    ) -> Work:
        """Divide a tensor along its first dim among all members, and concatenate the parts received from them in `out`."""
        out, t = plain(out), plain(t)
        self._check_dtype(t)
        into, of = Memory(out, True), Memory(t, False)
        outs, parts = self._cut(out, into, out_sizes), self._cut(t, of, sizes)
        if outs[self._rank].nbytes != parts[self._rank].nbytes:
            raise RuntimeError(
                f"all_to_all_single: this rank sends itself {parts[self._rank].nbytes} bytes and expects {outs[self._rank].nbytes}"
            )
        return self._do(
            lambda: schedules.all_to_all(self._mesh, outs, parts), [into, of], [out], async_op
        )

    def _cut(self, t: Any, memory: Memory, sizes: Sequence[int]) -> list[memoryview]:
        rows = t.shape[0] if t.dim() else 0
        if not sizes:
            if rows % self._size:
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            sizes = [rows // self._size] * self._size
        if len(sizes) != self._size:
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(sizes) != rows:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        row = t.numel() // rows if rows else 0
        at, found = 0, []
        for size in sizes:
            found.append(memory.part(at * row, (at + size) * row))
            at += size
        return found

    def barrier(self, async_op: bool = True) -> Work:
        """Return when all members are here."""
        return self._do(lambda: schedules.barrier(self._mesh), [], [], async_op)

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool = False) -> None:
        """Return when all members have called this; after the timeout, rank 0's error names who has not."""
        text: list[str] = []

        def piece() -> None:
            mesh, usual = self._mesh, self._mesh.timeout
            mesh.timeout = timeout.total_seconds()
            number = mesh.begin()
            nothing = memoryview(b"")
            try:
                if self._rank:
                    mesh.transfer("monitored_barrier", number, [(0, nothing)], [])
                    mesh.transfer("monitored_barrier", number, [], [(0, nothing)])
                    return
                others = list(range(1, self._size))
                try:
                    mesh.transfer("monitored_barrier", number, [], [(r, nothing) for r in others])
                except DistBackendError as error:
                    late = error.ranks if wait_all_ranks else error.ranks[:1]
                    who = f"Rank{'s' if len(late) > 1 else ''} {', '.join(map(str, late))}"
                    text.append(
                        f"[Rank 0]: {who} failed to pass monitoredBarrier in {round(mesh.timeout * 1000)} ms"
                    )
                    raise
                mesh.transfer("monitored_barrier", number, [(r, nothing) for r in others], [])
            finally:
                mesh.timeout = usual

        try:
            self._do(piece, [], [], False).wait()
        except DistBackendError as error:
            if not text:
                text.append(
                    f"[Rank {self._rank}]: Rank 0 failed to pass monitoredBarrier in {round(timeout.total_seconds() * 1000)} ms"
                )
            raise DistBackendError(f"{text[0]}\n Original exception: \n{error}") from None

    # --- messages

    def send(self, tensors: Any, to: int, tag: int = 0, async_op: bool = True) -> Work:
        """Send a tensor to a member."""
        t = tensors[0] if isinstance(tensors, list | tuple) else tensors
        self._check_peer(to)
        self._check_dtype(plain(t))
        return self._mail.send(Memory(t, False), to, tag, Work([t]), async_op)

    def recv(self, tensors: Any, source: int, tag: int = 0) -> Work:
        """Receive a tensor from a member."""
        t = tensors[0] if isinstance(tensors, list | tuple) else tensors
        if source != ANY:
            self._check_peer(source)
        self._check_dtype(plain(t))
        return self._mail.receive(Memory(t, True, False), source, tag, Work([t], source))

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """Receive a tensor from whichever member sends one."""
        return self.recv(tensors, ANY, tag)

    def _check_peer(self, other: int) -> None:
        if not 0 <= other < self._size:
            raise self._fail("send/recv", f"invalid rank: {other}")
        if other == self._rank:
            raise DistBackendError(f"Pair is not connected: rank {other} is this process")


def _size(t: Any) -> str:
    return f"({', '.join(map(str, t.shape))})"


def _parts(t: Any, count: int, like: Any) -> list[Any]:
    """Divide a tensor into `count` parts: of `like`'s shape if the number of elements fits, else along its first dim,
    as torch does.
    """
    if t.numel() == count * like.numel() and t.is_contiguous():
        return list(t.reshape(count, *like.shape).unbind(0)) if count else []
    return list(t.chunk(count))
