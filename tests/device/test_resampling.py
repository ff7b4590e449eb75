"""Interpolation, grid sampling, pixel shuffles, local response normalisation and embedding bags: values against numpy, gradients
against transposes or plain ops, both schedules against each other, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import backend_for
from support import close, data, poison, store_past_cache

import cltensor as ct
import cltensor.nn.functional as F
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.codegen import region
from cltensor.codegen.index import bag
from cltensor.codegen.resample import axes, grid
from cltensor.ops.nn.grid_formula import composed
from cltensor.runtime import get_backend
from cltensor.size import Size

pytestmark = pytest.mark.usefixtures("one_by_one")  # formulas share kernels


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
    """What the axis does, as a matrix (no, ni), from the definition of its filter."""
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
    wide = np.clip(np.einsum("nchw,pw->nchp", x, columns), 0, 255)  # bytes between the axes too
    exact = np.clip(np.einsum("oh,nchp->ncop", rows, wide), 0, 255)
    assert np.abs(np.array(found.tolist()) - exact).max() < 2


@pytest.mark.parametrize("kind", ["linear", "antialias_cubic"])
def test_byte_schedules_agree(kind: str) -> None:
    """Four planes' bytes, or a pixel's, that a CPU sums at once are those that a GPU's lanes sum one by one, whichever axes have weights."""
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
        # Between other channels, rows and columns.
        amid = ct.zeros(2, channels + 2, 11, 13, dtype=ct.uint8)
        amid = amid.contiguous(memory_format=ct.channels_last)
        amid[:, 1:-1, 1:-1, 1:-1] = x
        assert F.interpolate(amid[:, 1:-1, 1:-1, 1:-1], size=size, mode="bicubic").equal(want)


def test_half_precision_rounds_once() -> None:
    x = data(1, 2, 9, 11).astype(np.float16)
    found = F.interpolate(ct.tensor(x.tolist(), dtype=ct.float16), size=(13, 7), mode="bilinear")
    want = np.einsum("oh,nchw,pw->ncop", _matrix("linear", 9, 13), x, _matrix("linear", 11, 7))
    close(found.float(), want, 2e-3)


