"""`gradient`: derivatives of sampled functions by differences of neighbours."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from .. import dtypes, layouts
from .arithmetic import no_bools
from .core import Tensor, is_tensor
from .row import FUNCTIONS, public

Terms = tuple[Any, Any, Any]  # the factors of three neighbours

# By edge order: the terms at the first position, inside, and at the last, for positions 1 apart.
_EVEN = {
    1: ((-1, 1, 0), (-0.5, 0, 0.5), (0, -1, 1)),
    2: ((-1.5, 2, -0.5), (-0.5, 0, 0.5), (0.5, -2, 1.5)),
}


def _uneven(steps: Tensor, shape: Sequence[int], edge_order: int) -> tuple[Terms, Terms, Terms]:
    """Return the terms at the first position, inside, and at the last; `shape` broadcasts the steps along their dim."""
    a, b = steps[:-1].reshape(shape), steps[1:].reshape(shape)
    inside = -b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b))
    if edge_order == 1:
        return (-1 / steps[0], 1 / steps[0], 0), inside, (0, -1 / steps[-1], 1 / steps[-1])
    p, q, r, s = steps[0], steps[1], steps[-2], steps[-1]
    first = -(2 * p + q) / (p * (p + q)), (p + q) / (p * q), -p / (q * (p + q))
    last = s / (r * (r + s)), -(r + s) / (r * s), (2 * s + r) / (s * (r + s))
    return first, inside, last


def _combined(x: Tensor, dim: int, terms: Terms, starts: Sequence[int], length: int) -> Tensor:
    """Add up neighbours, each times its factor; neighbours whose factor is the number 0 are not read."""
    parts = [
        x.narrow(dim, at, length) * w
        for at, w in zip(starts, terms, strict=True)
        if is_tensor(w) or w
    ]
    return functools.reduce(operator.add, parts)


def _along(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    n, step = x.shape[dim], None
    if is_tensor(spacing) and spacing.ndim:
        shape = [-1 if d == dim else 1 for d in range(x.ndim)]
        first, inside, last = _uneven(spacing[1:] - spacing[:-1], shape, edge_order)
    else:
        (first, inside, last), step = _EVEN[edge_order], spacing
    pieces = [_combined(x, dim, first, (0, 1, min(2, n - 1)), 1)]
    if n > 2:
        pieces.append(_combined(x, dim, inside, (0, 1, 2), n - 2))
    pieces.append(_combined(x, dim, last, (max(n - 3, 0), n - 2, n - 1), 1))
    if step is not None:
        pieces = [p / step for p in pieces]
    return FUNCTIONS["cat"](pieces, dim)


@public(method=False)
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Estimate the derivative along each of `dim` (all by default), one tensor for each.

    spacing: the distance of neighbours, one for each dim, or the coordinates of each dim as tensors. The ends use one-sided
    differences of `edge_order` 1 or 2.
    """
    if dim is None:
        dims = tuple(range(input.ndim))
    else:
        dims = layouts.wrap_dims((dim,) if hasattr(dim, "__index__") else tuple(dim), input.ndim)
    given = spacing if isinstance(spacing, list | tuple) else None
    if given is not None and len(given) != len(dims):
        if dim is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
                f"{input.ndim}', since dim argument was not given, but got a list of length {len(given)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, "
            f"but got a spacing argument of length {len(given)} and a dim argument of length {len(dims)}."
        )
    tensors = [is_tensor(v) for v in given or ()]
    if any(tensors) and not all(tensors):
        at = tensors.index(False)
        raise TypeError(
            f"expected Tensor as element {at} in argument 1, but got {type(given[at]).__name__}"  # type: ignore[index]
        )
    if input.dtype is dtypes.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if input.dtype is dtypes.bool:
        no_bools(input, input)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    steps = given or [1 if spacing is None else spacing] * len(dims)
    x = input if input.dtype.category >= 2 else input.to(dtypes.get_default_dtype())
    return tuple(_along(x, d, s, edge_order) for d, s in zip(dims, steps, strict=True))
