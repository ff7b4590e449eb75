"""Inputs and comparison for tables of calls on which cltensor and torch must agree.

The lines of a table refer to the inputs by name. Their shapes are few and shared, so that few kernels are built:

a, b (3, 4); p (3, 4) positive; u (4,); w (4, 3); h (2, 3, 4); s (3, 3) with a large diagonal;
i an index (3,), j (3, 2); m a mask (3, 4); d float64 (3, 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from parity.oracle import assert_same_outcome, evaluate, lines
from support import data

LOOSE = ("linalg", "kthvalue", "erfinv", "digamma", "lgamma", "acosh", "tan(", "pow", "**")


def arrays(dtype: str) -> dict[str, np.ndarray]:
    """Return the inputs of a dtype. Integers are small, so that sums and powers stay exact."""
    p = data(3, 4, seed=2, dtype=dtype)
    p = ~(p & False) if dtype == "bool" else (abs(p) % 5 + 1).astype(dtype)
    s = data(3, 3, seed=5, dtype=dtype)
    return {
        "a": data(3, 4, dtype=dtype),
        "b": data(3, 4, seed=1, dtype=dtype),
        "p": p,
        "u": data(4, dtype=dtype),
        "w": data(4, 3, dtype=dtype),
        "h": data(2, 3, 4, dtype=dtype),
        "s": s if dtype == "bool" else s + 4 * np.eye(3, dtype=dtype),
        "i": np.array([2, 0, 1]),
        "j": np.array([[0, 2], [1, 0], [2, 1]]),
        "m": data(3, 4, seed=3, dtype="bool"),
        "d": data(3, 4, seed=4, dtype="float64"),
    }


def cases(sections: Sequence[tuple[str, Sequence[str]]]) -> list[Any]:
    """Return a test's parameters (line, dtype): each line of a table once for each dtype beside it."""
    return [
        pytest.param(line, dtype, id=f"{line}-{dtype}")
        for table, dtypes in sections
        for dtype in dtypes
        for line in lines(table)
    ]


def check_call(line: str, dtype: str) -> None:
    """Run a line in both libraries: values, dtypes and shapes, or the class of the error, agree."""
    program = line.replace("F.", "torch.nn.functional.")
    found, expected = evaluate(program, arrays(dtype))
    tol = None
    if dtype != "int64" and any(word in line for word in LOOSE):
        tol = 2e-4 if dtype != "float64" else 1e-8
    assert_same_outcome(found, expected, tol)
