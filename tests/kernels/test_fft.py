"""Fourier transforms against numpy's: every kind of length, dims, norms, gradients; short-time transforms and window
functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as ct
from cltensor import dtypes
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.codegen.fft import dims as family
from cltensor.codegen.fft import lengths, passes, tables
from cltensor.codegen.region import from_host
from cltensor.runtime import STATS, get_backend

# Single radices and products of them, a prime radix (a loop), one pass, two passes, primes that need Bluestein's
# algorithm.
LENGTHS = [1, 2, 3, 5, 7, 8, 16, 30, 77, 221, 360, 1024, 37, 202]
LONG = [8192, 3**8]


def error(found: Any, expected: np.ndarray) -> float:
    """Return the error's norm relative to the norm of the expected vector."""
    value = np.asarray(found.tolist()) if hasattr(found, "tolist") else found
    assert value.shape == expected.shape
    return float(np.linalg.norm(value - expected) / (np.linalg.norm(expected) or 1))


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_lengths(kind: str, one_by_one: None) -> None:
    tol = 5e-7 if kind == "complex64" else 1e-15
    for n in [*LENGTHS, *LONG]:
        z = data(3, n, dtype=kind) if n in LONG else data(19, n, dtype=kind)
        t = ct.tensor(z)
        assert error(ct.fft.fft(t), np.fft.fft(z)) < tol, n
        assert error(ct.fft.ifft(t), np.fft.ifft(z)) < tol, n
        r = np.ascontiguousarray(z.real)
        assert error(ct.fft.rfft(ct.tensor(r)), np.fft.rfft(r)) < tol, n
        assert error(ct.fft.fft(ct.tensor(r)), np.fft.fft(r)) < tol, n
        assert error(ct.fft.irfft(t, n=n), np.fft.irfft(z, n=n)) < tol, n


