"""Modules that exist only because torch has them: paths under which programs import names of a package.

Owns the way in which such paths become importable. Must not know any of them: each package lists its own.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

# TorchScript's types that programs name in annotations.
SCRIPT = "AnyType BoolType DictType FloatType Graph IntType ListType Node NoneType OptionalType ScriptObject StringType TensorType TupleType Value"
# Namespaces in which users find functions, beside those that are files.
EXPOSED: list[ModuleType] = []


class Lent(ModuleType):
    """A module of names that others define; those are loaded when a name is first asked for."""

    def __init__(self, name: str, home: str, names: str) -> None:
        super().__init__(name, f"Names of `{home}` under torch's path.")
        self.__spec__ = ModuleSpec(name, None)  # else importlib.util.find_spec() raises
        self._home, self.__all__ = home, names.split()

    def __getattr__(self, name: str) -> Any:
        if name in self.__all__:
            return getattr(importlib.import_module(self._home), name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self.__all__})


class Absent:
    """Base of torch's types that have no instances here; libraries use them in annotations and for `isinstance`."""

    _why = ""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """NotImplementedError: there are none."""
        place = cls.__module__.partition(".")[2]
        raise NotImplementedError(f"{place}.{cls.__name__}: {cls._why}")


def absent(module: str, names: str, why: str) -> tuple[type, ...]:
    """Return a type for each name in `names`, of a module: it has no instances, and a call raises and says why."""
    own = {"__module__": module, "__doc__": f"None here: {why}.", "_why": why}
    return tuple(type(name, (Absent,), dict(own)) for name in names.split())


def settle(
    package: dict[str, Any],
    functions: dict[str, Any],
    others: dict[str, Any],
    methods: dict[str, Any],
) -> None:
    """Set `__module__` so that functions are pickled by a module's names; not for those in `others`, pickled elsewhere.

    The `__name__` of those that are no methods, either, begins with the module's, as torch's does: "linalg_inv".
    package: the module's globals.
    """
    home = package["__name__"]
    elsewhere, attached = ({id(fn) for fn in table.values()} for table in (others, methods))
    for name, fn in functions.items():
        if id(fn) not in elsewhere:
            fn.__module__, fn.__qualname__ = home, name
            if id(fn) not in attached:
                fn.__name__ = f"{home.rpartition('.')[2]}_{name}"


def expose(package: dict[str, Any], paths: dict[str, str | ModuleType]) -> None:
    """Make `package.path` importable for each path: a module of the names listed, or the one given.

    package: globals of the module that owns the names. An attribute that it already has under a path's name stays.
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
        if module.__spec__ is None:  # else importlib.util.find_spec() raises
            module.__spec__ = ModuleSpec(full, None)
        sys.modules[full] = module
        parent, _, leaf = path.rpartition(".")
        inside = vars(sys.modules[f"{package['__name__']}.{parent}"]) if parent else package
        inside.setdefault(leaf, module)


def lend(package: dict[str, Any], paths: dict[str, tuple[str, str]]) -> None:
    """Make `package.path` importable for each path: (home, names) are names of a module that need not be loaded yet.

    package: globals of the module under which the paths are; home is given from the root package.
    """
    own = package["__name__"]
    root = own.partition(".")[0]
    for path, (home, names) in paths.items():
        full = f"{own}.{path}"
        module = sys.modules[full] = Lent(full, f"{root}.{home}", names)
        parent, _, leaf = path.rpartition(".")
        inside = vars(sys.modules[f"{own}.{parent}"]) if parent else package
        inside.setdefault(leaf, module)
