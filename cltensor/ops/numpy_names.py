"""NumPy's argument names, which torch accepts, too: `axis`, `keepdims`, and `a`, `x` or `x1` for the first operand.

The wrapper for that also checks, when a function fails, whether an argument that is no tensor overrides the function. So it
wraps linear algebra and functions of lists of tensors, too, which take long compared with the wrapper.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .elsewhere import foreign
from .row import FUNCTIONS, METHODS, NUMPYS

# torch functions that are written in Python, which accept torch's names only.
_PLAIN = {"norm", "split", "stft", "unique", "unique_consecutive"}
# Views, which take hardly longer than checking the names would.
_QUICK = {"clone", "flatten", "permute", "reshape", "t", "transpose", "view_as_complex"}
# Functions of lists of tensors, and others to whose own time the wrapper adds little.
_OTHERS = {"block_diag", "broadcast_tensors", "cartesian_prod", "column_stack", "dstack", "einsum", "hstack", "meshgrid", "row_stack", "tensordot", "vstack",
    "scatter", "scatter_add", "index_add", "index_copy", "index_fill", "index_put", "masked_scatter"}  # fmt: skip


def numpy_names(fn: Callable) -> Callable:
    """Decorator: accept NumPy's `axis` and `keepdims` for `dim` and `keepdim`, and NumPy's names of the operands."""
    parameters = _parameters(fn)
    first = "input" if "input" in parameters else parameters[0]  # "A" in linear algebra
    ours = {"axis": "dim", "keepdims": "keepdim"}
    ours |= {n: first if own == "input" else own for own, names in NUMPYS.items() for n in names}
    places = {n: parameters.index(own) for n, own in ours.items() if own in parameters}
    return answered(fn, parameters, places)


def answered(
    fn: Callable, parameters: Sequence[str] = (), places: Mapping[str, int] = MappingProxyType({})
) -> Callable:
    """Let an argument that is no tensor answer for a function that fails over it, and other names be given to arguments, by `places`."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for name in [*kwargs] if kwargs else ():
            place = places.get(name)
            if place is not None and place >= len(args) and parameters[place] not in kwargs:
                kwargs[parameters[place]] = kwargs.pop(name)
        try:
            return fn(*args, **kwargs)
        except Exception:
            if not foreign(wrapper, args, kwargs):
                raise
        return wrapper(*args, **kwargs)

    wrapper._numpy_names = True  # type: ignore[attr-defined]
    return wrapper


def _parameters(fn: Callable) -> tuple[str, ...]:
    code = fn.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def install(*tables: Any) -> None:
    """Make exported functions, and methods with a `dim`, accept the names; `tables`: other modules' functions."""
    made: dict[int, Callable] = {}
    for table in (FUNCTIONS, METHODS, *tables):
        plain = _PLAIN if table is FUNCTIONS or table is METHODS else ()
        for name, fn in table.items():
            if not hasattr(fn, "__code__") or name in plain or hasattr(fn, "_numpy_names"):
                continue
            parameters = _parameters(fn)
            operands = table is FUNCTIONS and name not in _QUICK and "input" in parameters
            if "dim" in parameters or operands:
                table[name] = made.setdefault(id(fn), numpy_names(fn))
            elif parameters[:1] == ("A",) or (table is FUNCTIONS and name in _OTHERS):
                table[name] = made.setdefault(id(fn), answered(fn))
