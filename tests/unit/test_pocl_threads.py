"""PoCL's threads are bound only where every processor is ours and has one: elsewhere PoCL would abort, or processes would meet."""

from __future__ import annotations

import os

import pytest

from cltensor.runtime import pocl


@pytest.mark.parametrize(
    ("ours", "processors", "threads", "bound"),
    [
        ({0, 1, 2, 3}, 4, None, True),
        ({0, 1, 2, 3}, 4, "4", True),
        ({0, 1, 2, 3}, 4, "16", True),
        ({0, 1, 2, 3}, 4, "2", False),
        ({0, 1, 2, 3}, 4, "many", False),
        ({0, 1}, 4, None, False),
        ({2, 3}, 4, None, False),
        ({0, 2, 3}, 3, None, False),
    ],
)
def test_when_threads_are_bound(
    ours: set[int],
    processors: int,
    threads: str | None,
    bound: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: ours, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    monkeypatch.delenv("POCL_MAX_PTHREAD_COUNT", raising=False)
    if threads is not None:
        monkeypatch.setenv("POCL_MAX_PTHREAD_COUNT", threads)
    assert pocl._a_thread_per_processor() is bound
