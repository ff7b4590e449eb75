"""NumPy's argument names, which torch accepts, too: `axis`, `keepdims`, and `a`, `x` or `x1` for the first operand.

The wrapper that accepts these names has a second task: if the wrapped function fails, it looks for an argument that is
no tensor but has a `__torch_function__`, and lets that answer the call. For this reason alone it also wraps linear
algebra and functions of lists of tensors, whose own time is long compared with the wrapper's.
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
# Functions without `dim` that are not wrapped, because they take hardly longer than the wrapper: views, mostly.
_QUICK = {"clone", "flatten", "permute", "reshape", "t", "transpose", "view_as_complex"}
# Functions wrapped for the second task alone: those of lists of tensors, and others to whose own time the wrapper adds
# little.
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
    """Wrap a function: if a call fails over an argument with a `__torch_function__`, that argument's function answers
    the call.

    places: other names that arguments may be given by -> the argument's index in `parameters`.
    """

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
    """Return the names of a function's parameters, keyword-only ones last."""
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
