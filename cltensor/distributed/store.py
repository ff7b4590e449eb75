"""Stores: keys with bytes as values, which processes share and by which they find each other.

`HashStore` is a dictionary within one process, `FileStore` a file that all processes append to, `PrefixStore` a part of
another store. `TCPStore`, for keys in another process, is in tcp_store.py. Knows nothing of tensors or groups.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from .errors import DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "default_timeout"]

default_timeout = timedelta(minutes=5)
_LOOK_AGAIN = 0.01  # seconds between two looks at a file


def as_bytes(value: Any, call: str) -> bytes:
    """Return a value as the bytes that are stored; TypeError unless it is text or bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    raise TypeError(
        f"{call}(): incompatible function arguments. The following argument types are supported:\n"
        f"    1. (self: cltensor.distributed.Store, arg0: str, arg1: str) -> None\n\nInvoked with: {value!r}"
    )


def _plain(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value


class Store:
    """Keys and their bytes; subclasses say where. `set` and `add` make keys, `get` and `wait` wait for them."""

    _timeout = default_timeout

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait for a key."""
        self._timeout = timeout

    def set(self, key: str, value: Any) -> None:
        """Write a key."""
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        """Return a key's bytes, waiting until it is there. DistStoreError after the timeout."""
        raise NotImplementedError

    def add(self, key: str, amount: int) -> int:
        """Add to a key's number, 0 where there is none, and return the sum."""
        raise NotImplementedError

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Write `desired_value` if the key's value is `expected_value`, or if there is no key and that is empty.

        Return the key's value after that, `expected_value` if there is no key.
        """
        raise NotImplementedError

    def delete_key(self, key: str) -> bool:
        """Remove a key; tell whether it was there."""
        raise NotImplementedError

    def num_keys(self) -> int:
        """Return the number of keys."""
        raise NotImplementedError

    def check(self, keys: Sequence[str]) -> bool:
        """Tell whether all of these keys are there."""
        raise NotImplementedError

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all of these keys are there. DistStoreError after the timeout."""
        raise NotImplementedError

    def list_keys(self) -> list[str]:
        """Return the keys."""
        raise NotImplementedError

    def append(self, key: str, value: Any) -> None:
        """Append bytes to those of a key, which is made if it does not exist."""
        raise NotImplementedError

    def clone(self) -> Store:
        """Return a store of the same keys, for another thread."""
        return self

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Write several keys; ValueError for another number of values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the bytes of several keys, waiting for each."""
        return [self.get(key) for key in keys]

    def has_extended_api(self) -> bool:
        """Tell whether `append`, `multi_get` and `multi_set` are one step each."""
        return False

    def queue_push(self, key: str, value: Any) -> None:
        """Put bytes at the end of a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the bytes at the front of a queue; QueueEmptyError where there are none and `block` is False."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        """Return the number of entries in a queue."""
        raise NotImplementedError("queue support is not implemented.")


class HashStore(Store):
    """Keys in the memory of this process, for all of its threads."""

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}
        self._queues: dict[str, deque[bytes]] = {}
        self._changed = threading.Condition()

    def has_extended_api(self) -> bool:
        return True

    def set(self, key: str, value: Any) -> None:
        made = as_bytes(value, "set")
        with self._changed:
            self._keys[_plain(key)] = made
            self._changed.notify_all()

    def _wait_for(self, there: Callable[[], bool], timeout: timedelta | None) -> None:
        limit = self._timeout if timeout is None else timeout
        if not self._changed.wait_for(there, limit.total_seconds()):
            raise DistStoreError("Wait timeout")

    def get(self, key: str, timeout: timedelta | None = None) -> bytes:
        key = _plain(key)
        with self._changed:
            self._wait_for(lambda: key in self._keys, timeout)
            return self._keys[key]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        made = {
            _plain(key): as_bytes(value, "multi_set")
            for key, value in zip(keys, values, strict=True)
        }
        with self._changed:
            self._keys.update(made)
            self._changed.notify_all()

    def multi_get(self, keys: Sequence[str], timeout: timedelta | None = None) -> list[bytes]:
        with self._changed:
            self._wait_for(lambda: all(_plain(key) in self._keys for key in keys), timeout)
            return [self._keys[_plain(key)] for key in keys]

    def add(self, key: str, amount: int) -> int:
        key = _plain(key)
        with self._changed:
            total = int(self._keys.get(key, b"0")) + int(amount)
            self._keys[key] = str(total).encode()
            self._changed.notify_all()
        return total

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        key = _plain(key)
        expected = as_bytes(expected_value, "compare_set")
        desired = as_bytes(desired_value, "compare_set")
        with self._changed:
            have = self._keys.get(key)
            if have is None and expected:
                return expected
            if have is None or have == expected:
                have = self._keys[key] = desired
                self._changed.notify_all()
            return have

    def delete_key(self, key: str) -> bool:
        with self._changed:
            return self._keys.pop(_plain(key), None) is not None

    def num_keys(self) -> int:
        return len(self._keys)

    def check(self, keys: Sequence[str]) -> bool:
        with self._changed:
            return all(_plain(key) in self._keys for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        with self._changed:
            self._wait_for(lambda: all(_plain(key) in self._keys for key in keys), timeout)

    def list_keys(self) -> list[str]:
        with self._changed:
            return list(self._keys)

    def append(self, key: str, value: Any) -> None:
        made = as_bytes(value, "append")
        with self._changed:
            self._keys[_plain(key)] = self._keys.get(_plain(key), b"") + made
            self._changed.notify_all()

    def queue_push(self, key: str, value: Any) -> None:
        made = as_bytes(value, "queue_push")
        with self._changed:
            self._queues.setdefault(_plain(key), deque()).append(made)
            self._changed.notify_all()

    def queue_pop(self, key: str, block: bool = True, timeout: timedelta | None = None) -> bytes:
        key = _plain(key)
        with self._changed:
            if not block and not self._queues.get(key):
                raise QueueEmptyError("queue is empty")
            self._wait_for(lambda: bool(self._queues.get(key)), timeout)
            return self._queues[key].popleft()

    def queue_len(self, key: str) -> int:
        with self._changed:
            return len(self._queues.get(_plain(key), ()))


class FileStore(Store):
    """Keys in a file that all processes share: each change is a record appended under a lock of the file.

    The last of `world_size` stores deletes the file; with an unknown `world_size` it stays. As in torch, `delete_key`
    returns True whether or not the key was there.
    """

    _USERS, _DONE = "efcount/", "cleanup/"
    _GONE = (1 << 64) - 1  # the length that stands for a removed key

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.path, self._world_size = os.fspath(file_name), world_size
        self._known: dict[str, bytes] = {}
        self._read = 0
        self._lock = threading.Lock()
        self.add(self._USERS, 1)

    def __del__(self) -> None:
        try:
            left = self.add(self._USERS, -1)
            if self._world_size >= 0 and not left and self.add(self._DONE, 1) >= 1:
                os.remove(self.path)
        except Exception:  # the folder is gone, or the interpreter is shutting down
            return

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open and lock the file, and read the records that other processes have appended."""
        with self._lock, open(self.path, "a+b") as file:
            _lock_file(file)
            try:
                file.seek(self._read)
                data = file.read()
                at = 0
                while at < len(data):
                    size, length = struct.unpack_from("<QQ", data, at)
                    key = data[at + 16 : at + 16 + size].decode()
                    at += 16 + size
                    if length == self._GONE:
                        self._known.pop(key, None)
                        continue
                    self._known[key] = data[at : at + length]
                    at += length
                self._read += len(data)
                yield file
            finally:
                _unlock_file(file)

    def _write(self, file: Any, key: str, value: bytes | None) -> None:
        name = key.encode()
        length = self._GONE if value is None else len(value)
        record = struct.pack("<QQ", len(name), length) + name + (value or b"")
        file.write(record)
        file.flush()
        self._read += len(record)
        if value is None:
            self._known.pop(key, None)
        else:
            self._known[key] = value

    def set(self, key: str, value: Any) -> None:
        made = as_bytes(value, "set")
        with self._opened() as file:
            self._write(file, _plain(key), made)

    def _until(self, keys: Sequence[str], timeout: timedelta | None, text: str) -> None:
        limit = (self._timeout if timeout is None else timeout).total_seconds()
        end = time.monotonic() + limit
        while not self.check(keys):
            if time.monotonic() > end:
                raise DistStoreError(text.format(ms=round(limit * 1000)))
            time.sleep(_LOOK_AGAIN)

    def get(self, key: str) -> bytes:
        self._until([key], None, f"Timeout waiting for key: {key} after {{ms}} ms")
        return self._known[_plain(key)]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._until(keys, timeout, "Wait timeout")

    def add(self, key: str, amount: int) -> int:
        with self._opened() as file:
            total = int(self._known.get(_plain(key), b"0")) + int(amount)
            self._write(file, _plain(key), str(total).encode())
        return total

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        expected = as_bytes(expected_value, "compare_set")
        desired = as_bytes(desired_value, "compare_set")
        with self._opened() as file:
            have = self._known.get(_plain(key))
            if have is None and expected:
                return expected
            if have is None or have == expected:
                self._write(file, _plain(key), desired)
            return self._known[_plain(key)]

    def delete_key(self, key: str) -> bool:
        with self._opened() as file:
            self._write(file, _plain(key), None)
        return True

    def num_keys(self) -> int:
        return len(self.list_keys())

    def check(self, keys: Sequence[str]) -> bool:
        with self._opened():
            return all(_plain(key) in self._known for key in keys)

    def list_keys(self) -> list[str]:
        with self._opened():
            return list(self._known)

    def append(self, key: str, value: Any) -> None:
        made = as_bytes(value, "append")
        with self._opened() as file:
            self._write(file, _plain(key), self._known.get(_plain(key), b"") + made)


def _lock_file(file: Any) -> None:
    if os.name == "nt":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _unlock_file(file: Any) -> None:
    if os.name == "nt":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined,unused-ignore]


