"""Embedding bags: values against numpy, both schedules against each other, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import backend_for
from support import close, data

import cltensor as ct
import cltensor.nn.functional as F
from cltensor.autograd import gradcheck
from cltensor.codegen.index import bag
from cltensor.size import Size

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators


_INDICES, _OFFSETS = [0, 1, 2, 2, 4, 1], [0, 2, 2, 5]
_PAIRS = list(zip(_OFFSETS, [*_OFFSETS[1:], 6], strict=True))


def _bag(table: np.ndarray, mode: str, padding: int | None) -> np.ndarray:
    out = np.zeros((4, table.shape[1]))
    for b, (first, last) in enumerate(_PAIRS):
        rows = [i for i in _INDICES[first:last] if i != padding]
        if rows:
            out[b] = getattr(table[rows], mode)(0)
    return out


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 1])
def test_bags_are_reduced(mode: str, padding: int | None) -> None:
    table = data(5, 70)
    i, o = ct.tensor(_INDICES), ct.tensor(_OFFSETS)
    found = F.embedding_bag(i, ct.tensor(table.tolist()), o, mode=mode, padding_idx=padding)
    close(found, _bag(table, mode, padding))
    w = ct.tensor(data(5, 3).tolist(), dtype=ct.float64, requires_grad=True)
    assert gradcheck(lambda t: F.embedding_bag(i, t, o, mode=mode, padding_idx=padding), (w,))


@pytest.mark.parametrize("width", [1, 15, 16, 17, 64, 70, 150])
def test_bags_of_every_width_are_reduced(width: int, poisoned: None, divided: None) -> None:
    rng = np.random.default_rng(width)
    lengths = rng.integers(0, 9, 40)
    starts = np.cumsum(lengths) - lengths
    indices = rng.integers(0, 30, lengths.sum())
    table = rng.integers(-9, 9, (30, width)).astype(np.float32)
    bags = [
        table[indices[a : a + n]] if n else np.zeros((1, width)) for a, n in zip(starts, lengths)
    ]
    for dt in (ct.float32, ct.float16, ct.float64):
        for t in (ct.tensor(table, dtype=dt), ct.tensor(table.T.copy(), dtype=dt).t()):
            for mode in ("sum", "mean", "max"):
                found = F.embedding_bag(ct.tensor(indices), t, ct.tensor(starts), mode=mode)
                close(found.float(), np.stack([getattr(b, mode)(0) for b in bags]), 1e-3)


def test_bags_of_one_length_and_weights() -> None:
    table = data(5, 3)
    i = ct.tensor([[0, 1, 2], [4, 4, 0]])
    t = ct.tensor(table.tolist(), dtype=ct.float64, requires_grad=True)
    close(F.embedding_bag(i, t), np.stack([table[[0, 1, 2]].mean(0), table[[4, 4, 0]].mean(0)]))
    by = ct.tensor(data(2, 3).tolist(), dtype=ct.float64, requires_grad=True)
    assert gradcheck(lambda a, b: F.embedding_bag(i, a, mode="sum", per_sample_weights=b), (t, by))
    last = ct.tensor([0, 2, 6])
    out, bag_of, size, _ = ct.embedding_bag(t, i.flatten(), last, False, 1, False, None, True, None)
    assert out.shape == (2, 3)
    assert bag_of.tolist() == [0, 0, 1, 1, 1, 1]
    assert size.tolist() == [2, 4]


@pytest.mark.elsewhere
def test_bag_schedules_agree() -> None:
    from kernel_tools import get, put, torch

    table, i, o = torch.tensor(data(5, 70)), torch.tensor(_INDICES), torch.tensor(_OFFSETS)
    for kind in bag.KINDS:
        found = [
            get(b, bag.bags(b, put(b, table), put(b, i), put(b, o), kind, -1, None).out)
            for b in map(backend_for, ("cpu", "gpu"))
        ]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_bag_errors() -> None:
    table = ct.ones(5, 3)
    i, o = ct.tensor(_INDICES), ct.tensor(_OFFSETS)
    cases: list[tuple[Any, Any, str]] = [
        (i + 4, o, r"Index 1 of input takes value 5 which is not in the valid range \[0, 5\)"),
        (i, o + 1, r"offsets\[0\] has to be 0"),
        (i, ct.tensor([0, 9]), r"offsets\[-1\] can not be greater than input's length 6"),
        (i, ct.tensor([0, 3, 2]), "offsets have to go up"),
        (i.float(), o, "to have one of the following scalar types: Long, Int"),
    ]
    for indices, offsets, text in cases:
        with pytest.raises(RuntimeError, match=text):
            F.embedding_bag(indices, table, offsets)
            ct.opencl.synchronize()
    with pytest.raises(ValueError, match="offsets has to be a 1D Tensor but got None"):
        F.embedding_bag(i, table)
    assert F.embedding_bag(i[:0], table, ct.tensor([0, 0])).shape == Size((2, 3))
