"""`torch.cpu`: the functions that device-agnostic programs call in a device type's module, for the device "cpu"."""

from __future__ import annotations

from typing import Any

from .. import opencl
from . import amp
from .capabilities import get_capabilities
from .streams import Event, Stream, StreamContext, current_stream, stream

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """Return True, as torch does."""
    return True


def is_initialized() -> bool:
    """Return True, as torch does."""
    return True


def device_count() -> int:
    """Return 1."""
    return 1


def current_device() -> str:
    """Return "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Do nothing: there is only one device of this type."""


def synchronize(device: Any = None) -> None:
    """Run what is pending on the device "cpu", whatever `device` says, and wait for it."""
    opencl.synchronize("cpu")
