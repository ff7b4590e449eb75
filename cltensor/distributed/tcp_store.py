"""`TCPStore`: keys kept by one process, which the others reach over TCP.

The master process keeps the keys in a `HashStore` and answers each client in a thread of its own. Requests and answers
are lists of byte strings, never pickles, so that whoever reaches the port cannot run code. Knows nothing of tensors or
groups.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .errors import DistError, DistNetworkError, DistStoreError, QueueEmptyError
from .store import HashStore, Store, as_bytes, default_timeout

__all__ = ["TCPStore"]

_HELLO = b"cltensor-store-1"
_ARRIVED = "init/"  # the key that counts the clients; `list_keys` leaves it out
_AGAIN = 0.05  # seconds between two tries to connect
_MOST = 1 << 31  # bytes of a message, at most


def _send(link: socket.socket, parts: Sequence[bytes]) -> None:
    sizes = struct.pack(f"<I{len(parts)}Q", len(parts), *map(len, parts))
    link.sendall(b"".join((sizes, *parts)))


def read_exactly(link: socket.socket, count: int) -> bytes:
    """Read exactly `count` bytes from a connection; ConnectionError if it ends before that."""
    data = bytearray(count)
    view, at = memoryview(data), 0
    while at < count:
        got = link.recv_into(view[at:])
        if not got:
            raise ConnectionResetError("Connection reset by peer")
        at += got
    return bytes(data)


def _receive(link: socket.socket) -> list[bytes]:
    (count,) = struct.unpack("<I", read_exactly(link, 4))
    if count > _MOST >> 3:
        raise ConnectionError("not a message of a store")
    sizes = struct.unpack(f"<{count}Q", read_exactly(link, 8 * count))
    if sum(sizes) > _MOST:
        raise ConnectionError("not a message of a store")
    return [read_exactly(link, size) for size in sizes]


class _Server:
    """The master's keys, its listening socket, and the threads that answer clients."""

    def __init__(self, host: str, port: int) -> None:
        self.keys = HashStore()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.socket(family, socket.SOCK_STREAM)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listening.bind(("", port))
            self._listening.listen(1024)
        except OSError as error:
            self._listening.close()
            raise DistNetworkError(
                f"The server socket has failed to listen on any local network address. port: {port}, useIpv6: false, code: -{error.errno}, "
                f"name: EADDRINUSE, message: {(error.strerror or str(error)).lower()}"
            ) from None
        self.port = self._listening.getsockname()[1]
        threading.Thread(
            target=_accept, args=(self._listening, self.keys), daemon=True, name="store"
        ).start()

    def close(self) -> None:
        """Stop listening; clients already connected are still answered."""
        try:
            self._listening.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listening.close()

    def __del__(self) -> None:
        self.close()


def _accept(listening: socket.socket, keys: HashStore) -> None:
    while True:
        try:
            link, _ = listening.accept()
        except OSError:  # closed
            return
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_serve, args=(link, keys), daemon=True, name="store").start()


def _serve(link: socket.socket, keys: HashStore) -> None:
    try:
        with link:
            if read_exactly(link, len(_HELLO)) != _HELLO:
                return
            while True:
                call, *given = _receive(link)
                try:
                    answer = [b"", *_answer(keys, call.decode(), given)]
                except DistError as error:
                    answer = [type(error).__name__.encode(), str(error).encode()]
                except ValueError as error:  # `add` to a key that holds no number
                    answer = [b"DistStoreError", str(error).encode()]
                _send(link, answer)
    except (OSError, ValueError, struct.error):  # the client is gone, or never was one
        return


def _answer(keys: HashStore, call: str, given: list[bytes]) -> list[bytes]:
    """Execute a client's request; return the parts of the answer."""
    if call == "set":
        keys.set(given[0].decode(), given[1])
    elif call == "multi_set":
        keys.multi_set([key.decode() for key in given[::2]], given[1::2])
    elif call == "multi_get":
        limit = timedelta(seconds=float(given[0]))
        return keys.multi_get([key.decode() for key in given[1:]], limit)
    elif call == "append":
        keys.append(given[0].decode(), given[1])
    elif call == "add":
        return [str(keys.add(given[0].decode(), int(given[1]))).encode()]
    elif call == "compare_set":
        return [keys.compare_set(given[0].decode(), given[1], given[2])]
    elif call == "delete_key":
        return [b"1" if keys.delete_key(given[0].decode()) else b""]
    elif call == "num_keys":
        return [str(keys.num_keys()).encode()]
    elif call == "list_keys":
        return [key.encode() for key in keys.list_keys()]
    elif call == "check":
        return [b"1" if keys.check([key.decode() for key in given]) else b""]
    elif call == "wait":
        keys.wait([key.decode() for key in given[1:]], timedelta(seconds=float(given[0])))
    elif call == "get":
        return [keys.get(given[1].decode(), timedelta(seconds=float(given[0])))]
    elif call == "queue_push":
        keys.queue_push(given[0].decode(), given[1])
    elif call == "queue_pop":
        limit = timedelta(seconds=float(given[0]))
        return [keys.queue_pop(given[1].decode(), bool(given[2]), limit)]
    elif call == "queue_len":
        return [str(keys.queue_len(given[0].decode())).encode()]
    else:
        raise DistStoreError(f"the store does not know {call!r}")
    return []


_servers: weakref.WeakValueDictionary[int, _Server] = weakref.WeakValueDictionary()


