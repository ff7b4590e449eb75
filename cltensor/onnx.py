"""`cltensor.onnx`: names of ONNX export, which programs import and libraries add to; there is no export here."""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from .reexport import expose

__all__ = [
    "OperatorExportTypes",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
]


class TrainingMode(enum.Enum):
    """The mode in which a model would be exported."""

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(enum.Enum):
    """The kind of operators as which a model would be exported."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


def is_in_onnx_export() -> bool:
    """Return False."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: there is no ONNX export."""
    raise NotImplementedError(
        "onnx.export: ONNX export is not there; torch loads a state_dict() that cltensor saved, and exports it"
    )


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset: int) -> None:
    """Do nothing: nothing is exported."""


def parse_args(*kinds: str) -> Callable[[Any], Any]:
    """Return a decorator that returns functions as they are: such functions would describe an export."""
    return lambda function: function


_opset = ModuleType(f"{__name__}.symbolic_opset11", "What an export would write; nothing here.")
expose(globals(), {"symbolic_helper": "parse_args", "symbolic_opset11": _opset})
