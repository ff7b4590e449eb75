"""Backends in forked children, and how processes are started.

Note [Forks]. A driver's threads do not exist in a forked child: what is enqueued there is never run. A team does without them.
PoCL allocates and compiles in the thread that asks, and launches and copies are the team's, which begins anew. So a child has
the cpu device, with the values of before the fork, as torch's children have theirs; every other device refuses there.

Owns what becomes of backends at a fork. Must not know what they do.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import Any, NoReturn

from . import loader
from .backend import Backend, get_backend, in_use, keep_forever, registry, registry_lock
from .device import device


def _refused(_: Any) -> NoReturn:
    raise RuntimeError(loader.FORK_ERROR)


class _TeamBackend(Backend):
    """What the backend of a team becomes in a forked child: one without queues."""

    queue = property(_refused)
    inline = property(_refused)

    def timed_queue(self) -> Any:
        _refused(self)


class _ForkedBackend(Backend):
    """What any other backend becomes in a forked child."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        if name in ("device", "info"):
            return object.__getattribute__(self, name)
        _refused(self)


def survives_fork() -> bool:
    """Say whether forked children can use the cpu device (Note [Forks])."""
    try:
        return hasattr(os, "fork") and get_backend(device("cpu")).team is not None
    except RuntimeError:  # there is no such device
        return False


def start_method() -> str:
    """Name the way to start processes: Python's, but "spawn" where it would be "fork" and the cpu device does not survive that."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    method = chosen or multiprocessing.get_all_start_methods()[0]
    return "spawn" if method == "fork" and not survives_fork() else method


_forking: list[Any] = []  # locks that the thread that forks holds: nothing is half done then


def _before_fork() -> None:
    if loader.loaded():  # by who only asked what there is: a child cannot begin with a driver
        survives_fork()
    registry_lock.acquire()
    _forking.append(registry_lock)
    for backend in in_use():
        backend.lock.acquire()
        _forking.append(backend.lock)
        if backend.team is not None:
            backend.finish()


def _after_fork() -> None:
    while _forking:
        _forking.pop().release()


def _after_fork_in_child() -> None:
    for backend in in_use():
        if backend.team is not None:
            backend.__class__ = _TeamBackend
            backend.team.forget_helpers()
        else:
            keep_forever(backend)  # releasing what it owns would ask the driver too
            backend.__class__ = _ForkedBackend
    for name, backend in list(registry.items()):
        if isinstance(backend, _ForkedBackend):
            del registry[name]
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
