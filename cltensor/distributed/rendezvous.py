"""How processes find their store: `env://`, `tcp://host:port`, `file:///path`, and schemes that programs register."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from numbers import Integral
from typing import Any
from urllib.parse import urlparse, urlunparse

from .store import FileStore, PrefixStore, Store
from .tcp_store import TCPStore

__all__ = ["default_pg_timeout", "register_rendezvous_handler", "rendezvous"]

default_pg_timeout = timedelta(minutes=30)
Found = Iterator[tuple[Store, int, int]]  # store, rank, size of the world
_handlers: dict[str, Callable[..., Found]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Found]) -> None:
    """Register `handler(url, timeout=...)` to find the store for URLs of a scheme.

    RuntimeError if that has one already.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Found:
    """Yield the store, the rank and the number of processes for a URL; ValueError where it lacks something."""
    if not isinstance(url, str | bytes):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url!r}")
    if not isinstance(rank, Integral):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, Integral):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parts: Any = urlparse(url)
    if rank != -1 or world_size != -1:
        query = _query(parts.query)
        if "rank" in query or "world_size" in query:
            raise AssertionError(
                f"The url: {url!r} has node-specific arguments(rank, world_size) already."
            )
        if rank != -1:
            query["rank"] = str(rank)
        if world_size != -1:
            query["world_size"] = str(world_size)
        parts = parts._replace(query="&".join(f"{k}={v}" for k, v in query.items()))
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](urlunparse(parts), **kwargs)


def _query(text: str) -> dict[str, str]:
    return {
        key: value for key, _, value in (pair.partition("=") for pair in text.split("&") if pair)
    }


def _error(how: str, text: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {how}:// rendezvous: {text}")


def _numbers(how: str, query: dict[str, str]) -> tuple[int, int]:
    if "rank" not in query:
        raise _error(how, "rank parameter missing")
    if "world_size" not in query:
        raise _error(how, "world size parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _by_file(url: str, **kwargs: Any) -> Found:
    parts = urlparse(url)
    path = parts.path
    if os.name == "nt" and path:
        from urllib.request import url2pathname

        path = os.path.normpath(url2pathname(parts.netloc + path))
    if not path:
        raise _error("file", "path missing")
    rank, world_size = _numbers("file", _query(parts.query))
    yield FileStore(path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _at(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    """Return the store at an address: the launcher's if one started the processes, else one that rank 0 keeps."""
    if not 0 <= port < 1 << 16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        # The launcher's store outlives an attempt, so each attempt has keys of its own.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return PrefixStore(f"attempt_{attempt}", TCPStore(host, port, world_size, False, timeout))
    return TCPStore(host, port, world_size, rank == 0, timeout, multi_tenant=True)


def _by_tcp(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Found:
    parts = urlparse(url)
    if parts.port is None:
        raise _error("tcp", "port number missing")
    rank, world_size = _numbers("tcp", _query(parts.query))
    if parts.hostname is None:
        raise AssertionError("hostname cannot be None")
    yield _at(parts.hostname, parts.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _by_environment(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Found:
    query = _query(urlparse(url).query)

    def asked(name: str) -> str:
        value = os.environ.get(name)
        if not value:
            raise _error("env", f"environment variable {name} expected, but not set")
        return value

    rank = int(query["rank"]) if "rank" in query else int(asked("RANK"))
    world_size = int(query["world_size"]) if "world_size" in query else int(asked("WORLD_SIZE"))
    host, port = asked("MASTER_ADDR"), int(asked("MASTER_PORT"))
    yield _at(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


register_rendezvous_handler("tcp", _by_tcp)
register_rendezvous_handler("env", _by_environment)
register_rendezvous_handler("file", _by_file)
