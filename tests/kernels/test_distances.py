"""Kernels of distances: both schedules give the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import backend_for
from kernel_tools import get, put, torch

from cltensor.codegen import distance


def _rows(backend: object, x: np.ndarray) -> distance.Rows:
    return distance.Rows(put(backend, torch.tensor(x)), *x.shape[-2:], x.shape[-2] * x.shape[-1])


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, math.inf])
def test_nan_anywhere_in_a_row_is_in_its_distances(p: float) -> None:
    """Also in rows so long that they are summed in parts."""
    x = np.zeros((4, 700), np.float32)
    x[1, 0], x[2, 350], x[3, 699] = np.nan, np.nan, np.nan
    for b in map(backend_for, ("cpu", "gpu")):
        found = get(b, distance.between(b, _rows(b, x[:1]), _rows(b, x), 1, p))
        assert np.isnan(np.asarray(found)).reshape(-1).tolist() == [False, True, True, True]


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, math.inf])
def test_schedules_of_distances_agree(p: float) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((2, n, 37)).astype(np.float32) for n in (9, 67))
    g = rng.standard_normal((2, 9, 67)).astype(np.float32)
    pairs = rng.standard_normal(67 * 33).astype(np.float32)
    found = []
    for b in map(backend_for, ("cpu", "gpu")):
        first, second, alone = _rows(b, x), _rows(b, y), _rows(b, y[0])
        d, among = distance.between(b, first, second, 2, p), distance.among(b, alone, p)
        results = [d, among]
        if p:
            slopes = put(b, torch.tensor(g)), d
            results += [
                distance.slope(b, first, second, 2, p, *slopes, False),
                distance.slope(b, second, first, 2, p, *slopes, True),
                distance.slope_among(b, alone, p, put(b, torch.tensor(pairs)), among),
            ]
        found.append([get(b, r) for r in results])
    for cpu, gpu in zip(*found, strict=True):
        np.testing.assert_allclose(cpu, gpu, rtol=1e-4, atol=1e-4)
