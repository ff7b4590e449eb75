"""`torch.ao`: there is no quantization; the names exist because model libraries have quantizable twins of their models.

Models with stubs in them compute in floats, as torch's do until they are converted, and nothing converts them here.
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
    """Where a converted model would begin to compute in integers: the input as it is."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """Return the input."""
        return x


class DeQuantStub(QuantStub):
    """Where a converted model would compute in floats again: the input as it is."""


expose(
    globals(),
    {
        "quantization": "DeQuantStub FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver ObserverBase QConfig QuantStub "
        "quantize_dynamic convert fuse_modules fuse_modules_qat prepare prepare_qat get_default_qconfig "
        "get_default_qat_qconfig default_observer default_weight_observer default_per_channel_weight_observer",
    },
)
