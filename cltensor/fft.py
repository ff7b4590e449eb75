"""`cltensor.fft`: discrete Fourier transforms under torch's names."""

from .ops.fft import FFT as _FFT
from .ops.row import FUNCTIONS as _FUNCTIONS
from .ops.row import METHODS as _METHODS
from .reexport import settle as _settle

globals().update(_FFT)
_settle(globals(), _FFT, _FUNCTIONS, _METHODS)
__all__ = sorted(_FFT)  # noqa: PLE0605 - the table decides
