"""Transposed operands are copied by tiles: every item size, edges and offsets; and how many launches."""

from __future__ import annotations

import numpy as np
import pytest

import cltensor as torch


@pytest.mark.parametrize("kind", ["uint8", "int16", "float32", "float64", "complex128"])
def test_tiles(kind: str) -> None:
    values = (np.random.default_rng(0).random((3, 150, 262)) * 100).astype(kind)
    t = torch.tensor(values)
    for dims in ((0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        np.testing.assert_array_equal(
            t.permute(dims).contiguous().cpu().numpy(), values.transpose(dims)
        )
    part = t[1, 5:, ::2]
    np.testing.assert_array_equal(part.t().contiguous().cpu().numpy(), values[1, 5:, ::2].T)
    wide = torch.zeros(300, 200, dtype=t.dtype)
    wide[7:269, 3:153] = t[2].t()
    want = np.zeros((300, 200), kind)
    want[7:269, 3:153] = values[2].T
    np.testing.assert_array_equal(wide.cpu().numpy(), want)


def test_launches() -> None:
    a, b = torch.rand(300, 500), torch.rand(500, 300)
    torch.opencl.synchronize()
    before = torch.stats().launches
    copied = a.t().contiguous()
    torch.opencl.synchronize()
    assert torch.stats().launches == before + 1
    both = (a.t() * 2 + b) * a.t()
    torch.opencl.synchronize()
    assert torch.stats().launches == before + 3  # one copy, one chain
    turned = a.cpu().numpy().T
    np.testing.assert_array_equal(copied.cpu().numpy(), turned)
    np.testing.assert_allclose(both.cpu().numpy(), (turned * 2 + b.cpu().numpy()) * turned, 1e-6)


def test_rows_across_memory_are_laid_out_first() -> None:
    values = np.random.default_rng(0).standard_normal((300, 512)).astype(np.float32)
    x = torch.tensor(values).t()
    torch.opencl.synchronize()
    before = torch.stats().launches
    found = x.softmax(1)
    torch.opencl.synchronize()
    assert torch.stats().launches - before == 2  # by tiles, then the rows
    wide = np.exp(values.T.astype(np.float64))
    np.testing.assert_allclose(found.cpu().numpy(), wide / wide.sum(1, keepdims=True), rtol=1e-5)
