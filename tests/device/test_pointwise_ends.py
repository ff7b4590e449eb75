"""Where vectors of pointwise kernels, several at a time, and the rows of strided operands begin and end."""

from __future__ import annotations

import numpy as np
import pytest

import cltensor as ct


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_vectors_of_short_integers_end_anywhere(dtype: str) -> None:
    for n in (1, 16, 31, 63, 64, 65, 130, 4099, 70_001):
        a, b = (np.random.default_rng(i).integers(0, 127, n).astype(dtype) for i in range(2))
        whole = ct.zeros(n + 128, dtype=getattr(ct, dtype))
        x, y = ct.tensor(a), ct.tensor(b)
        z = (x + y) * 3 - x
        less = z < y  # of which two results come in one launch
        assert np.array_equal(less.numpy(), ((a + b) * 3 - a).astype(dtype) < b)
        assert np.array_equal(z.numpy(), ((a + b) * 3 - a).astype(dtype))
        part = whole[64 : n + 64]
        part.copy_(y)
        part += part
        assert np.array_equal(whole.numpy()[64 : n + 64], b + b)
        assert not whole[:64].any()
        assert not whole[n + 64 :].any()


def test_rows_are_counted_along_outer_dims_from_anywhere() -> None:
    shape = (9, 6, 7, 11, 39)
    r = np.random.default_rng(0)
    parts = [(9, 1, 7, 1, 39), (1, 6, 1, 11, 39), (9, 6, 1, 1, 1), (7, 1, 39)]
    arrays = [r.random(s).astype(np.float32) for s in parts]
    a, b, c, d = map(ct.tensor, arrays)
    assert np.array_equal((a + b).numpy(), arrays[0] + arrays[1])
    assert np.array_equal((b * c).numpy(), arrays[1] * arrays[2])
    assert np.array_equal((a - d + b).numpy(), arrays[0] - arrays[3] + arrays[1])
    out = ct.zeros(9, 6, 7, 11, 64)
    out[..., 3:42] += a
    assert np.array_equal(out.numpy()[..., 3:42], np.broadcast_to(arrays[0], shape))
    assert not out[..., :3].any()
    assert not out[..., 42:].any()
