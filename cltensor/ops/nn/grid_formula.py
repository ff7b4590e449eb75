"""`grid_sample` written with differentiable ops: slower than its kernels, and used for its second derivatives.

Positions and their limits are piecewise constant or linear in a point's coordinates, so they are computed without
gradient, and their derivative is attached to the weights that depend on it.
"""

from __future__ import annotations

import itertools
from math import prod
from typing import NamedTuple

from ...codegen.resample.grid import Way
from ..core import Tensor
from ..selection import where


class _Tap(NamedTuple):
    """One position of an axis that points read: where, whether it lies inside, and its weight (None for 1)."""

    at: Tensor
    inside: Tensor
    weight: Tensor | None


def _reflected(x: Tensor, size: int, aligned: bool) -> tuple[Tensor, Tensor]:
    """Return x reflected at both ends of the axis, and the derivative of that by x: 1, -1, or 0 without extent."""
    low, span = (0.0, size - 1) if aligned else (-0.5, size)
    if span <= 0:
        return x * 0, x * 0
    away = (x - low).abs()
    turns = (away / span).floor()
    rest = away - turns * span
    odd = turns - (turns / 2).floor() * 2 != 0
    sign = where(x < low, -1.0, 1.0) * where(odd, -1.0, 1.0)
    return where(odd, span - rest, rest) + low, sign


def _limited(x: Tensor, size: int, way: Way) -> tuple[Tensor, Tensor | None]:
    """Return positions brought inside as the padding mode says, and their derivative by x (None for 1)."""
    moves = None
    if way.padding == "reflection":
        x, moves = _reflected(x, size, way.aligned)
    if way.padding != "zeros":
        free = (x > 0) & (x < size - 1)
        moves = where(free, 1.0 if moves is None else moves, 0.0)
        x = x.clamp(0, size - 1)
    return x, moves


def _tap(at: Tensor, size: int, weight: Tensor | None) -> _Tap:
    inside = (at > -1) & (at < size)
    return _Tap(where(inside, at, 0.0).long(), inside, weight)


def _axis(g: Tensor, size: int, way: Way) -> list[_Tap]:
    """Return the taps that points with coordinate g read along an axis."""
    x = (g + 1) * ((size - 1) / 2) if way.aligned else (g + 1) * (size / 2) - 0.5
    still = x.detach()
    if way.mode == "bicubic":
        base, a = still.floor(), -0.75
        t = x - base
        far = [((a * u - 5 * a) * u + 8 * a) * u - 4 * a for u in (t + 1, 2 - t)]
        near = [((a + 2) * u - (a + 3)) * u * u + 1 for u in (t, 1 - t)]
        weights = (far[0], near[0], near[1], far[1])
        return [
            _tap(_limited(base + (k - 1), size, way)[0], size, w) for k, w in enumerate(weights)
        ]
    value, moves = _limited(still, size, way)
    if way.mode == "nearest":
        return [_tap(value.round(), size, None)]
    base = value.floor()
    t = value - base + (x - still if moves is None else moves * (x - still))
    return [_tap(base, size, 1 - t), _tap(base + 1, size, t)]


def composed(input: Tensor, grid: Tensor, way: Way) -> Tensor:
    """Sample `input` (N, C, spatial) at `grid` (N, out, dims), differentiably to any order."""
    n, c, *spatial = input.shape
    points = prod(grid.shape[1:-1])
    flat, where_to = input.reshape(n, c, -1), grid.reshape(n, points, -1)
    width_first = enumerate(reversed(spatial))
    axes = [_axis(where_to[..., i], size, way) for i, size in width_first]
    total = None
    for spot in itertools.product(*axes):
        at, inside, weight, step = None, None, None, 1
        for tap, size in zip(spot, reversed(spatial), strict=True):
            at = tap.at if at is None else at + tap.at * step
            inside = tap.inside if inside is None else inside & tap.inside
            if tap.weight is not None:
                weight = tap.weight if weight is None else weight * tap.weight
            step *= size
        assert at is not None
        assert inside is not None
        read = flat.gather(2, at.unsqueeze(1).expand(n, c, points))
        read = where(inside.unsqueeze(1), read, 0.0)
        read = read if weight is None else read * weight.unsqueeze(1)
        total = read if total is None else total + read
    assert total is not None
    return total.reshape(n, c, *grid.shape[1:-1])
