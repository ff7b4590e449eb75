"""Switches by which programs choose precision or determinism: they can be set and read, mostly without effect.

Every kernel is deterministic, and float32 products are computed in float32. With deterministic algorithms,
uninitialised memory is filled as torch does.
"""

from __future__ import annotations

import warnings

from .autograd import anomaly
from .autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from .errors import Warned
from .ops.memory import Uninitialised
from .runtime import device, get_backend

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_anomaly_enabled",
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


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection on or off, and whether it looks for NaN; what `autograd.set_detect_anomaly` does, too."""
    anomaly.STATE.enabled, anomaly.STATE.check_nan = bool(enabled), bool(check_nan)


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
    """Fill uninitialised memory, unless `utils.deterministic` turns that off; kernels are deterministic anyway."""
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
    """Decide by the present switches whether uninitialised memory is filled from now on."""
    Uninitialised.filled = Uninitialised.wanted and _State.mode > 0


def are_deterministic_algorithms_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was told."""
    return _State.mode > 0


def set_warn_always(b: bool, /) -> None:
    """Choose whether warnings that are shown once per program are shown each time."""
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    Warned.always = b


def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` was told."""
    return Warned.always


def set_flush_denormal(mode: bool) -> bool:
    """Choose whether kernels on "cpu" treat denormal numbers as zeros, in operands and results. By default they do not.

    On Intel's processors arithmetic on a denormal number takes a hundred times as long, here as in torch. Returns
    whether the device has this switch: with the PoCL that pip installs, on x86-64. Numbers from Python and NumPy are
    copied unchanged. RuntimeError for an argument that is no bool.
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    backend = get_backend(device("cpu"))
    if backend.team is None:
        return False
    with backend.lock:
        backend.team.flush_denormal = mode
    return True


def set_num_interop_threads(n: int) -> None:
    """Keep the number, without effect: ops run one after the other. RuntimeError for anything but a positive int."""
    if not isinstance(n, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _State.interop = n


def get_num_interop_threads() -> int:
    """Return what `set_num_interop_threads` was told."""
    return _State.interop


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Tell whether deterministic algorithms were requested with `warn_only`."""
    return _State.warn_only
