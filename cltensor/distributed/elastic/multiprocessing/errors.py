"""How processes of a run report why they failed: in a file that the launcher reads."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any

__all__ = ["ChildFailedError", "ProcessFailure", "record"]


class ProcessFailure:
    """One process that failed: its number on its machine, its PID and exit code, and the error it wrote to its file."""

    def __init__(self, local_rank: int, pid: int, exitcode: int, error_file: str) -> None:
        self.local_rank = local_rank
        self.pid = pid
        self.exitcode = exitcode
        self.error_file = error_file
        self.timestamp = int(time.time())
        self.message: Any = (
            f"Signal {-exitcode} received by PID {pid}"
            if exitcode < 0
            else "its main function without @record says no more"
        )
        try:
            with open(error_file) as file:
                self.message = json.load(file)["message"]
            self.timestamp = int(self.message["extraInfo"]["timestamp"])
        except (OSError, ValueError, KeyError, TypeError):  # no file, or another format
            pass


class ChildFailedError(Exception):
    """Some processes of a run failed; `failures` by rank."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name, self.failures = name, failures
        root, _ = self.get_first_failure()
        lines = [f"{name} FAILED"]
        for rank in sorted(failures, key=lambda r: (r != root, r)):
            failed = failures[rank]
            said = failed.message
            if isinstance(said, dict):
                said = said.get("extraInfo", {}).get("py_callstack", said.get("message"))
            lines.append(
                f"{'Root Cause (first observed failure)' if rank == root else 'Other failure'}: rank {rank} "
                f"(local_rank: {failed.local_rank}), exitcode: {failed.exitcode} (pid: {failed.pid})\n{said}"
            )
        super().__init__("\n".join(lines))

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Return the rank that failed first, and how."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]


def _write(error: BaseException) -> None:
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
    with open(path, "w") as file:
        json.dump(
            {"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}}, file
        )


def record(fn: Callable, error_handler: Any = None) -> Callable:
    """Decorate a main function: an exception is written to the error file, for the launcher to report."""

    @functools.wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except Exception as error:
            _write(error)
            raise

    return recorded
