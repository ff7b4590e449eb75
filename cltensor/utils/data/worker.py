"""The worker processes of a DataLoader: their main loop, and the pool that starts and ends them and exchanges messages with them.

Each worker has a pipe of its own and shares no lock with another, so that killing one does not block the others. A
worker reads its pipe in a thread: so it notices at once that the loader is gone, and the loader never blocks on a full
pipe.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import queue
import random
import signal
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ops.replay import forget
from ...random import manual_seed
from ...runtime import in_use
from .collate import host_form
from .fetch import Exhausted, fetcher
from .transport import receive, send

GRACE = 5.0  # seconds that a process has to end by itself before it is terminated


@dataclass
class WorkerInfo:
    """The result of `get_worker_info` in a worker: its `id`, `num_workers`, its `seed`, and its copy of the `dataset`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return this worker's number, seed and dataset; None in the main process."""
    return _info


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return a worker's seed for numpy: four 32-bit words, unrelated to those of workers with adjacent ids."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in np.random.SeedSequence(entropy).generate_state(4)]


@dataclass
class Job:
    """Everything a worker process needs to start, pickled or forked with it."""

    dataset: Any
    iterable: bool
    batched: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    init_fn: Callable[[int], None] | None
    worker: int
    workers: int
    base_seed: int

    def fetcher(self) -> Callable[[Any], Any]:
        """Return a new function from indices to a batch; one is made for each pass over the data."""
        form = host_form(self.collate_fn)
        return fetcher(self.dataset, self.iterable, self.batched, form, self.drop_last)


class Failure:
    """A worker's exception, as its class and traceback text, to be raised again in the main process."""

    def __init__(self, error: BaseException, where: str) -> None:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.message = f"Caught {type(error).__name__} {where}.\nOriginal {text}"
        self.kind: type[BaseException] = type(error)
        try:
            pickle.dumps(self.kind)
        except Exception:
            self.kind = RuntimeError

    def reraise(self) -> None:
        """Raise an exception of the same class; RuntimeError if that class cannot be made from a message alone."""
        message: str = _Verbatim(self.message) if self.kind is KeyError else self.message
        try:
            error = self.kind(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


class _Verbatim(str):
    """A message that KeyError, which shows its argument's repr, prints with its line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


# ------------------------------------------------------------------------------------- in the worker


def run(job: Job, connection: multiprocessing.connection.Connection) -> None:
    """Main function of a worker: serve the loader until it sends None or its end of the pipe closes."""
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles ctrl-C
    tasks: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, tasks), daemon=True).start()
    _leave_processors()
    where = f"in DataLoader worker process {job.worker}"
    seed = job.base_seed + job.worker
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(_generate_state(job.base_seed, job.worker))  # noqa: NPY002 - what datasets draw from
    _info = WorkerInfo(job.worker, job.workers, seed, job.dataset)
    failed: Failure | None = None
    make = None
    try:
        if job.init_fn is not None:
            job.init_fn(job.worker)
        make = job.fetcher()
    except Exception as error:
        failed = Failure(error, where)
    try:
        _serve(job, connection, tasks, make, failed, where)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the loader is gone


def _leave_processors() -> None:
    """Make this worker's kernels run on one thread: the other processors are for the other workers."""
    for backend in in_use():
        if backend.team is not None:
            backend.team.threads = 1
    forget()


def _serve(
    job: Job, connection: Any, tasks: Any, fetch: Any, failed: Failure | None, where: str
) -> None:
    epoch = 0
    while (task := tasks.get()) is not None:
        number, indices = task[1:]
        if task[0] != epoch:  # the loader has begun another pass with persistent workers
            epoch, failed = task[0], None
            try:
                fetch = job.fetcher()
            except Exception as error:
                failed = Failure(error, where)
        try:
            data: Any = failed or fetch(indices)
        except StopIteration:
            data = Exhausted()
        except Exception as error:
            data = Failure(error, where)
        try:
            send(connection, (epoch, number, data))
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:  # a sample that cannot be pickled
            send(connection, (epoch, number, Failure(error, where)))


def _listen(connection: Any, tasks: Any) -> None:
    """Queue the loader's tasks; once it stops or is gone, exit the process unless that ends within GRACE seconds."""
    parent = multiprocessing.parent_process()
    watched = [connection] if parent is None else [connection, parent.sentinel]
    try:
        while connection in multiprocessing.connection.wait(watched):
            task = receive(connection)
            tasks.put(task)
            if task is None:
                break
    except (EOFError, OSError):
        pass
    tasks.put(None)
    time.sleep(GRACE)
    os._exit(1)


# ------------------------------------------------------------------------------------- in the main process


def _end(pairs: list[tuple[Any, Any]], owner: int) -> None:
    """Stop workers: send None, wait up to GRACE seconds, then terminate, then kill. A forked child leaves them to its parent."""
    if os.getpid() != owner:
        return
    for _, connection in pairs:
        try:
            send(connection, None)
        except (OSError, ValueError):
            pass
        connection.close()
    limit = time.monotonic() + GRACE
    for process, _ in pairs:
        process.join(max(0.0, limit - time.monotonic()))
    for process, _ in pairs:
        for stop in (process.terminate, process.kill):
            if process.is_alive():
                stop()
                process.join(1)
    for process, _ in pairs:
        if not process.is_alive():
            process.close()


class Pool:
    """The workers of one loader. They end with `close`, with the pool itself, or with the interpreter."""

    def __init__(self, context: Any, jobs: list[Job]) -> None:
        self.pairs: list[tuple[Any, Any]] = []
        self._finalizer = weakref.finalize(self, _end, self.pairs, os.getpid())
        try:
            for job in jobs:
                ours, theirs = context.Pipe()
                process = context.Process(target=run, args=(job, theirs), daemon=True)
                try:
                    process.start()
                except BaseException:
                    ours.close()
                    raise
                finally:
                    theirs.close()
                self.pairs.append((process, ours))
        except BaseException:
            self.close()
            raise

    def give(self, worker: int, task: tuple[Any, ...]) -> None:
        """Send a task to a worker. A dead worker is not reported here but by `hear`."""
        try:
            send(self.pairs[worker][1], task)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def hear(self, timeout: float) -> Any:
        """Return the next message of any worker. RuntimeError after `timeout` seconds (0: never), or if a worker died."""
        ready = multiprocessing.connection.wait(
            [connection for _, connection in self.pairs], timeout or None
        )
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        try:
            return receive(ready[0])  # type: ignore[arg-type]
        except (EOFError, ConnectionResetError, BrokenPipeError) as error:
            raise self._died() from error

    def _died(self) -> RuntimeError:
        limit = time.monotonic() + 1
        while all(p.is_alive() for p, _ in self.pairs) and time.monotonic() < limit:
            time.sleep(0.01)  # the pipe closes a moment before `is_alive` turns false
        pids = ", ".join(str(p.pid) for p, _ in self.pairs if not p.is_alive())
        return RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")

    def close(self) -> None:
        """End all workers."""
        self._finalizer()
