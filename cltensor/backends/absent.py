"""Libraries that torch may be built with, and that have only to be asked whether they are there: they are not.

Owns `torch.backends.nnpack`, `cusparselt`, `kleidiai`, `miopen`, `quantized` and `xnnpack`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ..missing_devices import answering


@contextlib.contextmanager
def _flags(enabled: bool = False) -> Iterator[None]:
    """Accept a choice for a block, without effect: the library is not used."""
    yield


def _set_flags(_enabled: bool) -> tuple[bool]:
    """Return (False,), as the state before: the library is not used."""
    return (False,)


def modules(package: str) -> dict[str, ModuleType]:
    """Return the modules by name."""
    contents: dict[
        str, tuple[dict[str, Any], dict[str, Any]]
    ] = {  # functions' answers; other names
        "cusparselt": ({"is_available": False, "version": None, "get_max_alg_id": None}, {}),
        "kleidiai": ({"is_available": False}, {}),
        "miopen": ({}, {"immediate": False}),
        "nnpack": ({"is_available": False}, {"flags": _flags, "set_flags": _set_flags}),
        "quantized": ({}, {"engine": "none", "supported_engines": ["none"]}),
        "xnnpack": ({}, {"enabled": False}),
    }
    made = {}
    for name, (answers, others) in contents.items():
        full = f"{package}.{name}"
        made[name] = module = ModuleType(full, f"`torch.backends.{name}`: not used here.")
        vars(module).update(answering(full, answers), **others)
    return made
