"""Kernels of scans (cumsum and the like) against torch, on both schedules."""

from __future__ import annotations

import re
from typing import Any

import kernel_tools as kt
import pytest
from backends import backend_for
from support import poison

from cltensor import dtypes
from cltensor.codegen.order import scan as sc

pytestmark = pytest.mark.usefixtures("divided")

torch = pytest.importorskip("torch")


# A GPU schedule's text does not depend on the dtype in more ways than these show.
GPU_SCANNED = {"int64", "float32", "complex64"}
# Every kind for dtypes with kernels of their own; some kinds for the other dtypes, which differ in loads and stores
# only.
SCANS = [
    *((kind, dtype) for dtype in ("int64", "float32", "complex64") for kind in sc.KINDS),
    *((kind, "bool") for kind in ("cumsum", "cummax", "logcumsumexp")),
    *(("cumsum", "float16"), ("cummin", "float16"), ("cummax", "bfloat16"), ("logcumsumexp", "bfloat16")),
]  # fmt: skip
COMPARED = [
    *((kind, dim, "float32") for dim in (0, 1) for kind in sc.KINDS),
    *(("logcumsumexp", dim, "float64") for dim in (0, 1)),
    *((kind, dim, "float16") for dim, kind in enumerate(("cumsum", "logcumsumexp"))),
    *((kind, dim, "float16") for dim, kind in enumerate(("cumprod", "cummin"))),
    *((kind, dim, "bfloat16") for dim, kind in enumerate(("cummax", "cumsum"))),
    *((kind, dim, "bfloat16") for dim, kind in enumerate(("logcumsumexp", "cumprod"))),
]
TOLERANCE = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 1e-4, "complex64": 1e-4}


@pytest.mark.parametrize(("kind", "dtype"), SCANS)
def test_scans(be: Any, kind: str, dtype: str) -> None:
    kt.skip_untried(be, dtype, GPU_SCANNED)
    cases = [((40_000,), 0), ((3, 40, 20), 1), ((5,), 0), ((), 0), ((0, 3), 0), ((20, 40), 1)]
    for shape, dim in cases if dtype in GPU_SCANNED else cases[:2]:
        x = kt.sample(shape, getattr(torch, dtype))
        if kind == "cumprod" and x.numel() > 1000:
            continue
        if x.is_floating_point() and x.dim() == 3:
            x[0, 1, 0], x[1, 0, 1], x[2, 1] = float("inf"), float("nan"), -float("inf")
        try:
            expected = getattr(x, kind)(dim)
        except NotImplementedError as error:
            expected_text = re.escape(str(error))
            with pytest.raises(NotImplementedError, match=expected_text):
                sc.scan(be, kt.put(be, x), dim, kind)
            return
        found = sc.scan(be, kt.put(be, x), dim, kind)
        if kind in ("cummax", "cummin"):
            for f, e in zip(found, expected, strict=True):
                kt.same(kt.get(be, f), e)
        else:
            tol = TOLERANCE.get(dtype, 1e-9) * (30 if x.numel() > 1000 else 1)
            kt.same(kt.get(be, found), expected, tol)


