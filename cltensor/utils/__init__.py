"""`cltensor.utils`: what surrounds a training program: data loading, checkpointing, TensorBoard, DLPack.

Importing this package is cheap: submodules are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = (
    "_pytree",
    "benchmark",
    "checkpoint",
    "data",
    "dlpack",
    "hooks",
    "model_zoo",
    "npz",
    "safetensors",
    "tensorboard",
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})


__all__ = [name for name in _SUBMODULES if not name.startswith("_")]
