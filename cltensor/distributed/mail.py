"""Messages from one member of a group to another, matched by tags: `send` and `recv`.

A sender has a connection to each member it sends to, and, for sends that do not wait, a thread for it. The receiver has
a thread for each connection. It reads a message into the memory of a receive that waits for it, else into a buffer,
where a later receive finds it. While many bytes are buffered and nobody waits for this sender, the connection is not
read, so that the sender blocks.

Owns messages under way. Of tensors it knows only the memory to send and to receive into.
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

from .errors import DistBackendError
from .transport import MAIL, Mesh
from .wire import Memory
from .work import Lane, Work

ANY = -1  # as the source of a receive
_HEAD = struct.Struct("<qQ")  # tag, bytes
_ASIDE = 256 << 20  # bytes that may be buffered while no receive waits for a message


class _Receive:
    """A receive that waits for its message."""

    def __init__(self, source: int, tag: int, memory: Memory, work: Work) -> None:
        self.source, self.tag, self.memory, self.work = source, tag, memory, work


class Mail:
    """The messages to and from one member of a group."""

    def __init__(self, mesh: Mesh, name: str) -> None:
        self._mesh, self._name = mesh, name
        mesh.on_mail = self._connected
        self._links: dict[int, socket.socket] = {}  # for sending
        self._lanes: dict[int, Lane] = {}
        self._sources: dict[int, socket.socket] = {}
        self._ended: dict[int, str] = {}  # members that send no more, and why
        self._aside: list[tuple[int, int, bytearray]] = []
        self._waiting: list[_Receive] = []
        self._changed = threading.Condition()

    # --- sending

    def send(self, memory: Memory, to: int, tag: int, work: Work, later: bool) -> Work:
        """Send a tensor's elements: in the calling thread if no earlier send to this member is pending, unless `later`."""

        def piece() -> None:
            try:
                link = self._links.get(to)
                if link is None:
                    link = self._links[to] = self._mesh.connect(to, MAIL)
                    link.settimeout(self._mesh.timeout)
                link.sendall(_HEAD.pack(tag, memory.bytes.nbytes))
                if memory.bytes.nbytes:
                    link.sendall(memory.bytes)
            except TimeoutError:
                raise DistBackendError(
                    f"Timed out waiting {round(self._mesh.timeout * 1000)}ms for send operation to complete"
                ) from None
            except OSError as error:
                raise DistBackendError(
                    f"Write error to rank {to}: {error.strerror or error}"
                ) from None
            finally:
                memory.deliver()

        lane = self._lanes.setdefault(to, Lane(f"{self._name} to {to}"))
        return lane.do(piece, work, later)

    # --- receiving

    def receive(self, memory: Memory, source: int, tag: int, work: Work) -> Work:
        """Receive a message into a tensor's memory; with the source `ANY`, from whichever member sends one."""
        if source != ANY:
            work._watch = lambda: self._lost(source)
        else:
            work._watch = self._all_lost
        with self._changed:
            for i, (of, its, data) in enumerate(self._aside):
                if source in (ANY, of) and its == tag:
                    del self._aside[i]
                    work._source = of
                    self._changed.notify_all()
                    self._land(memory, data, work)
                    return work
            self._waiting.append(_Receive(source, tag, memory, work))
            self._changed.notify_all()
        return work

    def _land(self, memory: Memory, data: Any, work: Work) -> None:
        if len(data) != memory.bytes.nbytes:
            work.finish(_wrong(len(data), memory))
            return
        memory.bytes[:] = data
        _finish(memory, work)

    def _lost(self, source: int) -> None:
        """Raise DistBackendError if a member is gone, so that nothing more can come from it."""
        if source in self._ended or (source not in self._sources and self._mesh.is_gone(source)):
            why = self._ended.get(source, "Connection closed by peer")
            raise DistBackendError(f"Read error from rank {source}: {why}")

    def _all_lost(self) -> None:
        others = [r for r in range(self._mesh.size) if r != self._mesh.rank]
        for other in others:
            if other not in self._ended and (
                other in self._sources or not self._mesh.is_gone(other)
            ):
                return
        raise DistBackendError("Read error: all other ranks are gone")

    def _connected(self, rank: int, link: socket.socket) -> None:
        with self._changed:
            self._sources[rank] = link
        threading.Thread(
            target=self._read, args=(rank, link), daemon=True, name=f"{self._name} from {rank}"
        ).start()

    def _read(self, rank: int, link: socket.socket) -> None:
        claimed: _Receive | None = None
        try:
            while True:
                head = bytearray(_HEAD.size)
                _fill(link, memoryview(head))
                tag, nbytes = _HEAD.unpack(head)
                claimed = self._claim(rank, tag)
                if claimed is not None and nbytes == claimed.memory.bytes.nbytes:
                    claimed.work._source = rank
                    _fill(link, claimed.memory.bytes)
                    done, claimed = claimed, None
                    _finish(done.memory, done.work)
                    continue
                data = bytearray(nbytes)
                _fill(link, memoryview(data))
                if claimed is not None:
                    claimed.work.finish(_wrong(nbytes, claimed.memory))
                    claimed = None
                    continue
                self._put_aside(rank, tag, data)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error) or "Connection closed by peer"
            if claimed is not None:
                claimed.work.finish(DistBackendError(f"Read error from rank {rank}: {why}"))
            with self._changed:
                self._ended[rank] = why
        finally:
            link.close()

    def _claim(self, rank: int, tag: int) -> _Receive | None:
        with self._changed:
            for i, waits in enumerate(self._waiting):
                if waits.source in (ANY, rank) and waits.tag == tag:
                    del self._waiting[i]
                    return waits
        return None

    def _put_aside(self, rank: int, tag: int, data: bytearray) -> None:
        with self._changed:
            # A receive may have been posted since `_claim`.
            for i, waits in enumerate(self._waiting):
                if waits.source in (ANY, rank) and waits.tag == tag:
                    del self._waiting[i]
                    waits.work._source = rank
                    self._land(waits.memory, data, waits.work)
                    return
            self._aside.append((rank, tag, data))
            self._changed.wait_for(
                lambda: (
                    sum(len(d) for _, _, d in self._aside) <= _ASIDE
                    or any(w.source in (ANY, rank) for w in self._waiting)
                )
            )

    def close(self) -> None:
        """Complete pending sends, close all connections, and fail pending receives."""
        for lane in self._lanes.values():
            lane.end()
            lane.drain(self._mesh.timeout)
        for link in self._links.values():
            try:
                link.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            link.close()
        with self._changed:
            waiting, self._waiting = self._waiting, []
        for waits in waiting:
            waits.work.finish(DistBackendError("the process group was destroyed"))


def _fill(link: socket.socket, view: memoryview) -> None:
    while view.nbytes:
        got = link.recv_into(view)
        if not got:
            raise ConnectionResetError("Connection closed by peer")
        view = view[got:]


def _finish(memory: Memory, work: Work) -> None:
    try:
        memory.deliver()
    except Exception as error:
        work.finish(error)
    else:
        work.finish()


def _wrong(nbytes: int, memory: Memory) -> DistBackendError:
    return DistBackendError(
        f"a message of {nbytes} bytes was received by a tensor of {memory.bytes.nbytes}"
    )
