"""`cltensor.utils`: what surrounds a training program: data loading, checkpointing, TensorBoard, DLPack.

Importing this package is cheap: submodules are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = ("checkpoint", "data", "dlpack", "safetensors", "tensorboard")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})


__all__ = list(_SUBMODULES)
