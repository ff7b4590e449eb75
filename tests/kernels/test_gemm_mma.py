"""Products of 16-bit floats and of float64 by a GPU's matrix units: the device's, if it has them, and their twin in
plain OpenCL C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from backends import backend_for

import cltensor as torch
from cltensor import dtypes
from cltensor.codegen.operand import Operand
from cltensor.codegen.pointwise import Node, PointOp
from cltensor.codegen.products import epilogue, gemm, gemm_mma
from cltensor.codegen.products.gemm_mma import DOUBLE_TILES, TILES
from cltensor.nn import functional as F
from cltensor.runtime import STATS

from .test_gemm import check, get, put

pytestmark = pytest.mark.elsewhere

TOLERANCE = {
    dtypes.bfloat16: 2.0**-8,
    dtypes.float16: 2.0**-11,
    dtypes.float32: 1e-5,
    dtypes.float64: 1e-15,
}


@pytest.fixture(params=["units", "twin"])
def with_units(request: Any, backend: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a backend that has matrix units, or their twin."""
    if request.param == "units":
        if not gemm_mma.has_units(backend):
            pytest.skip("no matrix units that this driver's compiler knows")
        return backend
    monkeypatch.setattr(gemm_mma, "TWIN", 1)
    found = backend_for("gpu")
    if not gemm_mma.multiplies(found):
        pytest.skip("this device has too little local memory")
    return found


