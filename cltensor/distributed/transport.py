"""Connections between the members of a group, and transfers of bytes over them.

Each pair of members has one connection for collectives, made with the group. Messages over it are ordered, and each
begins with a head that names its collective, so that members that are in different collectives notice. Messages from
one member to another (mail.py) have connections of their own, made when first needed. One socket of the process listens
for all of its groups; a process that connects authenticates itself by a random word that it can only know from the
group's store.

Owns sockets, deadlines and the detection of lost members. Must not know tensors.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

from .errors import DistBackendError, DistNetworkError
from .store import Store
from .tcp_store import read_exactly

_WORD = 16  # bytes of the random word by which a group's members authenticate themselves
_HELLO = struct.Struct(f"<{_WORD}sIB")  # word, rank, kind of connection
# Head of a message: kind of collective, its number, bytes that follow.
_HEAD = struct.Struct("<IIQ")
COLLECTIVE, MAIL = 0, 1

Part = tuple[int, memoryview]  # a member's rank, and bytes to send to it or receive from it


class Listener:
    """The listening socket of this process, which hands connections to the groups that expect them."""

    def __init__(self, address: str) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.bind((address, 0))
        self._socket.listen(1024)
        self.address, self.port = self._socket.getsockname()[:2]
        self.owner = os.getpid()
        self._expected: dict[bytes, Callable[[int, int, socket.socket], None]] = {}
        threading.Thread(target=self._accept, daemon=True, name="connections").start()

    def expect(self, word: bytes, arrived: Callable[[int, int, socket.socket], None]) -> None:
        """Have `arrived(rank, kind, connection)` called for every connection that begins with this word."""
        self._expected[word] = arrived

    def forget(self, word: bytes) -> None:
        """Refuse connections with this word from now on."""
        self._expected.pop(word, None)

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(link,), daemon=True).start()

    def _greet(self, link: socket.socket) -> None:
        try:
            link.settimeout(30.0)
            word, rank, kind = _HELLO.unpack(read_exactly(link, _HELLO.size))
            arrived = self._expected[word]
        except (OSError, KeyError):  # not a member of a group here
            link.close()
            return
        arrived(rank, kind, link)


_listeners: dict[str, Listener] = {}
_listening = threading.Lock()


def _listener(address: str) -> Listener:
    """Return this process's listener at an address. A forked child makes its own."""
    with _listening:
        found = _listeners.get(address)
        if found is None or found.owner != os.getpid():
            found = _listeners[address] = Listener(address)
        return found


def own_address(store: Store) -> str:
    """Return the address at which others reach this process: GLOO_SOCKET_IFNAME's, or that by which it reaches the store."""
    name = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    if name:
        return _interface_address(name)
    while store is not None:
        address = getattr(store, "address", None)
        if address is not None:
            return address
        store = getattr(store, "underlying_store", None)  # type: ignore[assignment]
    return "127.0.0.1"


def _interface_address(name: str) -> str:
    import fcntl

    get_address = 0x8915  # SIOCGIFADDR
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe, get_address, struct.pack("256s", name.encode()[:15]))
        except OSError:
            raise DistNetworkError(f"Unable to find address for: {name}") from None
    return socket.inet_ntoa(answer[20:24])


