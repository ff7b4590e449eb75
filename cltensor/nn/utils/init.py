"""`skip_init`: a module with uninitialised parameters."""

from __future__ import annotations

import inspect
from typing import Any

from ...random import fork_rng
from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a module on `device` whose parameters have undefined contents; draws no random numbers."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with fork_rng():
        return module_cls(*args, **kwargs).to_empty(device=kwargs.get("device", "cpu"))
