"""The strong Wolfe line search of L-BFGS: bracket a good step, then narrow the bracket by cubic interpolation.

Works on numbers only; the caller provides the function along the line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..tensor import Tensor

_ARMIJO, _CURVATURE = 1e-4, 0.9
_LEAST_CHANGE = 1e-9


class Point(NamedTuple):
    """A step along the line: its length, the value, the gradient, and the slope along the line there."""

    step: float
    value: float
    grad: Tensor
    slope: float


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return the step that minimises the cubic with the values and slopes of two points, clamped to bounds (by default,
    these points).
    """
    low, high = bounds or (min(a.step, b.step), max(a.step, b.step))
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    if a.step > b.step:
        a, b = b, a
    share = (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)
    return min(max(b.step - (b.step - a.step) * share, low), high)


def strong_wolfe(
    at: Callable[[float], tuple[float, Tensor]],
    direction: Tensor,
    step: float,
    value: float,
    grad: Tensor,
    slope: float,
    *,
    most: int,
) -> tuple[float, Tensor, float, int]:
    """Find a step that fulfils the strong Wolfe conditions: it lowers the function enough and flattens its slope.

    at: returns value and gradient at a step. step: the first trial. value, grad, slope: those at 0. most: bound of
    iterations. Returns value, gradient and length of the step, and the number of evaluations.
    """

    def visit(length: float) -> Point:
        found, g = at(length)
        return Point(length, found, g, g.dot(direction).item())

    origin = Point(0, value, grad, slope)
    bracket, done, rounds = _bracket(visit, origin, step, most)
    evaluations = rounds + 1
    reach = direction.abs().max().item()
    low, high = _sorted(bracket)
    stuck = False
    while not done and rounds < most and abs(high.step - low.step) * reach >= _LEAST_CHANGE:
        # The ends of the bracket are in the order they were found, not sorted.
        trial = cubic_minimum(bracket[0], bracket[1])
        trial, stuck = _off_the_ends(trial, bracket, stuck)
        new = visit(trial)
        evaluations += 1
        rounds += 1
        if new.value > value + _ARMIJO * trial * slope or new.value >= low.value:
            bracket = [new if p is high else p for p in bracket]
            low, high = _sorted(bracket)
            continue
        done = abs(new.slope) <= -_CURVATURE * slope
        kept = low if not done and new.slope * (high.step - low.step) >= 0 else high
        bracket = [new if p is low else kept for p in bracket]
        low, high = new, kept
    return low.value, low.grad, low.step, evaluations


def _bracket(
    visit: Callable[[float], Point], origin: Point, step: float, most: int
) -> tuple[list[Point], bool, int]:
    """Lengthen the step until two points enclose a good one.

    Returns these points (a single one if it is good itself), whether one is good, and the number of rounds.
    """
    before, new = origin, visit(step)
    for rounds in range(most):
        worse = rounds > 1 and new.value >= before.value
        if new.value > origin.value + _ARMIJO * new.step * origin.slope or worse:
            return [before, new], False, rounds
        if abs(new.slope) <= -_CURVATURE * origin.slope:
            return [new], True, rounds
        if new.slope >= 0:
            return [before, new], False, rounds
        bounds = (new.step + 0.01 * (new.step - before.step), new.step * 10)
        before, new = new, visit(cubic_minimum(before, new, bounds))
    return [origin, new], False, max(most, 0)


def _sorted(bracket: list[Point]) -> tuple[Point, Point]:
    first, last = bracket[0], bracket[-1]
    return (first, last) if first.value <= last.value else (last, first)


def _off_the_ends(trial: float, bracket: list[Point], stuck: bool) -> tuple[float, bool]:
    """Move a trial that is near an end of the bracket to a tenth of its width inside.

    Only if it is not strictly inside, or if the previous trial was near an end, too (`stuck`). Returns trial and the
    new `stuck`.
    """
    least, largest = (pick(p.step for p in bracket) for pick in (min, max))
    margin = 0.1 * (largest - least)
    if min(largest - trial, trial - least) >= margin:
        return trial, False
    if not stuck and least < trial < largest:
        return trial, True
    near_top = abs(trial - largest) < abs(trial - least)
    return (largest - margin if near_top else least + margin), False
