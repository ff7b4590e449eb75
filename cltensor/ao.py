"""`torch.ao`: names of quantization, which does not exist here; libraries with quantizable variants of models import
them.

Models that contain the stubs below compute in floats, as torch's do before they are converted; nothing converts them
here.
"""

from __future__ import annotations

from typing import Any

from .nn import Module
from .reexport import absent, expose

__all__ = ["DeQuantStub", "QConfig", "QuantStub"]

_WHY = "there is no quantization"
(QConfig, convert, fuse_modules, fuse_modules_qat, prepare, prepare_qat, get_default_qconfig, get_default_qat_qconfig) = absent(
    f"{__name__}.quantization",
    "QConfig convert fuse_modules fuse_modules_qat prepare prepare_qat get_default_qconfig get_default_qat_qconfig",
    _WHY,
)  # fmt: skip
FakeQuantize, FakeQuantizeBase, HistogramObserver, MinMaxObserver, ObserverBase, quantize_dynamic = absent(
    f"{__name__}.quantization",
    "FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver ObserverBase quantize_dynamic",
    _WHY,
)  # fmt: skip
default_observer = default_weight_observer = default_per_channel_weight_observer = None


class QuantStub(Module):
    """Marks where a converted model would begin to compute in integers; returns its input."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """Return the input."""
        return x


class DeQuantStub(QuantStub):
    """Marks where a converted model would compute in floats again; returns its input."""


expose(
    globals(),
    {
        "quantization": "DeQuantStub FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver ObserverBase QConfig QuantStub "
        "quantize_dynamic convert fuse_modules fuse_modules_qat prepare prepare_qat get_default_qconfig "
        "get_default_qat_qconfig default_observer default_weight_observer default_per_channel_weight_observer",
    },
)
