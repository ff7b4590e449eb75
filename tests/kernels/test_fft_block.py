"""Fourier transforms in a GPU lane's registers (fft/block.mako), on any device: lengths, layouts and options against
NumPy."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from cltensor import dtypes
from cltensor.codegen.fft import block, lengths, passes
from cltensor.codegen.operand import Operand
from cltensor.codegen.region import from_host
from cltensor.runtime import get_backend

rng = np.random.default_rng(8)

pytestmark = pytest.mark.elsewhere

TOLERANCE = {"f": 5e-7, "d": 1e-15}
LENGTHS = [16, 27, 49, 60, 100, 256, 343, 500, 1000, 1024, 2048]
# Lengths that are transformed along one dim only; others are along both.
ALONG_ONE = {60: 2, 343: 2, 500: 0, 1000: 2, 1024: 0}


@pytest.fixture
def names(dev: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run transforms as on a GPU; return a list to which the names of launched kernels are added."""
    backend = get_backend(dev)
    launched: list[str] = []
    launch = type(backend).launch

    def listed(self: Any, kernel: Any, *args: Any) -> Any:
        launched.append(kernel.name)
        return launch(self, kernel, *args)

    plan = passes.Schedule(True, 1, 2048, 8192, 1)
    monkeypatch.setattr(passes, "schedule", lambda *_: plan)
    monkeypatch.setattr(type(backend), "launch", listed)
    return launched