class PrefixStore(Store):
    """The keys of another store that begin with a prefix, named without the prefix."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store = prefix, store

    def _full(self, key: str) -> str:
        return f"{self.prefix}/{_plain(key)}"

    @property
    def timeout(self) -> timedelta:
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self.underlying_store.set_timeout(timeout)

    def has_extended_api(self) -> bool:
        return self.underlying_store.has_extended_api()

    def set(self, key: str, value: Any) -> None:
        self.underlying_store.set(self._full(key), value)

    def get(self, key: str) -> bytes:
        return self.underlying_store.get(self._full(key))

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        self.underlying_store.multi_set([self._full(key) for key in keys], values)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self.underlying_store.multi_get([self._full(key) for key in keys])

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._full(key), amount)

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        return self.underlying_store.compare_set(self._full(key), expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._full(key))

    def num_keys(self) -> int:
        return self.underlying_store.num_keys()

    def check(self, keys: Sequence[str]) -> bool:
        return self.underlying_store.check([self._full(key) for key in keys])

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self.underlying_store.wait([self._full(key) for key in keys], timeout)

    def list_keys(self) -> list[str]:
        start = f"{self.prefix}/"
        found = self.underlying_store.list_keys()
        return [key.removeprefix(start) for key in found if key.startswith(start)]

    def append(self, key: str, value: Any) -> None:
        self.underlying_store.append(self._full(key), value)

    def queue_push(self, key: str, value: Any) -> None:
        self.underlying_store.queue_push(self._full(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self.underlying_store.queue_pop(self._full(key), block)

    def queue_len(self, key: str) -> int:
        return self.underlying_store.queue_len(self._full(key))

    def clone(self) -> Store:
        return PrefixStore(self.prefix, self.underlying_store.clone())
