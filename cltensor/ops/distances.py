"""Distances between rows: of two matrices, and of every two rows of one (codegen/distance.py).

Euclidean distances of many long rows are computed by a matrix product. Second derivatives go through plain ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..codegen import distance as family
from ..runtime import get_backend
from . import core, norms
from .core import Tensor
from .operands import same_dtype
from .replay import Replayed
from .row import FUNCTIONS, public
from .selection import where

# Elements of a row, and elements in the rows of all pairs, up to which a matrix product is no faster.
_SHORT, _FEW = 64, 1 << 22


def _many(a: Tensor, b: Tensor) -> bool:
    width = a.shape[-1]
    return width > _SHORT and a.shape[-2] * b.shape[-2] * width > _FEW


def _rows(x: Tensor, lead: tuple[int, ...]) -> Tensor:
    """Return the rows contiguous, expanded to the batch dims `lead` unless there is only one matrix."""
    if any(n != 1 for n in x.shape[:-2]):
        x = x.expand(*lead, *x.shape[-2:])
    return x.contiguous()


def _operand(x: Tensor) -> family.Rows:
    n, width = x.shape[-2:]
    alone = layouts.numel(x.shape[:-2]) == 1
    return family.Rows(core.kernel_operand(x), n, width, 0 if alone else n * width)


@Replayed.of_memory
def _between(xs: Sequence[Tensor], lead: tuple[int, ...], p: float) -> list[Tensor]:
    backend, (a, b) = get_backend(xs[0].device), map(_operand, xs)
    with backend.lock:
        found = family.between(backend, a, b, layouts.numel(lead), p)
    shape = (*lead, a.n, b.n)
    return [core.result(found, xs[0].device).view(shape)]


@Replayed.of_memory
def _among(xs: Sequence[Tensor], p: float) -> list[Tensor]:
    backend = get_backend(xs[0].device)
    with backend.lock:
        return [core.result(family.among(backend, _operand(xs[0]), p), xs[0].device)]


@Replayed.of_memory
def _slope(xs: Sequence[Tensor], lead: tuple[int, ...], p: float, turned: bool) -> list[Tensor]:
    backend = get_backend(xs[0].device)
    a, b = map(_operand, xs[:2])
    g, d = map(core.kernel_operand, xs[2:])
    with backend.lock:
        found = family.slope(backend, a, b, layouts.numel(lead), p, g, d, turned)
    return [core.result(found, xs[0].device).view((*lead, a.n, a.width))]


@Replayed.of_memory
def _slope_among(xs: Sequence[Tensor], p: float) -> list[Tensor]:
    backend = get_backend(xs[0].device)
    rows = _operand(xs[0])
    g, d = map(core.kernel_operand, xs[1:])
    with backend.lock:
        found = family.slope_among(backend, rows, p, g, d)
    return [core.result(found, xs[0].device).view((rows.n, rows.width))]


def _distances(a: Tensor, b: Tensor, p: float) -> Tensor:
    lead = layouts.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, a.shape[-2], b.shape[-2])
    if not layouts.numel(shape) or not a.shape[-1]:
        return a.new_zeros(shape)
    return _between([_rows(x, lead) for x in (a, b)], lead, p)[0]


@public(method=False)
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the p-distances between all rows of x1 (…, P, M) and x2 (…, R, M): (…, P, R)."""
    for which, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {which} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    for which, x in (("X1", x1), ("X2", x2)):
        if x.dtype.category != 2:
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {which} got: {x.dtype.scalar_name}"
            )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    same_dtype(x1, x2)
    product = p == 2 and (
        compute_mode == "use_mm_for_euclid_dist"
        or (compute_mode != "donot_use_mm_for_euclid_dist" and _many(x1, x2))
    )
    if x1.dtype.itemsize == 2 and not product:
        return cdist(x1.float(), x2.float(), p, compute_mode).to(x1.dtype)
    a, b = x1.detach(), x2.detach()
    if product:
        squares = (a * a).sum(-1, keepdim=True) + (b * b).sum(-1, keepdim=True).mT
        value = (squares - 2 * a.matmul(b.mT)).clamp_min(0).sqrt()
    else:
        value = _distances(a, b, float(p))
    if graph.needs_grad(x1, x2):
        graph.record(
            "CdistBackward0",
            (x1, x2),
            value,
            _cdist_back,
            {"x1": x1, "x2": x2, "result": value, "p": float(p), "product": product},
        )
    return value


def _each(delta: Tensor, g: Tensor, distance: Tensor, p: float) -> Tensor:
    """Return the gradient for the differences from that for their distance.

    With p infinite, every largest difference gets all of it.
    """
    if math.isinf(p):
        return where(delta.abs() == distance, delta.sign() * g, 0.0)
    return norms.gradient(delta, g, distance, p, (delta.ndim - 1,))


def _cdist_back(ctx: Any, g: Tensor) -> tuple:
    x1, x2 = ctx.x1, ctx.x2
    if ctx.product:
        each = where(ctx.result == 0, 0.0, g / ctx.result)
        return (
            x1 * each.sum(-1, True) - each.matmul(x2) if ctx.needs[0] else None,
            x2 * each.sum(-2).unsqueeze(-1) - each.mT.matmul(x1) if ctx.needs[1] else None,
        )
    if graph.differentiating() or not g.numel() or not x1.shape[-1] or ctx.p == 0:
        delta = x1.unsqueeze(-2) - x2.unsqueeze(-3)
        each = _each(delta, g.unsqueeze(-1), ctx.result.unsqueeze(-1), ctx.p)
        return each.sum(-2) if ctx.needs[0] else None, -each.sum(-3) if ctx.needs[1] else None
    lead = g.shape[:-2]
    a, b = (_rows(x, lead) for x in (x1, x2))
    pair = g.contiguous(), ctx.result.contiguous()
    return (
        _slope((a, b, *pair), lead, ctx.p, False)[0] if ctx.needs[0] else None,
        _slope((b, a, *pair), lead, ctx.p, True)[0] if ctx.needs[1] else None,
    )


@public(method=False)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the p-distances between every two rows of a matrix, in the order of the upper triangle."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if input.dtype.category != 2:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if input.dtype.itemsize == 2:
        return pdist(input.to(dtypes.float32), p).to(input.dtype)
    x, n = input.detach(), input.shape[0]
    if n < 2 or not x.shape[1]:
        value = x.new_zeros(n * (n - 1) // 2)
    else:
        value = _among((x.contiguous(),), float(p))[0]
    if graph.needs_grad(input):
        graph.record(
            "PdistBackward0",
            (input,),
            value,
            _pdist_back,
            {"self": input, "result": value, "p": float(p)},
        )
    return value


def _pdist_back(ctx: Any, g: Tensor) -> Tensor:
    x = ctx.self
    if not graph.differentiating() and g.numel() and x.shape[1] and ctx.p:
        return _slope_among([t.contiguous() for t in (x, g, ctx.result)], ctx.p)[0]
    rows, cols = FUNCTIONS["triu_indices"](x.shape[0], x.shape[0], 1, device=x.device)
    delta = x.index_select(0, rows) - x.index_select(0, cols)
    each = _each(delta, g.unsqueeze(-1), ctx.result.unsqueeze(-1), ctx.p)
    return (each * 0).new_zeros(x.shape).index_add(0, rows, each).index_add(0, cols, -each)