def error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def run(backend: Any, src: Operand, dim: int, n: int, kind: str, **order: Any) -> np.ndarray:
    """Transform, and read back the result as a NumPy array of type `kind`."""
    out = getattr(dtypes, np.dtype(kind).name)
    order = {"forward": True, "scale": 1.0, **order}
    y = passes.transform(backend, src, dim, n, out, **order)
    count = int(np.prod(y.shape))
    raw = backend.read(y.buffer, 0, count * np.dtype(kind).itemsize)
    return raw.view(kind).reshape(y.shape)


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int, dev: Any, names: list[str]) -> None:
    """Complex transforms forward and back, real ones to half of a spectrum, to all of it and back, along contiguous
    dims and across others."""
    backend = get_backend(dev)
    for real, number in ("f", "F"), ("d", "D"):
        if real == "d" and n not in (49, 100):
            continue
        x, tol = rng.standard_normal((n, int(rng.integers(1, 12)), 2)).astype(real), TOLERANCE[real]
        for dim in (ALONG_ONE[n],) if n in ALONG_ONE else (0, 2):
            r = np.ascontiguousarray(np.moveaxis(x, 0, dim))
            z = (r + 1j * r[..., ::-1]).astype(number)
            reals = from_host(backend, getattr(dtypes, np.dtype(real).name), r)
            numbers = from_host(backend, getattr(dtypes, np.dtype(number).name), z)
            assert error(run(backend, numbers, dim, n, number), np.fft.fft(z, axis=dim)) < tol
            back = run(backend, numbers, dim, n, number, forward=False, scale=1 / n)
            assert error(back, np.fft.ifft(z, axis=dim)) < tol
            half = np.fft.rfft(r, axis=dim)
            assert error(run(backend, reals, dim, n, number, nout=n // 2 + 1), half) < tol
            assert error(run(backend, reals, dim, n, number), np.fft.fft(r, axis=dim)) < tol
            of = half.astype(number)
            halves = from_host(backend, numbers.dtype, of)
            for name, forward in ("irfft", False), ("hfft", True):
                expected = getattr(np.fft, name)(of, n=n, axis=dim) * (1 if forward else n)
                whole = run(backend, halves, dim, n, real, forward=forward, herm=True)
                assert error(whole, expected) < tol, name
    if n > 49 or n == 27:  # n / 2, for reals, is long enough, too
        assert all(name.startswith("fft_block") for name in names if name.startswith("fft")), names


def test_lines_anywhere(dev: Any, names: list[str]) -> None:
    """Lines of real numbers at unaligned offsets, overlapping lines, and strides above one."""
    backend = get_backend(dev)
    data = rng.standard_normal(400).astype("f")
    whole = from_host(backend, dtypes.float32, data)
    for shape, strides, offset in (
        ((7, 100), (41, 1), 3), ((7, 100), (40, 1), 2), ((3, 100), (5, 2), 1), ((2, 3, 100), (1, 50, 2), 0),
    ):  # fmt: skip
        view = Operand(whole.buffer, dtypes.float32, shape, strides, offset)
        x = np.lib.stride_tricks.as_strided(data[offset:], shape, [4 * s for s in strides])
        found = run(backend, view, len(shape) - 1, 100, "F", nout=51)
        assert error(found, np.fft.rfft(x)) < 5e-7
        window = rng.standard_normal(100).astype("f")
        there = from_host(backend, dtypes.float32, window)
        assert passes.windows(backend, view, 100, there) == (strides[-1] == 1)
        if strides[-1] == 1:
            found = run(backend, view, len(shape) - 1, 100, "F", nout=51, window=there)
            assert error(found, np.fft.rfft(x * window)) < 5e-7
    assert len(names) == 6 and sum("windowed" in name for name in names) == 2


@pytest.mark.parametrize("limits", [{"max_group": 64}, {"local_mem": 16384}])
def test_small_devices(
    limits: dict[str, int], dev: Any, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On small devices a lane holds more numbers and a work-group fewer lines; lines that are too long use fft.mako."""
    backend = get_backend(dev)
    monkeypatch.setattr(backend, "info", dataclasses.replace(backend.info, **limits))
    for n in (1000, 1024):
        z = (rng.standard_normal((n, 3)) + 1j * rng.standard_normal((n, 3))).astype("F")
        src = from_host(backend, dtypes.complex64, z)
        assert error(run(backend, src, 0, n, "F"), np.fft.fft(z, axis=0)) < 5e-7
    assert sum(name.startswith("fft_block") for name in names) == 2


def test_two_passes(dev: Any, names: list[str]) -> None:
    """Four-step transforms: the first pass over neighbouring columns multiplies by twiddles, the second transposes rows
    to columns."""
    backend = get_backend(dev)
    for n in (4096, 3000):
        z = (rng.standard_normal((2, n)) + 1j * rng.standard_normal((2, n))).astype("F")
        src = from_host(backend, dtypes.complex64, z)
        assert error(run(backend, src, 1, n, "F"), np.fft.fft(z)) < 5e-7
    for n in (3375, 8192):  # reals to half of a spectrum, and back
        x = rng.standard_normal((2, n)).astype("f")
        half = np.fft.rfft(x).astype("F")
        src, there = (
            from_host(backend, dt, v) for dt, v in ((dtypes.float32, x), (dtypes.complex64, half))
        )
        assert error(run(backend, src, 1, n, "F", nout=n // 2 + 1), half) < 5e-7
        back = run(backend, there, 1, n, "f", forward=False, scale=1 / n, nout=n, herm=True)
        assert error(back, x) < 5e-7
    assert len(names) == 12 and all("turned" in name for name in names[::2])


@pytest.mark.parametrize("n", LENGTHS)
def test_shapes(n: int) -> None:
    """In local memory no two numbers share an address, every butterfly has a lane, and work-groups are within the
    limit."""
    radices = tuple(lengths.factors(n) or ())
    for across, out_across in (False, False), (True, True), (False, True), (True, False):
        shape = block.shape(n, radices, across, out_across, True, True, 4, 256, 1 << 15)
        assert shape and shape.lanes * shape.width <= 256
        for stage in shape.stages:
            assert stage.per_lane * shape.lanes * stage.r >= n
        for x in shape.layouts:
            i, b = np.arange(n), np.arange(shape.width)[:, None]
            places = b * x.line + i * x.step + i * x.step // x.block * x.pad
            assert len(np.unique(places)) == n * shape.width and places.max() < x.words
