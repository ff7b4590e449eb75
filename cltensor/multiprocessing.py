"""`cltensor.multiprocessing`: Python's, starting processes afresh, because an OpenCL driver does not survive a fork.

Tensors travel by value: a process that receives one has a copy.
"""

from __future__ import annotations

import multiprocessing as _python
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

_context = _python.get_context("spawn")


def __getattr__(name: str) -> Any:
    return getattr(_context, name)  # Process, Queue, Pool, Lock, ...


class ProcessException(Exception):
    """A process started by `spawn` failed."""

    def __init__(self, msg: str, error_index: int, pid: int | None) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """It raised an exception."""


class ProcessExitedException(ProcessException):
    """It ended with another exit code than 0."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int | None, exit_code: int | None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


def _run(fn: Callable, index: int, args: tuple, errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes of a `spawn`."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self._errors = processes, errors

    def pids(self) -> list[int]:
        """Return the processes' numbers."""
        return [int(p.pid) for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for the first to end; True when all have. When one failed the others are stopped and its error is raised."""
        from multiprocessing.connection import wait

        alive = {p.sentinel: i for i, p in enumerate(self.processes) if p.exitcode is None}
        ended = [alive[s] for s in wait(list(alive), timeout)] if alive else []
        codes = [p.exitcode for p in self.processes]  # asked once: one may end at any time
        for i in (*ended, *range(len(codes))):
            if codes[i]:
                self._fail(i, self.processes[i])
        return None not in codes

    def _fail(self, index: int, failed: Any) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        if not self._errors[index].empty():
            text = self._errors[index].get()
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text}",
                index,
                failed.pid,
            )
        code = failed.exitcode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        raise ProcessExitedException(
            f"process {index} terminated with {how}", index, failed.pid, code
        )


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes; waits for them unless `join` is False.

    ProcessRaisedException or ProcessExitedException when one of them fails.
    """
    started, errors = [], []
    context = _python.get_context(start_method)
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process: Any = context.Process(target=_run, args=(fn, i, args, queue), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        started.append(process)
        errors.append(queue)
    running = ProcessContext(started, errors)
    if not join:
        return running
    while not running.join():
        pass
    return None


def get_sharing_strategy() -> str:
    """Return "file_system": tensors travel by value."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted: tensors travel by value."""


def get_all_sharing_strategies() -> set[str]:
    """Return the one there is."""
    return {"file_system"}
