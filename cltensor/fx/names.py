"""Names in a graph's code: public paths of functions and types, and unique names of nodes.

Paths of this package are written with torch's name in front, as programs write them. Must not know graphs.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
import sys
import types
import typing
from typing import Any

_PACKAGE = __package__.partition(".")[0]
_PUBLIC = (".functional", "", ".nn.functional", ".linalg", ".fft", ".special", ".nn", ".nn.init")
_GIVEN = {"inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"}
_ILLEGAL = re.compile("[^0-9a-zA-Z_]+")
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
_NUMBERED = re.compile(r"(.*)_(\d+)$")


_paths: dict[int, tuple[Any, str]] = {}  # by the id of a public function or class: itself, its path


def _public_path(value: Any) -> str | None:
    """Return the path of a public function or class of this package; None for anything else."""
    if not (_is_own(value) and (inspect.isfunction(value) or inspect.isclass(value))):
        return None
    known, path = _paths.get(id(value), (None, ""))
    if known is not value:  # modules are loaded later, and functions replaced
        _paths.update(_public_names())
        known, path = _paths.get(id(value), (None, ""))
    return path if known is value else None


def _public_names() -> dict[int, tuple[Any, str]]:
    found: dict[int, tuple[Any, str]] = {}
    for path in _PUBLIC:
        module = sys.modules.get(f"{_PACKAGE}{path}")
        for name, value in sorted(vars(module).items(), key=_hidden) if module else ():
            if name[:2] != "__" and _is_own(value):
                found.setdefault(id(value), (value, f"torch{path}.{name}"))
    return found


def _is_own(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return str(module).partition(".")[0] == _PACKAGE


def _hidden(item: tuple[str, Any]) -> bool:
    return item[0].startswith("_")


def torch_path(place: str) -> str:
    """Return a module's name with "torch" in place of this package's own name."""
    root, dot, rest = place.partition(".")
    return f"torch{dot}{rest}" if root == _PACKAGE else place


def qualified_name(value: Any) -> str:
    """Return the dotted path of a function or class. RuntimeError if its module cannot be found."""
    name = getattr(value, "__name__", None)
    if name and getattr(builtins, name, None) is value:
        return str(name)
    found = _public_path(value)
    if found is not None:
        return found
    if name is None:
        name = getattr(value, "_name", None) or type(value).__name__
    module = getattr(value, "__module__", None) or _home(value, name)
    if module is None:
        raise RuntimeError(f"cannot find module for {value}")
    return f"{torch_path(str(module).replace('_operator', 'operator'))}.{name}"


def _home(value: Any, name: str) -> str | None:
    """Search for the module of a function without `__module__`, such as numpy's."""
    for place, module in list(sys.modules.items()):
        if getattr(module, name, None) is value:
            return place
    return None


def is_of_torch(value: Any) -> bool:
    """Return whether generated code reaches an object through its global `torch`."""
    if isinstance(value, types.ModuleType | str):
        return False
    return qualified_name(value).startswith("torch.")


def type_text(kind: Any) -> str:
    """Return a type as a graph prints it."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        return kind.__name__ if kind.__module__ == "builtins" else qualified_name(kind)
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    text = repr(kind)
    for inner in _inside(kind):
        if inner.__module__.startswith(_PACKAGE):
            text = text.replace(f"{inner.__module__}.{inner.__qualname__}", qualified_name(inner))
    return text


def _inside(kind: Any) -> list[type]:
    args = typing.get_args(kind)
    if not args:
        return [kind] if isinstance(kind, type) else []
    return [t for a in args for t in _inside(a)]


def snake_case(text: str) -> str:
    """Return CamelCase as camel_case."""
    return _HUMP.sub("_", text).lower()


def short_name(target: Any) -> str:
    """Return the base of a node's name, from its target: a function's name or a string."""
    if not isinstance(target, str) and not callable(target):
        raise AssertionError(f"Expected target to be str, got {type(target)}")
    text = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    if text.startswith("__") and text.endswith("__") and len(text) > 4:
        text = text[2:-2]
    return snake_case(text)


class Namespace:
    """Assigns unique names: one already used, or reserved by Python or generated code, gets a number."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._last: dict[str, int] = {}
        self._of: dict[Any, str] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return an unused name based on a candidate, and reserve it; if the object has a name already, that one."""
        if obj is not None and obj in self._of:
            return self._of[obj]
        name = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        numbered = _NUMBERED.match(name)
        base, number = (numbered[1], int(numbered[2])) if numbered else (name, 0)
        number = number or self._last.get(base, 0)
        while name in self._used or self._is_illegal(name, obj):
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        self._last[base] = number
        if obj is not None:
            self._of[obj] = name
        return name

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Reserve a name for an object."""
        self._of.setdefault(obj, name)
        self._used.add(name)

    def _rename_object(self, obj: Any, name: str) -> None:
        """Change an object's name."""
        self._of[obj] = name
        self._used.add(name)

    @staticmethod
    def _is_illegal(name: str, obj: Any) -> bool:
        if name in keyword.kwlist:
            return True
        if hasattr(builtins, name):
            return obj is not getattr(builtins, name)
        return name in _GIVEN
