"""The cases, one module per family; importing a module lists its `CASES`."""

from __future__ import annotations

import importlib
import pkgutil

from benchmarks.case import Case


def load(wanted: list[str]) -> list[Case]:
    """Return the cases of the families asked for, or all, in the order of the modules' names."""
    found: list[Case] = []
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        found += importlib.import_module(f"{__name__}.{module}").CASES
    return [c for c in found if not wanted or any(c.label.startswith(w) for w in wanted)]
