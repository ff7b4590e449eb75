"""Modules that exist only because torch has them: paths under which programs import names of a package.

Owns how such a path comes to be importable. Must not know any of them: each package lists its own.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

EXPOSED: list[ModuleType] = []  # whose names have to follow when a function is wrapped


def settle(package: dict[str, Any], functions: dict[str, Any], others: dict[str, Any]) -> None:
    """Have functions pickled by their names in a module, of which `package` is the globals; `others` are at home elsewhere."""
    elsewhere = {id(fn) for fn in others.values()}
    for name, fn in functions.items():
        if id(fn) not in elsewhere:
            fn.__module__, fn.__qualname__ = package["__name__"], name


def expose(package: dict[str, Any], paths: dict[str, str | ModuleType]) -> None:
    """Make `package.path` importable for each path: a module of the names listed, or the one given.

    package: globals of the module that owns the names. What it already has under a path stays its attribute.
    """
    for path, content in paths.items():
        full = f"{package['__name__']}.{path}"
        if isinstance(content, ModuleType):
            module = content
        else:
            names = content.split()
            module = ModuleType(full, f"Names of `{package['__name__']}` under torch's path.")
            module.__dict__.update({name: package[name] for name in names}, __all__=names)
            EXPOSED.append(module)
        sys.modules[full] = module
        package.setdefault(path, module)
