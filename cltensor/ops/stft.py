"""Short-time Fourier transforms: a signal in overlapping windows, each transformed, and back by overlap-add.

Compositions of differentiable ops; owns torch's checks and their texts.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from ..autograd.hooks import type_string
from ..autograd.record import needs_grad
from ..errors import warn_once
from . import fft
from .core import Tensor, is_tensor
from .nn.padding import pad
from .overlap import overlap_add
from .row import FUNCTIONS, public


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"{type_string(value)}{{{list(value.shape)}}}" if is_tensor(value) else str(value)


def _call(function: str, x: Tensor, **arguments: Any) -> str:
    """Return the text of the call as torch's errors quote it."""
    parts = [f"{name}={_said(value)}" for name, value in arguments.items()]
    return f"{function}({type_string(x)}{list(x.shape)}, {', '.join(parts)})"


def _full_window(window: Tensor | None, win_length: int, n_fft: int, like: Tensor) -> Tensor | None:
    """Return the window centred in n_fft points; None where it is one everywhere."""
    if win_length == n_fft:
        return window
    if window is None:
        window = like.new_ones(win_length, dtype=like.dtype.to_real())
    left = (n_fft - win_length) // 2
    return FUNCTIONS["constant_pad_nd"](window, [left, n_fft - win_length - left], 0)


