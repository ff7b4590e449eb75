"""`torch._VF`: compiled functions that torch's layers call; here the package's functions of the same names."""

from __future__ import annotations

import sys
from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(sys.modules[__package__], name)
