"""3 x 3 convolutions by Winograd's algorithm: values and gradients against the plain sum in float64, layouts, division
of work, when it is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import data

import cltensor as ct
from cltensor.codegen.conv import correlation as kernels
from cltensor.codegen.conv import winograd
from cltensor.ops.nn.correlation import Spec, _apart, _filters, _window
from cltensor.runtime import STATS, Backend, get_backend

F = ct.nn.functional
SMALL = winograd.Sizes(6, 8, 5000, 3)  # little room, so that channels and panels are divided


@pytest.fixture
def backend(dev: Any) -> Backend:
    found = get_backend(dev)
    if found.info.kind != "cpu" or found.info.local_mem < winograd.LOCAL_BYTES:
        pytest.skip("this device keeps the plain schedule")
    return found


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use Winograd's algorithm for even the smallest convolutions."""
    for name in ("CHANNELS", "WEIGHT_CHANNELS", "PAIRS", "TILES", "WORK"):
        monkeypatch.setattr(winograd, name, 0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list to which the plans of convolutions and weight gradients by Winograd's algorithm are added."""
    plans: list[Any] = []

    def listed(plan: Any) -> Any:
        return lambda *sizes: plans.append(plan(*sizes)) or plans[-1]

    for name in ("_plan", "_weight_plan"):
        monkeypatch.setattr(winograd, name, listed(getattr(winograd, name)))
    return plans


def near(found: Any, expected: Any) -> None:
    """Assert that errors are within a few roundings of the largest value."""
    a, b = np.array(found.tolist()), np.array(expected.tolist())
    assert a.shape == b.shape
    assert a.size == 0 or abs(a - b).max() <= 3e-6 * max(abs(b).max(), 1)


def check(x: Any, w: Any, bias: Any = None, **how: Any) -> None:
    """Compare values and gradients with those in float64, for which only the plain schedule exists."""
    results = []
    for kind in (ct.float32, ct.float64):
        leaves = [v.detach().to(kind).requires_grad_() for v in (x, w, bias) if v is not None]
        y = F.conv2d(*leaves, **how)
        g = ct.tensor(data(*y.shape, seed=7)).to(kind)
        results.append([y.detach(), *ct.autograd.grad(y, leaves, g)])
    for found, expected in zip(*results, strict=True):
        near(found, expected)


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 20), st.integers(1, 20)),
    st.tuples(st.integers(3, 40), st.integers(3, 23)),
    st.sampled_from([0, 1, 2, (3, 1), (0, 4), "same"]),
    st.booleans(),
)
def test_any_shape(
    always: None,
    poisoned: None,
    sizes: tuple[int, int, int],
    image: tuple[int, int],
    padding: Any,
    biased: bool,
) -> None:
    n, c, k = sizes
    bias = ct.tensor(data(k, seed=2)) if biased else None
    check(ct.tensor(data(n, c, *image)), ct.tensor(data(k, c, 3, 3, seed=1)), bias, padding=padding)


@pytest.mark.parametrize("sizes", [None, SMALL, winograd.Sizes(8, 16, 20000, 2)], ids=str)
def test_cuts_of_channels_panels_and_tiles(
    sizes: Any,
    always: None,
    poisoned: None,
    backend: Backend,
    made: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if sizes:
        monkeypatch.setattr(winograd, "_sizes", lambda backend: sizes)
        monkeypatch.setattr(winograd, "SUMMED", 8)
    for shape in ((2, 70, 13, 30), (1, 33, 4, 9)):
        check(ct.tensor(data(*shape)), ct.tensor(data(41, shape[1], 3, 3, seed=1)), padding=1)
    assert len(made) == 6
    if sizes is SMALL:
        there, _, weight = made[:3]
        assert there.part < 70 and there.block < there.span
        assert (
            weight.each > 8
            and weight.part * 8 < 70
            and weight.block < weight.span
            and weight.grid[0] > 1
        )


def test_what_is_summed_again_is_summed_over_all_channels(always: None) -> None:
    """A run that is computed again, because of an infinity, sums over all channels, even if the first one has NaN at
    the row's end."""
    x, w = data(1, 9, 6, 35), data(4, 9, 3, 3, seed=1)
    x[0, 0, 2:5, 34], x[0, 0, 3, 2] = np.nan, np.inf
    found = F.conv2d(ct.tensor(x), ct.tensor(w)).cpu().numpy()[0]
    seen = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), (3, 3), (1, 2))
    expected = np.einsum("cyxij,ocij->oyx", seen, w)
    plain = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), plain)
    np.testing.assert_allclose(found[plain], expected[plain], rtol=1e-4, atol=1e-4)


def test_the_last_column_alone_is_infinite(always: None) -> None:
    """Only the second of a tile's two outputs sees the infinite column."""
    x, w = data(1, 5, 6, 36), data(4, 5, 3, 3, seed=1)
    x[0, 2, 3, 35] = np.inf
    found = F.conv2d(ct.tensor(x), ct.tensor(w)).cpu().numpy()[0]
    seen = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), (3, 3), (1, 2))
    np.testing.assert_allclose(found, np.einsum("cyxij,ocij->oyx", seen, w), rtol=1e-4, atol=1e-4)


