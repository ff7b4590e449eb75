"""What Python runs as it starts in processes that a program under `cltensor.as_torch` spawns: torch is cltensor there, too.

Python finds this file by PYTHONPATH, and would find another one of this name without it: that one is run at the end.
cltensor is imported when a process first asks for torch; most processes never do, and interpreters of environments
without cltensor must not notice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any


class _Deferred:
    """Finds torch and functorch by `cltensor.as_torch`'s finder, which takes its place."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of torch, functorch or a part of them."""
        if name.partition(".")[0] not in ("torch", "functorch") or not _there():
            return None
        return self._installed().find_spec(name, path, target)

    def find_distributions(self, context: Any) -> Iterable[Any]:
        """Return what `importlib.metadata` knows of torch."""
        if context.name != "torch" or not _there():
            return []
        return self._installed().find_distributions(context)

    def _installed(self) -> Any:
        from cltensor import as_torch

        sys.meta_path.remove(self)
        return as_torch.insert()


def _there() -> bool:
    return "torch" not in sys.modules and find_spec("cltensor") is not None


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _Deferred())
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).parent)]
    _other = PathFinder.find_spec("sitecustomize")
    if _other is not None and _other.loader is not None:
        _other.loader.exec_module(module_from_spec(_other))
