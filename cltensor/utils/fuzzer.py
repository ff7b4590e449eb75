"""Random shapes, layouts and numbers to benchmark with: `torch.utils.benchmark.Fuzzer` and what it draws.

A seed determines all numbers, which are not torch's. Owns the drawing only; `benchmark.py` measures.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..creation import ones
from ..ops.row import FUNCTIONS
from ..tensor import Tensor

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_TRIES = 1000  # draws in a row that constraints refuse


class ParameterAlias:
    """In a distribution: the value of another parameter."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number to draw between two others, "uniform" or "loguniform", or a value from a dict of values and their weights."""

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        if distribution is None:
            raise AssertionError("distribution must not be None")
        if isinstance(distribution, dict):
            total = math.fsum(distribution.values())
            if not distribution or total <= 0 or min(distribution.values()) < 0:
                raise ValueError(f"FuzzedParameter: weights must be positive, got {distribution}")
            self._choices: list[Any] = list(distribution)
            self._weights = [w / total for w in distribution.values()]
        elif distribution not in ("uniform", "loguniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")
        elif minval is None or maxval is None:
            raise ValueError(f"FuzzedParameter: {distribution} needs minval and maxval")
        self._distribution = distribution

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """Draw a value; an int if both limits are ints."""
        if isinstance(self._distribution, dict):
            return self._choices[state.choice(len(self._choices), p=self._weights)]
        low, high = self._minval, self._maxval
        assert low is not None
        assert high is not None
        whole = isinstance(low, int) and isinstance(high, int)
        if self._distribution == "uniform":
            return (
                int(state.randint(int(low), int(high) + 1))
                if whole
                else float(state.uniform(low, high))
            )
        value = math.exp(state.uniform(math.log(low), math.log(high)))
        return min(max(round(value), int(low)), int(high)) if whole else value


class FuzzedTensor:
    """A tensor whose sizes, and steps between the elements of each dim, are numbers or names of parameters.

    probability_contiguous: how often its dims lie in order in memory. min_elements, max_elements, max_allocation_bytes:
    draws outside are refused. dim_parameter: the parameter that says how many of the sizes are used.
    tensor_constructor: called with `size`, `dtype` and the parameters; without it numbers are normally distributed, or
    integers below 127.
    """

    def __init__(
        self,
        name: str,
        size: Sequence[Any],
        steps: Sequence[Any] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Any = dtypes.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:
        if steps is not None and len(steps) != len(size):
            raise AssertionError("steps and size must have the same length")
        self._name, self._size = name, tuple(size)
        self._steps = (1,) * len(self._size) if steps is None else tuple(steps)
        self._contiguous = probability_contiguous
        self._least, self._most, self._bytes = min_elements, max_elements, max_allocation_bytes
        self._dim, self._roll, self._dtype = dim_parameter, roll_parameter, dtype
        self._device = "cuda" if cuda else "cpu"
        self._make = tensor_constructor

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self._name

    def _resolved(self, params: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        dims = params[self._dim] if self._dim else len(self._size)
        size, steps = (
            tuple(params[v] if isinstance(v, str) else v for v in given)[:dims]
            for given in (self._size, self._steps)
        )
        if self._roll:
            by = params[self._roll] % max(dims, 1)
            size, steps = (v[-by:] + v[:-by] if by else v for v in (size, steps))
        return size, steps

    def fits(self, params: dict[str, Any]) -> bool:
        """Tell whether the number of elements and the bytes of memory are within the limits."""
        size, steps = self._resolved(params)
        count = math.prod(size)
        memory = math.prod(a * b for a, b in zip(size, steps)) * self._dtype.itemsize
        return (
            (self._least is None or count >= self._least)
            and (self._most is None or count <= self._most)
            and (self._bytes is None or memory <= self._bytes)
        )

    def sample(
        self, params: dict[str, Any], state: np.random.RandomState
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return a tensor, and its number of elements, order of dims, steps, and whether it is contiguous."""
        size, steps = self._resolved(params)
        order = list(range(len(size)))
        if state.rand() >= self._contiguous:
            order = [int(d) for d in state.permutation(len(size))]
        memory = [size[d] * steps[d] for d in order]
        if self._make is not None:
            raw = self._make(size=tuple(memory), dtype=self._dtype, **params)
        elif self._dtype.is_floating_point or self._dtype.is_complex:
            raw = FUNCTIONS["randn"](*memory, dtype=self._dtype, device=self._device)
        else:
            high = 2 if self._dtype is dtypes.bool else 127
            raw = ones(memory, dtype=self._dtype, device=self._device).random_(0, high)
        made = raw.permute([order.index(d) for d in range(len(size))])
        made = made[tuple(slice(None, None, s) for s in steps)]
        told = {
            "numel": made.numel(),
            "order": order,
            "steps": steps,
            "is_contiguous": made.is_contiguous(),
            "dtype": str(self._dtype),
        }
        return made, told


class Fuzzer:
    """Draws parameters, and tensors that depend on them, as long as the constraints (functions of parameters) hold."""

    def __init__(
        self,
        parameters: Sequence[FuzzedParameter | Sequence[FuzzedParameter]],
        tensors: Sequence[FuzzedTensor | Sequence[FuzzedTensor]],
        constraints: Sequence[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        self._parameters: list[FuzzedParameter] = _flat(parameters)
        self._tensors: list[FuzzedTensor] = _flat(tensors)
        self._constraints = tuple(constraints or ())
        names = [p.name for p in self._parameters], [t.name for t in self._tensors]
        if repeated := {n for n in itertools.chain(*names) if sum(map(n.__eq__, itertools.chain(*names))) > 1}:  # fmt: skip
            raise ValueError(f"Fuzzer: names of parameters and tensors must differ: {repeated}")
        self._state = np.random.RandomState(
            np.random.randint(0, 2**31) if seed is None else seed  # noqa: NPY002 - a seed as torch's
        )
        self._draws = self._refused = 0

    @property
    def rejection_rate(self) -> float:
        """The part of all draws that was refused."""
        return self._refused / self._draws if self._draws else 0.0

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, Any], dict[str, Any]]]:
        """Yield `n` times: tensors by name, what is told of each, parameters by name. ValueError if nothing fits."""
        for _ in range(n):
            params = self._drawn()
            made, told = {}, {}
            for tensor in self._tensors:
                made[tensor.name], told[tensor.name] = tensor.sample(params, self._state)
            yield made, told, params

    def _drawn(self) -> dict[str, Any]:
        for _ in range(_TRIES):
            self._draws += 1
            params = {p.name: p.sample(self._state) for p in self._parameters}
            for name, value in params.items():
                if isinstance(value, ParameterAlias):
                    params[name] = params[value.alias_to]
            if all(holds(**params) for holds in self._constraints) and all(
                tensor.fits(params) for tensor in self._tensors
            ):
                return params
            self._refused += 1
        raise ValueError(f"Fuzzer: {_TRIES} draws in a row did not satisfy the constraints")


def _flat(given: Sequence[Any]) -> list[Any]:
    return [x for item in given for x in (item if isinstance(item, tuple | list) else (item,))]
