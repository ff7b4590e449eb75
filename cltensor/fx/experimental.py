"""`torch.fx.experimental`: queries about sizes and conditions that torch's tracers may not know; here all are known."""

from __future__ import annotations

from typing import Any

from ..reexport import expose

__all__ = [
    "GuardOnDataDependentSymNode",
    "free_symbols",
    "free_unbacked_symbols",
    "get_proxy_mode",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_free_symbols",
    "is_symbolic",
    "statically_known_true",
    "sym_eq",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """torch's error where a branch depends on a size that it does not know; never raised here."""


def guard_or_false(a: Any) -> bool:
    """Return a condition as a bool."""
    return bool(a)


guard_or_true = guard_size_oblivious = statically_known_true = guard_or_false


def guard_int(a: Any) -> int:
    """Return a size as an int."""
    return int(a)


def sym_eq(x: Any, y: Any) -> bool:
    """Return whether two sizes, or sequences of sizes, are equal."""
    return x == y


def free_symbols(val: Any) -> set[Any]:
    """Return the symbols that a size depends on: none."""
    return set()


free_unbacked_symbols = free_symbols


def is_symbolic(val: Any) -> bool:
    """Return False: every size is known."""
    return False


has_free_symbols = is_symbolic


def get_proxy_mode() -> None:
    """Return None: there is no mode that traces tensors with values."""


_shapes = [name for name in __all__ if name != "get_proxy_mode"]
expose(globals(), {"proxy_tensor": "get_proxy_mode", "symbolic_shapes": " ".join(_shapes)})