class TCPStore(Store):
    """Keys in the memory of the master, the process that made the store with `is_master`.

    port: with 0 the master chooses one, and sets the attribute `port`. With `wait_for_workers` the master waits for
    `world_size` stores. multi_tenant: stores of one process with the same port share their keys. DistNetworkError where
    the master is not found.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = default_timeout,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        self.host, self._timeout, self.libuvBackend = host_name, timeout, use_libuv
        self._server: _Server | None = None
        if is_master:
            self._server = _servers.get(port) if multi_tenant else None
            if self._server is None:
                self._server = _Server(host_name, port)
                if multi_tenant:
                    _servers[self._server.port] = self._server
            port = self._server.port
        self.port = port
        self._asking = threading.Lock()
        self._link = _connect(host_name, port, timeout)
        # This process's address in the network in which it reaches the master.
        self.address = self._link.getsockname()[0]
        arrived = self.add(_ARRIVED, 1)
        if is_master and wait_for_workers and world_size is not None and world_size > 0:
            self._wait_for_clients(arrived, world_size)

    def _wait_for_clients(self, arrived: int, wanted: int) -> None:
        end = time.monotonic() + self._timeout.total_seconds()
        while arrived < wanted:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"Timed out after {round(self._timeout.total_seconds()) + 1} seconds waiting for clients. {arrived}/{wanted} clients joined."
                )
            time.sleep(0.005)
            arrived = int(self._ask("add", _ARRIVED, b"0")[0])

    def __repr__(self) -> str:
        server = "<nullptr>" if self._server is None else f"TCPServer(port={self.port})"
        return f"TCPStore(client=TCPClient({self.host}:{self.port}), server={server})"

    def __del__(self) -> None:
        link = getattr(self, "_link", None)
        if link is not None:
            link.close()

    def _ask(self, call: str, *given: Any, wait: float = 0.0) -> list[bytes]:
        """Send a request; return the answer, or raise the error in it."""
        parts = [g.encode() if isinstance(g, str) else g for g in given]
        with self._asking:
            try:
                self._link.settimeout(wait + max(30.0, self._timeout.total_seconds()))
                _send(self._link, [call.encode(), *parts])
                status, *answer = _receive(self._link)
            except (OSError, struct.error) as error:
                raise DistNetworkError(
                    f"failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash? ({error})"
                ) from None
        if status == b"QueueEmptyError":
            raise QueueEmptyError(answer[0].decode())
        if status:
            raise DistStoreError(answer[0].decode())
        return answer

    def _ask_waiting(
        self, call: str, timeout: timedelta | None, keys: Sequence[str], *rest: bytes
    ) -> list[bytes]:
        limit = (self._timeout if timeout is None else timeout).total_seconds()
        try:
            return self._ask(call, repr(limit), *keys, *rest, wait=limit)
        except QueueEmptyError:
            raise
        except DistStoreError as error:
            if str(error) != "Wait timeout":
                raise
            named = ", ".join(f"/{key}" for key in keys)
            raise DistStoreError(
                f"wait timeout after {round(limit * 1000)}ms, keys: {named}"
            ) from None

    def has_extended_api(self) -> bool:
        return True

    def set(self, key: str, value: Any) -> None:
        self._ask("set", key, as_bytes(value, "set"))

    def get(self, key: str) -> bytes:
        return self._ask_waiting("get", None, [key])[0]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        parts: list[Any] = []
        for key, value in zip(keys, values, strict=True):
            parts += key, as_bytes(value, "multi_set")
        self._ask("multi_set", *parts)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._ask_waiting("multi_get", None, keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._ask_waiting("wait", timeout, keys)

    def add(self, key: str, amount: int) -> int:
        return int(self._ask("add", key, str(int(amount)))[0])

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        expected = as_bytes(expected_value, "compare_set")
        desired = as_bytes(desired_value, "compare_set")
        return self._ask("compare_set", key, expected, desired)[0]

    def delete_key(self, key: str) -> bool:
        return bool(self._ask("delete_key", key)[0])

    def num_keys(self) -> int:
        return int(self._ask("num_keys")[0])

    def check(self, keys: Sequence[str]) -> bool:
        return bool(self._ask("check", *keys)[0])

    def list_keys(self) -> list[str]:
        return [key.decode() for key in self._ask("list_keys") if key.decode() != _ARRIVED]

    def append(self, key: str, value: Any) -> None:
        self._ask("append", key, as_bytes(value, "append"))

    def queue_push(self, key: str, value: Any) -> None:
        self._ask("queue_push", key, as_bytes(value, "queue_push"))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._ask_waiting("queue_pop", None, [key], b"1" if block else b"")[0]

    def queue_len(self, key: str) -> int:
        return int(self._ask("queue_len", key)[0])

    def clone(self) -> TCPStore:
        """Return another connection to the same keys."""
        made = TCPStore.__new__(TCPStore)
        made.__dict__.update(self.__dict__, _server=None, _asking=threading.Lock())
        made._link = _connect(self.host, self.port, self._timeout)
        return made


def _connect(host: str, port: int, timeout: timedelta) -> socket.socket:
    """Connect to the master, which may not be listening yet, until the timeout."""
    limit = timeout.total_seconds()
    end = time.monotonic() + limit
    while True:
        try:
            link = socket.create_connection((host, port), max(0.1, end - time.monotonic()))
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.sendall(_HELLO)
            return link
        except OSError:
            if time.monotonic() + _AGAIN > end:
                raise DistNetworkError(
                    f"The client socket has timed out after {round(limit * 1000)}ms while trying to connect to ({host}, {port})."
                ) from None
            time.sleep(_AGAIN)
