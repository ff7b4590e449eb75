"""`cltensor.onnx`: there is no export; the name exists because programs import it at their top."""

from __future__ import annotations

from typing import Any, NoReturn


def is_in_onnx_export() -> bool:
    """Return False."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: ONNX export is not there."""
    raise NotImplementedError(
        "onnx.export: ONNX export is not there; torch loads a state_dict() that cltensor saved, and exports it"
    )
