"""What several test folders share: the module under test, seeded data, and comparing outcomes.

`CLTENSOR_TEST_MODULE=torch` runs the tutorials and the parity tests on torch itself: a test that
then fails asks for something torch does not do.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

ct: Any = importlib.import_module(os.environ.get("CLTENSOR_TEST_MODULE", "cltensor"))


def data(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Return seeded numbers: normal for floats, small for integers, coin flips for bool."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        low = 0 if dtype.startswith("uint") else -9
        return rng.integers(low, 10, shape).astype(dtype)
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def poison(backend: Any, patch: Any) -> None:
    """Fill all memory that a backend gives out with bytes of ones: NaN, and places out of range."""
    alloc = backend.alloc

    def full(nbytes: int) -> Any:
        buffer = alloc(nbytes)
        backend.write(buffer, 0, np.full(nbytes, 0xFF, np.uint8))
        return buffer

    patch.setattr(backend, "alloc", full)


def close(found: Any, expected: Any, tol: float = 1e-5) -> None:
    """Assert equal shapes and values within `tol`, absolute and relative; nan equals nan."""
    found, expected = (
        np.asarray(v.detach().tolist() if hasattr(v, "tolist") and hasattr(v, "detach") else v)
        for v in (found, expected)
    )
    assert found.shape == expected.shape, f"shape {found.shape} != {expected.shape}"
    np.testing.assert_allclose(found, expected, rtol=tol, atol=tol, equal_nan=True)


def outcome(fn: Callable[[], Any]) -> tuple[str, Any]:
    """Run `fn` and return ("value", result) or ("error", exception)."""
    try:
        return "value", fn()
    except Exception as error:
        return "error", error
