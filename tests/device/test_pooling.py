"""Pooling on the device: values and gradients against windows walked in numpy, schedules, derivatives, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import close, data, store_past_cache

import cltensor as ct
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.runtime import STATS

pytestmark = pytest.mark.usefixtures("divided")

F = ct.nn.functional

# Input shape, kernel, stride, padding, dilation. Rows are wide enough for vectors, and not multiples of them.
CASES = [
    ((2, 3, 7, 40), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((2, 3, 6, 37), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((3, 5, 25), (3, 2), (1, 1), (1, 1), (2, 3)),
    ((2, 1, 4, 5, 33), (2, 3, 3), (2, 1, 3), (1, 1, 0), (1, 2, 1)),
    ((2, 2, 5, 5), (2, 3), (3, 1), (0, 1), (1, 1)),
]
NAMES = [str(c[0]) for c in CASES]


def _windows(size: Any, k: Any, s: Any, p: Any, d: Any) -> Any:
    """Yield each output position with the input positions of its window, padding included."""
    out = [(n + 2 * b - e * (a - 1) - 1) // t + 1 for n, a, t, b, e in zip(size, k, s, p, d)]
    for o in itertools.product(*map(range, out)):
        starts = [i * t - b for i, t, b in zip(o, s, p)]
        taps = itertools.product(*(range(a) for a in k))
        yield o, [tuple(q + j * e for q, j, e in zip(starts, tap, d)) for tap in taps]


def _largest(a: np.ndarray, *window: Any) -> tuple[np.ndarray, np.ndarray]:
    rank = len(window[0])
    size, planes = a.shape[-rank:], a.reshape(-1, *a.shape[-rank:])
    found: dict = {}
    for o, taps in _windows(size, *window):
        inside = [t for t in taps if all(0 <= i < n for i, n in zip(t, size))]
        values = np.stack([planes[(slice(None), *t)] for t in inside])
        at = values.argmax(0)
        flat = np.array([np.ravel_multi_index(t, size) for t in inside])
        found[o] = values.max(0), flat[at]
    shape = tuple(n + 1 for n in max(found))
    results = [np.stack([found[o][j] for o in sorted(found)], 1) for j in (0, 1)]
    first, second = (r.reshape(*a.shape[:-rank], *shape) for r in results)
    return first, second


def _mean(a: np.ndarray, k: Any, s: Any, p: Any, include: bool, divisor: int | None) -> np.ndarray:
    rank = len(k)
    size, planes = a.shape[-rank:], a.reshape(-1, *a.shape[-rank:])
    found = {}
    for o, taps in _windows(size, k, s, p, (1,) * rank):
        inside = [t for t in taps if all(0 <= i < n for i, n in zip(t, size))]
        counted = [t for t in taps if all(i < n + q for i, n, q in zip(t, size, p))]
        by = divisor or len(counted if include else inside)
        found[o] = sum(planes[(slice(None), *t)] for t in inside) / by
    shape = tuple(n + 1 for n in max(found))
    return np.stack([found[o] for o in sorted(found)], 1).reshape(*a.shape[:-rank], *shape)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_largest_with_positions_and_gradient(case: Any) -> None:
    shape, *window = case
    a = data(*shape)
    fn = F.max_pool3d if len(window[0]) == 3 else F.max_pool2d
    x = ct.tensor(a.tolist(), requires_grad=True)
    y, at = fn(x, *window, return_indices=True)
    values, positions = _largest(a, *window)
    close(y, values, 0)
    assert at.dtype is ct.int64 and at.tolist() == positions.tolist()
    with ct.no_grad():
        close(fn(x, *window), values, 0)
    g = data(*values.shape, seed=1)
    y.backward(ct.tensor(g.tolist()))
    rank = len(window[0])
    flat = np.zeros((int(np.prod(shape[:-rank])), int(np.prod(shape[-rank:]))), np.float32)
    rows = np.arange(len(flat))[:, None]
    np.add.at(flat, (rows, positions.reshape(len(flat), -1)), g.reshape(len(flat), -1))
    close(x.grad, flat.reshape(shape))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_average_and_gradient(case: Any) -> None:
    shape, k, s, p, _ = case
    a = data(*shape)
    fn = F.avg_pool3d if len(k) == 3 else F.avg_pool2d
    for include, divisor in ((True, None), (False, None), (True, 7)):
        x = ct.tensor(a.tolist(), requires_grad=True)
        y = fn(x, k, s, p, False, include, divisor)
        close(y, _mean(a, k, s, p, include, divisor))
        # The mean is linear: <g, pool(h)> == <back(g), h> for any h.
        g, h = data(*y.shape, seed=1), data(*shape, seed=2)
        y.backward(ct.tensor(g.tolist()))
        expected = (g * _mean(h, k, s, p, include, divisor)).sum()
        close((x.grad * ct.tensor(h.tolist())).sum(), expected, 1e-4)


@pytest.mark.parametrize(
    ("plane", "dtype"),
    [
        *((plane, "float32") for plane in ((7, 7), (3, 3), (1, 35), (16, 16))),
        *(((7, 7), "float16"), ((7, 7), "int32"), ((3, 3), "float64")),
    ],
    ids=str,
)
def test_largest_of_whole_planes(plane: Any, dtype: str) -> None:
    """If one window covers the whole plane, the first of equal maxima is taken, or the last of several NaNs, and that
    element gets the whole gradient.
    """
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (2, 9, *plane)).astype(dtype)
    is_float = a.dtype.kind == "f"
    if is_float:
        a[0][rng.random(a[0].shape) < 0.1] = np.nan
        a[1, 0] = -np.inf
    flat = a.reshape(2, 9, -1)
    last_nan = flat.shape[-1] - 1 - np.isnan(flat)[..., ::-1].argmax(-1)
    best = np.where(np.isnan(flat).any(-1), last_nan, np.nan_to_num(flat, nan=-9).argmax(-1))[
        ..., None
    ]
    values = np.take_along_axis(flat, best, -1)
    x = ct.tensor(a, requires_grad=is_float)
    y, at = F.max_pool2d(x, plane, return_indices=True)
    np.testing.assert_array_equal(y.detach().cpu().numpy()[..., 0], values)
    np.testing.assert_array_equal(at.cpu().numpy()[..., 0], best)
    if is_float:
        np.testing.assert_array_equal(
            F.adaptive_max_pool2d(x, 1).detach().cpu().numpy()[..., 0], values
        )
        g = data(2, 9, 1, seed=1).astype(dtype)
        y.backward(ct.tensor(g[..., None]))
        expected = np.zeros_like(flat)
        np.put_along_axis(expected, best, g, -1)
        np.testing.assert_array_equal(x.grad.cpu().numpy().reshape(flat.shape), expected)


def test_the_last_fractional_window_ends_with_the_plane() -> None:
    """The last window's start is the plane's size minus the window's, where the rounded step may give one less."""
    x = ct.zeros(1, 1, 15, 15)
    x[..., 14, 14] = 3.0
    y = F.fractional_max_pool2d(x, 2, output_size=12, _random_samples=ct.zeros(1, 1, 2))
    assert y[0, 0, 11, 11].item() == 3


