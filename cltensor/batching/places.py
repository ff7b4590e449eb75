"""The functions intercepted while a `vmap` runs: the public ones, and internal ones that gradient formulas and other functions call."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from .. import library
from ..autograd.function import Function
from ..ops import row
from ..tensor import Tensor
from .signatures import innermost

# Modules of public functions -> the prefix of their names in the table of rules ("linalg_det" for `linalg.det`).
_MODULES = {"nn.functional": "", "linalg": "linalg_", "fft": "fft_", "special": "special_"}

# Internal functions that take tensors and read their memory: module -> names.
_INNER = {
    "ops.writes": "assign deliver",
    "ops.index": "getitem setitem",
    "ops.shape": "numpy_T matrix_T matrix_H view_dtype",
    "ops.complex_numbers": "real imag set_real set_imag",
    "autograd.record": "record rebase tie",
    "autograd.engine": "grad",
    "autograd.dual": "tangent carry keep take drop",
    "autograd.forward_ad": "pair parts",
}

# Not intercepted: functions that return metadata or another class, and those that call Python code on elements.
_PLAIN = {"as_subclass", "can_cast", "promote_types", "result_type", "apply_", "map_", "map2_"}


def functions() -> Iterator[tuple[str, Any]]:
    """Yield (name, function) for each function to intercept.

    A function may come under several names; the first one counts.
    """
    of_rows = _row_functions()
    # Re-exported by `linalg` and others: yielded below, without a prefix.
    top = {id(fn) for fn in row.FUNCTIONS.values()}
    yield "Row.__call__", row.Row.__call__
    yield "Row.inplace", row.Row.inplace
    yield "Operator.__call__", library.Operator.__call__
    yield "Function.apply", Function.__dict__["apply"].__func__
    for path, names in _INNER.items():
        module = importlib.import_module(f"cltensor.{path}")
        for name in names.split():
            yield f"{path}.{name}" if path.startswith("autograd") else name, getattr(module, name)
    for path, prefix in _MODULES.items():
        module = importlib.import_module(f"cltensor.{path}")
        for name, fn in list(vars(module).items()):
            own = getattr(fn, "__module__", None) or ""
            if name[0] == "_" or not inspect.isfunction(fn) or not own.startswith("cltensor"):
                continue
            if id(fn) not in of_rows and not (prefix and id(fn) in top):
                yield f"{prefix}{name}", fn
    for table in (row.FUNCTIONS, row.METHODS):
        for name, fn in table.items():
            if id(fn) not in of_rows and name not in _PLAIN:
                yield name, fn
    for name, fn in list(vars(Tensor).items()):
        if name.startswith("new_"):
            yield name, fn
        elif isinstance(fn, property) and name in row.FUNCTIONS:
            # `Tensor.real` has a function of its own once functions ask their arguments (`_candidates` in subclasses.py).
            yield name, fn.fget


def _row_functions() -> set[int]:
    """Return the ids of the public functions made from rows.

    They need no interception: they only call `Row`, which is intercepted.
    """
    return {
        id(fn)
        for table in (row.FUNCTIONS, row.METHODS)
        for fn in table.values()
        if inspect.isfunction(fn) and {"self", "arity"} <= set(innermost(fn).__code__.co_freevars)
    }
