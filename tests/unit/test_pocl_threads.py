"""PoCL's threads are bound only if the process may use every processor and each gets one thread: else PoCL would abort,
or processes collide."""

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
    monkeypatch.delenv("POCL_CPU_MAX_CU_COUNT", raising=False)
    if threads is not None:
        monkeypatch.setenv("POCL_MAX_PTHREAD_COUNT", threads)
    assert pocl._a_thread_per_processor() is bound


@pytest.mark.parametrize(
    ("wanted", "given", "found"),
    [
        ("1", None, "1"),
        ("2,1", None, "2"),
        ("1", "3", "1"),
        ("3", "2", "2"),
        ("4", None, None),
        ("16", None, None),
        ("", "2", "2"),
        (None, None, None),
    ],
)
def test_processes_that_share_a_machine(
    wanted: str | None, given: str | None, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PoCL without our thread team uses at most OMP_NUM_THREADS threads, and these are not bound to processors."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    for name, text in (
        ("OMP_NUM_THREADS", wanted),
        ("POCL_CPU_MAX_CU_COUNT", given),
        ("POCL_MAX_PTHREAD_COUNT", None),
    ):
        if text is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, text)
    try:
        pocl.limit_threads(pocl._MOST_THREADS)
        assert os.environ.get("POCL_CPU_MAX_CU_COUNT") == found
        assert pocl._a_thread_per_processor() is (found is None)
    finally:
        os.environ.pop("POCL_CPU_MAX_CU_COUNT", None)