@pytest.mark.parametrize("turned", [False, True])
def test_interpolation_schedules_agree(turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU's lanes, the fewer there are, walk through planes."""
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


# The modes differ in their weights, the sizes in how rows are divided: all sizes in one mode, of doubles one.
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
    """Also of places that nothing reads, that many read, and next to what is infinite."""
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
    if dtype == "float64":  # of half precision the same by scalars
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
    if mode == "bilinear":  # what counts nothing is read all the same, as torch does
        edge = ct.ones(1, 1, 20, 20)
        edge[..., 1] = float("inf")
        assert ct.isnan(F.interpolate(edge, size=(40, 40), mode=mode)[..., 0]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lines_are_made_by_vectors_as_they_lie(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of lines one beside the other, with gaps between their numbers and exchanged: what weights say, and the gradient by their transpose."""
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


# ------------------------------------------------------------------------------------------- grids

_WAYS = [
    grid.Way(m, p, a)
    for m, p, a in (
        ("bilinear", "zeros", False),
        ("nearest", "border", False),
    )
]
_MORE = [
    grid.Way(m, p, a)
    for m, p, a in (
        ("bilinear", "reflection", True),
        ("nearest", "reflection", False),
        ("bicubic", "border", False),
    )
]


def _points(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1.6, 1.6, shape)


def test_nearest_elements_of_every_width() -> None:
    """Of sixteen neighbours some read one vector of the source, some two, some more."""
    for n in range(17, 90):
        x = ct.arange(float(n)).view(1, 1, 1, n)
        for m in (33, 48):
            places = np.minimum(np.floor(np.arange(m, dtype=np.float32) * np.float32(n / m)), n - 1)
            assert F.interpolate(x, size=(1, m)).view(-1).tolist() == places.tolist(), (n, m)


@pytest.mark.parametrize("way", _WAYS, ids=str)
def test_samples_and_gradients_match_the_formula(way: grid.Way) -> None:
    found = []
    g = ct.tensor(data(2, 3, 5, 8).tolist(), dtype=ct.float64)
    for sample in (
        lambda x, p: F.grid_sample(x, p, way.mode, way.padding, way.aligned),
        lambda x, p: composed(x, p, way),
    ):
        x = ct.tensor(data(2, 3, 4, 6).tolist(), dtype=ct.float64, requires_grad=True)
        p = ct.tensor(_points(2, 5, 8, 2).tolist(), dtype=ct.float64, requires_grad=True)
        out = sample(x, p)
        out.backward(g)
        found.append((out, x.grad, ct.zeros_like(p) if p.grad is None else p.grad))
    for kernel, formula in zip(*found, strict=True):
        close(kernel, formula.detach().tolist(), 1e-9)


def test_cubic_samples_and_gradients() -> None:
    x = ct.tensor(data(1, 2, 4, 6).tolist(), dtype=ct.float64, requires_grad=True)
    theta = ct.eye(2, 3, dtype=ct.float64).unsqueeze(0)
    grid = F.affine_grid(theta, (1, 1, 4, 6), align_corners=False)
    close(F.grid_sample(x, grid, "bicubic", align_corners=False), x.tolist(), 1e-9)
    points = ct.tensor(_points(1, 2, 3, 2).tolist(), dtype=ct.float64, requires_grad=True)

    def sampled(x: Any, p: Any) -> Any:
        return F.grid_sample(x, p, "bicubic", "reflection", align_corners=False)

    assert gradcheck(sampled, (x, points))


@pytest.mark.parametrize(
    ("padding", "aligned"), [("border", True), ("reflection", False), ("reflection", True)]
)
def test_slopes_by_points_outside(padding: str, aligned: bool) -> None:
    """Beyond the border a sample does not move with its point, mirrored it moves the other way."""
    x = ct.tensor(data(1, 2, 4, 6).tolist(), dtype=ct.float64, requires_grad=True)
    points = ct.tensor(_points(1, 3, 4, 2).tolist(), dtype=ct.float64, requires_grad=True)
    assert gradcheck(lambda x, p: F.grid_sample(x, p, "bilinear", padding, aligned), (x, points))


def test_samples_are_differentiable_twice() -> None:
    x = ct.tensor(data(1, 1, 3, 3).tolist(), dtype=ct.float64, requires_grad=True)
    points = ct.tensor(_points(1, 1, 2, 2).tolist(), dtype=ct.float64, requires_grad=True)
    assert gradgradcheck(lambda x, p: F.grid_sample(x, p, align_corners=False), (x, points))


def test_volumes_are_sampled() -> None:
    x = ct.tensor(data(1, 2, 3, 4, 5).tolist())
    theta = ct.eye(3, 4).unsqueeze(0)
    for aligned in (True, False):
        grid = F.affine_grid(theta, (1, 2, 3, 4, 5), align_corners=aligned)
        close(F.grid_sample(x, grid, align_corners=aligned), x.tolist(), 1e-5)


@pytest.mark.parametrize(
    ("way", "dims"),
    [(_WAYS[0], 2), (_WAYS[0], 3), *((w, 3 if w.mode == "nearest" else 2) for w in _MORE)],
    ids=str,
)
def test_grid_sample_schedules_agree(way: grid.Way, dims: int) -> None:
    from kernel_tools import get, put, torch

    size = (7, 4, 6)[:dims]
    points = (3, 5, 7)[:dims]  # 15 or 105 of them, the last beside vectors
    arrays = [
        data(2, 3, *size), _points(2, *points, dims).astype(np.float32), data(2, 3, *points)
    ]  # fmt: skip
    arrays[1][1, ..., 0] *= 50
    found = []
    for b in map(backend_for, ("cpu", "gpu")):
        x, p, g = (put(b, torch.tensor(a)) for a in arrays)
        results = (
            grid.sample(b, x, p, way),
            grid.by_grid(b, x, p, g, way),
            grid.by_input(b, x.shape, p, g, way),
        )
        found.append([get(b, r) for r in results])
    for cpu, gpu in zip(*found, strict=True):
        np.testing.assert_allclose(cpu, gpu, rtol=1e-4, atol=1e-4)


def test_a_point_that_is_no_number_reads_nothing() -> None:
    grid = ct.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [1e20, -3.0]]]])
    out = F.grid_sample(ct.ones(1, 1, 3, 4), grid, mode="nearest", align_corners=False)
    assert out.flatten().tolist() == [0.0, 0.0, 0.0]
    grid = ct.tensor([[[[[float("nan"), 0.0, 0.0], [0.0, 0.0, 0.0]]]]])
    out = F.grid_sample(ct.ones(1, 1, 3, 3, 3), grid, align_corners=False)
    assert out.flatten().tolist() == [0.0, 1.0]


def test_the_nearest_element_does_not_move_with_the_point() -> None:
    grid = ct.zeros(1, 2, 3, 2, requires_grad=True)
    F.grid_sample(
        ct.full((1, 1, 3, 3), float("inf")), grid, "nearest", align_corners=False
    ).sum().backward()
    assert not grid.grad.any()


def test_grid_errors() -> None:
    x, grid = ct.ones(1, 2, 4, 4), ct.zeros(1, 3, 3, 2)
    with pytest.raises(RuntimeError, match="expected grid and input to have same batch size"):
        F.grid_sample(x, ct.zeros(2, 3, 3, 2), align_corners=True)
    with pytest.raises(RuntimeError, match="expected grid to have size 2 in last dimension"):
        F.grid_sample(x, ct.zeros(1, 3, 3, 3), align_corners=True)
    with pytest.raises(ValueError, match="expected mode to be"):
        F.grid_sample(x, grid, mode="cubic")
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior"):
        F.grid_sample(x, grid)
    with pytest.raises(ValueError, match="Expected a batch of 2D affine matrices"):
        F.affine_grid(ct.ones(1, 3, 4), (1, 1, 2, 2), align_corners=False)


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
    """Values, gradients and strides, dims of one place among them."""
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


# ------------------------------------------------------------------------------------------- bags

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
