"""`torch.utils.deterministic`: whether new memory is filled while deterministic algorithms are asked for."""

from __future__ import annotations

import sys
import types
from typing import Any

from .. import switches
from ..ops.memory import Uninitialised


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty`, `resize_` and others fill new memory with nan or the largest number, so that reads show."""
        return Uninitialised.wanted

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: Any) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        Uninitialised.wanted = mode
        switches.refill()


sys.modules[__name__].__class__ = _Deterministic
