"""`sym_max` and the like: arithmetic that in torch also works on symbolic sizes; here it works on plain numbers.

Sizes are plain ints for a program, except ragged ones; what remains of these functions is their promotion: an int and a float give
a float.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from .reexport import absent
from .size import SymInt

SymFloat, SymBool = absent(__name__, "SymFloat SymBool", "sizes are Python's numbers")
_FLOATS = (np.floating, builtins.float)
_NUMBERS = (np.integer, np.floating, builtins.int, builtins.float)


def sym_float(a: Any) -> builtins.float:
    """Convert to float."""
    return builtins.float(a)


def sym_int(a: Any) -> builtins.int:
    """Convert to int, towards zero."""
    return builtins.int(a)


def sym_not(a: Any) -> builtins.bool:
    """Return the logical negation."""
    return not a


def sym_ite(b: builtins.bool, t: Any, f: Any) -> Any:
    """Return `t` if `b`, else `f`. AssertionError where `b` is no bool or `t` and `f` differ in type."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, a float where one is."""
    return _either(builtins.max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, a float where one is."""
    return _either(builtins.min, a, b)


def _either(choose: Any, a: Any, b: Any) -> Any:
    for x in (a, b):
        if not isinstance(x, _NUMBERS):
            raise AssertionError(f"expected {_NUMBERS}, got {type(x)}")
    found = choose(a, b)
    return builtins.float(found) if isinstance(a, _FLOATS) or isinstance(b, _FLOATS) else found


def sym_sqrt(a: Any) -> builtins.float:
    """Return the square root."""
    return math.sqrt(a)


def sym_sum(*args: Any) -> Any:
    """Add numbers, given one by one or as one sequence."""
    return builtins.sum(args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args)


__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]