@public()
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Transform windows of `input` (L) or (B, L), `hop_length` apart: (B?, N, T) complex numbers, N frequencies at T times.

    N is n_fft // 2 + 1, or n_fft where `onesided` is false (as for complex input). `center` pads by n_fft // 2 on both sides, in
    `pad_mode`. `return_complex=False` returns (B?, N, T, 2) real numbers.
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        lifted = input.view((1,) * (3 - input.ndim) + tuple(input.shape))
        amounts = [n_fft // 2, n_fft // 2]
        padded = pad(lifted, amounts, pad_mode)
        input = padded.view(padded.shape[3 - input.ndim :])
    hop = n_fft >> 2 if hop_length is None else operator.index(hop_length)
    length = n_fft if win_length is None else win_length
    call = _call(
        "stft", input, n_fft=n_fft, hop_length=hop, win_length=length, window=window, normalized=normalized,
        onesided=onesided, return_complex=return_complex, align_to_window=align_to_window,
    )  # fmt: skip
    as_complex = _returns_complex(input, window, return_complex)
    _check_stft(call + " ", input, window, n_fft, hop, length)
    signal = input if input.ndim == 2 else input.unsqueeze(0)
    whole = _full_window(window, length, n_fft, input)
    if align_to_window:
        left = (n_fft - length) // 2
        signal = FUNCTIONS["constant_pad_nd"](signal, [left, n_fft - length - left], 0)
    frames = signal.unfold(-1, n_fft, hop)
    scale = 1 / math.sqrt(n_fft) if normalized else 1.0
    half = onesided is None or onesided
    out = None
    if whole is not None and half and not needs_grad(frames, whole):
        out = fft.windowed(frames, whole, scale)
    if out is None:
        out = _spectra(frames if whole is None else frames * whole, scale, half, bool(onesided))
    out = out.transpose(1, 2)
    if input.ndim == 1:
        out = out.squeeze(0)
    return out if as_complex else FUNCTIONS["view_as_real"](out)


def _spectra(frames: Tensor, scale: float, half: bool, asked: bool) -> Tensor:
    """Return the spectra of frames (B, T, N).

    half: of real frames, the first half only. asked: `onesided` was passed explicitly, an error for complex frames.
    """
    if not frames.dtype.is_complex:
        return fft.r2c(fft.supported(frames), (2,), scale, half)
    if asked:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return fft.c2c(frames, (2,), scale, True)


def _returns_complex(input: Tensor, window: Tensor | None, asked: bool | None) -> bool:
    """Decide the form of the result, with torch's error and warnings."""
    if window is None:
        warn_once(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other "
            "windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress this "
            "warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
        )
    elif window.device != input.device:
        raise RuntimeError(
            f"stft input and window must be on the same device but got self on {input.device} and window on {window.device}"
        )
    if asked is None:
        if input.dtype.is_complex or (window is not None and window.dtype.is_complex):
            return True
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if not asked:
        warn_once(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all "
            "inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the complex "
            "output to recover the old return format."
        )
    return asked


def _check_stft(
    call: str, input: Tensor, window: Tensor | None, n_fft: int, hop: int, length: int
) -> None:
    if input.dtype.category < 2:
        raise RuntimeError(f"{call}: expected a tensor of floating point or complex values")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"{call}: expected a 1D or 2D tensor")
    n = input.shape[-1]
    if not 0 < n_fft <= n:
        raise RuntimeError(f"{call}: expected 0 < n_fft < {n}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{call}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and (window.ndim != 1 or window.shape[0] != length):
        raise RuntimeError(
            f"{call}: expected a 1D window tensor of size equal to win_length={length}, but got window with size {list(window.shape)}"
        )


@public()
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Turn the result (B?, N, T) of `stft` back into the signal (B?, L), weighing overlapping windows by least squares.

    `length` cuts the signal off or fills it up with zeros. RuntimeError where the windows leave a point without weight.
    """
    hop = n_fft >> 2 if hop_length is None else operator.index(hop_length)
    points = n_fft if win_length is None else win_length
    call = _call(
        "istft", input, n_fft=n_fft, hop_length=hop, win_length=points, window=window, center=center,
        normalized=normalized, onesided=onesided, length=length, return_complex=return_complex,
    )  # fmt: skip
    if window is None:
        warn_once(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to make the "
            "inversion lossless.To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`."
        )
    elif window.device != input.device:
        raise RuntimeError(
            f"istft input and window must be on the same device but got self on {input.device} and window on {window.device}"
        )
    half = _check_istft(call + " ", input, window, n_fft, hop, points, onesided)
    if window is None:
        window = input.new_ones(points, dtype=input.dtype.to_real())
    whole = _full_window(window, points, n_fft, input)
    assert whole is not None
    signal = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    scale = 1 / math.sqrt(n_fft) if normalized else 1 / n_fft
    if return_complex:
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        frames = fft.c2c(signal, (2,), scale, False)
    else:
        if whole.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        frames = fft.c2r(
            signal if half else signal.narrow(2, 0, n_fft // 2 + 1), (2,), scale, n_fft
        )
    out = _joined(frames, whole, hop, center, length, call)
    return out if input.ndim == 3 else out.squeeze(0)


def _joined(
    frames: Tensor, window: Tensor, hop: int, center: bool, length: int | None, call: str
) -> Tensor:
    """Overlap-add the windowed frames (B, T, n_fft), divided by the overlap-added squares of the window."""
    count, n_fft = frames.shape[1:]
    n = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else n - n_fft // 2 if center else n
    signal = overlap_add(frames * window, n, hop)[:, start:end]
    weight = overlap_add(window.square().expand(1, count, n_fft), n, hop)[:, start:end]
    if weight.abs().min().item() < 1e-11:
        raise RuntimeError(f"{call} window overlap add min: 1\n[ CPUBoolType{{}} ]")
    out = signal / weight
    if end > n:
        warn_once(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check "
            "your center and hop_length settings."
        )
        out = FUNCTIONS["constant_pad_nd"](out, [0, end - n], 0)
    return out


def _check_istft(
    call: str,
    input: Tensor,
    window: Tensor | None,
    n_fft: int,
    hop: int,
    points: int,
    onesided: bool | None,
) -> bool:
    """Check the arguments of `istft`; tells whether the input is a half spectrum."""
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if input.ndim < 2:
        span = input.ndim + 1
        missing = -2 if span < 2 else -3
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {missing})"
        )
    if not input.numel():
        raise RuntimeError(f"{call}: input tensor cannot be empty.")
    if input.ndim > 3:
        raise RuntimeError(
            f"{call}: expected a tensor with 3 or 4 dimensions, but got {input.ndim + 1}"
        )
    have = input.shape[-2]
    half = have != n_fft if onesided is None else onesided
    wanted, name, form = (
        (n_fft // 2 + 1, "n_fft / 2 + 1", "True") if half else (n_fft, "n_fft", "False")
    )
    if have != wanted:
        raise RuntimeError(
            f"{call}: expected the frequency dimension (3rd to the last) of the input tensor to match {name} when onesided={form}, but got {have}"
        )
    if not 0 < hop <= points:
        raise RuntimeError(f"{call}: expected 0 < hop_length <= win_length")
    if not 0 < points <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window.shape[0] != points):
        raise RuntimeError(
            f"{call}: Invalid window shape. window has to be 1D and length of `win_length`"
        )
    return half
