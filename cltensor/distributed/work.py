"""Asynchronous work: handles to wait for it (`Work`), and threads that do it (`Lane`).

A `Lane` does one piece after the other, as a group's collectives require. While it is empty, a piece whose caller waits
anyway is done by the caller itself: handing it to another thread costs more than a small collective.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..futures import Future
from .errors import DistBackendError

__all__ = ["Lane", "Work"]


class Work:
    """A handle of a collective or a message that may still be under way."""

    def __init__(self, results: Sequence[Any] = (), source: int = -1) -> None:
        self._results, self._source = list(results), source
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._future: Future[Any] | None = None
        self._making = threading.Lock()
        self._watch: Callable[[], None] | None = None  # raises if the work can never complete
        self._look = 0.5  # seconds between two calls of `_watch`

    def finish(self, error: BaseException | None = None) -> None:
        """Mark the work as done, or as failed with an error. Only the first call counts."""
        with self._making:
            if self._over.is_set():
                return
            self._error = error
            self._over.set()
            future = self._future
        if future is not None:
            self._tell(future)

    def _tell(self, future: Future[Any]) -> None:
        if self._error is None:
            future.set_result(self._results)
        else:
            future.set_exception(self._error)

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Return True when the work is done; raise its error if it failed.

        RuntimeError after the timeout; None or 0: no timeout.
        """
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        if not self._over.is_set():
            self._wait(seconds or None)
        if self._error is not None:
            raise self._error
        return True

    def _wait(self, seconds: float | None) -> None:
        left = seconds
        while True:
            step = self._look if self._watch is not None else left
            if left is not None and step is not None:
                step = min(step, left)
            if self._over.wait(step):
                return
            if left is not None:
                left -= step or 0.0
                if left <= 0:
                    raise DistBackendError("Operation timed out!")
            if self._watch is not None:
                try:
                    self._watch()
                except DistBackendError as error:
                    self.finish(error)
                    return

    def is_completed(self) -> bool:
        """Tell whether the work is done or has failed."""
        return self._over.is_set()

    def is_success(self) -> bool:
        """Tell whether the work is done and has not failed."""
        return self._over.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        """Return the error of failed work, else None."""
        return self._error

    def result(self) -> list[Any]:
        """Wait for the work, and return the tensors that it wrote."""
        self.wait()
        return self._results

    def get_future(self) -> Future[Any]:
        """Return a future of the tensors that the work writes."""
        with self._making:
            if self._future is not None:
                return self._future
            future = self._future = Future()
            over = self._over.is_set()
        if over:
            self._tell(future)
        return future

    def source_rank(self) -> int:
        """Return the rank in the group that a message was received from."""
        return self._source

    _source_rank = source_rank

    def synchronize(self) -> None:
        """Do as `wait`: there are no streams to synchronise with."""
        self.wait()


class Lane:
    """Pieces of work done one after the other, in the order in which they came."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Callable[[], None], Work]] = deque()
        self._busy = False
        self._started = False
        self._ended = False

    def do(self, piece: Callable[[], None], work: Work, later: bool) -> Work:
        """Do a piece after all earlier ones, and mark `work` with the outcome.

        The caller does it at once if the lane is idle, unless `later`; else the lane's thread does it.
        """
        with self._changed:
            mine = not later and not self._busy and not self._waiting
            if mine:
                self._busy = True
            elif self._ended:
                work.finish(DistBackendError("the process group was destroyed"))
                return work
            else:
                self._waiting.append((piece, work))
                if not self._started:
                    self._started = True
                    threading.Thread(target=self._live, daemon=True, name=self._name).start()
                self._changed.notify_all()
        if mine:
            try:
                _run(piece, work)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()
        return work

    def _live(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._busy and (self._waiting or self._ended))
                if not self._waiting:
                    return
                piece, work = self._waiting.popleft()
                self._busy = True
            try:
                _run(piece, work)
            finally:
                del piece, work
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def end(self) -> None:
        """Refuse new pieces; those waiting are still done."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Wait until all pieces are done; return False if they are not after `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy and not self._waiting, seconds)


def _run(piece: Callable[[], None], work: Work) -> None:
    try:
        piece()
    except Exception as error:
        work.finish(error)
    except BaseException as error:  # an interrupt: other threads that wait must be told
        work.finish(DistBackendError(f"interrupted: {error!r}"))
        raise
    else:
        work.finish()
