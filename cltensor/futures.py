"""`cltensor.futures`: values that are set later, and callbacks for when they are.

Plain Python: waiting uses a `threading.Condition`. Knows nothing of tensors or devices.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


def _check_callback(method: str, future: Any, callback: Any) -> None:
    if not callable(callback):
        raise TypeError(
            f"{method}(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (self: torch._C.Future, arg0: collections.abc.Callable) -> torch._C.Future\n\nInvoked with: {future!r}, {callback!r}"
        )


def _described(error: Exception) -> str:
    """Return the text of an error inside a callback, with its traceback, innermost frame first."""
    places = reversed(traceback.extract_tb(error.__traceback__)[1:])
    lines = "".join(f"  {at.filename}({at.lineno}): {at.name}\n" for at in places)
    text = f"Got the following error when running the callback: {type(error).__name__}: {error}"
    return f"{text}\n\nAt:\n{lines}" if lines else text


class Future(Generic[T]):
    """A value, or an exception, that some thread sets once."""

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        self._devices = list(devices or ())
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], Any]] = []

    def done(self) -> bool:
        """Return whether the value or the exception is set."""
        return self._done

    def wait(self) -> T:
        """Wait for the value and return it, or raise the exception that was set."""
        with self._changed:
            self._changed.wait_for(self.done)
        return self.value()

    def value(self) -> T:
        """Return the value or raise the exception; RuntimeError while neither is set."""
        if not self._done:
            raise RuntimeError("Future is not completed: wait() for it, or ask done() first")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Return a future of what `callback` returns for this one, once it is done.

        If the callback raises an exception, the new future raises a RuntimeError with its text and traceback.
        """
        _check_callback("then", self, callback)
        made: Future[S] = Future(devices=self._devices)

        def run(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                failed = RuntimeError(_described(error))
                failed.__cause__ = error
                made.set_exception(failed)
            else:
                made.set_result(result)

        self._call(run)
        return made

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback` with this future when it is done, at once if it is; its exceptions are only printed."""
        _check_callback("add_done_callback", self, callback)

        def run(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception as error:
                print(_described(error), file=sys.stderr)

        self._call(run)

    def set_result(self, result: T) -> None:
        """Set the value. RuntimeError if the future is done."""
        self._settle(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set the exception that `wait` raises. RuntimeError if the future is done."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._settle(None, result)

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def _settle(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that "
                    "a Future can only be marked completed once."
                )
            self._value, self._error, self._done = value, error, True
            waiting, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in waiting:
            callback(self)

    def _call(self, callback: Callable[[Future[T]], None]) -> None:
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """Return a future whose value is the given list, done when all futures in it are. RuntimeError if one is None."""
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")
    made: Future[list[Future]] = Future()
    left, lock = len(futures), threading.Lock()

    def count(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            made.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        made.set_result(futures)
    return made


def wait_all(futures: list[Future]) -> list[Any]:
    """Wait for all futures and return their values; raises the first exception in the list's order."""
    return [future.wait() for future in collect_all(futures).wait()]
