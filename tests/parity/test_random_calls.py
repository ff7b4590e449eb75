"""Two thousand random calls at the surface: each gives torch's value, or an ordinary error where torch gives one.

Shapes go down to 0-d and empty; dims and sizes may be wrong. `CLTENSOR_RANDOM=1` draws new calls instead of the same
ones, `CLTENSOR_CALLS` sets their number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parity.oracle import assert_same_outcome, evaluate

CALLS = int(os.environ.get("CLTENSOR_CALLS", "2000"))
SHAPES = [(), (1,), (3,), (0,), (4, 3), (1, 3), (4, 1), (4, 0), (2, 4, 3), (2, 1, 1)]
DTYPES = ["float32", "int64", "bool"]
ERRORS = (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError, NotImplementedError)

# One op for each way to treat dtypes. Ops that differ from these by their formulas alone are tested in test_rows.py.
UNARY = ["neg", "exp", "floor", "sign", "logical_not", "isnan", "clone", "flatten", "contiguous"]
BINARY = ["add", "sub", "div", "lt", "logical_and", "matmul"]
REDUCE = ["sum", "mean", "amax", "all", "argmax"]

PARTS = [*range(-4, 5), "None", "...", ":", "1:", ":-1:2"]
KINDS = ["unary", "binary", "scalar", "reduce", "cumulate", "all", "view", "dims", "index", "pick", "join", "where"]  # fmt: skip

Pick = Callable[..., Any]  # draws one of its arguments


def some(pick: Pick, *of: object) -> list[Any]:
    """Draw up to three of the arguments."""
    return [pick(*of) for _ in range(pick(0, 1, 2, 3))]


def call(kind: str, pick: Pick) -> str:
    """Draw a call of a kind: a line for tensors `a` and `b`."""
    dim = pick(*range(-4, 4))
    match kind:
        case "unary":
            return f"a.{pick(*UNARY)}()"
        case "binary":
            return f"torch.{pick(*BINARY)}(a, b)"
        case "scalar":
            return f"a.{pick('add', 'sub', 'div', 'lt')}({pick(0, 2, -3, 0.5, True)})"
        case "reduce":
            return f"a.{pick(*REDUCE)}({dim}, keepdim={pick(False, True)})"
        case "cumulate":
            return f"a.cumsum({dim})"
        case "all":
            return f"a.{pick(*REDUCE)}()"
        case "view":
            return f"a.reshape({some(pick, -1, 0, 1, 2, 3, 4, 6, 12)})"
        case "dims":
            two = f"{dim}, {pick(*range(-4, 4))}"
            return f"a.{pick(f'transpose({two})', f'permute({two})', f'unsqueeze({dim})', f'flip({dim})')}"
        case "index":
            return f"a[{''.join(f'{part}, ' for part in some(pick, *PARTS)) or '()'}]"
        case "pick":
            return f"a.index_select({dim}, torch.tensor({some(pick, *range(-4, 5))}, dtype=torch.int64))"
        case "join":
            return f"torch.{pick('cat', 'stack')}((a, b), {dim})"
        case _:
            return f"torch.where(a > {pick(0, 1)}, a, b)"


def array(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, len(shape), *shape])
    if dtype == "bool":
        return rng.random(shape) < 0.6
    if dtype == "int64":
        return rng.integers(-5, 6, shape)
    return np.round(rng.standard_normal(shape) * 2, 2).astype(dtype)


@pytest.fixture
def _every_op_by_itself() -> None:
    """Let these calls take the ways that a program's take."""


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=CALLS // len(KINDS),
    derandomize="CLTENSOR_RANDOM" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_a_random_call(data: st.DataObject, kind: str) -> None:
    def pick(*of: Any) -> Any:
        return data.draw(st.sampled_from(of))

    shape, dtype, seed = pick(*SHAPES), pick(*DTYPES), pick(*range(4))
    a = array(shape, dtype, seed)
    b = array(pick(shape, *SHAPES), pick(dtype, "float32") if kind == "binary" else dtype, seed + 1)
    line = call(kind, pick)
    found, expected = evaluate(line, {"a": a, "b": b})
    assert found.error is None or isinstance(found.error, ERRORS)
    if kind == "pick" and expected.error is not None:
        # torch takes either class for one mistake, depending on the loop that it chose.
        assert isinstance(found.error, IndexError | RuntimeError)
        return
    where = f"{line} of {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}: "
    assert_same_outcome(found, expected, 1e-4, where)
