"""Thin and small products on a GPU: tiny, sliced and matrix times vector, against numpy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from paper import RECORDS, paper

from cltensor.codegen.products import gemm, gemm_sliced, gemm_tiny, gemv_lanes, product

from .test_gemm import check, get, layouts, put, rand

UNITS = 132  # so that tiles are few beside them


@pytest.fixture
def large(backend: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device with many units, whose K is cut early."""
    monkeypatch.setattr(backend, "info", replace(backend.info, compute_units=UNITS))
    monkeypatch.setattr(gemm_sliced, "STEPS", 2)
    monkeypatch.setattr(gemv_lanes, "STEPS", 1)
    return backend


def random_sizes(rng: Any, count: int, most: tuple[int, int, int]) -> list[tuple[int, ...]]:
    return [tuple(int(rng.integers(1, n + 1)) for n in most) for _ in range(count)]


@pytest.mark.parametrize(
    "most", [(9, 9, 1300), (20, 20, 700), (150, 9, 300), (150, 20, 300), (70, 40, 300)], ids=str
)
def test_random_thin_products(large: Any, most: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    for m, n, k in random_sizes(rng, 6, most):
        for turned in (False, True):
            rows, columns = (n, m) if turned else (m, n)
            lefts, rights = layouts(rng, (rows, k)), layouts(rng, (k, columns))
            for an, bn in [("dense", "dense"), ("transposed", "window"), ("steps", "transposed")]:
                d = rand(rng, (rows, 1))
                bias = put(large, d)._replace(shape=(rows, columns), strides=(1, 0))
                a, b = put(large, lefts[an]), put(large, rights[bn])
                out = put(large, np.full((2 * columns, rows), np.nan, np.float32)[::2].T)
                gemm.matmul(large, a, b, out, alpha=2, beta=-1, bias=bias, schedule="gpu")
                check(get(large, out), 2 * lefts[an], rights[bn], 2e-6, -d)


@pytest.mark.parametrize("group", [256, 128, 64])
@pytest.mark.parametrize("tile", gemm_sliced.SLABS, ids=str)
def test_every_tile_at_every_size_of_group(
    large: Any, group: int, tile: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "info", replace(large.info, max_group=group))
    monkeypatch.setattr(product, "_kernels", {})
    monkeypatch.setattr(gemm_sliced, "FULL", 2)
    rng = np.random.default_rng(2)
    rows, columns = tile
    # Many rows have large tiles: of a matrix with one unit less, there are enough of these.
    few = rows == 16 or tile == (8, 8)
    monkeypatch.setattr(large, "info", replace(large.info, compute_units=UNITS if few else 1))
    m, n, k = rows + (rows > 8) * 3, columns - 1, 300
    a, b = put(large, rand(rng, (m, k))), put(large, rand(rng, (n, k)).T)
    p = gemm._product([a, b, a], [0] * 3, (), [()] * 3, m, n, k, 1, 0)
    plan = gemm_sliced.chosen(large, a.dtype, p)
    assert plan is not None
    assert (plan.rows, plan.columns) == tile
    check(get(large, gemm.matmul(large, a, b, schedule="gpu")), get(large, a), get(large, b), 1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64"])
def test_types(large: Any, dtype: str) -> None:
    if dtype == "float64" and not large.info.fp64:
        pytest.skip("no float64 on this device")
    rng = np.random.default_rng(3)
    for m, n, k in [(40, 9, 300), (5, 7, 900), (3, 3, 3), (1, 50, 300), (50, 1, 300), (1, 1, 5000)]:
        a, b = rand(rng, (m, k), dtype), rand(rng, (k, n), dtype)
        found = get(large, gemm.matmul(large, put(large, a), put(large, b), schedule="gpu"))
        if dtype == "int64":
            np.testing.assert_array_equal(found, a @ b)
        else:
            check(found, a, b, {"float64": 1e-14, "float16": 1e-3}[dtype])


def test_batches_of_tiny_matrices(large: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_tiny, "COUNTED", 1000)  # more than a launch's first dim counts
    rng = np.random.default_rng(4)
    for (m, n, k), batch in [((3, 3, 3), 250), ((1, 4, 2), 30), ((5, 1, 16), 7), ((16, 2, 9), 33)]:
        a = rand(rng, (3, batch, m, k)).swapaxes(0, 1)
        b = np.broadcast_to(rand(rng, (3, k, n)), (batch, 3, k, n))
        found = gemm.matmul(large, put(large, a), put(large, b), schedule="gpu")
        check(get(large, found), a, b, 1e-6)


@pytest.mark.parametrize("units", [1, UNITS])
def test_random_vectors(large: Any, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "info", replace(large.info, compute_units=units))
    rng = np.random.default_rng(5)
    for m, k, _ in random_sizes(rng, 5, (300, 600, 1)) + [(3, 4000, 1), (2000, 21, 1)]:
        for a in layouts(rng, (2, m, k)).values():
            for x in (rand(rng, (k,)), rand(rng, (3 * k,))[::3]):
                pa, px = put(large, a), put(large, x)
                px = px._replace(shape=(2, k), strides=(0, *px.strides))
                found = gemm.matvec(large, pa, px, schedule="gpu")
                check(get(large, found)[..., None], a, x[:, None], 2e-6)


@pytest.mark.parametrize(
    ("m", "n", "k", "kernels"),
    [
        (8, 1024, 1024, {"gemm_sliced16x8"}),
        (32, 4096, 1024, {"gemm_sliced32x32"}),
        (65536, 16, 64, {"gemm_sliced64x16"}),
        (262144, 16, 4, {"gemm_tiny"}),
        (8, 8, 1 << 20, {"gemm_sliced8x8", "gemm_combine_lanes"}),
        (64, 64, 65536, {"gemm_sliced32x32", "gemm_combine_lanes"}),
        (128, 128, 128, {"gemm_sliced16x16"}),
        (512, 512, 512, {"gemm_sliced32x32"}),
        (1024, 1024, 1024, {"gemm_gpu"}),
        (131072, 1, 128, {"gemv_along32x8_"}),
        (4096, 1, 4096, {"gemv_along1x128_"}),
        (1, 4096, 4096, {"gemv_down16x32_"}),
        (1, 128, 131072, {"gemv_down16x16_", "gemm_combine_lanes"}),
        (1, 1, 1 << 24, {"gemv_along1x256_", "gemm_combine_lanes"}),
    ],
)
def test_what_a_large_gpu_runs(m: int, n: int, k: int, kernels: set[str]) -> None:
    import cltensor

    with paper(RECORDS["H200"]) as backend:
        out = cltensor.empty(m, k) @ cltensor.empty(k, n)
        out.sum().tolist()
    names = {launch.name for launch in backend.launches if launch.name.startswith("gem")}
    assert len(names) == len(kernels)
    assert all(any(name.startswith(kernel) for name in names) for kernel in kernels)
