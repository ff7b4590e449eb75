"""Backends in forked children, and how processes are started.

Note [Forks]. A driver's threads do not exist in a forked child, so commands enqueued there would never run. A team does
not need them: PoCL allocates and compiles in the calling thread, and the team does launches and copies, with new
helpers in the child. So a child can use the cpu device, with the values from before the fork, as torch's children can;
every other device raises there.

Owns what becomes of backends at a fork. Must not know what backends do.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import Any, NoReturn

from . import loader, registry
from .backend import Backend
from .device import device
from .loader import keep_forever
from .registry import get_backend, in_use


def _refused(_: Any) -> NoReturn:
    raise RuntimeError(loader.FORK_ERROR)


class _TeamBackend(Backend):
    """The class that a backend with a team gets in a forked child: its queues raise."""

    queue = property(_refused)
    inline = property(_refused)

    def timed_queue(self) -> Any:
        _refused(self)


class _ForkedBackend(Backend):
    """The class that a backend without a team gets in a forked child: everything but `device` and `info` raises."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in ("device", "info"):
            return object.__getattribute__(self, name)
        _refused(self)


def survives_fork() -> bool:
    """Return whether forked children can use the cpu device (Note [Forks])."""
    try:
        return hasattr(os, "fork") and get_backend(device("cpu")).team is not None
    except RuntimeError:  # there is no such device
        return False


def start_method() -> str:
    """Return the start method for new processes: Python's own, but "spawn" where that is "fork" and the cpu device does
    not survive a fork.
    """
    chosen = multiprocessing.get_start_method(allow_none=True)
    method = chosen or multiprocessing.get_all_start_methods()[0]
    return "spawn" if method == "fork" and not survives_fork() else method


# Locks that the forking thread holds, so that no other thread is in a critical section.
_forking: list[Any] = []


def _before_fork() -> None:
    # If only the list of devices was asked for, make the cpu backend now: a child cannot load a driver anew.
    if loader.loaded():
        survives_fork()
    registry.lock.acquire()
    _forking.append(registry.lock)
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
            keep_forever(backend)  # releasing its OpenCL objects would call the driver
            backend.__class__ = _ForkedBackend
    for name, backend in list(registry.backends.items()):
        if isinstance(backend, _ForkedBackend):
            del registry.backends[name]
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
