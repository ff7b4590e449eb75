"""`cltensor.fft`: discrete Fourier transforms under torch's names."""

from .ops.fft import FFT as _FFT

globals().update(_FFT)
__all__ = sorted(_FFT)  # noqa: PLE0605 - the table decides
