"""Products on a GPU, by tiles, tiny, sliced-K and matrix times vector, against numpy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from paper import RECORDS, paper

from cltensor.codegen.products import gemm, gemm_lanes, gemm_sliced, gemm_tiny, gemv_lanes, product

from .test_gemm import check, get, layouts, put, rand

pytestmark = pytest.mark.elsewhere

UNITS = 132  # compute units, so many that tiles are few in comparison


@pytest.fixture
def large(backend: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a device with many compute units, which uses split-K early."""
    monkeypatch.setattr(backend, "info", replace(backend.info, compute_units=UNITS))
    monkeypatch.setattr(gemm_sliced, "STEPS", 2)
    monkeypatch.setattr(gemm_lanes, "STEPS", 2)
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


def within_nan(backend: Any, rng: Any, rows: int, columns: int, dtype: str = "float32") -> Any:
    """Return an aligned matrix surrounded by NaN, which must not be read; and its values."""
    wide = np.full((rows + 2, columns + 8 + -columns % 4), np.nan if dtype[0] == "f" else 99, dtype)
    values = wide[1:-1, 4 : 4 + columns]
    values[:] = rand(rng, (rows, columns), dtype)
    return put(backend, values), values


def by_tile(backend: Any, sides: list[Any], tile: Any, **how: Any) -> np.ndarray:
    """Compute a product of `sides` (a, b, out and perhaps bias) with one kind of tile."""
    (m, k), n = sides[0].shape, sides[1].shape[1]
    p = gemm._product(sides, [0] * 4, (), [()] * 4, m, n, k, how.get("alpha", 1), how.get("beta", 0))  # fmt: skip
    plan = gemm_lanes.Plan(tile, how.get("pieces", 1))
    assert gemm_lanes.run(backend, sides[0].dtype, sides[2].dtype, p, plan)
    return get(backend, sides[2])


TILES = {
    "large": gemm_lanes.LARGE, "large, NVIDIA": gemm_lanes.LARGE_NVIDIA, "middle": gemm_lanes.MIDDLE, "sliced": gemm_lanes.SLICED,
    "oblong": gemm_lanes.OBLONG, "small": gemm_lanes.SMALL, "thin": gemm_lanes.THIN, "4 x 4": gemm_lanes.Tile(64, 64, 1, (1, 1), 16),
    "little memory": gemm_lanes.Tile(32, 32, 2, (1, 1), 8),
}  # fmt: skip


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_every_tile_of_a_group(backend: Any, tile: Any, odd: bool) -> None:
    if tile.lanes > backend.info.max_group:
        pytest.skip("groups are smaller here")
    rng = np.random.default_rng(7)
    m, n, k = tile.rows + 8 - odd, tile.columns + 4 - odd, 2 * tile.slab + 4 + odd
    for turned in (False, True) if tile in (gemm_lanes.SLICED, gemm_lanes.OBLONG) else (odd,):
        a, av = within_nan(backend, rng, *((k, m) if turned else (m, k)))
        b, bv = within_nan(backend, rng, *((n, k) if turned else (k, n)))
        if turned:
            a, b = (s._replace(shape=s.shape[::-1], strides=s.strides[::-1]) for s in (a, b))
            av, bv = av.T, bv.T
        out = put(backend, np.full((m, n), np.nan, np.float32))
        check(by_tile(backend, [a, b, out], tile, alpha=2), 2 * av, bv, 1e-6)


def test_tiles_of_wide_and_long_results(backend: Any) -> None:
    rng, tile = np.random.default_rng(8), gemm_lanes.OBLONG
    for m, n in [(20, 200), (200, 20)]:
        (a, av), (b, bv) = within_nan(backend, rng, m, 44), within_nan(backend, rng, 44, n)
        bias, d = put(backend, rand(rng, (m, 1))), put(backend, np.full((n, m), np.nan, np.float32))
        bias = bias._replace(shape=(m, n), strides=(1, 0))
        turned = d._replace(shape=(m, n), strides=(1, m))
        found = by_tile(backend, [a, b, turned, bias], tile, beta=-1)
        check(found, av, bv, 1e-6, -get(backend, bias))


def test_pieces_of_k_whose_last_is_odd(backend: Any) -> None:
    rng = np.random.default_rng(9)
    for k in (67, 68):
        (a, av), (b, bv) = within_nan(backend, rng, 36, k), within_nan(backend, rng, k, 36)
        out = put(backend, np.full((36, 36), np.nan, np.float32))
        check(by_tile(backend, [a, b, out], gemm_lanes.OBLONG, pieces=2), av, bv, 1e-6)


def test_a_stride_that_no_int_counts(backend: Any) -> None:
    rng = np.random.default_rng(10)
    (a, av), (b, bv) = within_nan(backend, rng, 9, 1), within_nan(backend, rng, 1, 11)
    far = a._replace(strides=(a.strides[0], 1 << 40))
    out = put(backend, np.full((9, 11), np.nan, np.float32))
    check(by_tile(backend, [far, b, out], gemm_lanes.OBLONG), av, bv, 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "int32", "int64"])
