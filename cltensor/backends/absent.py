"""Libraries that torch may be built with, and that programs only ask whether they are there: they are not.

Owns what `torch.backends.nnpack`, `cusparselt`, `kleidiai`, `miopen`, `quantized` and `xnnpack` answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

immediate = enabled = False
engine = "none"
supported_engines = ["none"]


def is_available() -> bool:
    """Return False: the library is not used."""
    return False


def version() -> None:
    """Return None: the library is not used."""


def get_max_alg_id() -> None:
    """Return None: the library is not used."""


@contextlib.contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Accept a choice for a block, without effect: the library is not used."""
    yield


def set_flags(_enabled: bool) -> tuple[bool]:
    """Return (False,), as the state before: the library is not used."""
    return (False,)
