"""Radix sort of long rows, against NumPy: ranges of keys and high bits that decide the passes, whole rows and parts
that are merged."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import cltensor as torch

LENGTHS = [(3, 33_000), (1, 70_001)]  # each row one piece with wide digits; two pieces
DTYPES = ["float32", "float64", "int64", "int16"]


def _keys(kind: str, shape: tuple[int, int], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    whole = rng.integers(-(1 << 62), 1 << 62, shape)
    return {
        "any": whole,
        "few": rng.integers(-3, 3, shape),
        "around zero": rng.integers(-(1 << 28), 1 << 28, shape),
        "high bits alike": rng.integers(0, 1 << 30, shape) + (5 << 40),
        "high bits few": rng.integers(0, 5, shape) * (1 << 58) + rng.integers(0, 1 << 24, shape),
        "hardly in order": np.sort(whole, 1) ^ (rng.integers(0, 50, shape) == 0),
        "falling": -np.arange(shape[1]) * np.ones(shape, np.int64),
    }[kind]


def _ordered(x: Any, descending: bool) -> Any:
    """Return the positions of a stable sort."""
    if not descending:
        return np.argsort(x, 1, kind="stable")
    return (x.shape[1] - 1 - np.argsort(x[:, ::-1], 1, kind="stable"))[:, ::-1]


@pytest.mark.parametrize("shape", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows_are_sorted(dev: str, dtype: str, shape: tuple[int, int]) -> None:
    kinds = ["any", "few", "around zero", "high bits alike", "high bits few", "hardly in order"]
    for seed, kind in enumerate([*kinds, "falling"]):
        keys = _keys(kind, shape, seed)
        if dtype.startswith("float"):
            x = np.ldexp(keys.astype(dtype), -40)
            x[:, 5:60:11], x[:, 4:70:13], x[:, 3], x[:, 9] = np.nan, 0.0, -0.0, -np.inf
        else:
            x = keys.astype(dtype)
        for descending in (False, True) if dtype in ("float32", "int64") else (False,):
            given = torch.tensor(x, device=dev)
            values, places = given.sort(dim=1, descending=descending, stable=True)
            expected = _ordered(x, descending)
            assert (places.cpu().numpy() == expected).all(), kind
            bits = np.take_along_axis(x, expected, 1).view(np.uint8)
            assert (values.cpu().numpy().view(np.uint8) == bits).all(), kind


def test_columns_are_sorted_as_rows(dev: str) -> None:
    x = _keys("around zero", (129, 70), 0).astype("int64")
    x[::3] = 7
    values, places = torch.tensor(x, device=dev).sort(dim=0, stable=True)
    assert (places.cpu().numpy() == np.argsort(x, 0, kind="stable")).all()
    assert (values.cpu().numpy() == np.sort(x, 0)).all()
    assert values.is_contiguous() and places.is_contiguous()


def test_what_is_expanded_is_in_order_along_there(dev: str) -> None:
    """Sorting along an expanded dim, whose elements are equal, sorts nothing; results, with NaN, too, and gradients are
    those of a contiguous copy."""
    for shape, wide in (((1, 5), (7, 5)), ((5, 1), (5, 9)), ((2, 1, 3), (2, 4, 3)), ((1,), (6,))):
        x = np.random.default_rng(0).normal(size=shape).astype("float32")
        x.flat[0] = np.nan
        given = torch.tensor(x, device=dev).expand(wide)
        for dim, descending in itertools.product(range(len(wide)), (False, True)):
            found = given.sort(dim, descending)
            plain = given.contiguous().sort(dim, descending)
            for a, b in zip(found, plain, strict=True):
                np.testing.assert_array_equal(a.cpu().numpy(), b.cpu().numpy())
                assert a.stride() == given.contiguous().stride()
            assert torch.equal(given.argsort(dim, descending), plain[1])
    row = torch.zeros(1, 5, device=dev, requires_grad=True)
    (row.expand(4, 5).sort(0)[0] * torch.arange(4.0, device=dev)[:, None]).sum().backward()
    assert row.grad.tolist() == [[6.0] * 5]
    with torch.profiler.profile() as profile:
        given.sort(0)[1].sum().item()
    assert not [e.name for e in profile.events() if "sort_" in e.name]


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_long_rows_are_sorted_without_positions(dev: str, dtype: str) -> None:
    for seed, kind in enumerate(["any", "around zero", "high bits few", "hardly in order"]):
        x = _keys(kind, (1, 70_001), seed).astype(dtype)[0]
        assert (torch.tensor(x, device=dev).unique().cpu().numpy() == np.unique(x)).all(), kind