def test_tiles_of_types(backend: Any, dtype: str) -> None:
    rng = np.random.default_rng(11)
    a, b = rand(rng, (36, 44), dtype), rand(rng, (44, 68), dtype)
    out = put(backend, np.zeros((36, 68), dtype))
    found = by_tile(backend, [put(backend, a), put(backend, b), out], TILES["little memory"])
    if dtype == "float16":
        check(found, a, b, 1e-3)
    else:
        np.testing.assert_array_equal(found, a @ b)


def test_without_numbers_to_sum_there_is_the_bias(backend: Any) -> None:
    bias = put(backend, np.ones((3, 5), np.float32))
    empty = put(backend, np.zeros((4,), np.float32))
    a, b = empty._replace(shape=(3, 0), strides=(1, 1)), empty._replace(shape=(0, 5), strides=(5, 1))  # fmt: skip
    out = put(backend, np.full((3, 5), np.nan, np.float32))
    assert (by_tile(backend, [a, b, out, bias], gemm_lanes.OBLONG, beta=3) == 3).all()


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
    # Many rows use large tiles: with one compute unit less there are enough large tiles.
    few = rows == 16 or tile == (8, 8)
    monkeypatch.setattr(large, "info", replace(large.info, compute_units=UNITS if few else 1))
    m, n, k = rows + (rows > 8) * 3, columns - 1, 300
    a, b = put(large, rand(rng, (m, k))), put(large, rand(rng, (n, k)).T)
    p = gemm._product([a, b, a], [0] * 3, (), [()] * 3, m, n, k, 1, 0)
    assert gemm_lanes.chosen(large, a.dtype, p) is None
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
    monkeypatch.setattr(gemm_tiny, "COUNTED", 1000)  # work exceeds the launch's first dim
    rng = np.random.default_rng(4)
    for (m, n, k), batch in [((3, 3, 3), 250), ((1, 4, 2), 30), ((5, 1, 16), 7), ((16, 2, 9), 33)]:
        a = rand(rng, (3, batch, m, k)).swapaxes(0, 1)
        b = np.broadcast_to(rand(rng, (3, k, n)), (batch, 3, k, n))
        found = gemm.matmul(large, put(large, a), put(large, b), schedule="gpu")
        check(get(large, found), a, b, 1e-6)


@pytest.mark.parametrize("k", [1, 4, 7, 16])
def test_lanes_that_make_some_numbers_of_a_column(backend: Any, k: int) -> None:
    rng, m, n = np.random.default_rng(12), gemm_tiny.EACH * gemm_tiny.APART + 5, 3
    for even in (False, True):
        a, av = within_nan(backend, rng, m, k) if even else (None, rand(rng, (k, m)).T)
        a, (b, bv) = a or put(backend, av), within_nan(backend, rng, k, n)
        out = put(backend, np.full((m, n), np.nan, np.float32))
        check(get(backend, gemm.matmul(backend, a, b, out, schedule="gpu")), av, bv, 1e-6)
        a, b = (s._replace(shape=s.shape[::-1], strides=s.strides[::-1]) for s in (a, b))
        out = put(backend, np.full((n, m), np.nan, np.float32))
        check(get(backend, gemm.matmul(backend, b, a, out, schedule="gpu")), bv.T, av.T, 1e-6)


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
        (32, 4096, 1024, {"gemm_gpu32x32x8"}),
        (65536, 16, 64, {"gemm_gpu128x16x1"}),
        (16, 65536, 64, {"gemm_gpu16x128x1"}),
        (16384, 10, 1024, {"gemm_sliced64x16"}),
        (262144, 16, 4, {"gemm_tiny8"}),
        (16, 16, 4, {"gemm_tiny1"}),
        (8, 8, 1 << 20, {"gemm_sliced8x8", "gemm_combine_lanes"}),
        (64, 64, 65536, {"gemm_gpu64x64x2", "gemm_combine_lanes"}),
        (63, 63, 65535, {"gemm_gpu64x32x4", "gemm_combine_lanes"}),
        (128, 128, 128, {"gemm_sliced16x16"}),
        (512, 512, 512, {"gemm_gpu64x32x4"}),
        (512, 1024, 1024, {"gemm_gpu32x64x4"}),
        (1023, 1027, 1025, {"gemm_gpu32x64x4"}),
        (1024, 1024, 1024, {"gemm_gpu64x64x2"}),
        (1536, 1536, 1536, {"gemm_gpu64x64x1"}),
        (2048, 2048, 2048, {"gemm_gpu128x128x1"}),
        (2048, 4096, 1024, {"gemm_gpu128x128x1"}),
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


def test_large_items_have_the_registers_they_need() -> None:
    import cltensor

    with paper(RECORDS["H200"]) as backend:
        for m, n in [(2048, 4096), (4096, 2048), (1024, 1024)]:
            (cltensor.empty(m, 64) @ cltensor.empty(64, n)).tolist()
    told = {t.name[:15]: t.options for t in backend.texts if t.name.startswith("gemm_gpu")}
    assert told == {
        "gemm_gpu128x128": (),
        "gemm_gpu64x64x2": (f"-cl-nv-maxrregcount={gemm_lanes.REGISTERS}",),
    }
