"""Switches of torch's programs that choose precision or determinism: kept and answered, without effect on kernels.

Every kernel is deterministic, and float32 products are computed in float32.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

__all__ = [
    "compile",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
]

_PRECISIONS = ("highest", "high", "medium")
_MODES = ("default", "warn", "error")


class _State:
    precision = "highest"
    mode = 0


def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was told."""
    return _State.precision


def set_float32_matmul_precision(precision: str) -> None:
    """Accept "highest", "high" or "medium"; products stay in float32. Warns for another word."""
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    _State.precision = precision


def get_deterministic_debug_mode() -> int:
    """Return what `set_deterministic_debug_mode` was told: 0, 1 or 2."""
    return _State.mode


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Accept "default", "warn", "error", or their numbers 0, 1, 2."""
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in range(len(_MODES)):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    _State.mode = debug_mode


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Tell whether the debug mode is "warn"."""
    return _State.mode == 1


def compile(model: Any = None, **options: Any) -> Any:
    """Return the function or module as it is, torch's options accepted: pointwise chains are fused in any case.

    To run a function without its Python, see `capture`. Without `model`, a decorator. RuntimeError for what cannot be called.
    """
    if model is None:
        return functools.partial(compile, **options)
    if not callable(model):
        raise RuntimeError(
            f"compile(): argument 'model' must be callable, not {type(model).__name__}"
        )
    return model
