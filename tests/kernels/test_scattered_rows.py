"""Public scatters and `index_add` that write whole new rows: values, bits and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import close, data, store_past_cache

import cltensor as ct
from cltensor.codegen.index import collect

pytestmark = pytest.mark.usefixtures("divided")


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float16"])
def test_scatter_along_whole_rows(
    dtype: str, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scatters into a copy, made row by row in one pass, are right: the source stays unchanged, and the old contents of
    reused memory do not enter the result.

    Of several writes to one place, the last wins on a CPU. Elsewhere any may win, so equal numbers are written there.
    """
    rng = np.random.default_rng(0)
    for streamed, width in ((0, 33), (1, 33), (1, 64)):
        if streamed:
            store_past_cache(monkeypatch)
        a = rng.integers(0, 9, (2, 3, width)).astype(dtype)
        i = rng.integers(0, width, (2, 3, 20))
        s = rng.integers(0, 9, i.shape).astype(dtype)
        if backend.info.kind != "cpu":
            s = (i % 7).astype(dtype)
        t, index, source = (ct.tensor(x) for x in (a, i, s))
        added, written, ones = a.copy(), a.copy(), a.copy()
        for at in np.ndindex(*i.shape):
            place = (*at[:2], i[at])
            added[place] = added[place] | s[at] if dtype == "bool" else added[place] + s[at]
            written[place], ones[place] = s[at], 1
        close(t.scatter_add(-1, index, source), added)
        close(t.scatter(2, index, source), written)
        if dtype != "float32":  # what follows depends on the indices, not on the dtype
            close(t, a)
            continue
        close(t.scatter(2, index.int(), 1), ones)
        met = np.zeros_like(a)
        np.put_along_axis(met, i, 1, 2)
        close(ct.zeros_like(t).scatter(2, index, 1), met)
        one = source[:1, :1, :1].expand(i.shape)
        close(t.scatter_add(2, index, one), t.clone().scatter_add_(2, index, one).cpu().numpy())
        close(t, a)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *((shape, "float32") for shape in ((9, 33), (40, 3, 100), (7, 272), (3, 1), (50, 4, 80))),
        *(((7, 272), "int8"), ((3, 1), "int64")),
        *((shape, "bfloat16") for shape in ((9, 33), (3, 1), (50, 4, 80))),
        ((7, 272), "float16"),
    ],
    ids=str,
)
def test_rows_are_added_to_those_of_a_copy(
    shape: tuple[int, ...], dtype: str, poisoned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row of the copy is written once, with the bits that adding the source's rows in place, one after another,
    gives.

    Only float32 is also tried with int32 and strided indices.
    """
    rng = np.random.default_rng(0)
    for least, n in ((1, 20), (1, 1), (1 << 40, 20)):
        for name in ("LEAST", "NARROW"):
            monkeypatch.setattr(collect, name, least)
        store_past_cache(monkeypatch, least)
        dt, plain = getattr(ct, dtype), dtype == "float32"
        t, s = (ct.tensor(data(*d) * 50).to(dt) for d in (shape, (n, *shape[1:])))
        i = rng.integers(0, shape[0], n)
        index, one = ct.tensor(i), s[:1, :1].reshape(1, -1)[:, :1].reshape(1, *[1] * (s.ndim - 1))
        for source in (s, one.expand(s.shape)):
            want = t.clone().index_add_(0, index, source)
            from_zeros = ct.zeros_like(t).index_add_(0, index, source)
            apart = ct.stack([index, index], 1)[:, 1]
            for found, wanted in (
                (t.index_add(0, index, source), want),
                (t.index_put((index - shape[0],), source, accumulate=True), want),
                (ct.zeros_like(t).index_add(0, index, source), from_zeros),
                *((t.index_add(0, i, source), want) for i in (index.int(), apart) if plain),
            ):
                np.testing.assert_array_equal(
                    found.double().cpu().numpy(), wanted.double().cpu().numpy()
                )
        index[n // 2] = shape[0]
        with pytest.raises(RuntimeError, match=f"index {shape[0]} is out of bounds for dim"):
            t.index_add(0, index, s).tolist()
        with pytest.raises(IndexError, match=f"index {shape[0]} is out of bounds for dim"):
            t.index_put((index,), s, accumulate=True).tolist()
