"""Interpolation, pixel shuffles and local response normalisation: values against numpy, gradients
against transposes or plain ops, both schedules against each other, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import backend_for
from support import close, data, kernels_of, poison, store_past_cache

import cltensor as ct
import cltensor.nn.functional as F
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.codegen import region
from cltensor.codegen.resample import axes
from cltensor.runtime import get_backend

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators


def _keys(x: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    return np.where(x < 1, near, np.where(x < 2, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, 0))


_FILTERS: dict[str, tuple[int, Any]] = {
    "linear": (1, lambda x: np.maximum(1 - np.abs(x), 0)),
    "cubic": (2, lambda x: _keys(x, -0.75)),
    "antialias_linear": (1, lambda x: np.maximum(1 - np.abs(x), 0)),
    "antialias_cubic": (2, lambda x: _keys(x, -0.5)),
    "antialias_lanczos": (3, lambda x: np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)),
}
_KINDS = [*_FILTERS, "nearest", "exact"]


def _matrix(kind: str, ni: int, no: int, aligned: bool = False) -> np.ndarray:
    """Return the interpolation along one axis as a matrix (no, ni), from the definition of its filter."""
    out = np.zeros((no, ni))
    for o in range(no):
        if kind in ("nearest", "exact"):
            at = o * ni / no if kind == "nearest" else (o + 0.5) * ni / no
            out[o, int(at)] = 1
            continue
        radius, weigh = _FILTERS[kind]
        if kind.startswith("antialias"):
            wide = max(ni / no, 1)
            w = weigh((np.arange(ni) + 0.5 - (o + 0.5) * ni / no) / wide)
            out[o] = w / w.sum()
            continue
        at = o * (ni - 1) / max(no - 1, 1) if aligned else (o + 0.5) * ni / no - 0.5
        at = max(at, 0) if kind == "linear" else at
        for i in range(int(np.floor(at)) - radius + 1, int(np.floor(at)) + radius + 1):
            out[o, min(max(i, 0), ni - 1)] += weigh(np.array(at - i))
    return out


def _mode(kind: str) -> dict[str, Any]:
    names = {"exact": "nearest-exact", "linear": "bilinear", "cubic": "bicubic"}
    stem = kind.removeprefix("antialias_")
    return {"mode": names.get(stem, stem), "antialias": kind.startswith("antialias")}


@pytest.mark.parametrize(
    ("kind", "dtype"), [*((kind, "float32") for kind in _KINDS), ("cubic", "float64")]
)
def test_images_are_multiplied_by_the_axes(kind: str, dtype: str) -> None:
    x, size = data(2, 3, 19, 12), (7, 50)
    rows, columns = (_matrix(kind, n, o) for n, o in zip(x.shape[2:], size, strict=True))
    t = ct.tensor(x.tolist(), dtype=getattr(ct, dtype), requires_grad=True)
    out = F.interpolate(t, size=size, **_mode(kind))
    close(out, np.einsum("oh,nchw,pw->ncop", rows, x, columns), 1e-4)
    g = data(*out.shape, seed=1)
    out.backward(ct.tensor(g.tolist(), dtype=out.dtype))
    close(t.grad, np.einsum("oh,ncop,pw->nchw", rows, g, columns), 1e-4)


def test_one_and_three_axes_and_aligned_corners() -> None:
    x = data(2, 3, 5, 6, 7)
    want = x
    for d, n in enumerate((9, 3, 8)):
        m = _matrix("linear", x.shape[2 + d], n, aligned=True)
        want = np.moveaxis(np.tensordot(m, want, (1, 2 + d)), 0, 2 + d)
    close(
        F.interpolate(ct.tensor(x.tolist()), (9, 3, 8), mode="trilinear", align_corners=True),
        want,
        1e-4,
    )
    line = x[0, 0]
    close(
        F.interpolate(ct.tensor(line.tolist()), scale_factor=2, mode="linear"),
        line @ _matrix("linear", 7, 14).T,
        1e-4,
    )
    close(F.interpolate(ct.tensor(line.tolist()), scale_factor=2), np.repeat(line, 2, -1))
    turned = ct.tensor(line.tolist()).transpose(1, 2)
    close(F.interpolate(turned, scale_factor=2), np.repeat(line.swapaxes(1, 2), 2, -1))


def test_area_averages_what_is_covered() -> None:
    x = data(1, 2, 4, 6)
    want = x.reshape(1, 2, 2, 2, 3, 2).mean((3, 5))
    close(F.interpolate(ct.tensor(x.tolist()), scale_factor=0.5, mode="area"), want)


@pytest.mark.parametrize("kind", ["linear", "cubic", "antialias_lanczos"])
def test_bytes_stay_bytes_within_rounding(kind: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, (1, 2, 9, 11)).astype(np.uint8)
    found = F.interpolate(ct.tensor(x.tolist(), dtype=ct.uint8), size=(5, 23), **_mode(kind))
    assert found.dtype is ct.uint8
    rows, columns = _matrix(kind, 9, 5), _matrix(kind, 11, 23)
    wide = np.clip(np.einsum("nchw,pw->nchp", x, columns), 0, 255)  # bytes after one axis, too
    exact = np.clip(np.einsum("oh,nchp->ncop", rows, wide), 0, 255)
    assert np.abs(np.array(found.tolist()) - exact).max() < 2


@pytest.mark.elsewhere
@pytest.mark.parametrize("kind", ["linear", "antialias_cubic"])
def test_byte_schedules_agree(kind: str) -> None:
    """The CPU schedule, which sums the bytes of four planes or of one pixel at once, agrees with the GPU schedule,
    whose lanes sum single bytes, whichever axes have weights.
    """
    from kernel_tools import get, put, torch

    x = np.random.default_rng(0).integers(0, 256, (2, 3, 21, 37), dtype=np.uint8)
    last = torch.tensor(x).permute(0, 2, 3, 1).contiguous()
    cpu, gpu = backend_for("cpu"), backend_for("gpu")
    sizes = [(9, 70), (40, 3), (21, 50), (30, 37)] if kind == "linear" else [(9, 70), (40, 2)]
    for high, wide in sizes:
        ways = [axes.Axis(kind, 21, high, 21 / high), axes.Axis(kind, 37, wide, 37 / wide)]
        want = get(gpu, axes.resample(gpu, put(gpu, torch.tensor(x)), ways))
        for given in (torch.tensor(x), torch.tensor(np.repeat(x, 2, 3))[..., ::2]):
            np.testing.assert_array_equal(get(cpu, axes.resample(cpu, put(cpu, given), ways)), want)
        three = [*ways, axes.Axis("nearest", 3, 3, 1.0)]
        for given in (last, last.repeat(1, 1, 1, 2)[..., :3]):
            found = get(cpu, axes.resample(cpu, put(cpu, given.unsqueeze(1)), three))
            np.testing.assert_array_equal(found[:, 0].permute(0, 3, 1, 2), want)


@pytest.mark.parametrize("channels", [1, 3, 4, 5])
def test_bytes_of_channels_last_images_stay_so(channels: int) -> None:
    x = ct.tensor(np.random.default_rng(0).integers(0, 256, (2, channels, 9, 11), dtype=np.uint8))
    last = x.contiguous(memory_format=ct.channels_last)
    for size in ((5, 23), (9, 3), (12, 11)):
        want = F.interpolate(x, size=size, mode="bicubic")
        found = F.interpolate(last, size=size, mode="bicubic")
        assert found.is_contiguous(memory_format=ct.channels_last)
        assert found.equal(want)
        # As a view of a larger image: surrounded by other channels, rows and columns.
        amid = ct.zeros(2, channels + 2, 11, 13, dtype=ct.uint8)
        amid = amid.contiguous(memory_format=ct.channels_last)
        amid[:, 1:-1, 1:-1, 1:-1] = x
        assert F.interpolate(amid[:, 1:-1, 1:-1, 1:-1], size=size, mode="bicubic").equal(want)


def test_half_precision_rounds_once() -> None:
    x = data(1, 2, 9, 11).astype(np.float16)
    found = F.interpolate(ct.tensor(x.tolist(), dtype=ct.float16), size=(13, 7), mode="bilinear")
    want = np.einsum("oh,nchw,pw->ncop", _matrix("linear", 9, 13), x, _matrix("linear", 11, 7))
    close(found.float(), want, 2e-3)


@pytest.mark.elsewhere
@pytest.mark.parametrize("turned", [False, True])
def test_interpolation_schedules_agree(turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU and GPU schedules agree, also where a GPU has so few lanes that each walks through several planes."""
    from kernel_tools import get, put, torch

    x = torch.tensor(data(2, 3, 9, 20))
    for kind in _KINDS:
        ways = [axes.Axis(kind, 9, 5, 9 / 5), axes.Axis(kind, 7, 20, 7 / 20)]
        if turned:
            ways[0] = axes.Axis(kind, 5, 9, 5 / 9)
        else:
            ways[1] = axes.Axis(kind, 20, 7, 20 / 7)
        found = []
        for name, lanes in (("cpu", 0), ("gpu", 1 << 18), ("gpu", 128), ("gpu", 64)):
            b = backend_for(name)
            monkeypatch.setattr(region, "_GPU_LANES", lanes)
            found.append(get(b, axes.resample(b, put(b, x), ways, turned)))
        for other in found[1:]:
            np.testing.assert_allclose(found[0], other, rtol=1e-5, atol=1e-5)


