"""The backends in use: one for each device, made when it is first asked for, finished when the process ends.

Owns which backends there are. Must not know what backends do.
"""

from __future__ import annotations

import atexit
import threading

from cltensor.errors import debug_line

from . import loader, meta, platforms
from .backend import Backend
from .device import device, resolve

# By every name that was asked for: "cuda" and "opencl:0" may be the same backend.
backends: dict[device, Backend] = {}
lock = threading.RLock()


def get_backend(dev: device) -> Backend:
    """Return the backend of `dev`, made at first use.

    Raises AssertionError, in torch's words, for "cuda" without a GPU; RuntimeError for a device
    that does not exist or cannot run.
    """
    try:
        return backends[dev]
    except KeyError:
        return _make_backend(dev)


def _make_backend(dev: device) -> Backend:
    if dev.type == "meta":
        return meta.BACKEND
    with lock:
        if loader.forked():
            known = backends.get(device("cpu")) if dev.type == "cpu" else None
            if known is None:
                raise RuntimeError(loader.FORK_ERROR)
            backends[dev] = known  # "cpu:0"
            return known
        name, cl_device, shared = resolve(dev)
        backend = backends.get(name)
        if backend is None:
            backend = backends[name] = Backend(name, cl_device, shared)
        backends[dev] = backend
        return backend


def in_use() -> set[Backend]:
    """Return the backends made so far, each once although a device may have several names."""
    return set(backends.values())


def device_info(dev: device) -> platforms.DeviceInfo:
    """Return the `DeviceInfo` of `dev` without creating a backend for it."""
    backend = backends.get(dev)
    if backend is not None:
        return backend.info
    _, cl_device, shared = resolve(dev)
    shared = shared and platforms.is_pocl(cl_device)
    return platforms.describe(loader.load(), cl_device, host_shared=shared)


def _at_exit() -> None:
    if loader.forked():
        return
    for backend in in_use():
        try:
            backend.finish()
            backend.programs.save()
        except Exception as error:  # the process ends anyway; a traceback here would hide the one of the actual failure
            debug_line(1, "%s at exit: %s", backend.device, error)


atexit.register(_at_exit)
