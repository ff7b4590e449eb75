"""Anomaly detection: naming the forward op behind a backward pass that fails or gives NaN.

Owns the switch, the traceback stored with a node and the report made from it. Knows nothing of the
engine.
"""

from __future__ import annotations

import os
import traceback
import warnings
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class _State:
    """Whether anomaly detection is on, and whether it also looks for NaN."""

    __slots__ = ("check_nan", "enabled")

    def __init__(self) -> None:
        self.enabled = False
        self.check_nan = True


STATE = _State()


def is_anomaly_enabled() -> bool:
    """Return True while anomaly detection is on."""
    return STATE.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Return True if anomaly detection also looks for NaN."""
    return STATE.check_nan


class set_detect_anomaly:
    """Switch anomaly detection on or off at once; as a context manager, restore the state at the end."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = (STATE.enabled, STATE.check_nan)
        STATE.enabled = mode
        STATE.check_nan = check_nan

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        STATE.enabled, STATE.check_nan = self.prev


class detect_anomaly:
    """Name the forward op behind a failing backward pass, and fail on NaN gradients, inside the
    block.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self.prev = (STATE.enabled, STATE.check_nan)
        warnings.warn(
            "Anomaly Detection has been enabled. "
            "This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.prev = (STATE.enabled, STATE.check_nan)
        STATE.enabled = True
        STATE.check_nan = self.check_nan

    def __exit__(self, *exc: Any) -> None:
        STATE.enabled, STATE.check_nan = self.prev


def remember(extra: Any, parent: Any) -> None:
    """Store the current call stack, without this library's own frames at its end, in a node's
    extras.
    """
    frames = traceback.extract_stack()
    while frames and frames[-1].filename.startswith(_PACKAGE):
        frames.pop()
    extra.meta()["traceback_"] = traceback.format_list(frames)
    extra.parent = parent


def _warn(text: str) -> None:
    """Warn; print the warning if a filter turns it into an error, because the error being raised already says more."""
    try:
        warnings.warn(text, stacklevel=3)
    except UserWarning:
        traceback.print_exc()


def report(node: Any) -> None:
    """Warn with the forward traceback of `node`, and of the nodes during whose backward it was
    made.
    """
    extra = node._extra
    trace = None if extra is None or extra.metadata is None else extra.metadata.get("traceback_")
    if trace is None:
        _warn(
            f"Error detected in {node.name()}. "
            "No forward pass information available. Enable detect anomaly during forward pass for "
            "more information."
        )
        return
    _warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the "
        f"error:\n{''.join(trace)}"
    )
    parent = extra.parent
    while parent is not None:
        extra = parent._extra
        trace = (
            None if extra is None or extra.metadata is None else extra.metadata.get("traceback_")
        )
        if trace is None:
            break
        _warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. "
            f"Traceback of forward call that induced the previous calculation:\n{''.join(trace)}"
        )
        parent = extra.parent
