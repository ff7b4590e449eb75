"""Messages from one member of a group to another, found by their tags: what `send` and `recv` do.

A sender has a connection to each member it writes to, and a thread for it where it does not wait. A thread of the receiver takes
what comes: into the memory of a receive that waits for it, else aside, until one asks. While much lies aside and nobody waits, the
connection is not read, and the sender waits.

Owns the messages on their way. Must not know tensors, but for the memory they land in.
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
_ASIDE = 256 << 20  # bytes that may lie aside while nobody waits for a message


class _Receive:
    """Memory that waits for a message."""

    def __init__(self, source: int, tag: int, memory: Memory, work: Work) -> None:
        self.source, self.tag, self.memory, self.work = source, tag, memory, work


class Mail:
    """The messages to and from one member of a group."""

    def __init__(self, mesh: Mesh, name: str) -> None:
        self._mesh, self._name = mesh, name
        mesh.on_mail = self._connected
        self._links: dict[int, socket.socket] = {}  # by which we send
        self._lanes: dict[int, Lane] = {}
        self._sources: dict[int, socket.socket] = {}
        self._ended: dict[int, str] = {}  # members that send no more, and why
        self._aside: list[tuple[int, int, bytearray]] = []
        self._waiting: list[_Receive] = []
        self._changed = threading.Condition()

    # --- sending

    def send(self, memory: Memory, to: int, tag: int, work: Work, later: bool) -> Work:
        """Send a tensor's elements; by the caller where nothing is before it, unless `later`."""

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
        """Have a message land in a tensor's memory; `ANY` takes it from whoever sends one."""
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
        """DistBackendError if a member is gone and nothing more comes from it."""
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
            for i, waits in enumerate(self._waiting):  # it may have come meanwhile
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
        """Send what is waiting to be sent, then close all connections."""
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