class Mesh:
    """The connections of one member of a group to all others."""

    def __init__(self, store: Store, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.on_mail: Callable[[int, socket.socket], None] = _refuse
        self._store: Store | None = store
        self._links: dict[int, socket.socket] = {}
        self._arrived = threading.Condition()
        self._count = 0  # collectives begun
        self.broken: str | None = None  # why the connections can no longer be used
        if size == 1:
            return
        self._word = secrets.token_bytes(_WORD)
        self._listener = _listener(own_address(store))
        self._listener.expect(self._word, self._connected)
        place = f"{self._listener.port} {self._word.hex()} {self._listener.address}"
        store.set(f"at/{rank}", place)
        for other in range(rank):
            self._links[other] = _prepared(self.connect(other, COLLECTIVE))
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self._links) == size - 1, timeout):
                missing = sorted(set(range(size)) - {rank, *self._links})
                raise DistBackendError(
                    f"Timed out waiting {round(timeout * 1000)}ms for ranks {missing} to connect"
                )

    def connect(self, other: int, kind: int) -> socket.socket:
        """Return a new connection to another member."""
        if self._store is None:
            raise DistBackendError(self.broken or "")
        port, word, address = self._store.get(f"at/{other}").decode().split(" ", 2)
        try:
            link = socket.create_connection((address, int(port)), self.timeout)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.sendall(_HELLO.pack(bytes.fromhex(word), self.rank, kind))
        except OSError as error:
            raise DistBackendError(
                f"Connect to rank {other} at [{address}]:{port} failed: {error}"
            ) from None
        return link

    def _connected(self, rank: int, kind: int, link: socket.socket) -> None:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kind == MAIL:
            link.settimeout(None)
            self.on_mail(rank, link)
            return
        with self._arrived:
            self._links[rank] = _prepared(link)
            self._arrived.notify_all()

    def is_gone(self, other: int) -> bool:
        """Tell whether another member has closed its connection, or its process has ended."""
        link = self._links.get(other)
        if link is None or self.broken is not None:
            return self.broken is not None
        try:
            return link.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def begin(self) -> int:
        """Number a collective, which all members begin in the same order; DistBackendError once the connections are
        closed.
        """
        if self.broken is not None:
            raise DistBackendError(self.broken)
        self._count += 1
        return self._count

    def transfer(
        self,
        kind: str,
        number: int,
        outgoing: Sequence[Part],
        incoming: Sequence[Part],
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Send and receive messages concurrently, at most one to and one from each member.

        kind, number: those of the collective, in which the other members must be, too. progress: called with the number
        of bytes that have arrived of every incoming message, repeatedly and at the end. DistBackendError if a member is
        gone, is in another collective, or nothing moves for the timeout; the connections are then closed.
        """
        try:
            self._transfer(kind, number, outgoing, incoming, progress)
        except BaseException as error:
            self.close(str(error) or type(error).__name__)
            raise

    def _transfer(
        self,
        kind: str,
        number: int,
        outgoing: Sequence[Part],
        incoming: Sequence[Part],
        progress: Callable[[int], None] | None,
    ) -> None:
        code = _CODES[kind]
        sending = {}
        receiving = {}
        for to, data in outgoing:
            link = self._links[to]
            message = _Message(link, to, data, _HEAD.pack(code, number, data.nbytes))
            if not message.send():
                sending[link.fileno()] = message
        for of, data in incoming:
            link = self._links[of]
            receiving[link.fileno()] = _Message(link, of, data, bytes(_HEAD.size))
        everything = list(receiving.values())
        told = 0
        poll = None
        while sending or receiving:
            moved = False
            for fd, message in list(receiving.items()):
                moved |= message.receive(kind, code, number)
                if message.complete:
                    del receiving[fd]
            for fd, message in list(sending.items()):
                before = message.at
                if message.send():
                    del sending[fd]
                moved |= message.at != before
            if progress is not None and everything:
                there = min(m.at for m in everything)
                if there > told:
                    told = there
                    progress(there)
            if not moved and (sending or receiving):
                poll = poll or _Poll()
                poll.wait(sending, receiving, self.timeout)

    def close(self, why: str = "the process group was destroyed") -> None:
        """Close all connections, which the other members notice at once."""
        if self.broken is not None:
            return
        self.broken = why
        self._store, self.on_mail = None, _refuse  # the store is closed with its last reference
        for link in self._links.values():
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            link.close()
        if self.size > 1:
            self._listener.forget(self._word)


class _Message:
    """A message being sent to or received from a member: a head that names its collective, then data."""

    __slots__ = ("at", "complete", "data", "head", "left", "link", "other", "view")

    def __init__(self, link: socket.socket, other: int, data: memoryview, head: bytes) -> None:
        self.link, self.other, self.data = link, other, data
        self.head = bytearray(head)
        self.view = memoryview(self.head)  # what is left of the head
        self.left = data
        self.at = 0  # bytes of the data sent or received
        self.complete = False

    def send(self) -> bool:
        """Send as much as the connection takes without blocking; tell whether the message is complete."""
        try:
            while True:
                if self.view.nbytes:
                    sent = _send_both(self.link, self.view, self.left)
                    head = min(sent, self.view.nbytes)
                    self.view, sent = self.view[head:], sent - head
                elif self.left.nbytes:
                    sent = self.link.send(self.left)
                else:
                    sent = 0
                self.at += sent
                self.left = self.left[sent:]
                if not self.view.nbytes and not self.left.nbytes:
                    return True
        except BlockingIOError:
            return False
        except OSError as error:
            raise _lost(self.link, self.other, "Write", error) from None

    def receive(self, kind: str, code: int, number: int) -> bool:
        """Receive what has arrived, without blocking; tell whether there was anything."""
        moved = False
        try:
            if self.view.nbytes:
                while self.view.nbytes:
                    got = self.link.recv_into(self.view)
                    if not got:
                        raise ConnectionResetError("Connection closed by peer")
                    self.view, moved = self.view[got:], True
                self._check(kind, code, number)
            if self.left.nbytes:
                got = self.link.recv_into(self.left)
                if not got:
                    raise ConnectionResetError("Connection closed by peer")
                self.at += got
                self.left, moved = self.left[got:], True
        except BlockingIOError:
            return moved
        except OSError as error:
            raise _lost(self.link, self.other, "Read", error) from None
        self.complete = not self.left.nbytes
        return moved

    def _check(self, kind: str, code: int, number: int) -> None:
        its, count, nbytes = _HEAD.unpack(self.head)
        if (its, count, nbytes) != (code, number, self.data.nbytes):
            raise DistBackendError(
                f"Rank {self.other} takes part in another collective: {_NAMES.get(its, 'something else')} number {count} with "
                f"{nbytes} bytes, where this rank is in {kind} number {number} and expects {self.data.nbytes}"
            )


def _send_both(link: socket.socket, head: memoryview, data: memoryview) -> int:
    return link.sendmsg([head, data]) if hasattr(link, "sendmsg") else link.send(head)


class _Poll:
    """Waits until one of several connections can be written to or read from."""

    def wait(
        self, sending: dict[int, _Message], receiving: dict[int, _Message], timeout: float
    ) -> None:
        if hasattr(select, "poll"):
            poll = select.poll()
            for fd in {*sending, *receiving}:
                how = (select.POLLOUT if fd in sending else 0) | (
                    select.POLLIN if fd in receiving else 0
                )
                poll.register(fd, how)
            ready: Any = poll.poll(timeout * 1000)
        else:
            ready = any(select.select(list(receiving), list(sending), [], timeout))
        if not ready:
            what = "recv" if receiving else "send"
            others = sorted({m.other for m in (receiving or sending).values()})
            raise DistBackendError(
                f"Timed out waiting {round(timeout * 1000)}ms for {what} operation to complete (ranks {others})",
                others,
            )


def _refuse(rank: int, link: socket.socket) -> None:
    link.close()


def _prepared(link: socket.socket) -> socket.socket:
    link.setblocking(False)
    return link


def _lost(link: socket.socket, other: int, what: str, error: OSError) -> DistBackendError:
    try:
        address, port = link.getpeername()[:2]
        where = f"[{address}]:{port}"
    except OSError:  # the connection is closed
        where = f"of rank {other}"
    return DistBackendError(
        f"{what} error {where}: {error.strerror or error}. This is typically caused by a remote worker hanging or bugs in the "
        f"application. Check the logs of the remote worker (rank {other}) before reporting an error.",
        [other],
    )


_KINDS = [
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "gather",
    "scatter",
    "reduce_scatter",
    "all_to_all",
    "barrier",
    "monitored_barrier",
]
_CODES = {kind: code for code, kind in enumerate(_KINDS, 0x636C7400)}
_NAMES = {code: kind for kind, code in _CODES.items()}
