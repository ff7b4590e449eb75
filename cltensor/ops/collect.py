"""Copies with rows added to some of their rows, each written once: for index_add and gradients of looked-up rows.

Owns the conditions under which these kernels apply. Knows no gradient; where they do not apply, the caller copies and
adds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from ..codegen.index import collect
from ..codegen.index.lookup import bounds_error
from ..lazy import Expr
from . import core
from .changes import INTEGERS, backend_of, is_zero
from .core import Tensor
from .kinds import Sizes
from .replay import Replayed


def collected(t: Tensor, index: Tensor, values: Tensor, wrap: bool) -> Tensor | None:
    """Return a copy of `t` with the rows `values` added to those that the vector `index` names.

    None where the kernels do not apply. wrap: negative indices count from the end, and a bad index raises IndexError
    instead of RuntimeError.
    """
    if t.ndim < 2 or index.ndim != 1 or index.dtype not in INTEGERS or values.dtype is not t.dtype:
        return None
    rows, n = t.shape[0], index.shape[0]
    if tuple(values.shape) != (n, *t.shape[1:]):
        return None
    if not collect.fits(backend_of(t), t.dtype, rows, math.prod(t.shape[1:]), n):
        return None
    if any(values.stride()) and not values.is_contiguous():
        return None
    operands = [index, values]
    start = t._storage.value
    if not is_zero(start):
        # A pending tensor has to be computed, and one with gaps made dense: the kernel that does so can write the copy.
        if start.__class__ is Expr or not t.is_contiguous():
            return None
        operands.append(t)
    return _collected(operands, Sizes(t.shape), len(operands) == 3, wrap)[0]


@functools.partial(Replayed, memory=True)
def _collected(operands: Sequence[Tensor], shape: Any, based: bool, wrap: bool) -> list[Tensor]:
    index, values, *base = operands
    start = core.kernel_operand(base[0]) if based else None
    kind = IndexError if wrap else RuntimeError
    made = collect.collect(
        backend_of(index),
        values.dtype,
        tuple(shape),
        start,
        core.kernel_operand(index),
        core.kernel_operand(values),
        wrap,
        bounds_error(kind, [0], [shape[0]]),
    )
    return [core.result(made, index.device)]
