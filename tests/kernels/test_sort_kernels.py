"""Kernels of sorting, selection, searching and counting against torch, on both schedules."""

from __future__ import annotations

from typing import Any

import kernel_tools as kt
import pytest
from support import poison

from cltensor import dtypes
from cltensor.codegen.order import sort as so
from cltensor.codegen.order.count import count
from cltensor.codegen.order.mask import run_lengths

pytestmark = pytest.mark.usefixtures("divided")

torch = pytest.importorskip("torch")


# A GPU schedule's text does not depend on the dtype in more ways than these show.
GPU_SORTED = {"int64", "float32"}
SORTED = ["bool", "int8", "int64", "float16", "bfloat16", "float32", "float64"]
IN_PARTS = {"bool", "int64", "bfloat16", "float32"}


def _rows(shape: tuple[int, ...], dtype: str) -> Any:
    x = kt.sample(shape, getattr(torch, dtype), spread=40.0)
    if x.is_floating_point() and x.shape[1] > 5:
        x[0, 0], x[0, 1], x[0, 2] = -float("nan"), 0.0, -0.0
        x[0, 3], x[0, 5] = float("nan"), -float("inf")
    return x


# Descending order only complements the keys.
@pytest.mark.parametrize(
    ("dtype", "descending"), [*((t, False) for t in SORTED), ("float32", True)]
)
def test_sort_is_stable_as_torchs(be: Any, dtype: str, descending: bool) -> None:
    kt.skip_untried(be, dtype, GPU_SORTED)
    for shape in [(3, 1, 2), (3, 7, 2), (3, 65, 2), (2, 700, 2), (1, 40_001)]:
        if shape[1] > 10_000 and dtype not in IN_PARTS:
            continue
        x = _rows(shape if dtype in GPU_SORTED else shape[:2], dtype)
        values, indices = so.sort(be, kt.put(be, x), 1, descending)
        expected = x.sort(dim=1, descending=descending, stable=True)
        kt.same(kt.get(be, indices), expected.indices)
        kt.same(kt.get(be, values), expected.values)


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [("uint8", True), ("int64", False), ("float32", False), ("float32", True)],
)
def test_topk(be: Any, dtype: str, largest: bool) -> None:
    x = _rows((3, 300, 2), dtype)
    for k in (0, 1, 10, 40, 300):
        values, indices = so.topk(be, kt.put(be, x), k, 1, largest)
        kt.same(kt.get(be, values), x.topk(k, 1, largest).values)
        kt.same(x.gather(1, kt.get(be, indices)), x.topk(k, 1, largest).values)
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        so.topk(be, kt.put(be, x), 301, 1)


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [
        *((t, largest) for t in ("int64", "float32", "bfloat16") for largest in (False, True)),
        *(("bool", True), ("int8", False), ("float16", True), ("float64", False)),
    ],
)
def test_topk_side_by_side(be: Any, dtype: str, largest: bool) -> None:
    """topk over contiguous elements: whole vectors are compared with the worst of the current k best."""
    kt.skip_untried(be, dtype, GPU_SORTED)
    x = _rows((2, 1000), dtype)
    zeros = x
    if x.is_floating_point():  # zeros of both signs are the best elements
        zeros = (-x.abs() if largest else x.abs()).nan_to_num(1.0 - 2 * largest)
        zeros[0, 300::90], zeros[0, 340::90], zeros[1, 999], zeros[1, 998] = 0.0, -0.0, -0.0, 0.0
    for rows in (x, zeros):
        values, indices = so.topk(be, kt.put(be, rows), 5, 1, largest)
        first = rows.sort(dim=1, descending=largest, stable=True)
        kt.same(kt.get(be, values), first.values[:, :5])
        kt.same(kt.get(be, indices), first.indices[:, :5])


