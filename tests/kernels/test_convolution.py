"""Convolutions on the device: values against numpy, both schedules, adjoints, gradients of two orders, layouts, errors."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, convolved, data, each_dim, seen_by_taps
from support import on_device as tensor

import cltensor as ct
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.codegen.conv import as_product, cpu, depthwise, direct, window, winograd
from cltensor.codegen.conv import correlation as kernels
from cltensor.codegen.products import product
from cltensor.ops.nn.correlation import Spec, _apart, _phases, _window
from cltensor.runtime import STATS, get_backend

pytestmark = pytest.mark.usefixtures("divided")

F = ct.nn.functional


@pytest.fixture(params=["cpu", "gpu"])
def schedule(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force a schedule whatever the device."""
    monkeypatch.setattr(kernels, "_on_cpu", lambda backend, asked: request.param == "cpu")
    return request.param


CASES = [
    ((2, 4, 8, 9), (6, 4, 3, 3), {}),
    ((2, 4, 8, 9), (6, 4, 3, 2), {"padding": 1}),
    ((2, 4, 11, 9), (9, 4, 3, 3), {"padding": (2, 1), "stride": (2, 3), "dilation": (2, 1)}),
    ((2, 4, 11, 9), (8, 1, 3, 3), {"stride": 2, "groups": 4}),
    ((2, 6, 11, 9), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
    ((2, 3, 12, 12), (5, 3, 1, 1), {"stride": 2}),
    ((2, 8, 9, 9), (6, 4, 1, 1), {"groups": 2}),
    ((3, 20, 5, 6), (40, 20, 1, 1), {"stride": (2, 1)}),
    ((2, 4, 9, 20), (68, 2, 4, 4), {"stride": (4, 6), "groups": 2}),
    ((3, 16, 5, 6), (40, 16, 5, 6), {}),
    ((2, 10, 5, 6), (10, 1, 3, 3), {"padding": 1, "groups": 10}),
    ((2, 3, 14, 14), (5, 3, 3, 3), {"stride": 6, "dilation": 4, "padding": 3}),
    ((9, 20, 7, 7), (33, 20, 3, 3), {"padding": 1}),
    ((2, 4, 90), (6, 4, 5), {"padding": 2}),
    ((2, 3, 5, 6, 7), (5, 3, 2, 3, 2), {"stride": (1, 2, 3), "padding": 1}),
    ((2, 3, 7, 6, 9), (5, 3, 3, 3, 2), {"stride": (2, 3, 2), "padding": (1, 1, 0)}),
    ((3, 32, 7, 41), (128, 32, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 64, 9, 7), (256, 32, 3, 2), {"stride": (1, 2), "dilation": (2, 1), "padding": (1, 0), "groups": 2}),
]  # fmt: skip


def run(x: Any, w: Any, bias: Any = None, **kwargs: Any) -> Any:
    return getattr(F, f"conv{x.ndim - 2}d")(x, w, bias, **kwargs)


@pytest.mark.parametrize(("xs", "ws", "kwargs"), CASES, ids=str)
def test_forward_and_both_gradients_match_numpy(
    xs: tuple[int, ...], ws: tuple[int, ...], kwargs: dict[str, Any], schedule: str
) -> None:
    a, b, shift = data(*xs), data(*ws, seed=1), data(ws[0], seed=2)
    x, w, bias = (tensor(v, requires_grad=True) for v in (a, b, shift))
    y = run(x, w, bias, **kwargs)
    ones = (1,) * (len(xs) - 2)
    expected = convolved(a, b, **kwargs)
    close(y, expected + shift.reshape(-1, *ones), 1e-4)
    g = data(*expected.shape, seed=3)
    y.backward(tensor(g))
    # Check each gradient by its dot product with a random direction, one number per operand.
    for t, at in ((x, a), (w, b)):
        along = data(*at.shape, seed=4)
        pair = (along, b) if t is x else (a, along)
        found = float((t.grad * tensor(along)).sum())
        assert found == pytest.approx(float((convolved(*pair, **kwargs) * g).sum()), rel=1e-3, abs=1e-2)  # fmt: skip
    close(bias.grad, g.sum((0, *range(2, g.ndim))), 1e-3)


def test_slopes_of_filters_in_pieces_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filter gradients do not depend on whether output positions are summed in pieces, as on a GPU with many compute
    units; the last piece is shorter than the others.
    """
    x, g = tensor(data(3, 4, 9, 11)), tensor(data(3, 5, 7, 9, seed=1))
    leaf = tensor(data(5, 4, 3, 3, seed=2), requires_grad=True)
    found = []
    for cut in (False, True):
        if cut:
            backend = get_backend(x.device)
            monkeypatch.setattr(
                backend, "info", dataclasses.replace(backend.info, compute_units=48)
            )
            monkeypatch.setattr(kernels, "PIECE", 8)
            monkeypatch.setattr(direct, "FEW", 0)
            monkeypatch.setattr(kernels, "_on_cpu", lambda backend, asked: False)
        found.append(ct.autograd.grad(F.conv2d(x, leaf), leaf, g)[0])
    close(found[1], found[0].tolist(), 1e-4)


def cut_channels(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make plans assume a small cache; return a list to which each appends how many channels it takes at a time."""
    plan, parts = cpu._correlate_plan.__wrapped__, []

    def small(*args: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cpu, "_room", lambda *_: 900)
            made = plan(*args)
        parts.append(made.part)
        return made

    monkeypatch.setattr(cpu, "_correlate_plan", small)
    return parts


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("outputs", [1, 5])
def test_channels_are_summed_in_parts(outputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels that do not fit the cache at once are accumulated in the output, part by part."""
    parts = cut_channels(monkeypatch)
    for way in (as_product, depthwise, winograd):
        monkeypatch.setattr(way, "correlate", lambda *_: False)
    monkeypatch.setattr(winograd, "fits", lambda *_: False)
    for size, kwargs in (((9, 40), {"padding": 1}), ((9, 11), {}), ((6, 23), {"stride": 2})):
        a, b, shift = data(2, 41, *size), data(outputs, 41, 3, 3, seed=1), data(outputs, seed=2)
        expected = convolved(a, b, **kwargs) + shift[:, None, None]
        close(F.conv2d(tensor(a), tensor(b), tensor(shift), **kwargs), expected, 1e-4)
        turned = tensor(a).to(memory_format=ct.channels_last)
        close(F.conv2d(turned, tensor(b), tensor(shift), **kwargs), expected, 1e-4)
    assert max(parts) < 41


@pytest.mark.elsewhere
@pytest.mark.parametrize("few", [0, 16])
@pytest.mark.parametrize("case", CASES[:4] + CASES[8:10], ids=str)
def test_tiles_and_counters_of_a_gpu_give_the_same_bits(
    case: Any, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results have the same bits whether a work-item computes 4 x 4 or 8 x 8 elements, and whether positions are
    counted in 32 or 64 bits.
    """
    x, w = (tensor(data(*shape)) for shape in case[:2])
    monkeypatch.setattr(kernels, "_on_cpu", lambda backend, asked: False)
    monkeypatch.setattr(product, "WIDE_LOCAL", 0)
    monkeypatch.setattr(direct, "FEW", few)
    found = []
    for groups, far in ((1e9, 1 << 30), (0, 1 << 30), (0, 0), (1e9, 0)):
        monkeypatch.setattr(product, "WIDE_GROUPS", groups)
        monkeypatch.setattr(window, "FAR", far)
        leaves = [v.detach().requires_grad_() for v in (x, w)]
        y = F.conv2d(*leaves, **case[2])
        found.append(
            [
                v.detach().cpu().numpy().tobytes()
                for v in (y, *ct.autograd.grad(y.sin().sum(), leaves))
            ]
        )
    assert found[0] == found[1] == found[2] == found[3]


@pytest.mark.usefixtures("on_a_cpu")
def test_which_are_products(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = get_backend(ct.get_default_device())
    a, b = data(2, 20, 9, 9), data(40, 20, 1, 1, seed=1)
    x, w, g = tensor(a), tensor(b), tensor(data(2, 40, 9, 9, seed=2))

    def launches(run: Any) -> int:
        ct.opencl.synchronize()
        before = STATS.launches
        run()
        return STATS.launches - before

    F.conv2d(x, w)  # a process's first product also launches a probe of vector registers
    assert launches(lambda: F.conv2d(x, w)) == 1
    # Few output positions: both images share one product, with a copy before and after it.
    assert launches(lambda: F.conv2d(x[:, :, :7, :7], w)) == 3
    assert launches(lambda: F.conv2d(x, w, stride=2)) == 3
    one = F.conv2d(x[:, :, :7, :7], w)
    monkeypatch.setattr(as_product, "FEW", 0)
    assert launches(lambda: F.conv2d(x[:, :, :7, :7], w)) == 2
    close(one, F.conv2d(x[:, :, :7, :7], w).tolist(), 1e-5)
    # Filter gradients are summed for each image, or for all images together.
    spec = Spec((1, 1), (0, 0), (1, 1), 1)
    for images, end in ((2, 9), (1, 2)):
        sides = (_apart(v[:, :, :2, :end], 1) for v in (x, g))
        found = kernels.weigh(backend, *sides, (1, 1, 1), _window(spec))
        assert found.shape == (images, 1, 40, 20, 1, 1, 1)


@pytest.mark.usefixtures("on_a_cpu")
def test_patches_that_overlap_are_copied_some_images_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, w = tensor(data(3, 32, 7, 41)), tensor(data(128, 32, 3, 3, seed=1), requires_grad=True)

    def both() -> tuple[Any, Any, int]:
        before = STATS.launches
        y = F.conv2d(x, w, stride=2, padding=1)
        (slope,) = ct.autograd.grad(y.square().sum(), w)
        ct.opencl.synchronize()
        return y, slope, STATS.launches - before

    monkeypatch.setattr(as_product, "FEW", 0)
    ways = []
    for numbers in (1 << 22, 2 * 84 * 288, 1):
        monkeypatch.setattr(as_product, "UNFOLDED", numbers)
        both()
        ways.append(both())
    assert ways[0][2] < ways[1][2] < ways[2][2]
    for y, slope, _ in ways[1:]:
        close(y, ways[0][0].tolist(), 1e-5)
        close(slope, ways[0][1].tolist(), 1e-3)


def test_results_larger_than_a_box_and_sums_over_many_channels() -> None:
    for xs, ws, kwargs in (
        ((2, 8, 70, 150), (9, 8, 3, 3), {"padding": 1}),
        ((1, 700, 9, 9), (9, 700, 3, 3), {"padding": 1}),
        ((1, 1, 3000), (1, 1, 501), {"padding": 20}),
    ):
        a, b = data(*xs), data(*ws, seed=1)
        x, w = tensor(a), tensor(b, requires_grad=True)
        y = run(x, w, **kwargs)
        close(y, convolved(a.astype("f8"), b.astype("f8"), **kwargs), 1e-3)
        y.sum().backward()
        taps, dims = ws[2:], len(ws) - 2
        around = (each_dim(v, dims) for v in (1, kwargs["padding"], 1))
        seen = seen_by_taps(a.astype("f8"), taps, *around).sum((0, *range(2, 2 + dims)))
        close(w.grad, np.broadcast_to(seen, ws), 1e-2)


def test_a_transposed_convolution_is_the_adjoint(schedule: str) -> None:
    for stride, dilation, padding, extra in itertools.product((1, 2, 3), (1, 2), (0, 2), (0, 1)):
        if extra and extra >= max(stride, dilation):
            continue
        g, w = data(2, 4, 5), data(4, 3, 3, seed=1)
        y = F.conv_transpose1d(tensor(g), tensor(w), None, stride, padding, extra, 1, dilation)
        size = 4 * stride - 2 * padding + 2 * dilation + extra + 1
        assert y.shape == (2, 3, size)
        x = data(2, 3, size, seed=2)
        forward = convolved(x, w, stride, padding, dilation)[:, :, :5]
        assert float((y * tensor(x)).sum()) == pytest.approx((forward * g).sum(), rel=1e-3, abs=1e-3)  # fmt: skip


def test_taps_added_up_are_what_phases_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three ways to compute a transposed convolution agree: a product and a sum over taps; one launch for all phases
    (output positions of equal remainder modulo the stride); one launch for each phase.
    """
    shift = tensor(data(10, seed=2))
    cases = [
        ((3, 40, 5, 7), (40, 5, 3, 2), {"stride": 3, "padding": (2, 0), "groups": 2}),
        ((2, 40, 9, 19), (40, 10, 3, 5), {"stride": 2, "padding": 2, "dilation": (1, 2), "output_padding": 1}),
        ((1, 33, 2, 3, 4), (33, 10, 1, 2, 3), {"stride": (2, 2, 1), "padding": (0, 1, 1)}),
    ]  # fmt: skip
    ways: list[list[Any]] = []
    for least, spread in ((1, cpu.spread), (1 << 20, cpu.spread), (1 << 20, lambda *_: False)):
        monkeypatch.setattr(as_product, "SPREAD", least)
        monkeypatch.setattr(cpu, "spread", spread)
        ways.append([])
        for gs, ws, kwargs in cases:
            call = F.conv_transpose2d if len(gs) == 4 else F.conv_transpose3d
            before = STATS.launches
            ways[-1].append(call(tensor(data(*gs)), tensor(data(*ws, seed=1)), shift, **kwargs))
            ct.opencl.synchronize()
            ways[-1].append(STATS.launches - before)
    for way in ways[:2]:
        for found, expected in zip(way[::2], ways[2][::2], strict=True):
            close(found, expected.tolist(), 1e-4)
    if get_backend(ct.get_default_device()).info.kind == "cpu":
        assert all(a < b for a, b in zip(ways[0][1::2], ways[2][1::2], strict=True))
        assert ways[1][1::2] == [2, 2, 2]  # one launch for the filters, one for all phases


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("outputs", [1, 3, 7])
@pytest.mark.parametrize("parts", [False, True])
def test_remainders_of_a_stride_in_one_launch_are_what_each_gives(
    outputs: int, parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One launch for all phases of a stride gives what one launch for each gives: with rows that cross tiles, sizes
    that the stride does not divide, phases that lack some taps, and channels that are summed in parts.
    """
    cases: list[Any] = [
        ((2, 21, 5, 11), (3, 3), {"stride": 2, "padding": 1, "output_padding": (1, 0)}),
        ((1, 6, 9, 37), (4, 4), {"stride": 2, "padding": 1, "groups": 2}),
        ((2, 19, 4, 3), (1, 2), {"stride": (3, 2), "dilation": (1, 2), "output_padding": (2, 1)}),
        ((1, 17, 7, 9), (2, 3), {"stride": (2, 3), "padding": (0, 2)}),
        ((1, 20, 6, 5), (5, 1), {"stride": (1, 4), "padding": (3, 0), "output_padding": (0, 2)}),
    ]
    for way in (as_product, depthwise):
        monkeypatch.setattr(way, "spread", lambda *_: False)
    cut = cut_channels(monkeypatch) if parts else []
    found = []
    for spread in (cpu.spread, lambda *_: False):
        monkeypatch.setattr(cpu, "spread", spread)
        for size, taps, kwargs in cases:
            groups = kwargs.get("groups", 1)
            x, w = tensor(data(*size)), tensor(data(size[1], outputs, *taps, seed=1))
            shift = tensor(data(outputs * groups, seed=2))
            last = x.to(memory_format=ct.channels_last)
            found.append([F.conv_transpose2d(v, w, shift, **kwargs) for v in (x, last)])
    for made, expected in zip(found[: len(cases)], found[len(cases) :], strict=True):
        close(made[0], expected[0].tolist(), 1e-4)
        close(made[1], expected[0].tolist(), 1e-4)
    assert not parts or min(cut) < 17


def test_transposed_values_in_two_dims_with_groups_and_bias() -> None:
    g, w, shift = data(2, 4, 3, 4), data(4, 3, 2, 3, seed=1), data(6, seed=2)
    found = F.conv_transpose2d(tensor(g), tensor(w), tensor(shift), 2, (1, 0), (1, 0), 2)
    expected = np.zeros((2, 6, 7, 9), "f4")
    for n, c, i, j in np.ndindex(g.shape):
        group = c // 2
        expected[n, 3 * group : 3 * group + 3, 2 * i : 2 * i + 2, 2 * j : 2 * j + 3] += g[n, c, i, j] * w[c]  # fmt: skip
    expected = expected[:, :, 1:6] + shift[:, None, None]
    assert found.shape == (2, 6, 5, 9)
    close(found[:, :, :, :9], expected, 1e-4)


@pytest.mark.parametrize("stride", [1, 2, 4, 6])
@pytest.mark.parametrize("dilation", [1, 2, 4])
def test_phases_cover_every_position_and_tap_once(stride: int, dilation: int) -> None:
    size, taps, padding = 13, 4, 3
    found = []
    for p in _phases(size, taps, stride, dilation, padding):
        period = stride // np.gcd(stride, dilation)
        for m, i in itertools.product(range(p.places), range(p.taps)):
            found.append((p.first + m * stride, p.tap - i * period, m + i * p.step - p.pad))
    expected = [
        (q, k, (q + padding - k * dilation) // stride)
        for q in range(size)
        for k in range(taps)
        if (q + padding - k * dilation) % stride == 0
    ]
    assert sorted(found) == expected


def test_same_and_valid_padding() -> None:
    a, w = data(2, 4, 11, 9), data(6, 4, 4, 3, seed=1)
    y = F.conv2d(tensor(a), tensor(w), padding="same", dilation=(1, 2))
    # An even kernel size needs one more zero at the end than at the start.
    wide = np.pad(a, ((0, 0), (0, 0), (1, 2), (2, 2)))
    close(y, convolved(wide, w, dilation=(1, 2)), 1e-4)
    close(F.conv2d(tensor(a), tensor(w), padding="valid", stride=2), convolved(a, w, 2), 1e-4)


def test_unbatched_strided_and_empty_operands() -> None:
    a, w = data(2, 4, 8, 9), data(6, 4, 3, 3, seed=1)
    close(F.conv2d(tensor(a[0]), tensor(w)), convolved(a, w)[0], 1e-4)
    x, f = tensor(a.transpose(3, 2, 1, 0)).permute(3, 2, 1, 0), tensor(w[::-1].copy()).flip(0)
    close(F.conv2d(x[:, :, ::2], f), convolved(a[:, :, ::2], w), 1e-4)
    last = tensor(a.transpose(0, 2, 3, 1)).permute(0, 3, 1, 2)
    y = F.conv2d(last, tensor(w))
    assert y.stride() == (6 * 6 * 7, 1, 6 * 7, 6)
    close(y, convolved(a, w), 1e-4)
    none = F.conv2d(tensor(a[:0]), tensor(w).requires_grad_())
    assert none.shape == (0, 6, 6, 7)
    assert F.conv2d(ct.ones(2, 0, 8, 8), ct.ones(6, 0, 3, 3)).shape == (2, 0, 6, 6)


def test_a_value_that_is_not_finite_reaches_only_the_outputs_that_see_it() -> None:
    a, w = data(3, 2, 7, 7), data(3, 2, 3, 3, seed=1)
    a[1, 1, 3, 6] = np.inf
    y = F.conv2d(tensor(a), tensor(w), padding=1)
    seen = np.zeros((3, 3, 7, 7), bool)
    seen[1, :, 2:5, 5:] = True
    assert (np.array(y.isfinite().tolist()) == ~seen).all()


@pytest.mark.parametrize("dtype", ["float64", "uint8", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype: str) -> None:
    kind = dtype if dtype.startswith(("int", "uint", "complex")) else "float32"
    a, b = (data(*s, seed=i, dtype=kind) for i, s in enumerate(((2, 4, 8, 9), (4, 4, 3, 3))))
    x, w = (tensor(v).to(getattr(ct, dtype)) for v in (a, b))
    y = F.conv2d(x, w, padding=1)
    assert y.dtype == x.dtype
    exact = convolved(np.array(x.tolist()), np.array(w.tolist()), padding=1)
    if dtype == "uint8":
        exact = exact % 256
    close(y, exact, {"float16": 1e-2, "bfloat16": 8e-2, "float64": 1e-12}.get(dtype, 1e-4))


@pytest.mark.parametrize("function", ["conv2d", "conv_transpose2d"])
@given(
    images=st.integers(1, 3), channels=st.integers(1, 70), outputs=st.integers(1, 140), size=st.integers(1, 19),
    taps=st.sampled_from([1, 2, 3, 5]), stride=st.integers(1, 2), padding=st.integers(0, 2), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=25, deadline=None, derandomize=True)
def test_bfloat16_is_convolved_as_float32_and_rounded_once(
    function: str, images: int, channels: int, outputs: int, size: int, taps: int, stride: int, padding: int, seed: int
) -> None:  # fmt: skip
    size = max(size, taps)
    padding = min(padding, taps // 2)
    filters = (outputs, channels) if function == "conv2d" else (channels, outputs)
    arrays = [
        data(images, channels, size, size + 1, seed=seed),
        data(*filters, taps, taps, seed=seed + 1),
        data(outputs, seed=seed + 2),
    ]

    def run(wide: bool) -> list[Any]:
        leaves = [tensor(a).bfloat16() for a in arrays]
        leaves = [(v.float() if wide else v).requires_grad_() for v in leaves]
        out = getattr(F, function)(*leaves, stride=stride, padding=padding)
        g = tensor(data(*out.shape, seed=seed + 3)).bfloat16().to(out.dtype)
        return [out, *ct.autograd.grad(out, leaves, g)]

    for found, exact in zip(run(False), run(True), strict=True):
        assert found.dtype is ct.bfloat16
        found, exact = (v.detach().float().cpu().numpy() for v in (found, exact))
        size = np.abs(exact)
        assert (np.abs(found - exact) <= size * 2**-8 + size.max() * 1e-5 + 1e-6).all()


@pytest.mark.parametrize("function", ["conv2d", "conv_transpose2d"])
def test_gradients_of_two_orders(function: str, one_by_one: None) -> None:
    x = ct.from_numpy(data(2, 4, 5, 4).astype("f8")).requires_grad_()
    shape = (4, 2, 3, 2) if function == "conv2d" else (4, 2, 2, 3)
    w = ct.from_numpy(data(*shape, seed=1).astype("f8")).requires_grad_()
    b = ct.from_numpy(data(4, seed=2).astype("f8")).requires_grad_()

    def call(x: Any, w: Any, b: Any) -> Any:
        return getattr(F, function)(x, w, b, stride=2, padding=1, groups=2)

    assert gradcheck(call, (x, w, b))
    assert gradgradcheck(call, (x, w, b))
    assert type(call(x, w, b).grad_fn).__name__ == "ConvolutionBackward0"


def test_conv_tbc() -> None:
    a, w, b = data(9, 2, 4), data(3, 4, 6, seed=1), data(6, seed=2)
    x, f, shift = (tensor(v, requires_grad=True) for v in (a, w, b))
    y = ct.conv_tbc(x, f, shift, 1)
    expected = convolved(a.transpose(1, 2, 0), w.transpose(2, 1, 0), 1, 1).transpose(2, 0, 1) + b
    close(y, expected, 1e-4)
    y.backward(tensor(np.ones_like(expected)))
    close(f.grad[1], np.broadcast_to(a.sum((0, 1))[:, None], (4, 6)), 1e-4)
    close(x.grad[4], np.broadcast_to(w.sum((0, 2)), (2, 4)), 1e-4)
    close(shift.grad, np.full(6, 18.0), 1e-5)


def test_another_shape_builds_nothing(on_a_cpu: None) -> None:
    x, w = tensor(data(2, 4, 8, 9), requires_grad=True), tensor(data(6, 4, 3, 3), requires_grad=True)  # fmt: skip
    F.conv2d(x, w, stride=2).sum().backward()
    before = STATS.builds + STATS.disk_hits
    x, w = tensor(data(3, 4, 12, 7), requires_grad=True), tensor(data(7, 4, 2, 2), requires_grad=True)  # fmt: skip
    F.conv2d(x, w, stride=3, padding=1).sum().backward()
    assert STATS.builds + STATS.disk_hits == before


# ------------------------------------------------------------------------------------------- blocks as columns


def test_unfold_and_fold_match_numpy() -> None:
    a = data(2, 3, 7, 8)
    how = {"dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)}
    found = F.unfold(tensor(a), (3, 2), **how)
    seen = seen_by_taps(a, (3, 2), how["stride"], how["padding"], how["dilation"])
    expected = seen.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, 24)
    close(found, expected, 0)
    close(F.unfold(tensor(a[0]), (3, 2), **how), expected[0], 0)
    # Folding is the adjoint of unfolding: <unfold(along), b> == <along, fold(b)>.
    b = data(2, 18, 24, seed=1)
    back = F.fold(tensor(b), (7, 8), (3, 2), **how)
    along = data(2, 3, 7, 8, seed=2)
    columns = seen_by_taps(along, (3, 2), how["stride"], how["padding"], how["dilation"])
    sum_ = (columns.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, 24) * b).sum()
    assert float((back * tensor(along)).sum()) == pytest.approx(float(sum_), rel=1e-4)


def test_patches_that_do_not_overlap_come_back() -> None:
    x = tensor(data(2, 3, 8, 6))
    close(F.fold(F.unfold(x, 2, stride=2), (8, 6), 2, stride=2), x.tolist(), 0)


def test_gradients_of_unfold_and_fold(one_by_one: None) -> None:
    x = ct.from_numpy(data(2, 2, 4, 3).astype("f8")).requires_grad_()
    y = F.unfold(x, 2, padding=1)
    assert type(y.grad_fn).__name__ == "Im2ColBackward0"
    assert type(F.fold(y, (4, 3), 2, padding=1).grad_fn).__name__ == "Col2ImBackward0"
    assert gradcheck(lambda x: F.unfold(x, 2, padding=1), (x,))
    assert gradcheck(lambda x: F.fold(F.unfold(x, 2), (4, 3), 2), (x,))


# ------------------------------------------------------------------------------------------- errors

ERRORS = [
    ("conv2d(x, w[:, :3])", "Given groups=1, weight of size [6, 3, 3, 3], expected input[2, 4, 8, 8] to have 3 channels, but got 4 channels instead"),
    ("conv2d(x, w, groups=2)", "Given groups=2, weight of size [6, 4, 3, 3], expected input[2, 4, 8, 8] to have 8 channels"),
    ("conv2d(x, w, groups=0)", "non-positive groups is not supported"),
    ("conv2d(x, w[:, :1], groups=4)", "expected weight to be divisible by 4 at dimension 0, but got weight of size [[6, 1, 3, 3]] instead"),
    ("conv2d(x[:, :, :2, :2], w, padding=(0, 1))", "Calculated padded input size per channel: (2 x 4). Kernel size: (3 x 3). Kernel size can't be greater"),
    ("conv2d(x, w, b[:3])", "expected bias to be 1-dimensional with 6 elements, but got bias of size [3] instead"),
    ("conv2d(x, w, b.double())", "Input type (float) and bias type (double) should be the same"),
    ("conv2d(x, w.double())", "Input type (torch.FloatTensor) and weight type (torch.DoubleTensor) should be the same"),
    ("conv2d(x[0, 0], w)", "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [8, 8]"),
    ("conv2d(x, w, padding=(1, 2, 3))", "expected padding to be a single integer value or a list of 2 values to match the convolution dimensions, but got padding=[1, 2, 3]"),
    ("conv2d(x, w, stride=0)", "non-positive stride is not supported"),
    ("conv2d(x, w, dilation=(1, 0))", "dilation should be greater than zero, but got [1, 0]"),
    ("conv2d(x, w, padding='same', stride=2)", "padding='same' is not supported for strided convolutions"),
    ("conv2d(x, w, padding='foo')", "Invalid padding string: 'foo'"),
    ("conv2d(x, w, stride='a')", "conv2d() received an invalid combination of arguments"),
    ("conv_transpose2d(x, w)", "Given transposed=1, weight of size [6, 4, 3, 3], expected input[2, 4, 8, 8] to have 6 channels, but got 4 channels instead"),
    ("conv_transpose2d(x, w[:4], stride=2, output_padding=2)", "output padding must be smaller than either stride or dilation, but got output_padding_height: 2"),
    ("unfold(x, 9)", "calculated shape of the array of sliding blocks as (0, 0), but its components must be at least one."),
    ("unfold(x, 0)", "kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 0"),
    ("fold(x[:, :, :, 0], (8, 8), 3)", "Expected size of input's dimension 1 to be divisible by the product of kernel_size"),
    ("fold(x[:1, 0, :4], (8, 8), 2)", "expected size of input's dimension 2 to match the calculated number of sliding blocks 7 * 7 = 49, but got input.size(2)=8."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), ERRORS, ids=[call for call, _ in ERRORS])
def test_errors(call: str, text: str) -> None:
    if call.startswith("conv2d(x, w.double") and ct.get_default_device().type != "cpu":
        text = "should be the same"
    x, w, b = ct.ones(2, 4, 8, 8), ct.ones(6, 4, 3, 3), ct.ones(6)
    with pytest.raises((RuntimeError, TypeError)) as caught:
        eval(f"F.{call}", {"F": F, "x": x, "w": w, "b": b})
    assert text in str(caught.value)
