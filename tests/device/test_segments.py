"""Functions composed of others: segment_reduce, gradient (by differences), histogramdd, indices of positions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from support import close, data

import cltensor as ct
from cltensor.autograd import gradcheck

LENGTHS = [2, 0, 3, 1]


@pytest.mark.parametrize("way", ["sum", "mean", "prod", "max", "min"])
def test_segment_reduce(way: str, one_by_one: None) -> None:
    a = data(6, 3, dtype="float64")
    x = ct.tensor(a.tolist(), dtype=ct.float64, requires_grad=True)
    lengths = ct.tensor(LENGTHS)
    reduce = {"max": np.max, "min": np.min, "sum": np.sum, "mean": np.mean, "prod": np.prod}[way]
    y = ct.segment_reduce(x, way, lengths=lengths, initial=1)
    runs = np.split(a, np.cumsum(LENGTHS)[:-1])
    first = np.ones((1, 3))
    if way == "mean":
        expected = [(r.sum(0) + 1) / len(r) if len(r) else first[0] for r in runs]
    else:
        expected = [reduce(np.concatenate([first, r]), 0) for r in runs]
    close(y, np.stack(expected), 1e-10)
    offsets = ct.tensor([0, *np.cumsum(LENGTHS).tolist()])
    close(ct.segment_reduce(x, way, offsets=offsets, initial=1), y.tolist(), 1e-12)
    assert gradcheck(lambda v: ct.segment_reduce(v, way, lengths=lengths, initial=1), (x,))


@pytest.mark.parametrize(
    ("dtype", "within"), [("float32", 2e-4), ("float16", 2e-2), ("bfloat16", 0.2)]
)
@pytest.mark.parametrize("way", ["sum", "prod", "max", "min"])
def test_segments_of_any_width(way: str, dtype: str, within: float) -> None:
    reduce = {"max": np.max, "min": np.min, "sum": np.sum, "prod": np.prod}[way]
    for shape in ((2, 301), (2, 41, 1, 16), (2, 7, 37), (2, 5, 2, 3)):
        n = shape[1]
        bounds = [[0, n // 3, n // 3, n], [1, n // 2, n - 1, n - 1]]
        x = ct.tensor(1 + 0.1 * data(*shape)).to(getattr(ct, dtype))
        x[0, n - 1] = float("nan")
        y = ct.segment_reduce(x, way, offsets=ct.tensor(bounds), axis=1, initial=1)
        first = np.ones((1, *shape[2:]))
        wanted = [
            [reduce(np.concatenate([first, rows[i:j]]), 0) for i, j in pairwise(ends)]
            for rows, ends in zip(x.double().cpu().numpy(), bounds, strict=True)
        ]
        close(y.double(), np.array(wanted), within)


def test_gradients_of_segments_lie_within_them() -> None:
    for width in (1, 19):
        x = ct.zeros(2, 6, width, requires_grad=True)
        offsets = ct.tensor([[0, 2, 2, 6], [1, 3, 4, 4]])
        y = ct.segment_reduce(x, "sum", offsets=offsets, axis=1)
        y.backward(ct.arange(1.0, 7.0).view(2, 3, 1).expand(2, 3, width))
        wanted = np.array([[1, 1, 3, 3, 3, 3], [0, 4, 4, 5, 0, 0]])[..., None]
        close(x.grad, np.broadcast_to(wanted, (2, 6, width)), 0)


def test_segments_by_row_and_their_errors(one_by_one: None) -> None:
    x = ct.arange(12.0).view(2, 6)
    rows = ct.tensor([[2, 4], [1, 5]])
    assert ct.segment_reduce(x, "sum", lengths=rows, axis=1).tolist() == [[1, 14], [6, 45]]
    assert ct.segment_reduce(x[0], "max", lengths=ct.tensor([6, 0])).tolist() == [5, -np.inf]
    with pytest.raises(RuntimeError, match="to sum to data"):
        ct.segment_reduce(x[0], "sum", lengths=ct.tensor([2, 2]))
    with pytest.raises(RuntimeError, match="lengths contains negative value!"):
        ct.segment_reduce(x[0], "sum", lengths=ct.tensor([-2, 8]))
    for data_shape, given in (((3, 4), rows), ((4,), rows)):
        with pytest.raises(
            RuntimeError, match=r"Expected lengths to have data's sizes before axis 1"
        ):
            ct.segment_reduce(ct.ones(data_shape), "sum", lengths=given, axis=1)
    zero = ct.tensor([0.0, 2.0, 3.0, 0.0, 0.0], requires_grad=True)
    ct.segment_reduce(zero, "prod", lengths=ct.tensor([3, 2])).sum().backward()
    assert zero.grad.tolist() == [6, 0, 0, 0, 0]


def test_gradient_by_differences(one_by_one: None) -> None:
    a, t = data(4, 5, dtype="float64"), np.array([0.0, 0.5, 0.7, 2.0, 2.2])
    x = ct.tensor(a.tolist(), dtype=ct.float64)
    times = ct.tensor(t.tolist(), dtype=ct.float64)
    for order in (1, 2):
        for found, expected in zip(
            ct.gradient(x, spacing=(ct.arange(4) * 2.0, times), edge_order=order),
            np.gradient(a, 2.0, t, edge_order=order),
            strict=True,
        ):
            close(found, expected, 1e-10)
    assert ct.gradient(ct.tensor([1, 4, 9]))[0].tolist() == [3, 4, 5]
    assert ct.gradient(x, dim=1)[0].shape == x.shape
    close(ct.gradient(x, spacing=[2, 4.0])[1], np.gradient(a, 4.0, axis=1), 1e-10)
    with pytest.raises(RuntimeError, match="at least edge_order"):
        ct.gradient(x[:1])


def test_histogramdd() -> None:
    a, w = data(50, 2), abs(data(50))
    x, weight = ct.tensor(a.tolist()), ct.tensor(w.tolist())
    hist, edges = ct.histogramdd(x, [3, 4], weight=weight)
    expected, sides = np.histogramdd(a.astype("float64"), [3, 4], weights=w)
    close(hist, expected, 1e-4)
    for found, side in zip(edges, sides, strict=True):
        close(found, side, 1e-5)
    hist, _ = ct.histogramdd(x, 2, range=[-1.0, 1.0, 0.0, 2.0], density=True)
    close(hist, np.histogramdd(a, 2, range=[(-1, 1), (0, 2)], density=True)[0])
    with pytest.raises(RuntimeError, match="min should not exceed max"):
        ct.histogramdd(x, 2, range=[0.0, 1.0, 2.0, 1.0])


def test_positions() -> None:
    at = ct.tensor([[3, 5], [22, 7]])
    for found, expected in zip(
        ct.unravel_index(at, (2, 3, 4)), np.unravel_index(np.array(at.tolist()), (2, 3, 4))
    ):
        assert found.tolist() == expected.tolist()
    x = ct.tensor([[0, 1], [1, 1]])
    assert ct.nonzero_static(x, size=2).tolist() == [[0, 1], [1, 0]]
    assert x.nonzero_static(size=4, fill_value=-7).tolist()[2:] == [[1, 1], [-7, -7]]
    with pytest.raises(RuntimeError, match="must be an non-negative integer"):
        ct.nonzero_static(x, size=-1)
