"""Switches of torch's programs that choose precision or determinism: kept and answered, without effect on kernels.

Every kernel is deterministic, and float32 products are computed in float32; new memory is filled where torch fills it.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

from .errors import Warned
from .ops.memory import Uninitialised
from .runtime import device, get_backend

__all__ = [
    "are_deterministic_algorithms_enabled",
    "compile",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_warn_always",
    "use_deterministic_algorithms",
]

_PRECISIONS = ("highest", "high", "medium")
_MODES = ("default", "warn", "error")


class _State:
    precision = "highest"
    mode = 0
    warn_only = False
    interop = 1


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
    _State.mode, _State.warn_only = debug_mode, debug_mode == 1
    refill()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Fill memory that nobody wrote, unless `utils.deterministic` says otherwise; every kernel is deterministic anyway."""
    if not isinstance(mode, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    if not isinstance(warn_only, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'warn_only' must be bool, not {type(warn_only).__name__}"
        )
    _State.mode, _State.warn_only = (1 if warn_only else 2) if mode else 0, warn_only
    refill()


def refill() -> None:
    """Work out whether new memory is filled from here on."""
    Uninitialised.filled = Uninitialised.wanted and _State.mode > 0


def are_deterministic_algorithms_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was told."""
    return _State.mode > 0


def set_warn_always(b: bool, /) -> None:
    """Let warnings that a program sees once come each time."""
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    Warned.always = b


def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` was told."""
    return Warned.always


def set_flush_denormal(mode: bool) -> bool:
    """Let kernels on "cpu" take denormal numbers for zeros, operands and results, or keep them, as they do at first.

    To Intel's processors a denormal number is a hundred times the work of another, here as in torch. Returns whether the device can be told: with
    the PoCL that pip installs, on x86-64. Numbers of Python and of NumPy are copied as they are. RuntimeError for what is no bool.
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    backend = get_backend(device("cpu"))
    if backend.team is None:
        return False
    with backend.lock:
        backend.team.flush = mode
    return True


def set_num_interop_threads(n: int) -> None:
    """Accepted: calls are made one after the other. RuntimeError for what is no positive int."""
    if not isinstance(n, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _State.interop = n


def get_num_interop_threads() -> int:
    """Return what `set_num_interop_threads` was told."""
    return _State.interop


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Tell whether only warnings were asked for."""
    return _State.warn_only


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
