"""Products of bfloat16 matrices by AMX tiles: with the processor's instructions, and with their twin in plain OpenCL
C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cltensor import dtypes
from cltensor.codegen.operand import Operand
from cltensor.codegen.products import gemm, gemm_amx
from cltensor.runtime import STATS, amx
from cltensor.runtime.processor import facts

from .test_gemm import check, get, put

pytestmark = [pytest.mark.usefixtures("divided", "poisoned"), pytest.mark.elsewhere]


@pytest.fixture(params=["tiles", "twin"])
def tiles(request: Any, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use tiles for products of bfloat16 matrices: the processor's, or their twin."""
    if backend.info.kind != "cpu":
        pytest.skip("tiles are for work-items that are threads")
    if request.param == "twin":
        monkeypatch.setattr(gemm_amx, "TWIN", 1)
    elif not gemm_amx.has_tiles(backend):
        pytest.skip("no tiles on this processor and driver")
    monkeypatch.setattr(gemm_amx, "ROOM", 16 * 1024)
    monkeypatch.setattr(gemm_amx, "NEAR", 8 * 1024)
    monkeypatch.setattr(gemm_amx, "SPAN", 256)


def within_nan(rng: Any, rows: int, cols: int, turned: bool) -> np.ndarray:
    """Return a matrix surrounded by NaN in memory, column-major if turned, else row-major."""
    wide = np.full((cols + 2, rows + 2) if turned else (rows + 2, cols + 2), np.nan, np.float32)
    part = (wide.T if turned else wide)[1:-1, 1:-1]
    part[...] = rng.random((rows, cols)) - 0.25
    return part


def test_tiles_are_found(backend: Any) -> None:
    flags = facts().get("flags", frozenset())
    if not backend.info.takes_assembly or not {"amx_bf16", "avx512f"} <= flags:
        pytest.skip("no PoCL on a processor that is known to have tiles")
    assert amx.allowed()
    assert gemm_amx.has_tiles(backend)


@pytest.mark.parametrize("size", [(16, 17, 32), (33, 47, 65), (64, 100, 129), (31, 130, 300), (95, 70, 600)], ids=str)  # fmt: skip
def test_layouts_and_ends(backend: Any, tiles: None, size: tuple[int, int, int]) -> None:
    """Nothing beside the operands is read, in either layout; sums are in float32, also between blocks of K."""
    m, n, k = size
    rng = np.random.default_rng(0)
    for turn_a, turn_b, turn_c in np.ndindex(2, 2, 2):
        pa = put(backend, within_nan(rng, m, k, turn_a), dtypes.bfloat16)
        pb = put(backend, within_nan(rng, k, n, turn_b), dtypes.bfloat16)
        a, b = get(backend, pa), get(backend, pb)
        for dt in (dtypes.bfloat16, dtypes.float32):
            buffer = backend.alloc(m * n * dt.itemsize)
            out = Operand(buffer, dt, (m, n), (1, m) if turn_c else (n, 1))
            found = get(backend, gemm.matmul(backend, pa, pb, out))
            check(found, a, b, 2.0**-8 if dt is dtypes.bfloat16 else 1e-6)


def test_steps_between_numbers(backend: Any, tiles: None) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.random(shape).astype(np.float32)[::2, ::3] for shape in ((80, 210), (140, 150)))
    pa, pb = put(backend, a, dtypes.bfloat16), put(backend, b, dtypes.bfloat16)
    check(get(backend, gemm.matmul(backend, pa, pb)), get(backend, pa), get(backend, pb), 2.0**-8)


def test_factors_bias_and_batches(backend: Any, tiles: None) -> None:
    """A bias row is added to each matrix of a batch; one matrix is broadcast over the other operand's batch."""
    rng = np.random.default_rng(2)
    pa = put(backend, rng.random((5, 40, 70)).astype(np.float32), dtypes.bfloat16)
    pb = put(backend, rng.random((70, 50)).astype(np.float32), dtypes.bfloat16)
    row = put(backend, rng.random(50).astype(np.float32), dtypes.bfloat16)
    a, b, d = get(backend, pa), get(backend, pb), get(backend, row)
    many = pb._replace(shape=(5, 70, 50), strides=(0, 50, 1))
    bias = row._replace(shape=(5, 40, 50), strides=(0, 0, 1))
    found = get(backend, gemm.matmul(backend, pa, many, alpha=0.5, beta=2, bias=bias))
    check(found, 0.5 * a, np.broadcast_to(b, (5, 70, 50)), 2.0**-8, 2 * d)


def test_long_sums_and_copied_rows(
    backend: Any, tiles: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few tiles use split-K, 16-bit results are accumulated in float32 between blocks of K, and operands not contiguous
    along K are copied once."""
    rng = np.random.default_rng(3)
    monkeypatch.setattr(gemm_amx, "PIECE", 128)
    monkeypatch.setattr(gemm_amx, "COPIED", 0)
    for size, turned, launches in [((20, 20, 600), False, 2), ((200, 200, 600), False, 2), ((100, 300, 200), True, 2)]:  # fmt: skip
        m, n, k = size
        pa = put(backend, within_nan(rng, m, k, turned), dtypes.bfloat16)
        pb = put(backend, within_nan(rng, k, n, False), dtypes.bfloat16)
        before = STATS.launches
        found = gemm.matmul(backend, pa, pb)
        assert STATS.launches - before == launches, size
        check(get(backend, found), get(backend, pa), get(backend, pb), 2.0**-8)


def test_nan_and_infinity_stay_in_their_rows(backend: Any, tiles: None) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random((40, 40)).astype(np.float32), rng.random((40, 40)).astype(np.float32)
    a[3, 5], a[34, 39] = np.nan, np.inf
    pa, pb = put(backend, a, dtypes.bfloat16), put(backend, b, dtypes.bfloat16)
    found = get(backend, gemm.matmul(backend, pa, pb))
    assert np.isnan(found[3]).all()
    assert np.isinf(found[34]).all()
    assert np.isfinite(np.delete(found, [3, 34], 0)).all()
