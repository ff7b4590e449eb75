"""Automatic differentiation: torch.autograd's names.

Owns the package's public face. Ops use `record`, `rebase`, `needs_grad`, `check_inplace`,
`mark_view`; users use the rest. Tensors are made elsewhere and inherit `AutogradMixin`.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..reexport import expose, lend
from . import anomaly as anomaly_mode
from . import engine, forward_ad, function, functional, graph
from . import mode as grad_mode
from .anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from .engine import backward, grad
from .function import Function, FunctionCtx, once_differentiable
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .hooks import RemovableHandle
from .methods import AutogradMixin
from .mode import (
    GRAD,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .node import AccumulateGrad, Node
from .record import TensorBase, needs_grad, rebase
from .saved import SavedTensor, saved_tensors_hooks
from .version import InferenceVersion, VersionCounter
from .views import check_inplace, gradient_edge, mark_view, requires


class _VariableMeta(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, TensorBase)


class Variable(metaclass=_VariableMeta):
    """A tensor, by its old name: `Variable(t)` shares t's data; all tensors are instances."""

    _execution_engine = engine

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        t = AutogradMixin.__subclasses__()[0]() if data is None else data.detach()
        if requires_grad:
            t.requires_grad = True
        return t


def __getattr__(name: str) -> Any:
    if name == "profiler":  # loaded when first used
        import importlib

        return importlib.import_module(f"{__name__}.profiler")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


lend(
    globals(),
    {
        "profiler_legacy": ("autograd.profiler", "profile"),
        "profiler_util": (
            "profiler.events",
            "EventList FunctionEvent FunctionEventAvg Interval Kernel",
        ),
    },
)
expose(globals(), {"anomaly_mode": anomaly_mode, "grad_mode": grad_mode, "variable": "Variable"})

__all__ = [
    "AccumulateGrad",
    "AutogradMixin",
    "Function",
    "FunctionCtx",
    "GRAD",
    "GradcheckError",
    "InferenceVersion",
    "Node",
    "RemovableHandle",
    "SavedTensor",
    "TensorBase",
    "Variable",
    "VersionCounter",
    "anomaly_mode",
    "backward",
    "check_inplace",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "gradient_edge",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "mark_view",
    "needs_grad",
    "no_grad",
    "once_differentiable",
    "rebase",
    "requires",
    "saved_tensors_hooks",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