@pytest.mark.parametrize("dtype", ["int64", "bfloat16", "float32"])
def test_selection(be: Any, dtype: str) -> None:
    kt.skip_untried(be, dtype, GPU_SORTED)
    x = _rows((3, 101, 2), dtype)
    o = kt.put(be, x)
    pairs = [
        (so.kthvalue(be, o, 5, 1), x.kthvalue(5, 1)),
        (so.kthvalue(be, o, 101, 1), x.kthvalue(101, 1)),
        (so.median(be, o, 1), x.median(1)),
        (so.median(be, o, 1, ignore_nan=True), x.nanmedian(1)),
    ]
    y = torch.nan_to_num(x) if x.is_floating_point() else x
    for (values, indices), expected in pairs:
        kt.same(kt.get(be, values), expected.values)
        kt.same(x.gather(1, kt.get(be, indices).unsqueeze(1)).squeeze(1), expected.values)
    values, indices = so.mode(be, kt.put(be, y), 1)
    kt.same(kt.get(be, values), y.mode(1).values)
    kt.same(y.gather(1, kt.get(be, indices).unsqueeze(1)).squeeze(1), y.mode(1).values)
    assert kt.get(be, so.median(be, kt.put(be, torch.tensor(4.0)), 0)[0]) == 4


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(be: Any, right: bool) -> None:
    row = kt.sample((3, 100), torch.float32)
    q = kt.sample((20, 3), torch.float32, 1).T
    s, order = row.sort(1)
    q[0, 0], q[0, 1] = float("nan"), s[0, 50]
    kt.same(
        kt.get(be, so.searchsorted(be, kt.put(be, s), kt.put(be, q), right)),
        torch.searchsorted(s, q, right=right),
    )
    found = so.searchsorted(be, kt.put(be, s[0]), kt.put(be, q), right)
    kt.same(kt.get(be, found), torch.searchsorted(s[0], q, right=right))
    found = so.searchsorted(be, kt.put(be, row), kt.put(be, q), right, sorter=kt.put(be, order))
    kt.same(kt.get(be, found), torch.searchsorted(row, q, right=right, sorter=order))


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_one_key_that_differs_from_all_others_finds_its_place(be: Any, dtype: str) -> None:
    for at, value in ((0, 5), (299, -5), (150, 5)):
        x = torch.ones(300, dtype=getattr(torch, dtype))
        x[at] = value
        values, indices = so.sort(be, kt.put(be, x), 0, False)
        expected = x.sort(stable=True)
        kt.same(kt.get(be, values), expected.values)
        kt.same(kt.get(be, indices), expected.indices)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 63, 128, 129, 300, 5000])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
