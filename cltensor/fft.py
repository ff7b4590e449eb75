"""`cltensor.fft`: discrete Fourier transforms under torch's names."""

import sys as _sys

from .amp.install import separate as _separate
from .ops.fft import FFT as _FFT
from .ops.row import FUNCTIONS as _FUNCTIONS
from .ops.row import METHODS as _METHODS
from .reexport import settle as _settle

globals().update(_FFT)
_settle(globals(), _FFT, _FUNCTIONS, _METHODS)
_separate(("fft", _sys.modules[__name__]))
__all__ = sorted(_FFT)  # noqa: PLE0605 - the table decides
