"""Beginnings and ends of the vectors of pointwise kernels, several at a time, and of the rows of strided operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import data, store_past_cache

import cltensor as ct
from cltensor.codegen import pointwise


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_vectors_of_short_integers_end_anywhere(dtype: str) -> None:
    for n in (1, 16, 31, 63, 64, 65, 130, 4099, 70_001):
        a, b = (np.random.default_rng(i).integers(0, 127, n).astype(dtype) for i in range(2))
        whole = ct.zeros(n + 128, dtype=getattr(ct, dtype))
        x, y = ct.tensor(a), ct.tensor(b)
        z = (x + y) * 3 - x
        less = z < y  # computed together with z, in one launch
        assert np.array_equal(less.numpy(force=True), ((a + b) * 3 - a).astype(dtype) < b)
        assert np.array_equal(z.numpy(force=True), ((a + b) * 3 - a).astype(dtype))
        part = whole[64 : n + 64]
        part.copy_(y)
        part += part
        assert np.array_equal(whole.numpy(force=True)[64 : n + 64], b + b)
        assert not whole[:64].any()
        assert not whole[n + 64 :].any()


def test_rows_are_counted_along_outer_dims_from_anywhere() -> None:
    shape = (9, 6, 7, 11, 39)
    r = np.random.default_rng(0)
    parts = [(9, 1, 7, 1, 39), (1, 6, 1, 11, 39), (9, 6, 1, 1, 1), (7, 1, 39)]
    arrays = [r.random(s).astype(np.float32) for s in parts]
    a, b, c, d = map(ct.tensor, arrays)
    assert np.array_equal((a + b).numpy(force=True), arrays[0] + arrays[1])
    assert np.array_equal((b * c).numpy(force=True), arrays[1] * arrays[2])
    assert np.array_equal((a - d + b).numpy(force=True), arrays[0] - arrays[3] + arrays[1])
    out = ct.zeros(9, 6, 7, 11, 64)
    out[..., 3:42] += a
    assert np.array_equal(out.numpy(force=True)[..., 3:42], np.broadcast_to(arrays[0], shape))
    assert not out[..., :3].any()
    assert not out[..., 42:].any()


@pytest.mark.parametrize(
    "shape", [(73, 7), (64, 8), (27, 19), (3, 683), (2049, 1), (5, 13, 31), (2, 3, 7, 61)]
)
def test_rows_end_anywhere_in_a_gpus_blocks(shape: tuple[int, ...]) -> None:
    """A work-group takes blocks of 512 elements: rows of one less and one more, and several blocks of rows whose length
    does not divide 512."""
    a, width = data(*shape), shape[-1]
    x = ct.tensor(a)
    row, column = data(width, seed=1), data(*shape[:-1], 1, seed=2)
    r, c = ct.tensor(row), ct.tensor(column)
    assert np.array_equal((x + r).numpy(force=True), a + row)
    assert np.array_equal((x * c - r).numpy(force=True), a * column - row)
    assert np.array_equal((c * r).numpy(force=True), column * row)  # both operands are expanded
    assert np.array_equal(
        (x.half() + r.half()).numpy(force=True), a.astype(np.float16) + row.astype(np.float16)
    )
    wide = ct.zeros(*shape[:-1], width + 5)
    wide[..., 2:-3] += x
    wide[..., 2 : 2 + width : 2] *= 2
    expected = a.copy()
    expected[..., ::2] *= 2
    assert np.array_equal(wide.numpy(force=True)[..., 2:-3], expected)
    assert not wide[..., :2].any()
    assert not wide[..., -3:].any()


def laid_out(array: np.ndarray, how: str) -> Any:
    """Return the same numbers densely, in a wider tensor, in every second column, or column-major."""
    width = array.shape[-1]
    if how == "dense":
        return ct.tensor(array)
    if how == "turned":
        return ct.tensor(np.ascontiguousarray(array.swapaxes(-1, -2))).mT
    wide = np.zeros((*array.shape[:-1], 2 * width + 3), array.dtype)
    columns = slice(3, 3 + width) if how == "beside" else slice(1, 1 + 2 * width, 2)
    wide[..., columns] = array
    return ct.tensor(wide)[..., columns]


@pytest.mark.parametrize("how", ["dense", "beside", "every second", "turned"])
@pytest.mark.parametrize("dtype", ["float32", "int16", "float16", "float64"])
def test_narrow_rows_are_taken_many_at_a_time(dtype: str, how: str) -> None:
    if dtype not in ("float32", "float16") and how in ("beside", "turned"):
        return
    sizes = [(64, 2), (1003, 3), (70, 12), (65, 40)]
    # Other dtypes meet some widths in some layouts, and the others in the rest.
    for rows, width in sizes if dtype == "float32" else sizes[how in ("dense", "turned") :: 2]:
        a = data(3, rows, width, dtype=dtype)
        x = laid_out(a, how)
        row, column = data(width, seed=1, dtype=dtype), data(3, rows, 1, seed=2, dtype=dtype)
        every = data(rows, width, seed=3, dtype=dtype)
        before = ct.stats().launches
        y = x * ct.tensor(row) + ct.tensor(column) - laid_out(every, how)
        assert np.array_equal(y.numpy(force=True), a * row + column - every)
        assert ct.stats().launches == before + 1
        y = ct.zeros(3, rows, 2 * width + 1, dtype=x.dtype)
        y[..., 1 : 1 + width] += x
        y[..., 1 : 1 + width] *= ct.tensor(row)
        assert np.array_equal(y.numpy(force=True)[..., 1 : 1 + width], a * row)
        assert not y.numpy(force=True)[..., 0].any()
        assert not y.numpy(force=True)[..., 1 + width :].any()


def test_narrow_rows_of_16_bits_come_from_anywhere() -> None:
    """Numbers that bfloat16 holds exactly, read and written with stride 2, and a number that is expanded."""
    r = np.random.default_rng(0)
    for dtype in (ct.bfloat16, ct.float16):
        for rows, width in ((70, 3), (301, 6), (64, 20)):
            a, row, column = (
                r.integers(-8, 9, shape).astype(np.float32)
                for shape in ((rows, 2 * width), (width,), (rows, 1))
            )
            x, once, each = (ct.tensor(v).to(dtype) for v in (a, row, column))
            for v in (x, once, each):
                v.sum()  # so that v is in memory
            made = x[:, ::2] * once + each
            assert np.array_equal(made.float().numpy(force=True), a[:, ::2] * row + column)
            x[:, 1::2] = x[:, ::2] * each
            a[:, 1::2] = a[:, ::2] * column
            assert np.array_equal(x.float().numpy(force=True), a)
            several = each.reshape(rows).repeat_interleave(width).reshape(rows, width)
            assert np.array_equal(several.float().numpy(force=True), column.repeat(width, 1))


def test_rows_that_are_left_over_are_stored_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    store_past_cache(monkeypatch)
    for width, rows, dtype in ((20, 203, "float32"), (18, 519, "float32"), (10, 203, "float64")):
        a, b = data(rows, width, dtype=dtype), data(width, seed=1, dtype=dtype)
        y = ct.tensor(a) + ct.tensor(b)
        assert np.array_equal(y.numpy(force=True), a + b)


def test_which_rows_are_narrow() -> None:
    lanes, stored = 16, [ct.float32]
    for sizes, found in (((64, 3), 3), ((5, 64, 12), 12), ((63, 3), 0), ((900, 17), 0), ((70,), 0)):
        assert pointwise.narrowed(sizes, [], stored, lanes) == found
    assert pointwise.narrowed((900, 16), [], stored, lanes) == 0
    assert pointwise.narrowed((900, 3), [], stored, 1) == 0
    assert pointwise.narrowed((900, 3), [], [ct.float16], lanes) == 3
    assert pointwise.narrowed((900, 3), [], [ct.complex64], lanes) == 0
    classes = [("v", (3,)), ("v", (0,)), ("v", (7,)), ("g", (0, 2)), ("g", (6, 2)), ("s", (1,))]
    assert [pointwise.narrow_class(*c, 3) for c in classes] == ["D", "V", "v", "G", "g", "s"]
