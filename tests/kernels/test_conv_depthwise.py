"""Depthwise convolutions: the CPU's own schedule against the general one, when it is chosen, and values that are not
finite."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import close, data
from support import on_device as tensor

import cltensor as ct
from cltensor.codegen.conv import depthwise
from cltensor.runtime import get_backend

F = ct.nn.functional
pytestmark = pytest.mark.usefixtures("divided")

# Rows shorter than a vector, of a vector's length and longer; even and odd; several bands.
PLANES = [(7, 7), (3, 5), (9, 8), (14, 13), (16, 17), (21, 38), (61, 150), (11, 41)]


def enough() -> int:
    """Return a number of channels that is divided among a CPU's threads, also in the gradients of filters."""
    info = get_backend(ct.get_default_device()).info
    return max(8, depthwise.PLANES * info.compute_units) if info.kind == "cpu" else 8


def all_three(plane: tuple[int, int], taps: int, stride: int, padding: Any, channels: int) -> list:
    """Return the output, and the gradients with respect to input, weight and bias."""
    x = tensor(data(2, channels, *plane), requires_grad=True)
    w = tensor(data(channels, 1, taps, taps, seed=1), requires_grad=True)
    b = tensor(data(channels, seed=2), requires_grad=True)
    y = F.conv2d(x, w, b, stride, padding, groups=channels)
    y.backward(tensor(data(*y.shape, seed=3)))
    return [t.tolist() for t in (y.detach(), x.grad, w.grad, b.grad)]


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize(("taps", "stride"), [(3, 1), (3, 2), (5, 2), (7, 1)])
def test_values_are_those_of_the_general_schedule(
    taps: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = [p for p in PLANES if taps == 3 or p in PLANES[::3]]
    paddings = [taps // 2, *([0, (2, 0), (1, 2)] if taps == 3 else [])]
    cases = [c for c in itertools.product(wide, paddings) if min(c[0]) >= taps or c[1] == taps // 2]
    cases = [(p, pad) for p, pad in cases if min(p) + 2 * np.min(pad) >= taps]
    n = enough()
    found = [all_three(plane, taps, stride, pad, n) for plane, pad in cases]
    monkeypatch.setattr(depthwise, "_fits", lambda *args: False)
    for (plane, pad), ours in zip(cases, found, strict=True):
        for a, b in zip(ours, all_three(plane, taps, stride, pad, n), strict=True):
            # A filter's gradient sums thousands of products: errors are relative to the largest, as sums may nearly
            # cancel.
            size = np.abs(b).max()
            close(np.array(a) / size, np.array(b) / size, 1e-5)


@pytest.mark.usefixtures("on_a_cpu")
def test_which_are_made_so(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    for name in ("correlate", "spread", "weigh"):
        way = getattr(depthwise, name)

        def noted(*args: Any, way: Any = way, name: str = name) -> Any:
            found = way(*args)
            if found is not None and found is not False:
                made.append(name)
            return found

        monkeypatch.setattr(depthwise, name, noted)
    all_three((9, 8), 3, 1, 1, enough())
    assert made == ["correlate", "correlate", "weigh"]
    made.clear()
    all_three((9, 8), 3, 2, 1, enough())
    assert made == ["correlate", "spread", "weigh"]
    made.clear()
    x, w = tensor(data(2, 8, 9, 8)), tensor(data(8, 1, 3, 3))
    F.conv2d(x, w, dilation=2, groups=8)
    F.conv2d(x, w, stride=3, groups=8)
    F.conv2d(x, tensor(data(16, 1, 3, 3)), groups=8)
    F.conv2d(x[:, :4].to(memory_format=ct.channels_last), w[:4], groups=4)
    assert not made
    F.conv2d(x.to(memory_format=ct.channels_last), w, groups=8)  # by depthwise_last.py
    assert made == ["correlate"]
    assert F.conv2d(x[:0], w, groups=8).shape == (0, 8, 7, 6)


@pytest.mark.parametrize("stride", [1, 2])
def test_what_is_not_finite_reaches_only_what_reads_it(stride: int) -> None:
    n = enough()
    a, b = data(2, n, 7, 21), data(n, 1, 3, 3, seed=1)
    a[1, 2, 3, 20], a[0, 3, 0, 0] = np.inf, np.nan
    x, w = (tensor(v, requires_grad=True) for v in (a, b))
    y = F.conv2d(x, w, None, stride, 1, groups=n)
    slopes = data(*y.shape, seed=2)
    slopes[0, 5, 1, -1] = np.inf
    y.backward(tensor(slopes))
    rows, columns = y.shape[2:]
    wide = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out, x_slope = np.zeros(y.shape, bool), np.zeros(wide.shape, bool)
    taps = np.zeros(b.shape, bool)
    for i, j in np.ndindex(3, 3):
        at = (..., slice(i, i + stride * (rows - 1) + 1, stride), slice(j, j + stride * (columns - 1) + 1, stride))  # fmt: skip
        out |= ~np.isfinite(wide[at])
        x_slope[at] |= ~np.isfinite(slopes)
        taps[:, 0, i, j] = (~np.isfinite(wide[at]) | ~np.isfinite(slopes)).any((0, 2, 3))
    finite = [np.isfinite(np.array(t.tolist())) for t in (y.detach(), x.grad, w.grad)]
    assert (finite[0] == ~out).all()
    assert (finite[1] == ~x_slope[:, :, 1:-1, 1:-1]).all()
    if get_backend(ct.get_default_device()).info.kind == "cpu":
        assert (finite[2] == ~taps).all()
