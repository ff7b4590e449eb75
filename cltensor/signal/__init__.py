"""`cltensor.signal`: signal processing under torch's names."""

from ..reexport import lend
from . import windows

__all__ = ["windows"]

# torch defines the windows one module further down.
lend(vars(windows), {"windows": ("signal.windows", " ".join(windows.__all__))})