@pytest.fixture
def gpu(with_units: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a backend with matrix units, or their twin; assert afterwards that these computed the products."""
    made = Mock(wraps=gemm_mma.run)
    monkeypatch.setattr(gemm_mma, "run", made)
    yield with_units
    assert made.called, "no product was made by matrix units"


def stored(dt: Any) -> Any:
    """Return the numpy type of arrays that `put` takes for `dt`."""
    return {dtypes.float16: np.float16, dtypes.float64: np.float64}.get(dt, np.float32)


def within_nan(rng: Any, rows: int, cols: int, turned: bool, dt: Any) -> np.ndarray:
    """Return a matrix surrounded by NaN in memory, column-major if turned, else row-major."""
    wide = np.full((cols + 2, rows + 2) if turned else (rows + 2, cols + 2), np.nan, stored(dt))
    part = (wide.T if turned else wide)[1:-1, 1:-1]
    part[...] = rng.random((rows, cols)) - 0.25
    return part


def product(gpu: Any, a: Operand, b: Operand, **how: Any) -> np.ndarray:
    return get(gpu, gemm.matmul(gpu, a, b, schedule="gpu", **how))


@pytest.mark.parametrize(
    ("size", "dt"),
    [
        *((size, dtypes.bfloat16) for size in ((16, 16, 24), (31, 130, 40), (65, 64, 96), (72, 8, 104))),
        *((size, dtypes.float16) for size in ((16, 16, 24), (31, 130, 40))),
    ],
    ids=str,
)  # fmt: skip
def test_layouts_and_ends(gpu: Any, size: tuple[int, int, int], dt: Any) -> None:
    """Nothing beside the operands is read, in either layout; sums are in float32."""
    m, n, k = size
    rng = np.random.default_rng(0)
    for turn_a, turn_b, turn_c in [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1)]:
        pa = put(gpu, within_nan(rng, m, k, bool(turn_a), dt), dt)
        pb = put(gpu, within_nan(rng, k, n, bool(turn_b), dt), dt)
        a, b = get(gpu, pa), get(gpu, pb)
        for out_dt in (dt, dtypes.float32):
            buffer = gpu.alloc(m * n * out_dt.itemsize)
            out = Operand(buffer, out_dt, (m, n), (1, m) if turn_c else (n, 1))
            check(product(gpu, pa, pb, out=out), a, b, TOLERANCE[out_dt])


def aligned(gpu: Any, rng: Any, rows: int, cols: int, turned: bool, dt: Any) -> Operand:
    """Return a matrix surrounded by NaN, whose units of eight adjacent numbers are aligned in memory."""
    high, wide = (cols, rows) if turned else (rows, cols)
    whole = np.full((high + 2, -(-wide // 8) * 8 + 16), np.nan, stored(dt))
    whole[1:-1, 8 : 8 + wide] = rng.random((high, wide)) - 0.25
    placed = put(gpu, whole, dt)
    row, col = placed.strides
    strides = (col, row) if turned else (row, col)
    return placed._replace(shape=(rows, cols), strides=strides, offset=row + 8)


@pytest.mark.parametrize("size", [(33, 150, 47), (100, 60, 130), (129, 129, 33)], ids=str)
@pytest.mark.parametrize(
    "tile",
    [*TILES, *DOUBLE_TILES],
    ids=lambda t: f"{t.rows}x{t.columns}x{t.step}by{t.parts}",
)
def test_aligned_operands(
    gpu: Any, size: tuple[int, int, int], tile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units of eight numbers, or of two, whole and partial, along K and along the other dim, in every tile."""
    double = tile in DOUBLE_TILES
    if double and not gemm_mma.double_units(gpu):
        pytest.skip("no matrix units of float64")
    monkeypatch.setattr(gemm_mma, "DOUBLE_TILES" if double else "TILES", (tile,))
    monkeypatch.setattr(gemm_mma, "FILLED", 0)
    m, n, k = size
    rng = np.random.default_rng(1)
    dt = dtypes.float64 if double else dtypes.bfloat16
    # One tile of each dtype meets every pair of layouts, the others each layout of either operand.
    every = tile in (TILES[0], DOUBLE_TILES[0])
    for turn_a, turn_b in np.ndindex(2, 2) if every else ((0, 1), (1, 0)):
        pa = aligned(gpu, rng, m, k, bool(turn_a), dt)
        pb = aligned(gpu, rng, k, n, bool(turn_b), dt)
        ways = (
            gemm_mma._way(side(pa), pa.strides[1], pa.strides[0], 16 // dt.itemsize),
            gemm_mma._way(side(pb), pb.strides[0], pb.strides[1], 16 // dt.itemsize),
        )
        assert ways == ("i" if turn_a else "k", "k" if turn_b else "i")
        check(product(gpu, pa, pb), get(gpu, pa), get(gpu, pb), TOLERANCE[dt])


def side(operand: Operand) -> Any:
    row, col = operand.strides
    return gemm_mma.Side(operand.buffer, operand.offset, row, col, 0, 0)


def test_float64_in_batches_with_bias_and_chain(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches, with several matrices per work-group; NaN stays in its row; an epilogue receives the bits of the plain
    product."""
    if not gemm_mma.double_units(gpu):
        pytest.skip("no matrix units of float64")
    monkeypatch.setattr(gemm_mma, "FILLED", 0)
    monkeypatch.setattr(gemm_mma, "GROUPS", 2)
    rng = np.random.default_rng(9)
    dt = dtypes.float64
    a, b, d = rng.random((3, 40, 34)) - 0.5, rng.random((3, 34, 50)) - 0.5, rng.random(50)
    a[1, 3, 5], a[2, 7, 33] = np.nan, np.inf
    pa, pb, row = (put(gpu, x, dt) for x in (a, b, d))
    bias = row._replace(shape=(3, 40, 50), strides=(0, 0, 1))
    found = product(gpu, pa, pb, alpha=0.5, beta=2, bias=bias)
    expected = 0.5 * (a @ b) + 2 * d
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert np.isnan(found[1, 3]).all()
    assert np.isfinite(np.delete(found[1], 3, 0)).all()
    first = (
        pa._replace(shape=(40, 34), strides=(34, 1)),
        pb._replace(shape=(34, 50), strides=(50, 1)),
    )
    out = put(gpu, np.full((40, 50), np.nan), dt)
    chain = epilogue.Epilogue(
        ((dt, None),), (), (), (Node(PointOp("relu", "where(x > 0, x, 0)"), dt, dt, (("a", 0),)),),
        ((("t", 0), dt, epilogue.Place(out.buffer, 0, 50, 1)),),
    )  # fmt: skip
    assert gemm.fused(gpu, *first, chain, schedule="gpu")
    np.testing.assert_array_equal(get(gpu, out), np.maximum(product(gpu, *first), 0))


def test_what_float64_leaves_to_others(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other kernels compute products too small to fill the device, narrow ones, and those of operands that are not
    whole units."""
    monkeypatch.setattr(gemm_mma, "TWIN", 1)
    units = backend_for("gpu")
    if not gemm_mma.double_units(units):
        pytest.skip("this device has too little local memory")
    monkeypatch.setattr(gemm_mma, "FILLED", 0)

    def takes(rows: int, columns: int, step: int = 1) -> bool:
        a, b = (gemm_mma.Side(None, 0, n, step, 0, 0) for n in (64, columns))  # type: ignore[arg-type]
        p = gemm_mma.Product(a, b, a, None, rows, columns, 64, 1, 1, 1.0, 0.0)
        return gemm_mma.takes(units, dtypes.float64, p)

    assert takes(64, 64)
    assert not takes(64, 64, step=2)
    assert not takes(64, 65)
    assert not takes(32, 64)
    monkeypatch.setattr(gemm_mma, "FILLED", 1000)
    assert not takes(64, 64)


def test_factors_bias_and_batches(gpu: Any) -> None:
    """A bias row is added to each matrix of a batch; one matrix is broadcast over the other operand's batch."""
    rng = np.random.default_rng(2)
    dt = dtypes.bfloat16
    pa = put(gpu, rng.random((5, 40, 72)).astype(np.float32), dt)
    pb = put(gpu, rng.random((72, 50)).astype(np.float32), dt)
    row = put(gpu, rng.random(50).astype(np.float32), dt)
    a, b, d = get(gpu, pa), get(gpu, pb), get(gpu, row)
    many = pb._replace(shape=(5, 72, 50), strides=(0, 50, 1))
    bias = row._replace(shape=(5, 40, 50), strides=(0, 0, 1))
    found = product(gpu, pa, many, alpha=0.5, beta=2, bias=bias)
    check(found, 0.5 * a, np.broadcast_to(b, (5, 72, 50)), 2.0**-8, 2 * d)


def test_more_batches_than_groups(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_mma, "GROUPS", 2)
    rng = np.random.default_rng(3)
    pa = put(gpu, rng.random((5, 17, 24)).astype(np.float16), dtypes.float16)
    pb = put(gpu, rng.random((5, 24, 16)).astype(np.float16), dtypes.float16)
    check(product(gpu, pa, pb), get(gpu, pa), get(gpu, pb), 2.0**-11)


def test_long_sums_are_added_from_pieces(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_mma, "PIECE", 64)
    rng = np.random.default_rng(4)
    pa = put(gpu, within_nan(rng, 20, 200, False, dtypes.bfloat16), dtypes.bfloat16)
    pb = put(gpu, within_nan(rng, 200, 24, False, dtypes.bfloat16), dtypes.bfloat16)
    before = STATS.launches
    found = gemm.matmul(gpu, pa, pb, schedule="gpu")
    assert STATS.launches - before == (2 if gpu.info.compute_units > 1 else 1)
    check(get(gpu, found), get(gpu, pa), get(gpu, pb), 2.0**-8)


def test_nan_and_infinity_stay_in_their_rows(gpu: Any) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.random((40, 40)).astype(np.float32), rng.random((40, 40)).astype(np.float32)
    a[3, 5], a[34, 39] = np.nan, np.inf
    pa, pb = put(gpu, a, dtypes.bfloat16), put(gpu, b, dtypes.bfloat16)
    found = product(gpu, pa, pb)
    assert np.isnan(found[3]).all()
    assert np.isinf(found[34]).all()
    assert np.isfinite(np.delete(found, [3, 34], 0)).all()


@pytest.mark.parametrize("dt", [dtypes.bfloat16, dtypes.float16], ids=str)
@pytest.mark.parametrize("size", [(33, 40, 24), (70, 129, 48)], ids=str)
def test_a_chain_ends_a_product(gpu: Any, size: tuple[int, int, int], dt: Any) -> None:
    """An epilogue relu(p) + row computes with the product p rounded as if it were stored; p itself is a result, too."""
    m, n, k = size
    rng = np.random.default_rng(6)
    pa = put(gpu, within_nan(rng, m, k, False, dt), dt)
    pb = put(gpu, within_nan(rng, k, n, True, dt), dt)
    row = put(gpu, rng.random(n).astype(stored(dt)), dt)
    outs = [put(gpu, np.full((m, n), np.nan, stored(dt)), dt) for _ in range(2)]
    place = epilogue.Place
    chain = epilogue.Epilogue(
        ((dt, None), (dt, place(row.buffer, row.offset, 0, 1))), (), (),
        (
            Node(PointOp("relu", "where(x > 0, x, 0)"), dt, dt, (("a", 0),)),
            Node(PointOp("add", "x + y"), dt, dt, (("t", 0), ("a", 1))),
        ),
        tuple((ref, dt, place(o.buffer, 0, n, 1)) for ref, o in zip((("t", 1), ("a", 0)), outs, strict=True)),
    )  # fmt: skip
    assert gemm.fused(gpu, pa, pb, chain, alpha=0.5, schedule="gpu")
    p = product(gpu, pa, pb, alpha=0.5)
    both, alone = (get(gpu, o) for o in outs)
    np.testing.assert_array_equal(alone, p)
    expected = np.maximum(p.astype(np.float64), 0) + get(gpu, row)
    np.testing.assert_allclose(both, expected, rtol=TOLERANCE[dt])


def test_what_follows_a_layer_is_in_its_launch(backend: Any) -> None:
    if not gemm_mma.has_units(backend):
        pytest.skip("no matrix units that this driver's compiler knows")
    rng = np.random.default_rng(7)
    x, w, b = (torch.tensor(rng.random(s, "f") - 0.5).bfloat16() for s in ((256, 512), (384, 512), (384,)))  # fmt: skip
    torch.opencl.synchronize()
    for _ in range(2):
        before = STATS.launches
        found = torch.relu(F.linear(x, w, b)).float().tolist()
        assert STATS.launches - before == 1
    expected = torch.relu(x.float() @ w.float().T + b.float()).tolist()
    np.testing.assert_allclose(found, expected, rtol=2.0**-7, atol=2.0**-5)
