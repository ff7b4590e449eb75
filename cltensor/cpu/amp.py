"""`torch.cpu.amp`: the older names of autocast and GradScaler, with "cpu" as the device type and torch's warnings."""

from __future__ import annotations

import warnings
from typing import Any

from .. import dtypes
from ..amp import autocast_mode, grad_scaler
from ..dtypes import dtype
from ..reexport import expose

__all__ = ["GradScaler", "autocast"]


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(autocast_mode.autocast):
    """`torch.amp.autocast("cpu", ...)`."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: dtype = dtypes.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        _deprecated("autocast")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`torch.amp.GradScaler("cpu", ...)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _deprecated("GradScaler")
        super().__init__("cpu", *args, **kwargs)


expose(globals(), {"autocast_mode": "autocast", "grad_scaler": "GradScaler"})
