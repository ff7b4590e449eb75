"""Window functions: M numbers that fall off towards both ends, symmetric or (`sym=False`) one period of M.

Each window is a formula over an evenly spaced line; the common part (checks, dtype, device) is in `_window`.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import creation, dtypes
from ..memory_format import strided
from ..ops.row import FUNCTIONS
from ..tensor import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class _Line:
    """The points of one window: how many (`count`), steps from end to end (`span`), dtype and device (`options`)."""

    def __init__(self, M: int, sym: bool, options: dict[str, Any]) -> None:
        self.count, self.sym, self.options = M, sym, options
        self.span = M - 1 if sym or M <= 1 else M

    def evenly(self, start: float, step: float) -> Tensor:
        """Make the values start, start + step, … at the points."""
        return creation.linspace(start, start + (self.count - 1) * step, self.count, **self.options)

    def ones(self) -> Tensor:
        return creation.ones((self.count,), **self.options)


def _window(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Turn a formula over a line into a window function: with the arguments all windows take, and torch's checks of
    these.
    """
    # Windows that torch computes by general_cosine name that in their errors.
    cosines = ("general_hamming", "hamming", "hann", "nuttall")
    name = "general_cosine" if formula.__name__ in cosines else formula.__name__

    @functools.wraps(formula)
    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = strided,
        device: Any = None,
        requires_grad: bool = False,
        **parameters: Any,
    ) -> Tensor:
        dt = dtype or dtypes.get_default_dtype()
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dt is not dtypes.float32 and dt is not dtypes.float64:
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dt}")
        options = {"dtype": dt, "device": device, "requires_grad": requires_grad}
        return formula(_Line(M, sym, options), **parameters)

    shared = list(inspect.signature(window, follow_wrapped=False).parameters.values())
    own = list(inspect.signature(formula).parameters.values())[1:]
    vars(window)["__signature__"] = inspect.Signature([shared[0], *own, *shared[1:-1]])
    return window


@_window
def exponential(line: _Line, *, center: float | None = None, tau: float = 1.0) -> Tensor:
    """exp(-|n - center| / tau); `center` is the middle unless given for a periodic window."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if line.sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = line.span / 2 if center is None else center
    return FUNCTIONS["exp"](-line.evenly(-middle / tau, 1 / tau).abs())


@_window
def cosine(line: _Line) -> Tensor:
    """sin(pi (n + 1/2) / M), half a wave."""
    step = math.pi / max(line.span + 1, 1)
    return FUNCTIONS["sin"](line.evenly(step / 2, step))


@_window
def gaussian(line: _Line, *, std: float = 1.0) -> Tensor:
    """exp(-(n - middle)^2 / (2 std^2))."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    step = 1 / (std * math.sqrt(2))
    return FUNCTIONS["exp"](-(line.evenly(-line.span / 2 * step, step) ** 2))


@_window
def kaiser(line: _Line, *, beta: float = 12.0) -> Tensor:
    """i0(beta sqrt(1 - x^2)) / i0(beta), x from -1 to 1."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if line.count <= 1:
        return line.ones()
    x = line.evenly(-1.0, 2 / line.span)
    i0 = FUNCTIONS["i0"]
    return i0((1 - x * x).clamp(min=0).sqrt() * beta) / i0(creation.full_like(x, beta))


@_window
def bartlett(line: _Line) -> Tensor:
    """A triangle: 1 - |x|, x from -1 to 1."""
    return line.ones() if line.count <= 1 else 1 - line.evenly(-1.0, 2 / line.span).abs()


def _cosines(line: _Line, weights: Iterable[float]) -> Tensor:
    if line.count <= 1:
        return line.ones()
    turn = line.evenly(0.0, 2 * math.pi / line.span)
    terms = [FUNCTIONS["cos"](turn * i) * (w if i % 2 == 0 else -w) for i, w in enumerate(weights)]
    return functools.reduce(lambda a, b: a + b, terms)


@_window
def general_cosine(line: _Line, *, a: Iterable[float]) -> Tensor:
    """The sum of (-1)^i a[i] cos(2 pi i n / N)."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if line.count > 1 and not weights:
        raise ValueError("Coefficients cannot be empty")
    return _cosines(line, weights)


@_window
def general_hamming(line: _Line, *, alpha: float = 0.54) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi n / N)."""
    return _cosines(line, (alpha, 1 - alpha))


@_window
def hamming(line: _Line) -> Tensor:
    """0.54 - 0.46 cos(2 pi n / N)."""
    return _cosines(line, (0.54, 1 - 0.54))


@_window
def hann(line: _Line) -> Tensor:
    """(1 - cos(2 pi n / N)) / 2."""
    return _cosines(line, (0.5, 0.5))


@_window
def blackman(line: _Line) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    return _cosines(line, (0.42, 0.5, 0.08))


@_window
def nuttall(line: _Line) -> Tensor:
    """Nuttall's four cosines, with the lowest side lobes."""
    return _cosines(line, (0.3635819, 0.4891775, 0.1365995, 0.0106411))
