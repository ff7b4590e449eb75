"""How much memory the host has, and how much of it this process can get: what Linux, Windows and control groups report.

Must not know devices.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

_UNLIMITED = 1 << 62  # bytes; stands for "no limit"
_GROUPS = Path("/sys/fs/cgroup")
# Where a control group states its numbers: of version 2, of version 1.
_LIMIT = ("memory.max", "memory/memory.limit_in_bytes")
_USAGE = ("memory.current", "memory/memory.usage_in_bytes")
_DETAILS = ("memory.stat", "memory/memory.stat")


def physical_memory() -> int:
    """Return the most bytes this process may use: the host's memory, or the control group's limit if lower."""
    if sys.platform == "win32":
        total = _windows_memory()[0]
    else:
        try:
            total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError):
            total = _UNLIMITED
    return min(total, _cgroup_number(_LIMIT, _UNLIMITED))


def available_memory() -> int:
    """Return the bytes the host could provide now without swapping, as far as the system reports them."""
    if sys.platform == "win32":
        return _windows_memory()[1]
    free = physical_memory()
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    free = min(free, int(line.split()[1]) * 1024)
                    break
    except (OSError, ValueError):
        pass
    limit = _cgroup_number(_LIMIT, _UNLIMITED)
    if limit < _UNLIMITED:
        used = _cgroup_number(_USAGE, 0) - _cgroup_cache()
        free = min(free, max(limit - used, 0))
    return free


def _cgroup_number(names: Sequence[str], default: int) -> int:
    """Return the number in the first of these files that has one; `default` if none has ("max" is no number)."""
    for name in names:
        try:
            return int((_GROUPS / name).read_text())
        except (OSError, ValueError):
            continue
    return default


def _cgroup_cache() -> int:
    """Return the bytes of page cache that the control group counts as used but can reclaim."""
    for name in _DETAILS:
        try:
            with open(_GROUPS / name) as file:
                for line in file:
                    key, _, value = line.partition(" ")
                    if key in ("inactive_file", "total_inactive_file"):
                        return int(value)
        except (OSError, ValueError):
            continue
    return 0


def _windows_memory() -> tuple[int, int]:
    """Return the bytes of memory there are, and how many of them are free."""

    class Status(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "a", "b", "c", "d", "e")),
        ]

    status = Status(length=ctypes.sizeof(Status))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return status.total, status.free
