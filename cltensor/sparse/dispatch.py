"""How dense functions learn of sparse tensors: when the first one is made, the functions that take sparse tensors get
code that looks for them.

Until then they cost dense calls nothing. Rows never get such code: they learn of a sparse operand by failing to find
its storage (ops/elsewhere.py). The function objects stay the same ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import signature
from types import FunctionType
from typing import Any

from ..interception import Ask, ask_first, for_good
from ..ops.elsewhere import HANDLERS, refuse
from ..ops.row import FUNCTIONS, METHODS, ROWS
from ..tensor import Tensor
from .shape import getitem
from .table import MIXED, OWN, TABLE
from .tensor import SparseTensor


class _State:
    """`made`: whether a sparse tensor was ever made. Before that, nothing looks for sparse arguments."""

    made = False


STATE = _State()
# Methods that dense tensors have as well: called on the class, as `torch.Tensor.to_dense(s)`, they must reach the
# sparse ones.
_ANSWERS = [
    "to_dense", "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "sparse_dim", "dense_dim", "_nnz", "coalesce",
    "is_coalesced", "indices", "_indices", "_values", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices",
]  # fmt: skip


def install() -> None:
    """Give SparseTensor its methods, and make the dense functions of the table look for sparse arguments; once."""
    if STATE.made:
        return
    STATE.made = True
    for name, fn in (*TABLE.items(), *OWN.items()):
        if name not in SparseTensor.__dict__ and (name in OWN or hasattr(Tensor, name)):
            setattr(SparseTensor, name, _named(name, fn))
    SparseTensor.__getitem__ = getitem  # type: ignore[assignment]
    for name, of in {
        "__matmul__": "matmul", "__pow__": "pow", "__neg__": "neg", "__abs__": "abs", "__floordiv__": "floor_divide",
        "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_",
    }.items():  # fmt: skip
        setattr(SparseTensor, name, getattr(SparseTensor, of))
    SparseTensor.__rmatmul__ = lambda self, other: self.__class__.matmul(other, self)  # type: ignore[attr-defined]
    SparseTensor.T = property(
        lambda self: self.t() if self.ndim <= 2 else self.permute(*reversed(range(self.ndim)))
    )
    with for_good():
        for name, fn in (*TABLE.items(), *OWN.items()):
            if (name in TABLE or name in MIXED) and name not in ROWS:
                for dense in (FUNCTIONS.get(name), METHODS.get(name)):
                    _have_ask(name, dense, fn)
        for name in _ANSWERS:
            _have_ask(name, METHODS[name], getattr(SparseTensor, name))


def _named(name: str, fn: Callable) -> Callable:
    """Make a method of `fn` that raises torch's error for `name` where `fn` returns NotImplemented."""

    @functools.wraps(fn)
    def method(*args: Any, **kwargs: Any) -> Any:
        made = fn(*args, **kwargs)
        if made is NotImplemented:
            raise refuse(name)
        return made

    method.__name__ = method.__qualname__ = name
    return method


def _have_ask(name: str, dense: Any, sparse: Callable) -> None:
    """Give a function the code that looks for sparse arguments first, once (Note [Interception] in interception.py).

    Functions that cast for autocast and wrappers of numpy's argument names are left alone: the code goes to the function
    beneath, which other functions of the library call.
    """
    beneath = getattr(dense, "__uncast__", None)
    if beneath is not None:
        _have_ask(name, beneath, sparse)
    while hasattr(dense, "_numpy_names"):
        dense = dense.__wrapped__
    if not isinstance(dense, FunctionType) or hasattr(dense, "__takes_sparse__"):
        return
    listed = name in ("cat", "concat", "concatenate", "stack")
    delivered = "out" in signature(dense).parameters and "out" not in signature(sparse).parameters

    def make(plain: FunctionType) -> Ask:
        def ask(args: Any, kwargs: Any) -> Any:
            for a in args[0] if listed and args and isinstance(args[0], tuple | list) else args:
                if a.__class__ is SparseTensor:
                    break
            else:
                if not kwargs:
                    return plain(*args)
                if not any(v.__class__ is SparseTensor for v in kwargs.values()):
                    return plain(*args, **kwargs)
            out = kwargs.get("out") if delivered else None
            made = sparse(*args, **kwargs)
            if out is not None and made is not NotImplemented:
                made = HANDLERS["into"](made, out, name)
            if made is NotImplemented:
                raise refuse(name)
            return made

        return ask

    ask_first(dense, make)
    vars(dense)["__takes_sparse__"] = True
