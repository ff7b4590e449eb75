"""`cltensor.backends.mkl`: Intel's library, which is not used."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False


VERBOSE_OFF, VERBOSE_ON = 0, 1


class verbose:
    """Context in which torch has MKL print each call; entering with anything but VERBOSE_OFF raises: MKL is not used."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        if self.enable != VERBOSE_OFF:
            raise RuntimeError("backends.mkl.verbose: MKL is not used")
        return self

    def __exit__(self, *exc: object) -> None:
        pass
