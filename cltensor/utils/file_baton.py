"""`torch.utils.file_baton`: a lock between processes, held by who made a file and waited for by looking whether it is there."""

from __future__ import annotations

import os
import sys
import time

__all__ = ["FileBaton"]


class FileBaton:
    """The lock of a file's name.

    wait_seconds: how often `wait` looks. warn_after_seconds: after how long it says on stderr that it waits.
    """

    def __init__(
        self,
        lock_file_path: str,
        wait_seconds: float = 0.1,
        warn_after_seconds: float | None = None,
    ) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool | None:
        """Make the file and return True; False if it is there."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
            return True
        except FileExistsError:
            return False

    def wait(self) -> None:
        """Return when the file is gone."""
        began, told = time.monotonic(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            late = self.warn_after_seconds
            if late is not None and not told and time.monotonic() - began > late:
                told = True
                print(f"waiting for the lock {self.lock_file_path}", file=sys.stderr)

    def release(self) -> None:
        """Remove the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
