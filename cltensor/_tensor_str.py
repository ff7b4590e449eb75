"""`torch._tensor_str`: functions of printing that libraries use to print their own tensor classes."""

from __future__ import annotations

from typing import Any

from . import printing
from .printing import add_suffixes as _add_suffixes
from .printing import contents as _tensor_str
from .printing import get_printoptions, printoptions, set_printoptions
from .printing import tensor_str as _str_intern

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


class _Options:
    """The print options as they are now."""

    def __getattr__(self, name: str) -> Any:
        if name in (options := printing.get_printoptions()):
            return options[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


PRINT_OPTS = _Options()
