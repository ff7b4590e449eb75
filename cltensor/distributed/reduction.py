"""Reductions of several members' elements: `ReduceOp`, and its operations on tensors. Knows nothing of connections."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import no_grad
from ..ops.row import FUNCTIONS
from ..tensor import Tensor

__all__ = ["ReduceOp", "supports_complex"]


class RedOpType(enum.IntEnum):
    """The kinds of reductions."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class ReduceOp:
    """The operation of a reduction: `ReduceOp.SUM` and its like."""

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __new__(cls, op: Any) -> Any:
        """Return the operation itself."""
        return cls.RedOpType(op)


RedOpType.__qualname__ = "ReduceOp.RedOpType"


def supports_complex(reduceOp: Any) -> bool:
    """Tell whether an operation on complex numbers can be done on real and imaginary parts separately."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_NUMBERS: dict[Any, Callable[[Any, Any], Any]] = {
    ReduceOp.SUM: lambda a, b: a + b,
    ReduceOp.AVG: lambda a, b: a + b,
    ReduceOp.PRODUCT: lambda a, b: a * b,
    ReduceOp.MIN: FUNCTIONS["minimum"],
    ReduceOp.MAX: FUNCTIONS["maximum"],
    ReduceOp.BAND: lambda a, b: a & b,
    ReduceOp.BOR: lambda a, b: a | b,
    ReduceOp.BXOR: lambda a, b: a ^ b,
}
# Operations on bool, whose results must be 0 or 1: kernels rely on that.
_TRUTHS: dict[Any, Callable[[Any, Any], Any]] = {
    ReduceOp.SUM: lambda a, b: a | b,
    ReduceOp.PRODUCT: lambda a, b: a & b,
    ReduceOp.MIN: lambda a, b: a & b,
    ReduceOp.MAX: lambda a, b: a | b,
    ReduceOp.BAND: lambda a, b: a & b,
    ReduceOp.BOR: lambda a, b: a | b,
    ReduceOp.BXOR: lambda a, b: a ^ b,
}


def check(op: Any, t: Tensor, call: str) -> None:
    """Raise, in torch's words, unless tensors of this dtype can be reduced by `op`."""
    if not isinstance(op, RedOpType) or op is ReduceOp.PREMUL_SUM:
        raise TypeError(
            f"{call}(): incompatible function arguments. The operation is one of ReduceOp's but PREMUL_SUM; got {op!r}"
        )
    category = t.dtype.category
    if op in _BITS and category > 1:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is ReduceOp.AVG and category < 2:
        name = "Bool" if category == 0 else t.dtype.scalar_name
        raise RuntimeError(f"result type Float can't be cast to the desired output type {name}")


def reduce_into(out: Tensor, operands: Sequence[Tensor], op: Any, count: int) -> None:
    """Write the reduction of the operands, in this order, to `out`, which may be one of them.

    count: the number of members whose elements went into the operands, by which an average is divided.
    """
    table = _TRUTHS if out.dtype.category == 0 else _NUMBERS
    backend = out._storage.backend
    with no_grad(), backend.lock:
        result: Any = operands[0]
        for other in operands[1:]:
            result = table[op](result, other)
        if op is ReduceOp.AVG:
            result = result / count
        if result is not out:
            out.copy_(result)
        out._storage.buffer()
