"""Dense products at the level of kernels: dtypes, layouts and schedules, against numpy in float64."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cltensor import dtypes
from cltensor.codegen.operand import Operand
from cltensor.codegen.products import gemm, gemm_cpu, product
from cltensor.runtime import STATS
from cltensor.runtime.processor import facts

pytestmark = pytest.mark.usefixtures("divided")

SIZES = [
    (1, 1, 1),
    (3, 5, 2),
    (31, 33, 32),
    (64, 64, 64),
    (7, 100, 300),
    (130, 17, 65),
    (200, 130, 600),
    (5, 301, 220),
]
SCHEDULES = ["cpu", "gpu"]


def to_bits(x: np.ndarray) -> np.ndarray:
    """Round float32 to the bits of bfloat16."""
    u = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def put(backend: Any, x: np.ndarray, dt: Any = None) -> Operand:
    """Copy the whole memory under a view to the device; the operand keeps the view's strides and offset."""
    base = x
    while base.base is not None:
        base = base.base
    dt = dt or dtypes.from_numpy(x.dtype)
    offset = (x.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // x.itemsize
    data = to_bits(base) if dt is dtypes.bfloat16 else base
    buffer = backend.alloc(data.nbytes)
    backend.write(buffer, 0, data.ravel(order="K"))
    return Operand(buffer, dt, x.shape, tuple(s // x.itemsize for s in x.strides), offset)


def get(backend: Any, v: Operand) -> np.ndarray:
    raw = backend.read(v.buffer, 0, v.buffer.nbytes)
    if v.dtype is dtypes.bfloat16:
        flat = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        flat = raw.view(v.dtype.np)
    return np.lib.stride_tricks.as_strided(
        flat[v.offset :], v.shape, [s * flat.itemsize for s in v.strides]
    ).copy()


def rand(rng: Any, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def layouts(rng: Any, shape: tuple[int, ...], dtype: str = "float32") -> dict[str, np.ndarray]:
    """Return arrays of one shape: dense, transposed, a window of a larger one, with steps."""
    *batch, r, c = shape
    return {
        "dense": rand(rng, shape, dtype),
        "transposed": rand(rng, (*batch, c, r), dtype).swapaxes(-1, -2),
        "window": rand(rng, (*batch, r + 3, c + 5), dtype)[..., 2 : 2 + r, 1 : 1 + c],
        "steps": rand(rng, (*batch, 2 * r, 3 * c), dtype)[..., ::2, ::3],
    }


def check(found: np.ndarray, a: np.ndarray, b: np.ndarray, eps: float, extra: Any = 0) -> None:
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    bound = np.abs(a) @ np.abs(b) + np.abs(extra)
    assert (np.abs(found - (a @ b + extra)) <= eps * bound + 1e-30).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_layouts(backend: Any, size: tuple[int, int, int], schedule: str) -> None:
    m, n, k = size
    rng = np.random.default_rng(0)
    # One tile of a GPU meets every pair of layouts, the others each layout of either operand.
    every = schedule == "cpu" or size == (64, 64, 64)
    for i, (an, a) in enumerate(layouts(rng, (m, k)).items()):
        for j, (bn, b) in enumerate(layouts(rng, (k, n)).items()):
            if not every and (i + j) % 2:
                continue
            out = gemm.matmul(backend, put(backend, a), put(backend, b), schedule=schedule)
            assert out.shape == (m, n), (an, bn)
            check(get(backend, out), a, b, 1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "complex64", "complex128"])
def test_float_types(backend: Any, dtype: str, schedule: str) -> None:
    dt = getattr(dtypes, dtype)
    if not backend.info.fp64 and dtype in ("float64", "complex128"):
        pytest.skip("no float64 on this device")
    rng = np.random.default_rng(1)
    eps = {
        "float64": 1e-15,
        "float16": 6e-4,
        "bfloat16": 4e-3,
        "complex64": 1e-6,
        "complex128": 1e-15,
    }[dtype]
    for m, n, k in [
        (5, 3, 7),
        (33, 40, 50),
        (20, 70, 1501),
        (1, 40, 3000),
        (40, 1, 3000),
        (3, 301, 220),
    ][: 6 if dtype == "float16" else 5]:
        for order in ((False, False), (True, False), (False, True)):
            base = "float32" if dtype == "bfloat16" else dtype
            a = rand(rng, (k, m), base).T if order[0] else rand(rng, (m, k), base)
            b = rand(rng, (n, k), base).T if order[1] else rand(rng, (k, n), base)
            pa, pb = put(backend, a, dt), put(backend, b, dt)
            a, b = get(backend, pa), get(backend, pb)
            found = get(backend, gemm.matmul(backend, pa, pb, schedule=schedule))
            check(found, a, b, eps)


def test_products_of_pairs_are_found(backend: Any) -> None:
    if not backend.info.takes_assembly or "avx512_bf16" not in facts().get("flags", ()):
        pytest.skip("no PoCL on a processor that is known to multiply pairs of bfloat16 numbers")
    assert product.dots(backend)


def test_pairs_end_with_k(backend: Any, on_a_cpu: None) -> None:
    """With an odd K the second number of the last pair counts as zero, whatever is in memory; sums are in float32."""
    rng = np.random.default_rng(11)
    for m, n, k in [(40, 70, 33), (40, 70, 34), (9, 33, 1), (130, 65, 1501), (20, 300, 1502)]:
        for turn_a, turn_b in [(False, False), (True, False), (False, True), (True, True)]:
            wide_a = np.full((k + 2, m + 2) if turn_a else (m + 2, k + 2), np.nan, np.float32)
            wide_b = np.full((n + 2, k + 2) if turn_b else (k + 2, n + 2), np.nan, np.float32)
            a = (wide_a.T if turn_a else wide_a)[1:-1, 1:-1]
            b = (wide_b.T if turn_b else wide_b)[1:-1, 1:-1]
            # Larger sums would no longer grow in bfloat16.
            a[...], b[...] = rng.random((m, k)), rng.random((k, n))
            pa, pb = put(backend, a, dtypes.bfloat16), put(backend, b, dtypes.bfloat16)
            a, b = get(backend, pa), get(backend, pb)
            found = get(backend, gemm.matmul(backend, pa, pb, schedule="cpu"))
            check(found, a, b, 2.0**-8)


@pytest.mark.parametrize(
    ("dtype", "schedule"),
    [
        *(
            (d, "cpu")
            for d in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
        ),
        *((d, "gpu") for d in ("uint8", "int64")),  # GPU kernels differ in type names only
    ],
)
def test_integers_wrap(backend: Any, dtype: str, schedule: str) -> None:
    rng = np.random.default_rng(2)
    sizes = [(20, 40, 33), (4, 5, 6), (40, 1, 70), (9, 33, 600)]
    for m, n, k in sizes if dtype in ("uint8", "int32", "int64") else sizes[1:2]:
        a, b, d = rand(rng, (m, k), dtype), rand(rng, (k, n), dtype), rand(rng, (n,), dtype)
        bias = put(backend, d)._replace(shape=(m, n), strides=(0, 1))
        found = gemm.matmul(
            backend, put(backend, a), put(backend, b), alpha=3, beta=2, bias=bias, schedule=schedule
        )
        with np.errstate(over="ignore"):
            three, two = np.array(3, dtype), np.array(2, dtype)
            expected = a @ b * three + d * two
        np.testing.assert_array_equal(get(backend, found), expected)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_bias_and_out(backend: Any, schedule: str) -> None:
    rng = np.random.default_rng(3)
    for m, n, k in [
        (5, 7, 9),
        (40, 50, 20),
        (64, 96, 1200),
        (3, 3, 9000),
        (1, 30, 40),
        (30, 1, 40),
        (3, 301, 220),
        (3, 301, 221),
        (130, 5, 20),
    ]:
        a = rand(rng, (m, k))
        b = rand(rng, (n, k)).T if k == 221 else rand(rng, (k, n))  # few rows, in either layout
        pa, pb = put(backend, a), put(backend, b)
        for name, d in {
            "full": rand(rng, (m, n)),
            "row": rand(rng, (1, n)),
            "col": rand(rng, (m, 1)),
        }.items():
            bias = put(backend, d)
            strides = tuple(0 if s == 1 else t for s, t in zip(d.shape, bias.strides, strict=True))
            bias = bias._replace(shape=(m, n), strides=strides)
            # Strided; NaN between its elements must not leak.
            out = put(backend, np.full((2 * n, m), np.nan, np.float32)[::2].T)
            found = gemm.matmul(
                backend, pa, pb, out, alpha=0.5, beta=-2, bias=bias, schedule=schedule
            )
            assert found is out, name
            check(get(backend, out), a * np.float32(0.5), b, 1e-6, -2.0 * d)
        own = put(backend, rand(rng, (m, n)))
        before = get(backend, own)
        gemm.matmul(backend, pa, pb, own, beta=1, bias=own, schedule=schedule)
        check(get(backend, own), a, b, 1e-6, before)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_out_leaves_neighbours(backend: Any, schedule: str) -> None:
    rng = np.random.default_rng(4)
    for m, n, k in [(5, 7, 9), (30, 50, 20), (65, 97, 300)]:
        a, b = rand(rng, (m, k)), rand(rng, (k, n))
        whole = np.full((m + 4, n + 6), 7, np.float32)
        out = put(backend, whole[2 : 2 + m, 3 : 3 + n])
        gemm.matmul(backend, put(backend, a), put(backend, b), out, schedule=schedule)
        full = get(backend, Operand(out.buffer, out.dtype, whole.shape, (n + 6, 1), 0))
        check(full[2 : 2 + m, 3 : 3 + n], a, b, 1e-6)
        full[2 : 2 + m, 3 : 3 + n] = 7
        assert (full == 7).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "case",
    [
        ((3,), (8, 9, 10)),
        ((40,), (4, 4, 4)),
        ((2, 3), (20, 33, 17)),
        ((300,), (2, 3, 5)),
        ((2, 2, 2, 2), (6, 7, 8)),
        ((5,), (1, 20, 30)),
        ((2, 5), (20, 1, 30)),
        ((2, 3), (70, 64, 70)),
        ((2, 3), (5, 301, 220)),
    ],
    ids=str,
)
def test_batches(
    backend: Any, case: tuple[tuple[int, ...], tuple[int, int, int]], schedule: str
) -> None:
    batch, (m, n, k) = case
    rng = np.random.default_rng(5)
    dims_that_do_not_merge = *reversed(range(len(batch))), -2, -1
    a = rand(rng, (*batch[::-1], m, k)).transpose(dims_that_do_not_merge)
    b = np.broadcast_to(rand(rng, (batch[-1], k, n)), (*batch, k, n))
    found = gemm.matmul(backend, put(backend, a), put(backend, b), schedule=schedule)
    assert found.shape == (*batch, m, n)
    check(get(backend, found), a, b, 1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_empty(backend: Any, schedule: str) -> None:
    bias = put(backend, np.arange(6, dtype=np.float32).reshape(2, 3))
    a, b = put(backend, np.zeros((2, 0), np.float32)), put(backend, np.zeros((0, 3), np.float32))
    found = gemm.matmul(backend, a, b, beta=3, bias=bias, alpha=float("inf"), schedule=schedule)
    np.testing.assert_array_equal(get(backend, found), 3 * np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(
        get(backend, gemm.matmul(backend, a, b, schedule=schedule)), np.zeros((2, 3))
    )
    none = gemm.matmul(
        backend,
        b._replace(shape=(0, 3)),
        put(backend, np.ones((3, 4), np.float32)),
        schedule=schedule,
    )
    assert none.shape == (0, 4)
    nan = put(backend, np.full((2, 3), np.nan, np.float32))
    assert (
        get(backend, gemm.matmul(backend, a, b, beta=0, bias=nan, schedule=schedule)) == 0
    ).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_vectors(backend: Any, dtype: str, schedule: str) -> None:
    rng = np.random.default_rng(6)
    eps = 6e-4 if dtype == "float16" else 2e-6
    for m, k in [(1, 1), (3, 5), (100, 77), (9, 5000), (5000, 9), (2, 40000)]:
        for a in layouts(rng, (m, k), dtype).values():
            for x in (rand(rng, (k,), dtype), rand(rng, (3 * k,), dtype)[::3]):
                if dtype == "int32":
                    a, x = a % 100, x % 100
                found = gemm.matvec(backend, put(backend, a), put(backend, x), schedule=schedule)
                assert found.shape == (m,)
                check(get(backend, found)[:, None], a, x[:, None], eps)


@pytest.mark.parametrize("rows", ["in place", "packed"])
def test_columns_packed_in_groups(backend: Any, rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several panels of columns are packed at a time; the last group of a block is smaller, its last panel narrower."""
    monkeypatch.setattr(gemm_cpu, "DIRECT_A", 0 if rows == "packed" else 1 << 60)
    rng = np.random.default_rng(12)
    for dtype, eps in (("float32", 1e-6), ("float64", 1e-14)):
        for a in (rand(rng, (90, 60), dtype), rand(rng, (60, 90), dtype).T):
            for b in (rand(rng, (60, 1203), dtype), rand(rng, (60, 1300), dtype)[:, 5:1208]):
                found = gemm.matmul(backend, put(backend, a), put(backend, b), schedule="cpu")
                check(get(backend, found), a, b, eps)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_dot(backend: Any, schedule: str) -> None:
    rng = np.random.default_rng(7)
    for k in (0, 1, 31, 1000, 300_001):
        a, b = rand(rng, (k,)), rand(rng, (2 * k,))[::2]
        found = gemm.dot(backend, put(backend, a), put(backend, b), schedule=schedule)
        assert found.shape == ()
        check(get(backend, found).reshape(1, 1), a[None], b[:, None], 1e-6)


@pytest.mark.parametrize("units", [0, 48])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_tall_k(backend: Any, schedule: str, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few outputs over a long K use split-K, at least with many cores; the result is the same in every run."""
    info = replace(backend.info, compute_units=units or backend.info.compute_units)
    monkeypatch.setattr(backend, "info", info)
    monkeypatch.setattr(gemm_cpu, "_plans", {})
    rng = np.random.default_rng(8)
    longest = 50_000 if schedule == "cpu" else 10_000  # a GPU kernel computes whole tiles
    for m, n, k in [(3, 4, longest), (20, 10, 9001), (70, 65, 8200)]:
        a, b = rand(rng, (k, m)).T, rand(rng, (k, n))
        pa, pb = put(backend, a), put(backend, b)
        first = get(backend, gemm.matmul(backend, pa, pb, schedule=schedule))
        check(first, a, b, 1e-6)
        np.testing.assert_array_equal(
            first, get(backend, gemm.matmul(backend, pa, pb, schedule=schedule))
        )


def test_new_sizes_build_nothing(backend: Any) -> None:
    rng = np.random.default_rng(9)

    def run(m: int, n: int, k: int) -> None:
        gemm.matmul(backend, put(backend, rand(rng, (m, k))), put(backend, rand(rng, (n, k)).T))
        gemm.matmul(backend, put(backend, rand(rng, (m, k))), put(backend, rand(rng, (k, n))))
        backend.finish()

    run(128, 96, 64)
    builds = STATS.builds + STATS.disk_hits
    run(120, 100, 70)
    run(99, 77, 60)
    assert STATS.builds + STATS.disk_hits == builds


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_complex_products_of_any_layout(backend: Any, schedule: str) -> None:
    """Conjugated or not, added to the destination, written to any layout; an operand broadcast over a batch is prepared
    once."""
    rng = np.random.default_rng(3)
    for m, n, k in ((5, 3, 7), (1, 20, 33), (20, 1, 33), (19, 34, 1), (3, 5, 0)):
        for a, b in itertools.product(
            *(layouts(rng, s, "complex64").values() for s in ((m, k), (k, n)))
        ):
            for c in layouts(rng, (m, n), "complex64").values():
                turns, out = (rng.random() < 0.5, rng.random() < 0.5), put(backend, c)
                first, second = (x.conj() if t else x for x, t in zip((a, b), turns, strict=True))
                gemm.matmul(
                    backend, put(backend, a), put(backend, b), out, alpha=-2, beta=0.5, bias=out, conjugated=turns, schedule=schedule
                )  # fmt: skip
                check(get(backend, out), -2 * first, second, 2e-6, 0.5 * c)
    a, b = rand(rng, (2, 3, 4, 5), "complex64"), rand(rng, (3, 5, 6), "complex64")
    whole = Operand(*put(backend, b)[:2], (2, 3, 5, 6), (0, 30, 6, 1))
    check(get(backend, gemm.matmul(backend, put(backend, a), whole, schedule=schedule)), a, b, 1e-6)
    turned = put(backend, np.ascontiguousarray(a.swapaxes(0, 1)))
    turned = turned._replace(shape=a.shape, strides=(20, 40, 5, 1))
    check(get(backend, gemm.matmul(backend, turned, whole, schedule=schedule)), a, b, 1e-6)


def test_complex_scalars_are_refused(backend: Any) -> None:
    a = put(backend, np.ones((2, 2), np.complex64))
    with pytest.raises(ValueError, match="must be real"):
        gemm.matmul(backend, a, a, alpha=1j)


@pytest.mark.parametrize(("lanes", "tile"), [(16, (8, 16)), (8, (6, 8)), (1, (6, 8))])
def test_tiles_are_as_wide_as_registers(
    backend: Any, monkeypatch: pytest.MonkeyPatch, lanes: int, tile: tuple[int, int]
) -> None:
    """Tiles use the vector width that drivers other than PoCL report: their compilers define no macros for the
    processor."""
    info = replace(backend.info, is_pocl=False, native_lanes=lanes)
    monkeypatch.setattr(backend, "info", info)
    monkeypatch.setattr(product, "_tiles", {})
    assert product.tile(backend, "float") == tile
    assert product.tile(backend, "double") == (tile[0], tile[1] // 2)