def test_rows_of_every_length_are_sorted(
    be: Any, dtype: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(be, monkeypatch)
    kind = getattr(torch, dtype)
    few = kt.integers(0, 9, (3, length)).to(kind)
    high = kt.integers(-128, 128, (3, length))
    rows = [few, few.flip(1), kt.sample((3, length), kind, spread=50.0)]
    if dtype == "int64":  # high digits that seem to distinguish all values, but do not
        rows.append(
            high * ((1 << 56) + (1 << 48) + (1 << 40)) + kt.integers(0, 1 << 40, (3, length), 1)
        )
    for x in rows:
        for descending in (False, True):
            values, indices = so.sort(be, kt.put(be, x), 1, descending)
            expected = x.sort(stable=True, dim=1, descending=descending)
            kt.same(kt.get(be, values), expected.values)
            kt.same(kt.get(be, indices), expected.indices)


# Many rows per tile; rows of many tiles, several per work-group; by kinds of keys and layouts.
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((1500, 3), "float32"),
        ((300, 13), "int64"),
        ((2, 3000), "bool"),
        ((2, 3000), "bfloat16"),
        ((1, 9000), "float64"),
        ((2, 9000), "int16"),
        ((1, 9000), "uint8"),
    ],
)
@pytest.mark.parametrize("across", [False, True])
def test_digits_of_rows_short_and_long(
    be: Any, shape: tuple[int, int], dtype: str, across: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(be, monkeypatch)
    for name, value in {"TILE_LANES": 32, "TILE_MOST": 8, "TILE_ITEMS": 4}.items():
        monkeypatch.setattr(so, name, value)
    x = kt.sample(shape, getattr(torch, dtype), spread=20.0)
    if x.is_floating_point():
        x[:, ::5], x[:, 1::7], x[-1, 2] = 0.0, -0.0, float("nan")
    given = kt.put(be, x.t().contiguous() if across else x)
    for descending in (False, True):
        found = so.sort(be, given, 0 if across else 1, descending)
        expected = x.sort(stable=True, dim=1, descending=descending)
        for f, e in zip(found, expected, strict=True):
            kt.same(kt.get(be, f), e.t().contiguous() if across else e)


@pytest.mark.parametrize("length", [1, 15, 64, 128, 129, 700, 5000, 20_000])
def test_first_of_rows_of_every_length(
    be: Any, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(be, monkeypatch)
    wide = kt.sample((3, length, 2), torch.float32)
    wide[0, length // 2] = float("nan")
    for x in (
        wide[..., 0],
        wide[..., 0].contiguous(),
        kt.integers(0, 9, (3, length)).to(torch.int8),
    ):
        for k in {1, min(length, 5), min(length, 60), max(1, length // 33), max(1, length // 100)}:
            for largest in (False, True):
                values, indices = so.topk(be, kt.put(be, x), k, 1, largest)
                expected = x.sort(stable=True, dim=1, descending=largest)
                kt.same(kt.get(be, values), expected.values[:, :k])
                kt.same(kt.get(be, indices), expected.indices[:, :k])


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "int64"])
def test_elements_chosen_from_long_rows(
    be: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(be, monkeypatch)
    for name, value in {"TILE_LANES": 32, "TILE_ITEMS": 2, "CHOSEN_LANES": 64}.items():
        monkeypatch.setattr(so, name, value)
    few = kt.integers(0, 4, (3, 777)).to(getattr(torch, dtype))
    many = kt.sample((3, 777), getattr(torch, dtype), spread=60.0)
    if many.is_floating_point():
        many[0, 500], many[1, ::9], many[2, ::7], few[1] = float("nan"), 0.0, -0.0, float("nan")
    for x in (few, many, many.t().contiguous().t()):
        o, ordered = kt.put(be, x), x.sort(dim=1, stable=True)
        for k in (1, 400, 777):
            value, at = (kt.get(be, found) for found in so.kthvalue(be, o, k, 1))
            kt.same(value, ordered.values[:, k - 1])
            kt.same(x.gather(1, at[:, None])[:, 0], value)
        for ignore_nan in (False, True) if x.is_floating_point() else (False,):
            value, at = (kt.get(be, found) for found in so.median(be, o, 1, ignore_nan))
            kt.same(value, (x.nanmedian(1) if ignore_nan else x.median(1)).values)
            kt.same(x.gather(1, at[:, None])[:, 0], value)
        for k, largest in ((1, True), (3, False), (64, True), (300, False)):
            first = x.sort(dim=1, stable=True, descending=largest)
            values, indices = so.topk(be, o, k, 1, largest)
            kt.same(kt.get(be, values), first.values[:, :k])
            kt.same(kt.get(be, indices), first.indices[:, :k])


@pytest.mark.parametrize("length", [0, 1, 2, 3, 17, 64, 1000])
def test_searches_side_by_side(be: Any, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(be, monkeypatch)
    for dtype, n in (
        (torch.float32, 1),
        (torch.int64, 16),
        (torch.float16, 45),
        (torch.uint8, 333),
    ):
        row = kt.sample(length, dtype).sort().values
        q = kt.sample((2, n, 3), dtype, 1).transpose(0, 1)
        for right in (False, True):
            found = so.searchsorted(be, kt.put(be, row), kt.put(be, q), right, dtypes.int32)
            kt.same(
                kt.get(be, found),
                torch.searchsorted(row, q.contiguous(), right=right, out_int32=True),
            )


def as_torch_has_it(be: Any, found: so.Unique, total: int) -> list[Any]:
    """Return values, inverse and counts."""
    values, inverse, starts, valid = found
    counts = None
    if starts is not None:
        starts = kt.valid(be, starts, valid)
        counts = run_lengths(be, starts, total) if total else starts
    results = (kt.valid(be, values, valid), inverse, counts)
    return [None if x is None else kt.get(be, x) for x in results]


def test_unique(be: Any) -> None:
    for x in (
        kt.integers(0, 30, (50, 40)).T,
        kt.sample((500,), torch.float32).round(),
        torch.tensor([2.0]),
        torch.zeros(0),
    ):
        found = as_torch_has_it(be, so.unique(be, kt.put(be, x)), x.numel())
        expected = torch.unique(x, return_inverse=True, return_counts=True)
        for f, e in zip(found, expected, strict=True):
            kt.same(f, e)
        found = so.unique(be, kt.put(be, x), inverse=False)
        values, none, counts = as_torch_has_it(be, found, x.numel())
        kt.same(values, expected[0])
        kt.same(counts, expected[2])
        assert none is None


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int16, torch.int64, torch.float32, torch.float16]
)
def test_runs(be: Any, dtype: Any) -> None:
    floats = torch.tensor([0.0, -0.0, float("nan"), 1])
    for x in (
        torch.tensor([1, 1, 2, 2, 3, 1, 1, 2]).to(dtype),
        kt.integers(0, 3, (100_003,)).to(dtype),
        kt.integers(0, 3, (2, 1003)).to(dtype)[1],
        kt.integers(0, 3, (1003, 2)).to(dtype)[:, 1],
        floats[kt.integers(0, 4, (1003,))].to(dtype)
        if dtype.is_floating_point
        else torch.zeros(1).to(dtype),
    ):
        expected = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
        found = as_torch_has_it(be, so.unique_consecutive(be, kt.put(be, x)), x.numel())
        for f, e in zip(found, expected, strict=True):
            kt.same(f, e)
        found = so.unique_consecutive(be, kt.put(be, x), False, False)
        values, *none = as_torch_has_it(be, found, x.numel())
        kt.same(values, expected[0])
        assert none == [None, None]


def test_unique_without_positions_sorts_what_has_no_order(be: Any) -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([nan, -0.0, 3, -inf, inf, 0.0, -2, -nan, 3])
    for some in (x, torch.cat([x, torch.arange(70_000.0) % 300 + 5])):  # one piece; merged pieces
        found = so.unique(be, kt.put(be, some), inverse=False, starts=False)
        kt.same(kt.get(be, kt.valid(be, found.values, found.valid)), torch.unique(some))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_count(be: Any, dtype: str) -> None:
    x = kt.integers(0, 120, (40, 1000)).to(getattr(torch, dtype)).T
    wanted = torch.bincount(x.reshape(-1).long(), minlength=120)
    for bins in (1, 90, 120, 20_000):
        counts, others = (kt.get(be, f) for f in count(be, kt.put(be, x), bins))
        kt.same(counts[:120], wanted[:bins])
        assert not counts[120:].any()
        assert others.item() == wanted[bins:].sum()
    signed = torch.tensor([-1, 5, -(2**31), 0], dtype=torch.int32)
    if dtype == "int32":
        counts, others = (kt.get(be, f) for f in count(be, kt.put(be, signed), 3))
        assert counts.tolist() == [1, 0, 0] and others.item() == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.float16])
def test_ranks_of_keys_close_together_and_far_apart(be: Any, dtype: torch.dtype) -> None:
    n = 700  # more than are sorted by counting
    g = torch.Generator().manual_seed(0)
    rows = [torch.full((n,), 7), torch.arange(n), torch.randint(-9, 9, (n,), generator=g)]
    rows += [
        torch.randint(-(1 << 40), 1 << 40, (n,), generator=g),
        torch.randint(0, 2, (n,), generator=g) * 200,
    ]
    x = torch.stack(rows).to(dtype)
    if dtype is torch.int64:
        x[2, ::5], x[2, 1::5] = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    if dtype.is_floating_point:
        x[2, 3], x[3, 5], x[3, 7], x[4, 9] = -0.0, float("inf"), -float("inf"), float("nan")
    for cut in (x, x[:, :75]):
        ordered = cut.sort(1).values
        for k in (1, 2, 40, cut.shape[1]):
            values, places = so.kthvalue(be, kt.put(be, cut), k, 1)
            kt.same(kt.get(be, values), ordered[:, k - 1])
            kt.same(cut.gather(1, kt.get(be, places)[:, None])[:, 0], ordered[:, k - 1])
        values, _ = so.median(be, kt.put(be, cut), 1)
        kt.same(kt.get(be, values), cut.median(1).values)
        if dtype.is_floating_point:
            values, _ = so.median(be, kt.put(be, cut), 1, True)
            kt.same(kt.get(be, values), cut.nanmedian(1).values)


def test_rows_across_memory_are_ranked_as_rows_along_it(be: Any) -> None:
    x = kt.sample((96, 70), torch.float32)
    for found, expected in (
        (so.topk(be, kt.put(be, x), 5, 0), x.topk(5, 0)),
        (so.kthvalue(be, kt.put(be, x), 9, 0), x.kthvalue(9, 0)),
        (so.median(be, kt.put(be, x), 0), x.median(0)),
        (so.sort(be, kt.put(be, x), 0), x.sort(dim=0, stable=True)),
    ):
        values, places = (kt.get(be, f) for f in found)
        kt.same(values, expected[0])
        kt.same(x.gather(0, torch.as_tensor(places).view(-1, 70)), values.reshape(-1, 70))


@pytest.mark.parametrize("n", [300, 70_000])  # one piece, and two that are merged
def test_what_is_in_order_stays(be: Any, n: int) -> None:
    for x in (torch.arange(n) // 3 / 1.0, -torch.arange(n) / 1.0, torch.zeros(n)):
        for down in (False, True):
            found = so.sort(be, kt.put(be, x), 0, down)
            for f, e in zip(found, x.sort(dim=0, descending=down, stable=True), strict=True):
                kt.same(kt.get(be, f), e)
