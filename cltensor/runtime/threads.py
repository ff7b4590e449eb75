"""The number of processors this process may keep busy, and how drivers with threads of their own are limited to it.

Must not know any driver's files; loader.py and pocl.py say which environment variable belongs to which driver.
"""

from __future__ import annotations

import os
from pathlib import Path


def processors() -> int:
    """Return how many processors this process may keep busy: those it is bound to, or its control group's
    lower quota.
    """
    bound = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(bound, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such group, or "max"
        return bound


def wanted(size: int) -> int:
    """Return how many of `size` threads should work: at most OMP_NUM_THREADS, by which several processes share a
    machine.
    """
    text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(size, int(text)) if text.isdigit() and int(text) else size


def limit_threads(variable: str) -> None:
    """Make a driver that reads `variable` start no more threads than OMP_NUM_THREADS says.

    A lower number that is set already is left alone; child processes inherit the variable.
    """
    most = wanted(os.cpu_count() or 1)
    if most < number(variable, os.cpu_count() or 1):
        os.environ[variable] = str(most)


def number(variable: str, default: int) -> int:
    """Return the number in an environment variable: `default` if it is not set, 0 if it is not a number."""
    text = os.environ.get(variable)
    return default if text is None else int(text) if text.isdigit() else 0