@pytest.mark.parametrize("channels", [3, 16, 21])
def test_nan_is_the_largest_channels_last(channels: int) -> None:
    a = data(2, channels, 7, 9)
    a[:, ::2, 3, 4], a[0, 1, 0, 0] = np.nan, np.nan
    x = ct.tensor(a)
    turned = x.to(memory_format=ct.channels_last)
    for fn in (
        lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        lambda x: F.adaptive_max_pool2d(x, 3, return_indices=True),
    ):
        for found, expected in zip(fn(turned), fn(x), strict=True):
            np.testing.assert_array_equal(found.cpu().numpy(), expected.cpu().numpy())


@pytest.mark.parametrize("window", [(3, 2, 0), (3, 2, 1), (2, 2, 0)], ids=str)
def test_tall_planes_and_what_they_are_sent_past_the_cache(
    window: tuple[int, int, int], poisoned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, positions and gradients are right with non-temporal stores: for more rows of windows than are computed at
    a time, planes that begin anywhere in a cache line, equal elements, NaN, and a last row that no window covers.
    """
    store_past_cache(monkeypatch)
    for shape in ((2, 3, 75, 40), (1, 3, 76, 33), (3, 1, 9, 71)):
        a = np.round(data(*shape) * 3)
        a[0, 0, :5] = -np.inf
        a[-1, -1, 7, ::9] = np.nan
        x = ct.tensor(a, requires_grad=True)
        y = F.max_pool2d(x, *window)
        shown, at = F.max_pool2d(x, *window, return_indices=True)
        k, s, p = ((v, v) for v in window)
        values, positions = _largest(np.where(np.isnan(a), 99, a), k, s, p, (1, 1))
        places = at.cpu().numpy()
        nans = places[np.isnan(shown.detach().cpu().numpy())]
        for found in (y, shown):
            close(found, np.where(values == 99, np.nan, values), 0)
        assert np.isnan(a[-1, -1].ravel()[nans]).all()
        rest = values != 99
        np.testing.assert_array_equal(places[rest], positions[rest])
        g, want = data(*values.shape, seed=1), np.zeros((shape[0] * shape[1], shape[2] * shape[3]))
        rows = np.arange(len(want))[:, None]
        np.add.at(want, (rows, places.reshape(len(want), -1)), g.reshape(len(want), -1))
        (sent,) = ct.autograd.grad(y, [x], ct.tensor(g))
        close(sent, want.reshape(shape))


def test_nan_wins_and_equal_elements_give_the_first() -> None:
    a = np.zeros((1, 1, 4, 40), np.float32)
    a[0, 0, 1, 3] = a[0, 0, 2, 39] = np.nan
    y, at = F.max_pool2d(ct.tensor(a.tolist()), 2, return_indices=True)
    assert np.argwhere(np.isnan(y.tolist())).tolist() == [[0, 0, 0, 1], [0, 0, 1, 19]]
    assert at[0, 0, :, 0].tolist() == [0, 80] and at[0, 0, 0, 1].item() == 43
    low = ct.full((1, 1, 4, 40), -float("inf"))
    assert F.max_pool2d(low, 2, return_indices=True)[1][0, 0, 1, :3].tolist() == [80, 82, 84]


def test_adaptive_windows_cut_in_equal_parts() -> None:
    a = data(2, 3, 7, 10)
    x = ct.tensor(a.tolist())

    def parts(n: int, out: int) -> list[slice]:
        return [slice(o * n // out, -(-(o + 1) * n // out)) for o in range(out)]

    for rows, columns in ((3, 4), (7, 5), (2, 1)):
        blocks = [[a[..., r, c] for c in parts(10, columns)] for r in parts(7, rows)]
        for fn, reduce in ((F.adaptive_max_pool2d, np.max), (F.adaptive_avg_pool2d, np.mean)):
            expected = np.stack(
                [np.stack([reduce(b, (-1, -2)) for b in row], -1) for row in blocks], -2
            )
            close(fn(x, (rows, columns)), expected)
    assert F.adaptive_avg_pool2d(x, (None, 5)).shape == (2, 3, 7, 5)
    close(F.adaptive_avg_pool2d(x, 1), a.mean((2, 3), keepdims=True))


def test_one_dim_goes_by_rows_and_unbatched_inputs_pass() -> None:
    a = data(3, 12)
    x = ct.tensor(a.tolist(), requires_grad=True)
    y = F.max_pool1d(x, 3)
    close(y, a.reshape(3, 4, 3).max(-1))
    assert y.grad_fn.name() == "SqueezeBackward1"
    close(F.avg_pool1d(x.unsqueeze(0), 3), a.reshape(1, 3, 4, 3).mean(-1))
    assert ct.max_pool1d(x, 5, 2, ceil_mode=True).shape == (3, 5)
    close(F.lp_pool1d(x.abs(), 3, 4), (abs(a) ** 3).reshape(3, 3, 4).sum(-1) ** (1 / 3), 1e-4)


def test_unpool_puts_elements_back() -> None:
    a = data(2, 3, 6, 8)
    x = ct.tensor(a.tolist(), requires_grad=True)
    y, at = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(y, at, 2)
    kept = np.zeros((6, 48), np.float32)
    np.put_along_axis(
        kept, np.array(at.tolist()).reshape(6, -1), np.array(y.tolist()).reshape(6, -1), 1
    )
    close(back, kept.reshape(a.shape))
    back.sum().backward()
    close(x.grad, (kept != 0).reshape(a.shape).astype(np.float32))
    assert F.max_unpool2d(y, at, 2, output_size=(7, 9)).shape == (2, 3, 7, 9)
    with pytest.raises(RuntimeError, match=r"index:? 480"):  # at the read on a discrete device
        F.max_unpool2d(y, at * 0 + 480, 2).tolist()


def test_fractional_windows_step_by_the_samples() -> None:
    a = data(2, 3, 9, 11)
    u = np.random.default_rng(0).random((2, 3, 2)).astype(np.float32)
    x = ct.tensor(a.tolist(), requires_grad=True)
    y, at = F.fractional_max_pool2d(
        x, (2, 3), (4, 5), return_indices=True, _random_samples=ct.tensor(u.tolist())
    )

    def starts(n: int, k: int, out: int, sample: float) -> list[int]:
        step = np.float32(n - k) / np.float32(out - 1)
        first = [int((o + sample) * step) - int(sample * step) for o in range(out - 1)]
        return [*first, n - k]

    for b, c in np.ndindex(2, 3):
        for i, r in enumerate(starts(9, 2, 4, u[b, c, 1])):
            for j, s in enumerate(starts(11, 3, 5, u[b, c, 0])):
                block = a[b, c, r : r + 2, s : s + 3]
                assert y[b, c, i, j].item() == block.max()
    y.sum().backward()
    assert x.grad.sum().item() == y.numel()
    close(x.detach().flatten(2).gather(2, at.flatten(2)).view(y.shape), y.tolist(), 0)
    ct.manual_seed(3)
    one = F.fractional_max_pool3d(ct.tensor(data(2, 5, 5, 5).tolist()), 2, output_ratio=0.5)
    assert one.shape == (2, 2, 2, 2)


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        lambda x: F.adaptive_max_pool2d(x, (2, 3)),
        lambda x: F.lp_pool2d(x.exp(), 2, 2),
        lambda x: F.avg_pool3d(x, 2, 1),
        lambda x: F.max_unpool1d(*F.max_pool1d(x[0], 2, return_indices=True), 2),
    ],
    ids=["max", "avg", "adaptive avg", "adaptive max", "lp", "avg 3d", "unpool"],
)
def test_first_and_second_derivatives(fn: Any) -> None:
    a = np.random.default_rng(0).permutation(40).reshape(2, 2, 5, 2).astype("float64") / 20
    x = ct.tensor(a.tolist(), dtype=ct.float64).mT.requires_grad_()  # rows of strided memory
    x = x.detach().mT.requires_grad_() if fn(x.detach().mT).ndim < 3 else x
    assert gradcheck(fn, (x,), fast_mode=True)
    assert gradgradcheck(fn, (x,), fast_mode=True)


def test_a_pooling_is_one_launch_and_one_kernel_for_all_sizes() -> None:
    x = ct.ones(2, 3, 8, 32)
    F.max_pool2d(x, 2).tolist()
    for shape in ((3, 2, 10, 64), (1, 1, 9, 47)):
        x = ct.ones(*shape)
        x.data_ptr()
        before = STATS.launches, STATS.builds
        F.max_pool2d(x, 2)
        assert (STATS.launches - before[0], STATS.builds - before[1]) == (1, 0)


def test_empty_batch_and_errors() -> None:
    x = ct.zeros(0, 3, 8, 8, requires_grad=True)
    for fn in (F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        y = fn(x, 4)
        assert y.shape[:2] == (0, 3)
        y.sum().backward()
        assert x.grad.shape == x.shape
    x = ct.zeros(1, 3, 8, 8)
    for program, words in (
        (lambda: F.max_pool2d(x, 9), r"Given input size: \(3x8x8\). Calculated output size"),
        (lambda: F.max_pool2d(x, 2, padding=2), "pad should be at most half"),
        (lambda: F.avg_pool2d(x, 2, divisor_override=0), "divisor must be not zero"),
        (lambda: F.adaptive_avg_pool2d(x, (2, 2, 2)), "output_size must be 2"),
        (lambda: F.max_pool1d(x, 2), "Expected 2D or 3D"),
    ):
        with pytest.raises(RuntimeError, match=words):
            program()
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        F.max_pool2d(x.bool(), 2)
