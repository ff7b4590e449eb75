"""The cases, one module per group of families; a module lists its `CASES`."""

from __future__ import annotations

import importlib

from benchmarks.case import Case

MODULES = (
    "launches",
    "pointwise",
    "copies",
    "reductions",
    "rows",
    "indexing",
    "products",
    "systems",
    "sparse",
    "images",
    "fourier",
    "attention",
    "draws",
    "training",
)


def load(wanted: list[str]) -> list[Case]:
    """Return the cases of these families, and those whose label begins with one of the words; all for an empty list."""
    found: list[Case] = []
    for module in MODULES:
        found += importlib.import_module(f"{__name__}.{module}").CASES
    return [c for c in found if not wanted or any(c.label.startswith(w) for w in wanted)]