@pytest.mark.usefixtures("on_a_cpu", "poisoned")
def test_several_dims_in_parts(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is divided so that what lies between two dims stays in a cache; the last part may be shorter."""
    z = data(5, 6, 7, 12, dtype="complex64")
    real = np.ascontiguousarray(z.real)
    turned = ct.tensor(np.ascontiguousarray(z.transpose(1, 0, 3, 2))).permute(1, 0, 3, 2)
    room = 2 * 6 * 7 * 12 * z.itemsize
    monkeypatch.setattr(family, "WHOLE_BYTES", 0)
    monkeypatch.setattr(family, "PART_BYTES", room // backend.info.compute_units)
    for found, expected, launches in (
        (lambda: ct.fft.fft2(ct.tensor(z)), np.fft.fft2(z), 2 * 3),
        (lambda: ct.fft.fft2(turned), np.fft.fft2(z), 2 * 3),
        (lambda: ct.fft.ifftn(turned, dim=(0, 2, 3)), np.fft.ifftn(z, axes=(0, 2, 3)), 3 * 3),
        (lambda: ct.fft.rfftn(ct.tensor(real), dim=(1, 3)), np.fft.rfftn(real, axes=(1, 3)), 2 * 2),
        (lambda: ct.fft.irfft2(turned), np.fft.irfft2(z), 2 * 3),
        (lambda: ct.fft.fftn(turned), np.fft.fftn(z), 4),  # no dim is left to divide
        (
            lambda: ct.fft.rfftn(ct.tensor(real), dim=(1, 2, 3, 0)),
            np.fft.rfftn(real, axes=(1, 2, 3, 0)),
            4,
        ),
    ):
        before = STATS.launches
        assert error(found(), expected) < 5e-7
        assert STATS.launches - before == launches


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_any_dim_and_layout(dim: int) -> None:
    z = data(18, 20, 22, dtype="complex64")
    t = ct.tensor(z)
    assert error(ct.fft.fft(t, dim=dim), np.fft.fft(z, axis=dim)) < 5e-7
    turned = t.permute(2, 0, 1)[:, ::2]
    assert (
        error(ct.fft.fft(turned, dim=dim), np.fft.fft(z.transpose(2, 0, 1)[:, ::2], axis=dim))
        < 5e-7
    )
    wide = t[:1].expand(4, 20, 22)
    assert (
        error(
            ct.fft.ifft(wide, dim=dim), np.fft.ifft(np.broadcast_to(z[:1], (4, 20, 22)), axis=dim)
        )
        < 5e-7
    )


@pytest.mark.parametrize("norm", ["forward", "backward", "ortho"])
def test_norms_and_sizes(norm: str) -> None:
    x, z = data(6, 10), data(6, 10, dtype="complex64")
    for n in (None, 5, 16):
        for name in ("fft", "ifft", "irfft", "hfft"):
            found = getattr(ct.fft, name)(ct.tensor(z), n=n, norm=norm)
            assert error(found, getattr(np.fft, name)(z, n=n, norm=norm)) < 5e-7, name
        for name in ("rfft", "ihfft"):
            found = getattr(ct.fft, name)(ct.tensor(x), n=n, dim=0, norm=norm)
            assert error(found, getattr(np.fft, name)(x, n=n, axis=0, norm=norm)) < 5e-7, name
    for s, dims in ((None, None), ((8, 5), (0, 1)), ((5,), (0,))):
        for name in ("fftn", "ifftn", "irfftn"):
            found = getattr(ct.fft, name)(ct.tensor(z), s=s, dim=dims, norm=norm)
            assert error(found, getattr(np.fft, name)(z, s=s, axes=dims, norm=norm)) < 5e-7, name
        found = ct.fft.rfftn(ct.tensor(x), s=s, dim=dims, norm=norm)
        assert error(found, np.fft.rfftn(x, s=s, axes=dims, norm=norm)) < 5e-7


def test_hermitian_in_several_dims() -> None:
    z = data(4, 6, dtype="complex64")
    found = ct.fft.hfft2(ct.tensor(z))
    expected = np.fft.hfft(np.fft.fft(z, axis=0), axis=1)
    assert found.dtype is ct.float32
    assert error(found, expected) < 5e-7
    half = ct.fft.ihfft2(found)
    assert error(half, np.fft.ifft(np.fft.ihfft(expected, axis=1), axis=0)) < 5e-7


def test_dtypes_and_degenerate_inputs() -> None:
    for dt in (ct.int64, ct.bool, ct.uint8):
        y = ct.fft.fft(ct.ones(4, dtype=dt))
        assert y.dtype is ct.complex64
        close(y.real, [4, 0, 0, 0])
    assert ct.fft.irfft(ct.ones(3, dtype=ct.float64)).dtype is ct.float64
    assert tuple(ct.fft.fft(ct.ones(0, 4)).shape) == (0, 4)
    assert ct.fft.fftn(ct.tensor(2.0)).item() == 2
    out = ct.empty(0, dtype=ct.complex64)
    assert ct.fft.rfft(ct.ones(4), out=out) is out
    close(out.real, [4, 0, 0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: ct.fft.fft(x, n=0), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda x: ct.fft.fft(x, norm="no"), RuntimeError, 'Invalid normalization mode: "no"'),
        (lambda x: ct.fft.fft(x, dim=2), IndexError, "Dimension out of range"),
        (lambda x: ct.fft.fft(x.sum()), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (lambda x: ct.fft.fft(x, n=2.5), TypeError, "must be int, not float"),
        (lambda x: ct.fft.fft([1.0]), TypeError, "must be Tensor, not list"),
        (lambda x: ct.fft.fft(x.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda x: ct.fft.rfft(x + 0j), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
        (lambda x: ct.fft.fftn(x, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda x: ct.fft.fftn(x, s=(1, 2, 3)), RuntimeError, "Got shape with 3 values but input tensor only has 2"),
        (lambda x: ct.fft.fft2(x, s=(2,)), RuntimeError, "dim and shape arguments must have the same length"),
        (lambda x: ct.fft.rfftn(x, dim=()), RuntimeError, "rfftn must transform at least one axis"),
        (lambda x: ct.fft.fft(x, out=x), RuntimeError, "fft expects a complex output tensor, but got Float"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(ct.ones(3, 4))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: ct.fft.fft(ct.view_as_complex(x)),
        lambda x: ct.fft.ifft(ct.view_as_complex(x), n=5, norm="ortho"),
        lambda x: ct.fft.irfft(ct.view_as_complex(x), n=5),
        lambda x: ct.fft.irfft(ct.view_as_complex(x)),
        lambda x: ct.fft.rfft(x, dim=1),
        lambda x: ct.fft.rfft(x[:, :3], dim=1),
        lambda x: ct.fft.fft(x, dim=0),
        lambda x: ct.fft.ihfft(x, dim=1),
        lambda x: ct.fft.hfft2(ct.view_as_complex(x)),
        lambda x: ct.fft.rfftn(x),
        lambda x: ct.fft.fftn(ct.view_as_complex(x)),
    ],
)
def test_gradients(fn: Any, one_by_one: None) -> None:
    x = ct.tensor(data(3, 4, 2, dtype="float64"), requires_grad=True)
    assert gradcheck(lambda x: ct.view_as_real(fn(x)) if fn(x).is_complex() else fn(x), (x,))
    assert gradgradcheck(lambda x: ct.view_as_real(fn(x)) if fn(x).is_complex() else fn(x), (x,))


def test_names_of_nodes() -> None:
    x = ct.ones(4, requires_grad=True)
    assert type(ct.fft.fft(x)).__name__ == "Tensor"
    assert ct.fft.fft(x).grad_fn.name() == "FftR2CBackward0"
    assert ct.fft.fft(ct.fft.fft(x)).grad_fn.name() == "FftC2CBackward0"
    assert ct.fft.irfft(x).grad_fn.name() == "FftC2RBackward0"


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(passes.Schedule(False, 16, 1024, 0, 16), id="cpu"),
        pytest.param(passes.Schedule(False, 8, 1024, 0, 16), id="cpu of short vectors"),
        pytest.param(
            passes.Schedule(True, 1, 1024, 4096, 1), id="gpu", marks=pytest.mark.elsewhere
        ),
    ],
)
def test_schedules(plan: passes.Schedule, dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each schedule in one pass, two and more, along contiguous dims and across others."""
    backend = get_backend(dev)
    # Other lengths of a GPU's single pass are those of test_fft_block.
    whole = (31, 1024) if plan.gpu else (31, 64, 105, 1024)
    for longest, sizes in ((plan.longest, whole), (8, (24, 60)), (4, (64, 96))):
        monkeypatch.setattr(passes, "schedule", lambda *_, n=longest: plan._replace(longest=n))
        for n in sizes:
            z = data(n, 18, dtype="complex64")
            for dim, values in ((0, z), (1, np.ascontiguousarray(z.T))):
                for forward in (True, False):
                    src = from_host(backend, dtypes.complex64, values)
                    y = passes.transform(
                        backend, src, dim, n, dtypes.complex64, forward=forward, scale=1.0
                    )
                    raw = backend.read(y.buffer, 0, values.nbytes).view(np.complex64)
                    expected = np.fft.fft(values, axis=dim, norm="backward" if forward else None)
                    if not forward:
                        expected = np.fft.ifft(values, axis=dim, norm="forward")
                    assert error(raw.reshape(values.shape), expected) < 5e-7, (longest, n, dim)
                if n % 2 == 0 and longest == plan.longest:  # cut off within two passes
                    _real_lines(backend, values.real, n, dim)


def _real_lines(backend: Any, x: np.ndarray, n: int, dim: int) -> None:
    """Check transforms of an even number of reals: to half of the spectrum, to all of it, and back."""
    x = np.ascontiguousarray(x)
    real, number = dtypes.float32, dtypes.complex64
    src = from_host(backend, real, x)
    half, whole = (
        passes.transform(backend, src, dim, n, number, forward=True, scale=1.0, nout=nout)
        for nout in (n // 2 + 1, n)
    )
    back = passes.transform(
        backend, half, dim, n, real, forward=False, scale=1 / n, nout=n, herm=True
    )
    for y, expected in (
        (half, np.fft.rfft(x, axis=dim)),
        (whole, np.fft.fft(x, axis=dim)),
        (back, x),
    ):
        kind = np.float32 if y is back else np.complex64
        count = expected.size * np.dtype(kind).itemsize
        raw = backend.read(y.buffer, 0, count).view(kind).reshape(expected.shape)
        assert error(raw, expected) < 5e-7, (n, dim)


@pytest.mark.parametrize("n", [2, 400, 1024])
def test_lines_of_reals_know_nothing_of_each_other(n: int) -> None:
    """A value that is not finite does not reach neighbouring lines, and the first and last numbers of a spectrum are
    real."""
    x = data(20, n)
    x[3, n // 2], x[7, 0] = np.nan, np.inf
    y = np.asarray(ct.fft.rfft(ct.tensor(x)).tolist())
    sound = [i for i in range(20) if i not in (3, 7)]
    assert error(y[sound], np.fft.rfft(x[sound])) < 5e-7
    assert not np.isfinite(y[[3, 7]]).any()
    assert not y[sound][:, [0, -1]].imag.any()
    z = y[sound] + np.array([1j] + [0] * (n // 2 - 1) + [-2j])  # imaginary parts that are ignored
    back = ct.fft.irfft(ct.tensor(z.astype(np.complex64)), n=n)
    assert error(back, x[sound]) < 5e-7


@pytest.mark.parametrize(
    ("kind", "lanes"), [("complex64", 16), ("complex64", 8), ("complex128", 8)]
)
def test_lines_of_adjacent_numbers(
    kind: str, lanes: int, poisoned: None, dev: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contiguous lines, which are treated as columns, one or two lines per vector, at any place and however few;
    nothing beside them is read."""
    plan = passes.schedule(get_backend(dev), getattr(dtypes, kind))
    if not plan.gpu:
        monkeypatch.setattr(passes, "schedule", lambda *_: plan._replace(lanes=lanes))
    tol = 5e-7 if kind == "complex64" else 1e-15
    cases = [(128, 5, False), (256, 3, True), (400, 2, False)]
    for n, lines, streams in cases[: 3 if kind == "complex64" else 1]:
        monkeypatch.setattr(passes, "past_cache", lambda backend, results, on=streams: on)
        wide = np.full((2 * lines + 1, n + 3), np.nan, kind)
        wide[1::2, 2:-1] = z = data(lines, n, dtype=kind)
        t = ct.tensor(wide)[1::2, 2:-1]
        assert error(ct.fft.fft(t), np.fft.fft(z)) < tol, n
        assert error(ct.fft.ifft(t, norm="ortho"), np.fft.ifft(z, norm="ortho")) < tol, n
        half = np.fft.rfft(z.real).astype(kind)
        wide[1::2, : n // 2 + 1] = half
        given = ct.tensor(wide)[1::2, : n // 2 + 1]
        assert error(ct.fft.irfft(given, n=n), z.real) < tol, n
        assert error(ct.fft.hfft(given, n=n), np.fft.hfft(half, n=n)) < tol, n
        wide[1::2, 2:-1] = z
        reals = ct.tensor(wide.real.copy())[1::2, 2:-1]
        assert error(ct.fft.rfft(reals), np.fft.rfft(z.real)) < tol, n
        assert error(ct.fft.ihfft(reals), np.fft.ihfft(z.real)) < tol, n


def test_tables_are_exact() -> None:
    k = np.arange(360, dtype=np.int64)
    roots = tables.unit_roots(k, 360)
    assert roots[90] == -1j
    assert roots[180] == -1
    # Sines of older numpy versions are off by up to four roundings.
    assert np.abs(roots**4 - tables.unit_roots(k * 4 % 360, 360)).max() < 2e-15
    assert [lengths.next_smooth(n) for n in (1, 7, 13, 1025)] == [1, 8, 15, 1080]
    assert lengths.factors(37) is None


def test_frequencies_and_shifts() -> None:
    for n in (1, 5, 6):
        close(ct.fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
        close(ct.fft.rfftfreq(n, 0.5), np.fft.rfftfreq(n, 0.5))
    assert ct.fft.fftfreq(4, dtype=ct.float64).dtype is ct.float64
    x = data(4, 5)
    close(ct.fft.fftshift(ct.tensor(x)), np.fft.fftshift(x))
    close(ct.fft.ifftshift(ct.tensor(x), dim=1), np.fft.ifftshift(x, axes=1))
    with pytest.raises(RuntimeError, match="fftfreq requires a floating point or complex dtype"):
        ct.fft.fftfreq(4, dtype=ct.int64)


# ------------------------------------------------------------------------------------------- short-time transforms


def frames(x: np.ndarray, size: int, hop: int) -> np.ndarray:
    return np.stack([x[..., i : i + size] for i in range(0, x.shape[-1] - size + 1, hop)], -2)


def test_stft_is_the_transform_of_frames(one_by_one: None) -> None:
    x = data(3, 40)
    w = ct.hann_window(8)
    found = ct.stft(ct.tensor(x), 8, window=w, return_complex=True)
    padded = np.pad(x, ((0, 0), (4, 4)), mode="reflect")
    expected = np.fft.rfft(frames(padded, 8, 2) * np.asarray(w.tolist())).swapaxes(1, 2)
    assert error(found, expected) < 5e-7
    found = ct.stft(ct.tensor(x[0]), 8, 3, 6, w[:6], center=False, onesided=False, normalized=True, return_complex=True)  # fmt: skip
    window = np.pad(np.asarray(w[:6].tolist()), 1)
    expected = np.fft.fft(frames(x[0], 8, 3) * window, norm="ortho").T
    assert error(found, expected) < 5e-7


@pytest.mark.parametrize("n", [48, 400, 512])
def test_window_is_met_on_the_way(n: int, dev: Any) -> None:
    """Without gradients, frames are neither stored nor multiplied by the window beforehand: the same bits in one
    launch."""
    x, window = ct.tensor(data(2, 1600)), ct.tensor(data(2 * n, seed=1))
    for hop, w in ((1 + n // 3, window[:n]), (1, window[:n]), (97, window[::2]), (97, window[n:])):
        call = partial(ct.stft, n_fft=n, hop_length=hop, window=w, center=False, return_complex=True)  # fmt: skip
        call(x).tolist()
        before = STATS.launches
        found = call(x)
        found.tolist()
        launches = STATS.launches - before
        fits = w.is_contiguous() and not w.storage_offset()
        if get_backend(dev).info.kind == "cpu":
            assert launches == (1 if fits else 2), (hop, w.stride())
        assert ct.equal(found, call(x.clone().requires_grad_()).detach())


def test_windows_of_sixteen_bits_are_refused_and_of_another_dtype_promote() -> None:
    x, window = ct.ones(200), ct.hann_window(64)
    expected = ct.stft(x, 64, window=window, return_complex=True)
    for dtype, name in ((ct.float16, "Half"), (ct.bfloat16, "BFloat16")):
        with pytest.raises(RuntimeError, match=f"MKL FFT doesn't support tensors of type: {name}"):
            ct.stft(x.to(dtype), 64, window=window.to(dtype), return_complex=True)
        assert ct.equal(ct.stft(x.to(dtype), 64, window=window, return_complex=True), expected)


def test_istft_undoes_stft(one_by_one: None) -> None:
    x = data(2, 50)
    t, w = ct.tensor(x), ct.hamming_window(16)
    for options in ({}, {"hop_length": 5}, {"normalized": True}, {"onesided": False}):
        z = ct.stft(t, 16, window=w, return_complex=True, **options)
        close(ct.istft(z, 16, window=w, length=50, **options), x, 1e-5)
    z = ct.stft(t, 16, window=w, return_complex=True)
    assert tuple(ct.istft(z, 16, window=w).shape) == (2, 48)
    with pytest.warns(UserWarning, match="shorter than the length parameter"):
        padded = ct.istft(z, 16, window=w, length=80)
    close(padded[:, 72:], np.zeros((2, 8)))


def test_short_time_gradients(one_by_one: None) -> None:
    x = ct.tensor(data(2, 12, dtype="float64"), requires_grad=True)
    w = ct.hann_window(6, dtype=ct.float64) + 0.1

    def there(x: Any) -> Any:
        return ct.view_as_real(ct.stft(x, 6, 2, window=w, return_complex=True))

    assert gradcheck(there, (x,))
    z = there(x).detach().requires_grad_()
    assert gradcheck(lambda z: ct.istft(ct.view_as_complex(z), 6, 2, window=w), (z,))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, w: ct.stft(x, 8, window=w), "stft requires the return_complex parameter be given for real inputs"),
        (lambda x, w: ct.stft(x, 80, window=w, center=False, return_complex=True), "expected 0 < n_fft < 40, but got n_fft=80"),
        (lambda x, w: ct.stft(x, 8, 0, window=w, return_complex=True), "expected hop_length > 0, but got hop_length=0"),
        (lambda x, w: ct.stft(x, 8, 2, 6, w, return_complex=True), r"but got window with size \[8\]"),
        (lambda x, w: ct.stft(x + 0j, 8, window=w, onesided=True), "Cannot have onesided output if window or input is complex"),
        (lambda x, w: ct.istft(x, 8, window=w), "istft requires a complex-valued input tensor"),
        (lambda x, w: ct.istft(ct.ones(5, 4) + 0j, 8, window=w, center=False), "window overlap add min: 1"),
        (lambda x, w: ct.istft(ct.ones(4, 4) + 0j, 8, window=w), "to match n_fft / 2 \\+ 1 when onesided=True, but got 4"),
    ],
)  # fmt: skip
def test_short_time_errors(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call(ct.ones(40), ct.hann_window(8))


def test_unfold_adds_its_gradient_up(one_by_one: None) -> None:
    x = ct.tensor(data(2, 11), requires_grad=True)
    for size, step in ((4, 2), (5, 3), (2, 4), (3, 1)):
        (g,) = ct.autograd.grad(x.unfold(1, size, step).sum(), x)
        counts = np.zeros(11)
        for start in range(0, 11 - size + 1, step):
            counts[start : start + size] += 1
        close(g, np.stack([counts, counts]))


# ------------------------------------------------------------------------------------------- windows


def test_windows(one_by_one: None) -> None:
    w = ct.signal.windows
    n = np.arange(7)
    angle = 2 * np.pi * n / 6
    close(w.hann(7), 0.5 - 0.5 * np.cos(angle))
    close(w.hann(6, sym=False), (0.5 - 0.5 * np.cos(angle))[:6])
    close(w.hamming(7), np.hamming(7))
    close(w.blackman(7), np.blackman(7))
    close(w.bartlett(7), np.bartlett(7))
    close(w.kaiser(7, beta=5.0), np.kaiser(7, 5.0))
    close(w.gaussian(7, std=2.0), np.exp(-((n - 3) ** 2) / 8))
    close(w.exponential(7, tau=2.0), np.exp(-np.abs(n - 3) / 2))
    close(w.cosine(7), np.sin(np.pi * (n + 0.5) / 7))
    close(w.general_cosine(7, a=[0.4, 0.6]), 0.4 - 0.6 * np.cos(angle))
    close(w.general_hamming(7, alpha=0.7), 0.7 - 0.3 * np.cos(angle))
    close(w.nuttall(7)[3], 1.0)
    for name in w.__all__:
        extra = {"a": [1.0]} if name == "general_cosine" else {}
        assert getattr(w, name)(0, **extra).shape == (0,)
        close(getattr(w, name)(1, dtype=ct.float64, **extra), [1.0])
    with pytest.raises(
        ValueError, match="general_cosine requires non-negative window length, got M=-1"
    ):
        w.hann(-1)
    with pytest.raises(ValueError, match="general_cosine expects float32 or float64 dtypes"):
        w.hann(3, dtype=ct.int64)
