"""Attention of 16-bit floats by a GPU's matrix units: the device's, if it has them, and their twin in plain OpenCL
C."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from support import attended, scored

from cltensor import dtypes
from cltensor.codegen import attention
from cltensor.codegen.attention import units
from cltensor.codegen.operand import Operand
from cltensor.codegen.products import product
from cltensor.runtime import STATS

from .test_gemm import get, put
from .test_gemm_mma import stored, with_units

__all__ = ["with_units"]

pytestmark = pytest.mark.elsewhere

TOLERANCE = {dtypes.bfloat16: 2.0**-7, dtypes.float16: 2.0**-10}


@pytest.fixture
def gpu(with_units: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a backend with matrix units, or their twin; assert afterwards that these computed the attention."""
    made = Mock(wraps=units._run)
    monkeypatch.setattr(units, "_run", made)
    yield with_units
    assert made.called, "no attention was made by matrix units"


def operand(
    gpu: Any, rng: Any, shape: tuple[int, ...], dt: Any, apart: int = 0
) -> tuple[Operand, np.ndarray]:
    """Return an operand of rows with `apart` unused numbers between them, and its values rounded to the dtype."""
    wide = np.full((*shape[:-1], shape[-1] + apart), 7, stored(dt))
    wide[..., : shape[-1]] = rng.standard_normal(shape)
    placed = put(gpu, wide, dt)._replace(shape=shape)
    return placed, get(gpu, placed).astype(np.float64)


def masked(
    gpu: Any, rng: Any, kind: str | None, shape: tuple[int, ...], dt: Any
) -> tuple[Any, Any]:
    """Return a mask of this kind as an operand and as an array; Nones for no kind."""
    if kind == "bool":
        seen = rng.random(shape) > 0.3
        seen[0, 0, 0, 3] = False  # a row with all keys masked
        return put(gpu, seen, dtypes.bool), seen
    return operand(gpu, rng, shape, dt) if kind == "float" else (None, None)


# queries, keys, width, depth, causal, mask, unused numbers between rows: partial tiles, more and fewer queries than
# keys,
# rows of whole and of partial units, aligned and not
CASES = [
    (70, 130, 40, 24, False, None, 0),
    (130, 130, 64, 64, True, None, 0),
    (33, 17, 20, 17, True, "float", 3),
    (64, 64, 32, 32, False, "bool", 8),
    (5, 200, 128, 120, False, None, 0),
]
HALVES = CASES[1:3]  # for float16, whose text differs in the names of types


@pytest.mark.parametrize(
    ("dt", "case"),
    [*((dtypes.bfloat16, case) for case in CASES), *((dtypes.float16, case) for case in HALVES)],
    ids=str,
)
def test_values_and_sums(gpu: Any, case: tuple[Any, ...], dt: Any) -> None:
    length, keys, width, depth, causal, kind, apart = case
    rng = np.random.default_rng(0)
    batch = (1, 2, 2)
    shapes = ((length, width), (keys, width), (keys, depth))
    (q, qn), (k, kn), (v, vn) = (operand(gpu, rng, (*batch, *s), dt, apart) for s in shapes)
    mask, seen = masked(gpu, rng, kind, (*batch, length, keys), dt)
    before = STATS.launches
    scale = 1 / math.sqrt(width)
    out, sums = attention.forward(gpu, q, k, v, mask, causal, scale, schedule="gpu")
    assert STATS.launches - before == 1
    expected, logarithms = attended(qn, kn, vn, seen, causal)
    np.testing.assert_allclose(get(gpu, out), expected, atol=TOLERANCE[dt] * 2, rtol=0)
    np.testing.assert_allclose(get(gpu, sums), logarithms, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("groups", [1 << 20, 4])
def test_heads_by_bands(gpu: Any, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of every head are computed once, in whole bands of heads and in the last, partial one."""
    monkeypatch.setattr(product, "_kernels", {})  # drop kernels built for other bands
    monkeypatch.setattr(units, "BAND", 3)
    monkeypatch.setattr(units, "GROUPS", groups)
    rng = np.random.default_rng(3)
    dt = dtypes.bfloat16
    shape = (1, 2, 4, 130, 16)
    (q, qn), (k, kn), (v, vn) = (operand(gpu, rng, shape, dt) for _ in range(3))
    out, sums = attention.forward(gpu, q, k, v, None, True, 0.25, schedule="gpu")
    expected, logarithms = attended(qn, kn, vn, None, True)
    np.testing.assert_allclose(get(gpu, out), expected, atol=2.0**-6, rtol=0)
    np.testing.assert_allclose(get(gpu, sums), logarithms, atol=1e-5, rtol=1e-5)


def test_what_no_query_sees_changes_nothing(gpu: Any) -> None:
    """NaN after the last key and value, which no causal row sees, and between rows of heads, does not reach the
    result."""
    rng = np.random.default_rng(1)
    dt = dtypes.bfloat16
    q, qn = operand(gpu, rng, (1, 1, 1, 20, 16), dt)
    wide = np.full((1, 1, 1, 90, 32), np.nan, np.float32)
    wide[..., :20, :16] = rng.standard_normal((20, 16))
    k = put(gpu, wide, dt)._replace(shape=(1, 1, 1, 20, 16))
    kn = get(gpu, k).astype(np.float64)
    out, _ = attention.forward(gpu, q, k, k, None, True, 0.25, schedule="gpu")
    expected, _ = attended(qn, kn, kn, None, True)
    np.testing.assert_allclose(get(gpu, out), expected, atol=2.0**-6, rtol=0)


@pytest.mark.parametrize("case", CASES[1:], ids=str)
def test_gradients(gpu: Any, case: tuple[Any, ...]) -> None:
    """Gradients are those of the formulas for the rounded operands, within the rounding of probabilities and of scores'
    gradients."""
    length, keys, width, depth, causal, kind, apart = case
    rng = np.random.default_rng(2)
    batch, dt = (1, 2, 2), dtypes.bfloat16
    shapes = ((length, width), (keys, width), (keys, depth), (length, depth))
    (q, qn), (k, kn), (v, vn), (g, gn) = (
        operand(gpu, rng, (*batch, *s), dt, apart) for s in shapes
    )
    mask, seen = masked(gpu, rng, kind, (*batch, length, keys), dt)
    scale = 1 / math.sqrt(width)
    out, sums = attended(qn, kn, vn, seen, causal)
    p = np.exp(scored(qn, kn, seen, causal) - sums[..., None])
    delta = (out * gn).sum(-1)
    slopes = p * (gn @ vn.swapaxes(-1, -2) - delta[..., None])
    expected = slopes @ kn * scale, slopes.swapaxes(-1, -2) @ qn * scale, p.swapaxes(-1, -2) @ gn
    known = [put(gpu, x.astype(np.float32)) for x in (sums, delta)]
    before = STATS.launches
    made = attention.backward(gpu, q, k, v, mask, g, *known, causal, scale, schedule="gpu")
    assert STATS.launches - before == 2
    for found, wanted in zip(made, expected, strict=True):
        bound = TOLERANCE[dt] * np.abs(wanted).max() * 2
        np.testing.assert_allclose(get(gpu, found), wanted, atol=bound, rtol=0)
