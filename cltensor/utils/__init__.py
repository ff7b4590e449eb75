"""`cltensor.utils`: what surrounds a training program: data loading, checkpointing, TensorBoard, DLPack.

Importing this package is cheap: submodules are loaded when they are first used.
"""

from __future__ import annotations

import importlib
import weakref
from typing import Any

from ..attributes import fields

# Without "tensorboard", which needs a package that may not be installed: it is imported by name only.
_SUBMODULES = (
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "file_baton",
    "flop_counter",
    "hooks",
    "model_zoo",
    "module_tracker",
    "npz",
    "safetensors",
    "serialization",
    "weak",
)


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange class, values, gradient and attributes of two tensors in place; both Python objects keep their identity.

    RuntimeError for a tensor to which there are weak references.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    ours, theirs = fields(t1), fields(t2)
    before = dict(ours)
    ours.clear()
    ours.update(theirs)
    theirs.clear()
    theirs.update(before)
    for t in (t1, t2):
        sink = t._acc and t._acc()
        if sink:  # AccumulateGrad node of a graph's leaf: the leaf's fields are in this object now
            sink.variable = t


def set_module(obj: Any, mod: str) -> None:
    """Set the module that an object says it is from."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})


__all__ = [name for name in _SUBMODULES if not name.startswith("_")]
__all__ += ["set_module", "swap_tensors"]
