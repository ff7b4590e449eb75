"""Settings of `save` and `load` as a program's configuration: `config.load.mmap = True`, or `patch` for a block."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from ...serialization.options import load, save

_GROUPS: dict[str, type] = {"load": load, "save": save}

__all__ = ["load", "patch", "save"]


@contextlib.contextmanager
def patch(names: str | Mapping[str, Any], value: Any = None) -> Iterator[None]:
    """Change a setting, "load.mmap", or those of a mapping, in a block. AttributeError for what is no setting."""
    changes = {names: value} if isinstance(names, str) else dict(names)
    before = []
    for name in changes:
        group, _, own = name.partition(".")
        settings = _GROUPS.get(group)
        if own.startswith("_") or not hasattr(settings, own):
            raise AttributeError(f"torch.utils.serialization.config.{name} does not exist")
        before.append((settings, own, getattr(settings, own)))
    try:
        for (settings, own, _), new in zip(before, changes.values(), strict=True):
            setattr(settings, own, new)
        yield
    finally:
        for settings, own, old in before:
            setattr(settings, own, old)
