"""Python's operators for tensors; also attaches the methods of rows and functions to Tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from .creation import as_tensor
from .ops import arithmetic, compare, host_loops, matmul, power, unary
from .ops import row as rows
from .ops.core import NUMBERS
from .ops.elsewhere import foreign
from .ops.operands import normal
from .tensor import Tensor

_accepts = (Tensor, *NUMBERS, np.generic)


def _operator(
    name: str, fn: Any, *, direct: Any = None, reflected: bool = False, accepts: Any = _accepts
) -> None:
    """Attach an operator to Tensor. fn: the public function; direct: a shortcut for plain tensors, and the floats and
    ints that fn accepts.
    """
    plain = (Tensor,) if accepts is Tensor else (Tensor, float, int)

    def forward(self: Tensor, other: Any) -> Any:
        if direct is not None and other.__class__ in plain and self.__class__ is Tensor:
            return direct(self, other)
        if not isinstance(other, accepts):
            return forward(self, other) if foreign(forward, (self, other), None) else NotImplemented
        return fn(self, other)

    def backward(self: Tensor, other: Any) -> Any:
        if not isinstance(self, Tensor):
            raise TypeError(
                f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a '{type(self).__name__}' object"
            )
        if not isinstance(other, accepts):
            if foreign(backward, (self, other), None):
                return backward(self, other)
            return NotImplemented
        if not isinstance(other, Tensor) and other.__class__ not in NUMBERS:
            other = normal(name, ("other", "self"), (other, self))[0]
        return fn(other, self)

    method = backward if reflected else forward
    method.__name__ = method.__qualname__ = name
    setattr(Tensor, name, method)


# `__call__`, because calling the row itself takes longer.
_DIRECT = {
    "__add__": arithmetic.add_row.__call__,
    "__sub__": arithmetic.minus,
    "__mul__": arithmetic.mul.__call__,
    "__truediv__": arithmetic.true_divide.__call__,
}
_DIRECT |= {
    f"__{name}__": rows.ROWS[name].__call__ for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
for _name, _fn in {
    "__add__": arithmetic.add, "__sub__": arithmetic.sub, "__mul__": rows.FUNCTIONS["mul"], "__truediv__": arithmetic.div, "__floordiv__": arithmetic.floor_divide,
    "__mod__": arithmetic.remainder, "__pow__": power.pow, "__and__": rows.FUNCTIONS["bitwise_and"], "__or__": rows.FUNCTIONS["bitwise_or"],
    "__xor__": rows.FUNCTIONS["bitwise_xor"], "__lshift__": compare.bitwise_left_shift, "__rshift__": compare.bitwise_right_shift,
    "__lt__": rows.FUNCTIONS["lt"], "__le__": rows.FUNCTIONS["le"],
    "__gt__": rows.FUNCTIONS["gt"], "__ge__": rows.FUNCTIONS["ge"],
}.items():  # fmt: skip
    _operator(_name, _fn, direct=_DIRECT.get(_name))


def _unary(name: str, fn: Any) -> None:
    """Attach an operator of one operand to Tensor."""

    def method(self: Tensor) -> Any:
        return fn(self)

    method.__name__ = method.__qualname__ = name
    setattr(Tensor, name, method)


def _invert(self: Tensor) -> Tensor:
    if self.dtype.category > 1:
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return compare.bitwise_not(self)


for _name, _fn in {
    "__neg__": unary.neg, "__pos__": unary.positive, "__abs__": unary.abs, "__invert__": _invert,
}.items():  # fmt: skip
    _unary(_name, _fn)


def _equality(name: str, fn: Any) -> None:
    """Attach == or !=, which also accept a numpy array; with the other operators numpy converts by `__array__`."""

    def compare(self: Tensor, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            other = as_tensor(other, device=self.device)
        return fn(self, other)

    _operator(name, compare, direct=_DIRECT[name], accepts=(*_accepts, np.ndarray))


for _name in ("eq", "ne"):
    _equality(f"__{_name}__", rows.FUNCTIONS[_name])

for _name, _fn in {
    "__radd__": lambda a, b: arithmetic.add(b, a), "__rsub__": lambda a, b: arithmetic.rsub(b, a), "__rmul__": lambda a, b: rows.FUNCTIONS["mul"](b, a),
    "__rfloordiv__": arithmetic.floor_divide, "__rmod__": arithmetic.remainder, "__rpow__": power.pow,
    "__rand__": lambda a, b: rows.FUNCTIONS["bitwise_and"](b, a), "__ror__": lambda a, b: rows.FUNCTIONS["bitwise_or"](b, a),
    "__rxor__": lambda a, b: rows.FUNCTIONS["bitwise_xor"](b, a), "__rlshift__": compare.bitwise_left_shift, "__rrshift__": compare.bitwise_right_shift,
}.items():  # fmt: skip
    _operator(_name, _fn, reflected=True)


def _in_place(name: str, method: Any) -> None:
    """Attach an augmented assignment; for operands of other classes Python falls back to the plain operator."""

    def operator(self: Tensor, other: Any) -> Any:
        try:
            return method(self, other)
        except TypeError:
            if isinstance(other, _accepts):
                raise
            return (
                operator(self, other) if foreign(operator, (self, other), None) else NotImplemented
            )

    operator.__name__ = operator.__qualname__ = name
    setattr(Tensor, name, operator)


for _name, _fn in {
    "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_", "__ifloordiv__": "floor_divide_", "__imod__": "remainder_",
    "__ipow__": "pow_", "__iand__": "bitwise_and_", "__ior__": "bitwise_or_", "__ixor__": "bitwise_xor_",
    "__ilshift__": "bitwise_left_shift_", "__irshift__": "bitwise_right_shift_",
}.items():  # fmt: skip
    _in_place(_name, rows.METHODS[_fn])


def _reciprocal_times(self: Tensor, other: Any) -> Any:
    """Compute other / self as `self.reciprocal() * other`."""
    inverse = self.reciprocal()
    return inverse * other if isinstance(other, (*_accepts, np.ndarray)) else NotImplemented


_reciprocal_times.__name__ = _reciprocal_times.__qualname__ = "__rdiv__"
for _name in ("__rtruediv__", "__rdiv__"):  # the second is a name of Python 2 that torch kept
    setattr(Tensor, _name, _reciprocal_times)
for _name in ("__div__", "__idiv__"):  # names of Python 2, too
    setattr(Tensor, _name, getattr(Tensor, _name.replace("div", "truediv")))

for _name, _fn in rows.METHODS.items():
    if _fn.__name__ == "<lambda>":
        rows.titled(_fn, _name, f"Form of `{_name.rstrip('_')}` as a method.")
    if _name not in Tensor.__dict__:
        setattr(Tensor, _name, _fn)

setattr(Tensor, "_make_subclass", staticmethod(host_loops.make_subclass))  # noqa: B010

if "matmul" in rows.FUNCTIONS:
    _operator("__matmul__", rows.FUNCTIONS["matmul"], direct=matmul.plain_matmul, accepts=Tensor)
    _operator("__rmatmul__", rows.FUNCTIONS["matmul"], reflected=True, accepts=Tensor)
