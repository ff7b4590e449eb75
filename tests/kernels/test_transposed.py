"""Copies of transposed operands by tiles, and of small blocks by a table: every item size, edges, offsets, and numbers
of launches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cltensor as torch
from cltensor.codegen.move import copies
from cltensor.codegen.region import empty
from cltensor.ops import core
from cltensor.runtime import get_backend


@pytest.mark.parametrize("kind", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("fetched", [copies.FETCHED, 1])
def test_tiles(kind: str, fetched: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        copies, "FETCHED", fetched
    )  # bytes from which on the destination is prefetched
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


@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("kind", ["uint8", "int16", "float32", "float64", "complex128"])
def test_small_blocks(kind: str) -> None:
    """Many dense blocks whose dims are permuted on one side, or on both, at any offset."""
    values = (np.random.default_rng(0).random((103, 3, 4, 5)) * 100).astype(kind)
    x = torch.tensor(values)
    backend = get_backend(x.device)
    for first, dims in itertools.product((0, 7), itertools.permutations((1, 2, 3))):
        turned = core.kernel_operand(x[first:].permute(0, *dims))
        for order in ((0, 1, 2, 3), (0, 3, 1, 2)):
            made = empty(backend, turned.dtype, [turned.shape[d] for d in order])
            shown = [made.strides[order.index(d)] for d in range(4)]
            to = made._replace(shape=turned.shape, strides=tuple(shown))
            copies.copy_strided(backend, turned, to)
            found = backend.read(made.buffer, 0, values[first:].nbytes).view(kind)
            want = values[first:].transpose(0, *dims).transpose(order)
            np.testing.assert_array_equal(found.reshape(want.shape), want)


@pytest.mark.parametrize("kind", ["uint8", "int16", "float32", "float64"])
def test_narrow_tiles(kind: str) -> None:
    """If the result's rows are shorter than four cache lines, tiles have the rows' length, except for a remainder;
    steps continue across tiles."""
    line = 64 // np.dtype(kind).itemsize
    for lines, rest in ((1, 0), (1, 5), (2, 1), (3, 0), (3, 7), (4, 3)):
        values = (
            np.random.default_rng(0).random((4, lines * line + rest, 5 * line + 3)) * 100
        ).astype(kind)
        turned = torch.tensor(values).transpose(1, 2).contiguous()
        np.testing.assert_array_equal(turned.cpu().numpy(), values.transpose(0, 2, 1))


@pytest.mark.parametrize("kind", ["uint8", "float32"])
@pytest.mark.parametrize("channels", [1, 2, 3, 5, 9])
def test_few_channels_last(channels: int, kind: str) -> None:
    """A short dim becomes the innermost one: rows are read contiguously and written with a stride."""
    values = (np.random.default_rng(0).random((2, channels, 130, 150)) * 100).astype(kind)
    t = torch.tensor(values)
    last = t.contiguous(memory_format=torch.channels_last)
    if channels > 1:
        assert last.stride() == (channels * 130 * 150, 1, channels * 150, channels)
    np.testing.assert_array_equal(last.cpu().numpy(), values)
    np.testing.assert_array_equal(
        last.permute(0, 2, 3, 1).reshape(-1).cpu().numpy(), values.transpose(0, 2, 3, 1).reshape(-1)
    )
    turned = t.permute(0, 2, 3, 1)
    np.testing.assert_array_equal(
        (turned + turned[:, ::1]).cpu().numpy(), values.transpose(0, 2, 3, 1) * 2
    )
    part = t[:, :, 3:, 1::2].permute(0, 2, 3, 1)
    np.testing.assert_array_equal(
        part.contiguous().cpu().numpy(), values[:, :, 3:, 1::2].transpose(0, 2, 3, 1)
    )


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


@pytest.mark.parametrize("operands", [1, 2])
def test_rows_across_memory(operands: int) -> None:
    """On a CPU the rows of one transposed operand are transposed by the rowwise kernel itself; several operands are
    copied first, by tiles."""
    values = np.random.default_rng(0).standard_normal((operands, 1024, 512)).astype(np.float32)
    given = [torch.tensor(v).t() for v in values]
    torch.opencl.synchronize()
    before = torch.stats().launches
    found = sum(given[1:], start=given[0]).softmax(1)
    torch.opencl.synchronize()
    turns = operands == 1 and get_backend(given[0].device).info.kind == "cpu"
    assert torch.stats().launches - before == (1 if turns else operands + 1)
    wide = np.exp(values.sum(0).T.astype(np.float64))
    np.testing.assert_allclose(found.cpu().numpy(), wide / wide.sum(1, keepdims=True), rtol=1e-5)