def test_layouts_and_groups(always: None, backend: Backend, made: list[Any]) -> None:
    x, w, bias = data(2, 6, 9, 14), data(8, 6, 3, 3, seed=1), ct.tensor(data(8, seed=2))
    last = ct.tensor(x.transpose(0, 2, 3, 1).copy()).permute(0, 3, 1, 2)
    assert F.conv2d(last, ct.tensor(w), padding=1).stride() == (8 * 9 * 14, 1, 8 * 14, 8)
    wide = ct.tensor(data(2, 12, 18, 28))
    flipped = ct.tensor(w.transpose(2, 3, 1, 0).copy()).permute(3, 2, 0, 1)
    before = len(made)
    for a, f, groups in (
        (last, ct.tensor(w), 1),
        (wide[:, ::2, 1::2, 4:-10], flipped, 1),
        (wide[:, :6, ::2, ::2], ct.tensor(w)[:, ::2], 2),
        (ct.tensor(x)[:1, :1].expand(2, 6, 9, 14), ct.tensor(w), 1),
        (ct.tensor(x).mT, ct.tensor(w).mT, 1),
    ):
        check(a, f, bias, padding=1, groups=groups)
    near(F.conv2d(last[0], ct.tensor(w)), F.conv2d(last[:1].double(), ct.tensor(w).double())[0])
    assert len(made) == before + 16  # forward and backward, in float32 only


def test_nothing_is_written_beside_the_result(always: None, backend: Backend) -> None:
    x, w = ct.tensor(data(2, 5, 11, 13)), ct.tensor(data(7, 5, 3, 3, seed=1))
    room = ct.full((4, 9, 15, 40), 5.0)
    result = room[1:3, 1:8, 2:13, 3:29:2]
    spec = Spec((1, 1), (1, 1), (1, 1), 1)
    kernels.correlate(backend, _apart(x, 1), _filters(w, 1), _apart(result, 1), _window(spec))
    near(result, F.conv2d(x.double(), w.double(), padding=1))
    result.fill_(5)
    assert (room == 5).all()


def test_what_is_not_finite_is_the_plain_sum(always: None, backend: Backend) -> None:
    spots, large = data(3, 2, 7, 19), data(3, 2, 7, 19, seed=2) * np.float32(1e38)
    spots[1, 1, 3, 6] = np.inf
    spots[2, 0, 0, 1] = np.nan
    spots[2, 1, 4, 16:] = np.inf, -np.inf, np.inf
    # For the large inputs the outputs are finite, but a transform's sum of four inputs overflows.
    w, bias = ct.tensor(data(3, 2, 3, 3, seed=1) * np.float32(0.1)), ct.tensor(data(3, seed=3))
    for x, scale in (
        (ct.tensor(spots), 1),
        (ct.tensor(large), 1e-37),
        (ct.tensor(large.swapaxes(2, 3).copy()).mT, 1e-37),
    ):
        found = F.conv2d(x, w, bias, padding=1)
        expected = F.conv2d(x.double(), w.double(), bias.double(), padding=1).float()
        for test in (ct.isnan, ct.isposinf, ct.isneginf):
            assert (test(found) == test(expected)).all()
        there = expected.isfinite()
        near((found * scale)[there], (expected * scale)[there])


def test_which_are_made_so(backend: Backend, made: list[Any]) -> None:
    x, w = ct.zeros(2, 32, 40, 40), ct.zeros(32, 32, 3, 3)
    for call in (
        lambda: F.conv2d(x, w, stride=2),
        lambda: F.conv2d(x, w, dilation=2),
        lambda: F.conv2d(x.double(), w.double()),
        lambda: F.conv2d(x, ct.zeros(32, 32, 5, 3)),
        lambda: F.conv2d(x[:, :4], w[:, :4]),
        lambda: F.conv2d(x[:, :9], w[:9, :9]),
        lambda: F.conv2d(x[:1, :, :5, :5], w),
        lambda: F.conv3d(ct.zeros(1, 8, 9, 40, 40), ct.zeros(8, 8, 3, 3, 3)),
    ):
        call()
        assert not made
    # Two launches, filters and product; another shape builds no kernel.
    F.conv2d(x, w)
    ct.opencl.synchronize()
    launches, builds = STATS.launches, STATS.builds + STATS.disk_hits
    x.requires_grad_()
    y = F.conv2d(x, w, padding=1)
    ct.opencl.synchronize()
    assert STATS.launches - launches == 2
    g = ct.tensor(data(2, 32, 40, 40))
    ct.autograd.grad(y, x, g)
    F.conv_transpose2d(x[:1].detach(), w[:, :9])
    assert len(made) == 4
    assert STATS.builds + STATS.disk_hits == builds
    launches = STATS.launches
    kernels.weigh(
        backend, _apart(x, 1), _apart(g, 1), (1, 3, 3), _window(Spec((1, 1), (1, 1), (1, 1), 1))
    )
    assert STATS.launches - launches == 2
    assert len(made) == 5
    F.conv2d(x[:, :9].detach(), w[:, :9].requires_grad_()).sum().backward()
    assert len(made) == 6
