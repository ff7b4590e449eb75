"""Stores of `distributed`: stored values, waiting for keys, and the errors when a key does not come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import cltensor.distributed as dist

SOON = timedelta(seconds=0.1)


def _tcp(_: Path) -> dist.Store:
    return dist.TCPStore("127.0.0.1", 0, 1, True)


KINDS: dict[str, Callable[[Path], dist.Store]] = {
    "tcp": _tcp,
    "hash": lambda _: dist.HashStore(),
    "file": lambda folder: dist.FileStore(str(folder / "store"), 1),
    "prefix": lambda _: dist.PrefixStore("p", dist.HashStore()),
}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> dist.Store:
    return KINDS[request.param](tmp_path)


def test_keys_are_kept(store: dist.Store) -> None:
    before = store.num_keys()
    assert store.set("a", "1") is None
    assert store.get("a") == b"1"
    assert [store.add("c", 3), store.add("c", 4), store.add("a", 2)] == [3, 7, 3]
    assert store.get("c") == b"7"
    assert store.num_keys() == before + 2
    assert [store.check(["a", "c"]), store.check(["a", "z"])] == [True, False]
    assert store.delete_key("a")
    assert not store.check(["a"])
    cases = [("k", "", "v1"), ("k", "v1", "v2"), ("k", "v1", "v3"), ("none", "x", "y")]
    assert [store.compare_set(*case) for case in cases] == [b"v1", b"v2", b"v2", b"x"]
    store.set("bytes", b"\x00\xff")
    assert store.get("bytes") == b"\x00\xff"
    store.append("list", "x")
    store.append("list", "y")
    assert store.get("list") == b"xy"
    store.multi_set(["m", "n"], ["1", "2"])
    assert store.multi_get(["m", "n"]) == [b"1", b"2"]
    assert {"k", "m", "n", "list"} <= set(store.list_keys())
    store.wait(["m", "n"])
    assert store.clone().get("m") == b"1"
    with pytest.raises(TypeError, match="incompatible function arguments"):
        store.set("a", 3)


def test_what_does_not_come_is_an_error(store: dist.Store) -> None:
    store.set_timeout(SOON)
    assert store.timeout == SOON
    with pytest.raises(dist.DistStoreError, match=r"[Ww]ait timeout|Timeout waiting for key: no"):
        store.get("no")
    with pytest.raises(dist.DistStoreError, match=r"[Ww]ait timeout"):
        store.wait(["no"], SOON)


def test_what_comes_later_is_waited_for(store: dist.Store) -> None:
    other = store.clone()

    def write() -> None:
        time.sleep(0.05)
        other.set("late", "here")

    thread = threading.Thread(target=write)
    thread.start()
    assert store.get("late") == b"here"
    thread.join()


@pytest.mark.parametrize("kind", ["tcp", "hash", "prefix"])
def test_several_keys_in_one_step(kind: str, tmp_path: Path) -> None:
    store = KINDS[kind](tmp_path)
    assert store.has_extended_api()
    for values in (["1", 3], ["1"]):  # one that cannot be stored, and too few
        with pytest.raises((TypeError, ValueError)):
            store.multi_set(["a", "b"], values)
        assert not store.check(["a"])  # nothing is written, not even those before it
    other, stop = store.clone(), threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            other.multi_set(["a", "b"], [str(n), str(n)])

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while len(seen) < 20:
        seen.add(tuple(store.multi_get(["a", "b"])))
    stop.set()
    thread.join()
    assert all(a == b for a, b in seen)
    store.set_timeout(SOON)
    with pytest.raises(dist.DistStoreError, match=r"[Ww]ait timeout"):
        store.multi_get(["a", "no"])


@pytest.mark.parametrize("kind", ["tcp", "hash", "prefix"])
def test_queues(kind: str, tmp_path: Path) -> None:
    store = KINDS[kind](tmp_path)
    store.queue_push("q", "1")
    store.queue_push("q", "2")
    assert [store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q")] == [2, b"1", b"2"]
    with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", False)
    store.set_timeout(SOON)
    with pytest.raises(dist.DistStoreError):
        store.queue_pop("q")


def test_a_file_goes_with_its_last_store(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    first, second = dist.FileStore(str(path), 2), dist.FileStore(str(path), 2)
    first.set("a", "1")
    assert second.get("a") == b"1"
    del first
    assert path.exists()
    del second
    assert not path.exists()


def test_a_store_that_is_not_there() -> None:
    with pytest.raises(dist.DistNetworkError, match="timed out after 200ms while trying to conn"):
        dist.TCPStore("127.0.0.1", 9, 2, False, timedelta(seconds=0.2))
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(seconds=0.2))
    one = dist.TCPStore("127.0.0.1", 0, None, True)
    with pytest.raises(dist.DistNetworkError, match=f"failed to listen.*port: {one.port}"):
        dist.TCPStore("127.0.0.1", one.port, None, True)
    shared = dist.TCPStore("127.0.0.1", 0, None, True, multi_tenant=True)
    again = dist.TCPStore("127.0.0.1", shared.port, None, True, multi_tenant=True)
    shared.set("a", "1")
    assert again.get("a") == b"1"


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"init_method": "tcp://localhost"}, ValueError, "tcp:// rendezvous: port number missing"),
    ({"init_method": "tcp://localhost:1"}, ValueError, "tcp:// rendezvous: rank parameter missing"),
    ({"init_method": "tcp://localhost:1", "rank": 0}, ValueError, "world size parameter missing"),
    ({"init_method": "file://"}, ValueError, "file:// rendezvous: path missing"),
    ({"init_method": "foo://x", "rank": 0, "world_size": 1}, RuntimeError, "No rendezvous handler for foo://"),
    ({"init_method": 3}, RuntimeError, "`url` must be a string"),
    ({"backend": "mpi"}, RuntimeError, "doesn't have MPI built in"),
    ({"timeout": 3}, TypeError, r"of type datetime\.timedelta"),
    ({"store": dist.HashStore()}, AssertionError, "world_size must be positive if using store"),
    ({"store": dist.HashStore(), "init_method": "env://"}, AssertionError, "both init_method and store"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_groups_that_cannot_be_made(case: int) -> None:
    how, kind, text = REFUSED[case]
    with pytest.raises(kind, match=text):
        dist.init_process_group(**how)
    assert not dist.is_initialized()


def test_the_environment_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "localhost")):
        with pytest.raises(ValueError, match=f"environment variable {name} expected, but not set"):
            dist.init_process_group()
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="MASTER_PORT expected"):
        dist.init_process_group()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.get_rank()
