"""How many processors this process may keep busy, and how drivers that have their own threads are told.

Must not know any driver's files; loader.py and pocl.py say which variable is whose.
"""

from __future__ import annotations

import os
from pathlib import Path


def processors() -> int:
    """Return how many processors this process may keep busy: those it is bound to, and its control group's share of them."""
    bound = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(bound, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such group, or "max"
        return bound


def wanted(size: int) -> int:
    """Return how many threads are to work: OMP_NUM_THREADS of them where that is set, for several processes share a machine by it."""
    text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(size, int(text)) if text.isdigit() and int(text) else size


def limit_threads(variable: str) -> None:
    """Have a driver that reads `variable` start no more threads than OMP_NUM_THREADS says.

    Children inherit the variable, so a lower number holds.
    """
    most = wanted(os.cpu_count() or 1)
    if most < number(variable, os.cpu_count() or 1):
        os.environ[variable] = str(most)


def number(variable: str, default: int) -> int:
    """Return what a variable says, 0 where that is no number."""
    text = os.environ.get(variable)
    return default if text is None else int(text) if text.isdigit() else 0
