"""Gradients that are one pointwise op, as long as nobody differentiates them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..autograd.record import needs_grad
from .core import Tensor
from .row import OPERANDS, Row


def slope(
    name: str, formula: str, steps: Callable[..., Tensor], exact: bool = False
) -> Callable[..., Tensor]:
    """Return a gradient function: one op, or `steps` where a graph of it is recorded or the incoming gradient is complex.

    formula: the gradient of real numbers, where x is the incoming one and y, z and w are what `steps` takes after it, in
        its order. exact: as in `Row`.

    As torch does for `silu` and `mish`, a gradient that is to be differentiated is made of operators that have gradients
    of any order.
    """
    count = len(inspect.signature(steps).parameters)
    args = ("grad", *OPERANDS[1:count])
    row = Row(name, {"f": formula}, args=args, exact=exact, public=False)

    @functools.wraps(steps)
    def gradient(g: Tensor, *saved: Any) -> Tensor:
        if g.dtype.category == 3 or needs_grad(g, *saved):
            return steps(g, *saved)
        return row(g, *saved)

    return gradient
