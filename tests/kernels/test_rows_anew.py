"""Scattering that writes whole new rows (codegen/index), with an index for each row or one for all rows, against torch,
on both schedules."""

from __future__ import annotations

import dataclasses
from typing import Any

import kernel_tools as kt
import numpy as np
import pytest
from support import poison

from cltensor.codegen.checks import flush_checks
from cltensor.codegen.index import claims, collect, ordered, scatter
from cltensor.codegen.index.lookup import bounds_error
from cltensor.codegen.region import is_gpu

pytestmark = pytest.mark.usefixtures("divided")

torch = pytest.importorskip("torch")
KINDS = ["float16", "bfloat16", "float32", "int16", "complex64"]


@pytest.fixture
def few_units(be: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a backend with four compute units, for which few small rows are enough work."""
    poison(be, monkeypatch)
    info = dataclasses.replace(be.info, compute_units=4)
    monkeypatch.setattr(be, "info", info)
    return be


@pytest.mark.parametrize("dtype", ["bool", *KINDS, "complex128"])
@pytest.mark.parametrize("rows", [4, 9, 300])
def test_rows_are_made_and_added_to_in_one_pass(
    few_units: Any, dtype: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows start as zeros or as a copy; `src` may be one expanded element."""
    be = few_units
    monkeypatch.setattr(claims, "_GROUPS", 2)
    kind, width, count = getattr(torch, dtype), 270, 45
    i = kt.integers(0, width, (rows, count))
    z = kt.integers(0, 2, (rows + 1, width)).to(kind)[1:]  # an offset
    s, one = kt.integers(0, 2, (rows, count), 1).to(kind), torch.ones(1, 1).to(kind)
    operand = kt.put(be, z)
    if not scatter.fits_anew(be, operand.dtype, (rows, width), count, True, False):
        assert not is_gpu(be)  # a GPU has enough registers, also for rounded dtypes
        return
    for src in (s, one.expand(rows, count)):
        for base in (z, None):
            start = operand if base is not None else None
            put = (kt.put(be, i), kt.put(be, src))
            found = scatter.scattered(be, operand.dtype, (rows, width), start, *put, "add")
            expected = z if base is not None else torch.zeros_like(z)
            kt.same(kt.get(be, found), expected.scatter_add(1, i, src))


@pytest.mark.parametrize("rounds", [1, 8])
@pytest.mark.parametrize(("width", "count"), [(37, 33), (9, 36), (270, 300), (600, 2048)])
def test_sums_are_in_the_order_of_the_index(
    few_units: Any, width: int, count: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many elements go to one place, and whichever places share a claim."""
    be, rows = few_units, 5
    monkeypatch.setattr(claims, "ROUNDS", rounds)
    monkeypatch.setattr(claims, "_CLAIMS", 1)
    z, s = kt.sample((rows, width), torch.float32), kt.sample((rows, count), torch.float32, 1)
    i = kt.integers(0, width, (rows, count))
    i[1] = width - 1
    i[2] = i[2] // 8 * 8
    operand = kt.put(be, z)
    assert scatter.fits_anew(be, operand.dtype, (rows, width), count, True, False)
    put = (kt.put(be, i), kt.put(be, s))
    found = scatter.scattered(be, operand.dtype, (rows, width), operand, *put, "add")
    expected = z.numpy().copy()
    for row in range(rows):
        for place, value in zip(i[row].tolist(), s[row].numpy(), strict=True):
            expected[row, place] += value
    np.testing.assert_array_equal(kt.get(be, found).numpy(), expected)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("count", [1, 45])
def test_a_number_is_written_to_rows(few_units: Any, dtype: str, count: int) -> None:
    be, rows, width = few_units, 7, 270
    kind = getattr(torch, dtype)
    z, i = kt.integers(0, 2, (rows, width)).to(kind), kt.integers(0, width, (rows, count))
    operand = kt.put(be, z)
    if not scatter.fits_anew(be, operand.dtype, (rows, width), count, False, True):
        assert not is_gpu(be)
        return
    for base in (operand, None):
        found = scatter.scattered(be, operand.dtype, (rows, width), base, kt.put(be, i), 1)
        kt.same(kt.get(be, found), (z if base else torch.zeros_like(z)).scatter(1, i, 1))


def test_what_has_no_room_is_not_made_anew(few_units: Any) -> None:
    """Rows too long for local memory are not, nor many elements in few places, nor rows too few for all compute
    units."""
    be, dt = few_units, kt.put(few_units, torch.zeros(1)).dtype
    if not is_gpu(be):
        return
    for rows, width, count in ((9, 1 << 14, 64), (9, 8, 40), (3, 64, 64), (9, 4096, 4097)):
        assert not scatter.fits_anew(be, dt, (rows, width), count, True, False)


def _collected(be: Any, z: Any, index: Any, src: Any, based: bool, wrap: bool = False) -> Any:
    operand = kt.put(be, z)
    args = (kt.put(be, index), kt.put(be, src), wrap, bounds_error(IndexError, [0], [len(z)]))
    base = operand if based else None
    return collect.collect(be, operand.dtype, tuple(z.shape), base, *args)


@pytest.mark.parametrize("listed", [16, 1024])
@pytest.mark.parametrize("dtype", [*KINDS, "uint8", "float64"])
def test_rows_are_added_in_the_order_of_the_index(
    few_units: Any, dtype: str, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More rows than a work-group lists, long runs and none, widths of whole vectors and others, one element per
    row."""
    be = few_units
    monkeypatch.setattr(ordered, "LISTED", listed)
    for name in ("LEAST", "NARROW"):
        monkeypatch.setattr(collect, name, 1)
    kind = getattr(torch, dtype)
    for shape, n in (((67, 3), 300), ((41, 2, 20), 33), ((110, 260), 70)):
        z = kt.integers(0, 3, (shape[0] + 1, *shape[1:])).to(kind)[1:]  # an offset
        if not collect.fits(be, kt.put(be, z).dtype, shape[0], z[0].numel(), n):
            assert not is_gpu(be)
            continue
        s = kt.integers(0, 2, (n, *shape[1:]), 1).to(kind)  # sums of bfloat16 are exact
        one = kt.integers(0, 2, (n, *(1 for _ in shape[1:])), 1).to(kind)
        even, ends = kt.integers(0, shape[0], (n,)), (torch.arange(n) > 5) * (shape[0] - 1)
        crowded = torch.where(torch.arange(n) % 3 > 0, 5, even)
        for k, index in enumerate((even, ends, crowded, even - shape[0])):
            for src in (s, one.expand_as(s)):
                based = k % 2 == 0
                found = _collected(be, z, index, src, based, k == 3)
                base = z if based else torch.zeros_like(z)
                expected = base.clone().index_put_((index,), src, accumulate=True)
                kt.same(kt.get(be, found), expected)


def test_sums_of_rows_are_the_same_every_time(few_units: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    for name in ("LEAST", "NARROW"):
        monkeypatch.setattr(collect, name, 1)
    z, s = kt.sample((50, 33), torch.float32), kt.sample((700, 33), torch.float32, 1)
    i = kt.integers(0, 50, (700,)) // 2
    found = [kt.get(few_units, _collected(few_units, z, i, s, True)).numpy() for _ in range(3)]
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()
    np.testing.assert_allclose(found[0], z.double().index_add(0, i, s.double()), atol=1e-4)


@pytest.mark.parametrize("listed", [16, 1024])
def test_a_bad_index_of_rows_is_named(
    few_units: Any, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All other rows are still added."""
    monkeypatch.setattr(ordered, "LISTED", listed)
    for name in ("LEAST", "NARROW"):
        monkeypatch.setattr(collect, name, 1)
    z, s, i = torch.zeros(40, 33), torch.ones(90, 33), torch.arange(90) % 4
    i[77] = 40
    with pytest.raises(IndexError, match="index 40 is out of bounds for dimension 0 with size 40"):
        _collected(few_units, z, i, s, True)
        flush_checks(few_units)
