"""`SobolEngine`: points of a Sobol sequence. The direction numbers come from a table in scipy, otherwise not needed
here.

Points are computed on the device from their indices: a point is the exclusive or of the direction numbers for those
bits that are set in the index's Gray code.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from . import creation, random
from .dtypes import float32, get_default_dtype, int64
from .ops.row import FUNCTIONS
from .tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """An engine that draws a (scrambled) Sobol sequence in [0, 1), a point of `dimension` numbers at a time.

    scramble: multiply the digits by random lower triangular matrices and shift them (Matoušek 1998), all drawn from
    `seed`. ValueError for more than 21201 dimensions, ImportError if scipy is not installed.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = creation.tensor(_directions(dimension, self.MAXBIT), device="cpu")
        self.shift = creation.zeros(dimension, dtype=int64, device="cpu")
        if scramble:
            self._scramble()
        self.num_generated = 0

    @property
    def quasi(self) -> Tensor:
        """The last point drawn, as int64 of `MAXBIT` bits."""
        return self._points(max(self.num_generated - 1, 0), 1)[0]

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next n points as [n, dimension], of `dtype` or the default dtype."""
        points = self._points(self.num_generated, n).to(dtype or get_default_dtype())
        points = points * 2.0**-self.MAXBIT
        self.num_generated += n
        return points if out is None else out.resize_as_(points).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next 2**m points. ValueError if the total number of points drawn is then no power of 2."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require "
                f"n to be a power of 2. {self.num_generated} points have been "
                f"previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip n points."""
        self.num_generated += n
        return self

    def _points(self, first: int, n: int) -> Tensor:
        if first + n > 1 << self.MAXBIT:
            raise RuntimeError(f"a Sobol sequence ends after 2**{self.MAXBIT} points")
        index = creation.arange(first, first + n, device="cpu")[:, None]
        gray = index ^ (index >> 1)
        points = self.shift.expand(n, self.dimension)
        for bit in range((first + n - 1).bit_length()):
            points = points ^ (gray >> bit & 1) * self.sobolstate[:, bit]
        return points

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = random.Generator()
            generator.manual_seed(self.seed)
        bits, randint = self.MAXBIT, FUNCTIONS["randint"]
        weights = 2 ** creation.arange(bits, device="cpu")
        drawn = {"generator": generator, "device": "cpu"}
        self.shift = (randint(2, (self.dimension, bits), **drawn) * weights).sum(1)
        lower = randint(2, (self.dimension, bits, bits), **drawn).tril()
        lower.diagonal(0, -2, -1).fill_(1)
        digits = self.sobolstate[..., None] // weights.flip(0) % 2  # the highest first
        mixed = (digits.to(float32) @ lower.to(float32).mT).to(int64) % 2
        self.sobolstate = (mixed * weights.flip(0)).sum(-1)

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        words += ["scramble=True"] if self.scramble else []
        words += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(words)})"


def _directions(dimension: int, bits: int) -> np.ndarray:
    """Return direction numbers [dimension, bits]: Joe and Kuo's, continued by the recurrence of Bratley and Fox."""
    scipy = importlib.util.find_spec("scipy")
    if scipy is None or scipy.origin is None:
        raise ImportError("SobolEngine reads direction numbers from scipy: pip install scipy")
    with np.load(Path(scipy.origin).parent / "stats" / "_sobol_direction_numbers.npz") as table:
        polynomials, initial = table["poly"][:dimension], table["vinit"][:dimension]
    degrees = np.frexp(polynomials)[1] - 1
    found = np.zeros((dimension, bits), np.int64)
    found[0] = 1
    for degree in np.unique(degrees[1:]):
        rows = np.flatnonzero(degrees == degree)
        rows = rows[rows > 0]
        found[rows, :degree] = initial[rows, :degree]
        for j in range(degree, bits):
            value = found[rows, j - degree]
            for k in range(degree):
                used = polynomials[rows] >> (degree - 1 - k) & 1
                value = value ^ used * found[rows, j - k - 1] << k + 1
            found[rows, j] = value
    return found << np.arange(bits - 1, -1, -1)
