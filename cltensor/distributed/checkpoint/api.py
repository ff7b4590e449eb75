"""The error of a checkpoint that some processes could not write or read, and work that fails in all processes together."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from .. import groups
from ..objects import all_gather_object

Failure = tuple[BaseException, traceback.StackSummary | None]


class CheckpointException(BaseException):
    """Raised in all processes where a checkpoint failed in some of them; `failures` has an error and its trace by rank."""

    def __init__(self, msg: str, failures: dict[int, Failure]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Failure]:
        """The error and its stack trace of each rank that failed."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks:{self._failures.keys()}\n"]
        for rank, (error, trace) in self._failures.items():
            lines.append(f"Traceback (most recent call last): (RANK {rank})\n")
            lines += traceback.format_list(trace or [])
            lines += traceback.format_exception_only(type(error), error)
        return "".join(lines)


def _portable(trace: traceback.StackSummary) -> traceback.StackSummary:
    """Return a stack trace as text alone, which other processes can be sent."""
    frames = [(frame.filename, frame.lineno or 0, frame.name, frame.line) for frame in trace]
    return traceback.StackSummary.from_list(frames)


class Members:
    """The processes that write or read a checkpoint together.

    group: theirs, None for the default one. alone: this process works by itself, also where no group was made.
    """

    def __init__(self, group: Any, alone: bool) -> None:
        self.group = group
        self.alone = alone or not groups.is_initialized()
        self.rank = 0 if self.alone else groups.get_rank(group)
        self.count = 1 if self.alone else groups.get_world_size(group)

    def gather(self, step: str, work: Callable[[], Any]) -> list[Any]:
        """Return what `work` returns in each process; CheckpointException in all of them if it raises in one."""
        value: Any = None
        failure: Failure | None = None
        try:
            value = work()
        except Exception as error:
            failure = error, _portable(traceback.extract_tb(error.__traceback__))
        outcomes: list[Any] = [(value, failure)] * self.count
        if not self.alone:
            all_gather_object(outcomes, (value, failure), self.group)
        failures = {rank: failed for rank, (_, failed) in enumerate(outcomes) if failed is not None}
        if failures:
            raise CheckpointException(step, failures) from (failure[0] if failure else None)
        return [found for found, _ in outcomes]
