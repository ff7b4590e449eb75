"""Pooling's kernels for short rows, windows that overlap or adjoin, channels-last images, and GPU lanes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import close, data, store_past_cache

import cltensor as ct
from cltensor.codegen import region
from cltensor.codegen.resample import pool
from cltensor.codegen.resample.pool import Window
from cltensor.ops import core, replay
from cltensor.runtime import get_backend

pytestmark = pytest.mark.usefixtures("divided")

F = ct.nn.functional


@pytest.mark.parametrize(
    ("k", "s", "p", "dtype"),
    [
        *((*sizes, "float32") for sizes in ((3, 1, 1), (3, 2, 1), (5, 2, 0), (2, 3, 1), (4, 3, 2))),
        *((3, 2, 1, dtype) for dtype in ("float64", "float16")),
    ],
)
def test_averages_that_meet_send_back_the_sum_of_their_shares(
    k: int, s: int, p: int, dtype: str
) -> None:
    """An element's gradient is the sum of its overlapping windows' shares: in rows that are computed by vectors and in
    shorter ones, with several paddings and divisors, for dense gradients and for one number expanded.
    """
    tol = 4e-3 if dtype == "float16" else 1e-6
    for rows, columns in ((11, 53), (6, 36), (23, 7)):
        x = ct.tensor(data(2, 3, rows, columns, dtype=dtype), requires_grad=True)
        for include, divisor, ceil in ((True, None, True), (False, None, True), (True, 7, False)):
            y = F.avg_pool2d(x, k, s, p, ceil, include, divisor)
            g, wants = data(*y.shape, seed=1, dtype=dtype), []
            for sent in (g.astype(np.float64), np.ones(g.shape)):
                want = np.zeros(x.shape)
                for o in itertools.product(*map(range, y.shape[2:])):
                    ends = [
                        [(max(i * s - p, -p * padded), min(i * s - p + k, n + p * padded)) for i, n in zip(o, x.shape[2:])]
                        for padded in (0, 1)
                    ]  # fmt: skip
                    sizes = [[b - a for a, b in e] for e in ends]
                    by = divisor or sizes[include][0] * sizes[include][1]
                    (a, b), (c, d) = ends[0]
                    want[..., a:b, c:d] += sent[(..., *o, None, None)] / by
                wants.append(want)
            grads = [
                ct.autograd.grad(y, [x], given, retain_graph=True)[0]
                for given in (ct.tensor(g), ct.ones((), dtype=x.dtype).expand(y.shape))
            ]
            for found, want in zip(grads, wants, strict=True):
                close(found, want, tol)


@pytest.mark.parametrize(
    ("shape", "dtype", "window"),
    [
        ((3, 19, 13, 9), "float32", (3, 2, 1)),
        ((2, 16, 9, 10), "float32", (3, 1, 1)),
        ((1, 21, 12, 12), "float32", (5, (2, 3), 2)),
        ((2, 8, 8, 7), "float16", (3, 1, 1)),
        ((1, 13, 9, 8), "float64", (3, 2, 0)),
        ((2, 8, 5, 6, 5), "float32", ((2, 3, 2), (2, 1, 2), 1)),
    ],
    ids=str,
)
def test_windows_over_channels_last_images_that_meet_in_rows(
    shape: tuple[int, ...], dtype: str, window: tuple[Any, ...], poisoned: None
) -> None:
    """Max pooling of channels-last images equals that of contiguous ones in values, positions and gradients: with equal
    elements, NaN, infinities, and rows that two work-items share.
    """
    rng = np.random.default_rng(len(shape))
    rank = len(shape) - 2
    pool_of = getattr(F, f"max_pool{rank}d")
    order = {"memory_format": ct.channels_last if rank == 2 else ct.channels_last_3d}
    for share in (0.0, 0.01):
        a = rng.integers(-2, 3, shape).astype(np.float64)
        a[rng.random(shape) < 0.2] = -np.inf
        a[rng.random(shape) < share] = np.nan
        x = ct.tensor(a).to(getattr(ct, dtype)).requires_grad_()
        turned = x.detach().to(**order).requires_grad_()
        found: list[list[Any]] = [[], []]
        for into, given in zip(found, (x, turned), strict=True):
            for ceil_mode in (False, True):
                y = pool_of(given, *window, ceil_mode=ceil_mode)
                g = ct.tensor(np.round(data(*y.shape, seed=3) * 4)).to(y.dtype)
                g = g.to(**order) if given is turned else g
                into += [y.detach(), *ct.autograd.grad(y, [given], g)]
                into += pool_of(given.detach(), *window, ceil_mode=ceil_mode, return_indices=True)
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one.double().cpu().numpy(), other.double().cpu().numpy())


def _triples(shape: Any, k: Any, s: Any, p: Any, d: Any) -> Window:
    pad = lambda v, f: (f,) * (3 - len(v)) + tuple(v)  # noqa: E731
    size, k, s, p, d = pad(shape[-len(k) :], 1), pad(k, 1), pad(s, 1), pad(p, 0), pad(d, 1)
    lengths = [(n + 2 * b - e * (a - 1) - 1) // t + 1 for n, a, t, b, e in zip(size, k, s, p, d)]
    return Window("regular", len(shape) - 2, size, tuple(lengths), k, s, p, d)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("dtype", "k"),
    [*(("float32", k) for k in (2, 3, 8, 9)), ("float64", 9), ("float16", 2)],
)
def test_averages_side_by_side(
    k: int, dtype: str, streamed: bool, poisoned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Averages of adjoining windows are right where narrow windows are computed by vectors and the rest of a row is
    not. Elements that no window covers get a gradient of 0.
    """
    if streamed:
        store_past_cache(monkeypatch)
    tol = 2e-3 if dtype == "float16" else 1e-6
    for rows, columns in ((2 * k, 19 * k), (3 * k + 1, 40 * k + k - 1), (2 * k + 1, 3 * k + 1)):
        a = data(2, 3, rows, columns, dtype=dtype)
        x = ct.tensor(a, requires_grad=True)
        whole = a[..., : rows // k * k, : columns // k * k].astype(np.float64)
        cut = whole.reshape(2, 3, rows // k, k, columns // k, k)
        y = F.avg_pool2d(x, k)
        close(y, cut.mean((3, 5)), tol)
        g = data(*y.shape, seed=1, dtype=dtype)
        want = np.zeros(a.shape)
        want[..., : whole.shape[2], : whole.shape[3]] = np.kron(g, np.ones((k, k))) / k**2
        close(ct.autograd.grad(y, [x], ct.tensor(g), retain_graph=True)[0], want, tol)
        close(ct.autograd.grad(y.sum(), [x])[0], (want != 0) / k**2, tol)


@pytest.mark.parametrize("window", [(2, 2), (3, 2)], ids=str)
@pytest.mark.parametrize(
    ("size", "dtype"),
    [
        *((size, "float32") for size in ((2, 3, 12, 40), (2, 3, 13, 41), (1, 2, 6, 6))),
        ((2, 3, 13, 41), "float16"),
        ((1, 2, 6, 6), "float64"),
    ],
)
def test_windows_side_by_side_send_back_what_positions_say(
    size: tuple[int, ...], dtype: str, window: tuple[int, int]
) -> None:
    """Gradients with int32 positions, used where the caller does not ask for positions, equal those with int64
    positions, also for equal elements, NaN, and elements that no window covers.
    """
    a = np.round(data(*size) * 4).astype(dtype)
    a[0, 1, 1, 3] = np.nan
    x = ct.tensor(a, requires_grad=True)
    shape = F.max_pool2d(x, window).shape
    for g in (
        ct.tensor(data(*shape, seed=2).astype(dtype)),
        ct.full((), -0.0, dtype=x.dtype).expand(shape),
    ):
        found = [
            ct.autograd.grad(pooled, [x], g)[0].cpu().numpy()
            for pooled in (F.max_pool2d(x, window), F.max_pool2d(x, window, return_indices=True)[0])
        ]
        np.testing.assert_array_equal(*found)
        np.testing.assert_array_equal(*map(np.signbit, found))


@pytest.mark.elsewhere
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_schedules_agree(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU schedule (a lane for each element) agrees with the CPU schedule (vectors, and sums by plane), forward and
    backward.
    """
    shape, *sizes = (2, 3, 7, 40), (3, 3), (2, 2), (1, 1), (1, 1)
    a = (data(*shape) * 8).astype(dtype)
    a[0, 0, 0, ::5] = 3  # equal elements: the first counts
    x = ct.tensor(a)
    backend = get_backend(x.device)
    plain = _triples(shape, *sizes)
    parts = Window("adaptive", 2, plain.size, (1, 3, 11))
    found: list[list] = []
    for gpu, lanes in (
        (False, 0),
        (True, 1 << 18),
        (True, 64),
    ):  # few lanes walk through several planes each
        monkeypatch.setattr(pool, "is_gpu", lambda _, gpu=gpu: gpu)
        monkeypatch.setattr(region, "_GPU_LANES", lanes)
        pool._kernel.cache_clear()
        results: list = []
        found.append(results)
        # float16 and int64 are tried with one kind of window each: but for the dtype, the kernels' text is float32's.
        kind = ct.int32 if dtype == "float16" else ct.int64
        for window in {"float32": (plain, parts), "float16": (plain,), "int64": (parts,)}[dtype]:
            y, at = pool.largest(backend, core.kernel_operand(x), window, positions=kind)
            mean = pool.average(backend, core.kernel_operand(x), window)
            results += [y, at, mean]
            turned = core.kernel_operand(x.permute(0, 2, 3, 1).contiguous())
            results += pool.largest(backend, turned, window, positions=kind, last=True)
            results.append(pool.average(backend, turned, window, last=True))
            if dtype != "int64":
                results.append(pool.largest_back(backend, y, at, window))
                results.append(pool.average_back(backend, y, window))
    pool._kernel.cache_clear()
    tol = 2e-2 if dtype == "float16" else 1e-5
    for one, *others in zip(*found, strict=True):
        for other in others:
            close(core.result(one, x.device), core.result(other, x.device).tolist(), tol)


def test_how_lanes_are_laid_over_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A work-group covers several short planes or part of a long one; there are no more lanes than a GPU has."""
    assert region.lanes_of_planes(512, 12544) == ((12544, 20), (64, 1))
    assert region.lanes_of_planes(7, 9) == ((16, 8), (16, 4))
    assert region.lanes_of_planes(1000, 1) == ((1, 1024), (1, 64))
    monkeypatch.setattr(region, "_GPU_LANES", 64)
    assert region.lanes_of_planes(7, 70) == ((128, 1), (64, 1))


@pytest.mark.parametrize("columns", [34, 35, 49])
@pytest.mark.parametrize(
    ("window", "dtype"),
    [
        *(
            (window, "float32")
            for window in (
                (2, 2, 0),
                (2, 1, 1),
                (3, 2, 1),
                (3, 2, 0),
                (3, 1, 1),
                (3, 3, 1),
                (2, 2, 1),
            )
        ),
        *(
            (window, d)
            for window, d in (((2, 2, 0), "float16"), ((2, 2, 0), "int32"), ((3, 2, 1), "float64"))
        ),
    ],
    ids=str,
)
def test_windows_of_few_columns(
    window: tuple[int, int, int], columns: int, dtype: str, poisoned: None, monkeypatch: Any
) -> None:
    """The specialised kernel for windows of few columns agrees with the general one in maxima and their positions, also
    for equal elements and NaN.
    """
    k, stride, padding = window
    rng = np.random.default_rng(columns)
    a = rng.integers(-2, 3, (2, 3, 9, columns)).astype(np.float64)
    if dtype != "int32":
        a[1][rng.random(a[1].shape) < 0.02] = np.nan
        a[0, 0] = -np.inf
        a[0, 1, :, 0], a[0, 1, :, -1] = np.nan, -np.inf
    x = ct.tensor(a).to(getattr(ct, dtype))
    found = []
    monkeypatch.setattr(replay, "MOST", 0)
    for taps in ((), pool.TAPS):
        monkeypatch.setattr(pool, "TAPS", taps)
        y, at = F.max_pool2d(x, k, stride, padding, return_indices=True)
        found.append((y.double().cpu().numpy(), at.cpu().numpy()))
        found[-1] += (F.max_pool2d(x, k, stride, padding).double().cpu().numpy(),)
    for plain, few in zip(*found, strict=True):
        np.testing.assert_array_equal(few, plain)