_SIZES = [(6, 41), (65, 19), (30, 61), (28, 56), (17, 40), (50, 57)]


# Modes differ in their weights, sizes in how rows are divided: one mode is tried with all sizes, float64 with one.
@pytest.mark.parametrize(
    ("mode", "ni", "no", "dtype"),
    [
        *(("bilinear", *sizes, "float32") for sizes in _SIZES),
        *((mode, *sizes, "float32") for sizes in _SIZES[:4:3] for mode in ("nearest", "bicubic")),
        ("bilinear", 17, 40, "float64"),
    ],
)
def test_gradients_are_the_transpose_where_rows_go_by_vectors(
    mode: str, ni: int, no: int, dtype: str
) -> None:
    """The gradient is the product with the transposed interpolation matrices, also for elements that no output reads or
    that many read. An infinite element makes the outputs that read it infinite or NaN, as in torch.
    """
    one_axis = {"size": (no, ni), "mode": mode}
    w = F.interpolate(ct.eye(ni, dtype=getattr(ct, dtype)).reshape(1, 1, ni, ni), **one_axis)
    w = w.cpu().numpy()[0, 0]
    for expanded in (False, True):
        g = data(no, no, dtype=dtype)
        if expanded:
            g[:] = g[:, :1]
        x = ct.tensor(data(2, 3, ni, ni, dtype=dtype), requires_grad=True)
        y = F.interpolate(x, size=(no, no), mode=mode)
        close(y, np.einsum("ai,ncij,bj->ncab", w, x.detach().cpu().numpy(), w), 1e-4)
        given = (
            ct.tensor(g[:, :1]).expand(2, 3, no, no)
            if expanded
            else ct.tensor(g).expand(2, 3, no, no)
        )
        close(ct.autograd.grad(y, [x], given)[0][1, 2], w.T @ g @ w, 1e-4)
    if dtype == "float64":  # once: float16 gradients that are one expanded number or dense
        x = ct.zeros(1, 2, 9, 11, dtype=ct.float16, requires_grad=True)
        for size in ((13, 30), (13, 11)):
            y = F.interpolate(x, size=size, mode=mode)
            g = ct.full((), 0.75, dtype=x.dtype).expand(y.shape)
            one, other = (ct.autograd.grad(y, [x], v, retain_graph=True)[0] for v in (g, g.clone()))
            close(one.float(), other.float(), 2e-3)
    if mode != "bicubic":
        edge = ct.ones(1, 1, 20, 20)
        edge[..., -1] = float("inf")
        assert ct.isinf(F.interpolate(edge, size=(40, 40), mode=mode)[..., 1:, -1]).all()
    if mode == "bilinear":  # elements of weight 0 are multiplied, too, as in torch: inf * 0
        edge = ct.ones(1, 1, 20, 20)
        edge[..., 1] = float("inf")
        assert ct.isnan(F.interpolate(edge, size=(40, 40), mode=mode)[..., 0]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lines_are_made_by_vectors_as_they_lie(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that are contiguous, strided or transposed in memory are multiplied by the matrix of weights, and gradients
    by its transpose.
    """
    poison(get_backend(ct.get_default_device()), monkeypatch)
    for ni, no in ((1, 5), (5, 64), (33, 16), (64, 33), (40, 41), (257, 400)):
        w = _matrix("linear", ni, no)
        x = data(3, 5, ni, dtype=dtype)
        wide = ct.tensor(np.repeat(x, 2, -1))[..., ::2]
        turned = ct.tensor(np.ascontiguousarray(x.swapaxes(0, 1))).transpose(0, 1)
        for given in (ct.tensor(x), wide, turned):
            given = given.detach().requires_grad_()
            y = F.interpolate(given, size=no, mode="linear")
            close(y, x @ w.T, 1e-4)
            g = data(*y.shape, dtype=dtype)
            close(ct.autograd.grad(y, [given], ct.tensor(g))[0], g @ w, 1e-4)
            flat = F.interpolate(given[:, :, None], size=(1, no), mode="bilinear")
            assert ct.equal(flat[:, :, 0], y)


@pytest.mark.parametrize("kind", ["nearest", "exact", "linear", "cubic"])
def test_no_position_has_more_readers_than_an_axis_says(kind: str) -> None:
    backend, rng = backend_for("cpu"), np.random.default_rng(0)
    for _ in range(30):
        ni, no = (int(n) for n in rng.integers(1, 70, 2))
        aligned = kind in ("linear", "cubic") and bool(rng.integers(2))
        scale = (
            (ni - 1) / max(1, no - 1) if aligned else ni / no * float(rng.choice([1.0, 0.9, 1.2]))
        )
        axis = axes.Axis(kind, ni, no, scale, aligned)
        start, size, _ = axes._axis_tables(backend, axis, ct.float32)
        first = backend.read(start, 0, 4 * no).view(np.int32)
        count = np.ones(no, int) if size is None else backend.read(size, 0, 4 * no).view(np.int32)
        reads = sum(
            np.bincount(range(i, i + n), minlength=ni) for i, n in zip(first, count, strict=True)
        )
        assert reads.max() <= axis.readers, axis


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_large_images_go_past_the_cache(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ct.tensor(data(2, 3, 9, 24))
    wanted = [F.interpolate(x, size=size, mode=mode) for size in ((18, 48), (18, 47), (5, 16))]
    store_past_cache(monkeypatch)
    if ct.opencl.get_device_properties(x.device).host_shared:
        ran = kernels_of(lambda: F.interpolate(x, size=(18, 48), mode=mode))
        assert ran[-1].endswith("_streamed")
    for one in wanted:
        assert ct.equal(F.interpolate(x, size=one.shape[2:], mode=mode), one)


def test_interpolation_is_differentiable_twice() -> None:
    x = ct.tensor(data(1, 1, 3, 4).tolist(), dtype=ct.float64, requires_grad=True)

    def enlarged(t: Any) -> Any:
        return F.interpolate(t, size=(5, 6), mode="bicubic") ** 2

    assert gradcheck(enlarged, (x,))
    assert gradgradcheck(enlarged, (x,))


def test_interpolation_errors_and_warnings() -> None:
    x = ct.ones(1, 2, 4, 4)
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({}, ValueError, "either size or scale_factor should be defined"),
        ({"size": 2, "scale_factor": 2}, ValueError, "only one of size or scale_factor"),
        ({"size": (1, 2, 3)}, ValueError, "same number of spatial dimensions"),
        ({"size": 2, "align_corners": True}, ValueError, "align_corners option can only be set"),
        ({"size": 2, "mode": "linear"}, NotImplementedError, "Got 4D input, but linear mode"),
        ({"size": 0}, RuntimeError, "Input and output sizes should be greater than 0"),
        ({"size": 2, "antialias": True}, ValueError, "Anti-alias option is restricted"),
    ]
    for kwargs, kind, text in cases:
        with pytest.raises(kind, match=text):
            F.interpolate(x, **kwargs)
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        F.interpolate(x.int(), 2)
    with pytest.warns(UserWarning, match="upsample` is deprecated"):
        F.upsample(x, 2)
    assert F.interpolate(x[:0], 8).shape == (0, 2, 8, 8)


# ------------------------------------------------------------------------------------------- pixels and channels


def test_pixels_are_shuffled_and_put_back() -> None:
    x = data(2, 8, 3, 5)
    want = x.reshape(2, 2, 2, 2, 3, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 10)
    t = ct.tensor(x.tolist(), requires_grad=True)
    out = F.pixel_shuffle(t, 2)
    close(out, want)
    close(F.pixel_unshuffle(out, 2), x)
    (out * out.detach()).sum().backward()
    close(t.grad, x)
    want = x.reshape(2, 4, 2, 15).swapaxes(1, 2).reshape(x.shape)
    close(F.channel_shuffle(t, 4), want)
    close(F.channel_shuffle(F.channel_shuffle(t, 4), 2), x)
    for fn, text in (
        (F.pixel_shuffle, "divisible by the square of upscale_factor"),
        (F.pixel_unshuffle, "height to be divisible by downscale_factor"),
        (F.channel_shuffle, "Number of channels must be divisible by groups"),
    ):
        with pytest.raises(RuntimeError, match=text):
            fn(t, 7)


@pytest.mark.parametrize("shape", [(2, 16, 4, 6), (1, 16, 2, 2), (2, 16, 2, 4, 6)])
def test_pixels_of_channels_last_are_shuffled_in_one_copy(shape: tuple[int, ...]) -> None:
    """Values, gradients and channels-last strides are right, also with dims of size 1."""
    images = ct.channels_last if len(shape) == 4 else ct.channels_last_3d
    plain = ct.tensor(data(*shape))
    ways = [lambda t: F.channel_shuffle(t, 4)]
    if len(shape) == 4:
        ways += [lambda t: F.pixel_shuffle(t, 2), lambda t: F.pixel_unshuffle(t, 2)]
    for way in ways:
        t = plain.clone(memory_format=images).requires_grad_()
        ct.opencl.synchronize()
        before = ct.stats()["launches"]
        out = way(t)
        ct.opencl.synchronize()
        assert ct.stats()["launches"] - before == 1
        assert out.stride() == ct.empty(out.shape).to(memory_format=images).stride()
        close(out, way(plain).numpy(force=True))
        g = ct.tensor(data(*out.shape, seed=1))
        (back,) = ct.autograd.grad(out, t, g)
        own = plain.clone().requires_grad_()
        (wanted,) = ct.autograd.grad(way(own), own, g)
        close(back, wanted.numpy(force=True))


def test_local_responses_are_normalised() -> None:
    x = data(2, 5, 3, 4)
    squares = np.pad(x**2, ((0, 0), (2, 1), (0, 0), (0, 0)))
    mean = sum(squares[:, k : k + 5] for k in range(4)) / 4
    want = x / (2 + 0.5 * mean) ** 0.75
    close(F.local_response_norm(ct.tensor(x.tolist()), 4, 0.5, 0.75, 2), want)


def test_gumbel_samples_are_one_hot_with_a_soft_gradient() -> None:
    logits = ct.zeros(6, 4, requires_grad=True)
    hard = F.gumbel_softmax(logits, hard=True)
    close(hard.sum(1), np.ones(6))
    close(hard.max(1)[0], np.ones(6))
    (hard * hard.detach()).sum().backward()
    assert logits.grad.abs().sum().item() > 0
