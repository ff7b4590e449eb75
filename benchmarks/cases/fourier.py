"""Fourier transforms, of complex and of real numbers, and of the frames of a signal."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.case import Case, on


def _transform(name: str) -> Any:
    return lambda torch, x: getattr(torch.fft, name)(x)


def _pairs(torch: Any, x: Any, y: Any) -> Any:
    return torch.fft.fft(torch.complex(x, y))


def _back(torch: Any, x: Any) -> Any:
    return torch.fft.irfft(torch.view_as_complex(x), n=1024)


def _frames(torch: Any, x: Any) -> Any:
    window = torch.hann_window(400, device=x.device)
    return torch.stft(x, 400, 160, window=window, return_complex=True)


def _flops(lines: int, n: int, real: bool = False) -> float:
    """Return the operations by the usual count: 5 n log2(n) for a line of complex numbers, half of that for real ones."""
    return 5.0 * lines * n * math.log2(n) / (2 if real else 1)


def _case(name: str, fn: Any, shapes: list[tuple[int, ...]], moved: float, flops: float) -> Case:
    return Case("fourier", name, on(fn, *shapes), moved, flops, tolerance=1e-3)


LINES, ODD, IMAGES, SOUND = (4096, 1024), (4095, 1000), (16, 256, 256), (16, 160000)
CASES = [
    _case("fft, 4096 x 1024", _pairs, [LINES, LINES], 16.0 * 4096 * 1024, _flops(4096, 1024)),
    _case("rfft, 4096 x 1024", _transform("rfft"), [LINES], 8.0 * 4096 * 1024, _flops(4096, 1024, True)),
    _case("rfft, 4095 x 1000", _transform("rfft"), [ODD], 8.0 * 4095 * 1000, _flops(4095, 1000, True)),
    _case("irfft, 4096 x 1024", _back, [(4096, 513, 2)], 8.0 * 4096 * 1024, _flops(4096, 1024, True)),
    _case("rfft, 1 Mi", _transform("rfft"), [(1 << 20,)], 8.0 * (1 << 20), _flops(1, 1 << 20, True)),
    _case("rfft2, 16 x 256²", _transform("rfft2"), [IMAGES], 8.0 * 16 * 256 * 256, 2 * _flops(16 * 256, 256, True)),
    # A second of sound (16,000 numbers) has 100 frames of 400 numbers, 160 apart; each is transformed to 201 complex
    # numbers.
    _case("stft, 16 x 10 s", _frames, [SOUND], 4.0 * 16 * 160000 + 8.0 * 16 * 1001 * 201, _flops(16 * 1001, 400, True)),
]  # fmt: skip