@pytest.mark.parametrize("kind", ["cumsum", "cummax"])
def test_parts_of_a_row_are_more_than_a_group_has_lanes(
    be: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(be, monkeypatch)
    monkeypatch.setattr(sc, "_LANES", 8)
    for shape, dim in (((9001,), 0), ((700, 20), 0), ((3, 2000), 1), ((40, 130), 1)):
        x = kt.integers(-9, 9, shape).to(torch.float32)
        found = sc.scan(be, kt.put(be, x), dim, kind)
        expected = getattr(x, kind)(dim)
        if kind == "cumsum":
            found, expected = (found,), (expected,)
        for f, e in zip(found, expected, strict=True):
            kt.same(kt.get(be, f), e)


@pytest.mark.parametrize(("kind", "dim", "dtype"), COMPARED)
def test_vectors_scan_as_single_elements_do(be: Any, kind: str, dim: int, dtype: str) -> None:
    kt.skip_untried(be, dtype, GPU_SCANNED)
    x = kt.sample((70, 83), getattr(torch, dtype))
    x[:, 5:9] = x[:, 4:5]  # ties; some rows have a new extreme in every element
    x[::3] = x[::3].sort(1).values
    x[1, 40], x[2, 3], x[2, 50], x[3, 60] = float("nan"), float("nan"), float("nan"), float("inf")
    apart = torch.zeros(70, 166, dtype=x.dtype)
    apart[:, ::2] = x
    wide = sc.scan(be, kt.put(be, x), dim, kind)
    single = sc.scan(be, kt.put(be, apart[:, ::2]), dim, kind)
    for f, e in zip(*(r if isinstance(r[0], tuple) else (r,) for r in (wide, single)), strict=True):
        kt.same(kt.get(be, f), kt.get(be, e))


SHORT = [
    *((kind, "float32") for kind in sc.KINDS),
    *((kind, "float64") for kind in ("cumsum", "cummin", "logcumsumexp")),
    *((kind, "int64") for kind in ("cumsum", "cumprod", "cummax")),
    ("cumsum", "bool"), ("cummin", "int32"), ("cumsum", "bfloat16"), ("cumprod", "float16"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "dtype"), [("cumsum", "float32"), ("cumsum", "int32"), ("cummax", "float64")]
)
def test_columns_are_scanned_in_blocks(be: Any, kind: str, dtype: str) -> None:
    """Of a width that is no multiple of a block; every second column is no run of memory."""
    kt.skip_untried(be, dtype, GPU_SCANNED)
    x = kt.integers(-9, 9, (6, 4 * sc._BLOCK[1] + 90)).to(getattr(torch, dtype))
    for source in (x, x[:, ::2]):
        found, expected = sc.scan(be, kt.put(be, source), 0, kind), getattr(source, kind)(0)
        for f, e in zip(
            *((found, expected) if kind == "cummax" else ((found,), (expected,))), strict=True
        ):
            kt.same(kt.get(be, f), e)


@pytest.mark.parametrize(("kind", "dtype"), SHORT)
def test_short_rows_are_scanned_together(be: Any, kind: str, dtype: str) -> None:
    if be.info.kind == "gpu":
        pytest.skip("a GPU's lanes share rows of any length")
    for rows, length in ((16, 2), (67, 3), (33, 8), (50, 11), (21, 15), (20, 23), (19, 61)):
        x = kt.sample((rows + 2, length), getattr(torch, dtype))
        if x.is_floating_point():
            x[3, 1], x[4, 0], x[9, length // 2], x[11] = float("nan"), float("inf"), 0.0, -0.0
        x = x[1:-1]  # a view that neither begins nor ends with the memory
        expected, found = getattr(x, kind)(1), sc.scan(be, kt.put(be, x), 1, kind)
        if kind in ("cummax", "cummin"):
            for f, e in zip(found, expected, strict=True):
                kt.same(kt.get(be, f), e)
        else:
            kt.same(kt.get(be, found), expected, TOLERANCE.get(dtype, 1e-9))
            for other in (
                x[5:6].clone(),
                x.T.contiguous().T[5:6],
                x.repeat_interleave(2, 1)[5:6, ::2],
            ):
                alone = sc.scan(be, kt.put(be, other), 1, kind)
                kt.same(kt.get(be, alone), kt.get(be, found)[5:6])


@pytest.mark.parametrize("kind", ["cummax", "cummin"])
def test_extremes_of_long_rows_of_ties_and_slopes_are_the_last_ones(be: Any, kind: str) -> None:
    n = 70_001  # scanned in parts, whose extremes lanes find first
    x = torch.stack(
        [torch.zeros(n), torch.arange(n) / 1.0, torch.arange(n) / -3.0, torch.arange(n) % 5 / 1.0]
    )
    x[0, 3::7] = -0.0
    x[3, 60_000], x[3, 60_007], x[2, 20_001] = float("nan"), float("nan"), float("inf")
    for row in x:
        expected = getattr(torch, kind)(row, 0)
        found = sc.scan(be, kt.put(be, row), 0, kind)
        for f, e in zip(found, expected, strict=True):
            kt.same(kt.get(be, f), e)


def test_float32_sums_stay_accurate(be: Any) -> None:
    x = kt.sample(300_000, torch.float32).abs()
    exact = x.double().cumsum(0)
    found = (kt.get(be, sc.scan(be, kt.put(be, x), 0, "cumsum")) - exact).abs().max()
    assert found <= 1.1 * (x.cumsum(0) - exact).abs().max()


def test_infinite_numbers_stay_in_their_part_and_their_order(be: Any) -> None:
    inf, nan = float("inf"), float("nan")
    z = torch.tensor([1 + 1j, complex(inf, 2), 3 + 3j, complex(1, -inf), 2 + 2j])
    kt.same(kt.get(be, sc.scan(be, kt.put(be, z), 0, "cumsum")), z.cumsum(0))
    for row in ([-inf, -inf, 1.0, inf, inf, 2.0], [-inf, inf, -inf], [inf, nan, 1.0], [nan, -inf]):
        x = torch.tensor(row)
        kt.same(kt.get(be, sc.scan(be, kt.put(be, x), 0, "logcumsumexp")), x.logcumsumexp(0))


def test_scan_is_the_same_every_time_and_converts_first(be: Any) -> None:
    x = kt.sample(100_000, torch.float32)
    first, second = (kt.get(be, sc.scan(be, kt.put(be, x), 0, "cumsum")) for _ in range(2))
    assert torch.equal(first, second)

    y = kt.sample((4, 5), torch.float32)
    kt.same(
        kt.get(be, sc.scan(be, kt.put(be, y.T), 0, "cumsum", dtypes.int64)),
        y.T.cumsum(0, dtype=torch.int64),
    )


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *(("cumprod", dtype) for dtype in ("float32", "bfloat16", "complex64")),
        *(("logcumsumexp", dtype) for dtype in ("float32", "float64")),
        *(("cumsum", dtype) for dtype in ("complex64", "float64")),
    ],
)  # fmt: skip
def test_rows_side_by_side_give_what_each_gives_alone(
    be: Any, kind: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kt.skip_untried(be, dtype, GPU_SCANNED)
    poison(be, monkeypatch)
    for rows, length in ((16, 16), (33, 67), (130, 40), (5, 7), (12, 8), (9, 35)):
        x = kt.sample((rows, length), getattr(torch, dtype), rows, 1.5)
        x[rows // 2, length // 3], x[0, 2] = float("nan"), float("-inf")
        every = kt.get(be, sc.scan(be, kt.put(be, x), 1, kind))
        for i in (0, 1, rows // 2, rows - 1):
            alone = kt.get(be, sc.scan(be, kt.put(be, x[i : i + 1].clone()), 1, kind))
            kt.same(every[i : i + 1], alone)
        if dtype in ("float32", "float64"):
            kt.same(every, getattr(x, kind)(1), 1e-4 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("kind", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["complex64", "float64"])
def test_parts_of_a_long_row_are_walked_together(
    be: Any, kind: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last part is shorter; a value that is not finite affects results from its place on."""
    kt.skip_untried(be, dtype, GPU_SCANNED)
    poison(be, monkeypatch)
    for length in (65_536, 33_337, 8_195):
        x = 1 + kt.sample((length, 2), getattr(torch, dtype), 3) / length
        if kind == "cumsum":
            x = x - 1
        for row in (x.T.contiguous()[:1], x.T[1:]):
            want = getattr(row.to(torch.promote_types(row.dtype, torch.float64)), kind)(1)
            found = kt.get(be, sc.scan(be, kt.put(be, row), 1, kind))
            kt.same(found, want.to(row.dtype), 1e-5)
            if kind == "cumsum":
                found = kt.get(be, sc.scan(be, kt.put(be, row), 1, kind, back=True))
                kt.same(found, row.flip(1).to(want.dtype).cumsum(1).flip(1).to(row.dtype), 1e-5)
    x = torch.ones(1, 40_000, dtype=getattr(torch, dtype))
    x[0, 21_000] = float("inf")
    found = kt.get(be, sc.scan(be, kt.put(be, x), 1, kind)).abs()
    assert found[0, :21_000].isfinite().all()
    assert not found[0, 21_000:].isfinite().any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "length"), [(1, 2048), (3, 2101), (2, 70_007)])
def test_long_rows_of_exponentials_are_taken_in_parts(
    be: Any, rows: int, length: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kt.skip_untried(be, dtype, GPU_SCANNED)
    poison(be, monkeypatch)
    kind, allowed = getattr(torch, dtype), 1e-5 if dtype == "float32" else 1e-12
    inf = float("inf")
    wide = kt.sample((2 * rows, length), kind, rows, 9.0)
    for value, place in (
        (0.0, length // 2),
        (-inf, length // 3),
        (inf, length - 40),
        (float("nan"), length - 9),
    ):
        wide[0, place] = value
        wide[2 * rows - 2, :33] = -inf  # sums of nothing so far
        x = wide[::2]
        found = kt.get(be, sc.scan(be, kt.put(be, x), 1, "logcumsumexp"))
        kt.same(found, x.double().logcumsumexp(1).to(kind), allowed)


def test_infinite_complex_exponents() -> None:
    be, inf = backend_for("cpu"), float("inf")
    for numbers in (
        [complex(-inf, inf), 1 + 1j], [complex(-inf, inf), complex(-inf, inf)], [1 + 1j, complex(-inf, 3)],
        [complex(inf, 1), complex(inf, 2)], [complex(inf, 1), complex(-inf, inf)],
    ):  # fmt: skip
        x = torch.tensor(numbers)
        kt.same(kt.get(be, sc.scan(be, kt.put(be, x), 0, "logcumsumexp")), x.logcumsumexp(0), 1e-6)


def test_sums_of_exponentials_that_nearly_cancel() -> None:
    be = backend_for("cpu")
    x = torch.tensor([0, 1e-3 + 3.141j], dtype=torch.complex64)
    exact = x.to(torch.complex128).logcumsumexp(0)
    kt.same(kt.get(be, sc.scan(be, kt.put(be, x), 0, "logcumsumexp")).to(exact.dtype), exact, 1e-4)
