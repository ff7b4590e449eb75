"""Gates of recurrent cells: the pointwise part that follows a step's matrix products, one row for each result.

Each gradient is one row, too, or plain ops where it will itself be differentiated. Knows nothing of weights.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...autograd.record import differentiating
from ..core import Tensor
from ..row import Row

# ------------------------------------------------------------------------------------------- slopes

_GATED = Row("gate_back", {"f": "x * z * (sigmoid(y) * (1 - sigmoid(y)))"}, args=("grad", "gate", "value"), public=False)  # fmt: skip
_GATED_TANH = Row("tanh_gate_back", {"f": "x * tanh(z) * (sigmoid(y) * (1 - sigmoid(y)))"}, args=("grad", "gate", "value"), public=False)  # fmt: skip
_PASSED = Row("passed_back", {"f": "x * sigmoid(y)"}, args=("grad", "gate"), public=False)
_PASSED_TANH = Row("tanh_passed_back", {"f": "x * sigmoid(y) * (1 - tanh(z) * tanh(z))"}, args=("grad", "gate", "value"), public=False)  # fmt: skip


def _by_gate(g: Tensor, gate: Tensor, value: Tensor) -> Tensor:
    """The gradient of sigmoid(gate) * value by the gate."""
    if not differentiating():
        return _GATED(g, gate, value)
    s = gate.sigmoid()
    return g * value * (s * (1 - s))


def _by_tanh_gate(g: Tensor, gate: Tensor, value: Tensor) -> Tensor:
    """The gradient of sigmoid(gate) * tanh(value) by the gate."""
    return _by_gate(g, gate, value.tanh()) if differentiating() else _GATED_TANH(g, gate, value)


def _by_value(g: Tensor, gate: Tensor) -> Tensor:
    """The gradient of sigmoid(gate) * value by the value."""
    return g * gate.sigmoid() if differentiating() else _PASSED(g, gate)


def _by_tanh_value(g: Tensor, gate: Tensor, value: Tensor) -> Tensor:
    """The gradient of sigmoid(gate) * tanh(value) by the value."""
    if not differentiating():
        return _PASSED_TANH(g, gate, value)
    t = value.tanh()
    return g * gate.sigmoid() * (1 - t * t)


# ------------------------------------------------------------------------------------------- cells

_LSTM_C = Row(
    "lstm_c", {"f": "sigmoid(y) * w + sigmoid(x) * tanh(z)"}, args=("i", "f", "g", "c"), public=False, node="AddBackward0",
    grad={
        "x": lambda g, x, z: _by_tanh_gate(g, x, z), "y": lambda g, y, w: _by_gate(g, y, w),
        "z": lambda g, x, z: _by_tanh_value(g, x, z), "w": lambda g, y: _by_value(g, y),
    },
)  # fmt: skip
_LSTM_H = Row(
    "lstm_h", {"f": "sigmoid(x) * tanh(y)"}, args=("o", "c"), public=False, node="MulBackward0",
    grad={"x": lambda g, x, y: _by_tanh_gate(g, x, y), "y": lambda g, x, y: _by_tanh_value(g, x, y)},
)  # fmt: skip


def lstm(pre: Sequence[Tensor], c: Tensor) -> tuple[Tensor, Tensor]:
    """Return the next (h, c) from the pre-activations of the four gates (i, f, g, o) and c."""
    i, f, g, o = pre
    c = _LSTM_C(i, f, g, c)
    return _LSTM_H(o, c), c


_GRU_N = Row(
    "gru_n", {"f": "tanh(x + sigmoid(y) * z)"}, args=("new", "reset", "state"), public=False, node="TanhBackward0",
    grad={
        "x": lambda g, result: g * (1 - result * result),
        "y": lambda g, y, z, result: _by_gate(g * (1 - result * result), y, z),
        "z": lambda g, y, result: _by_value(g * (1 - result * result), y),
    },
)  # fmt: skip
_GRU_H = Row(
    "gru_h", {"f": "x + sigmoid(y) * (z - x)"}, args=("new", "update", "h"), public=False, node="AddBackward0",
    grad={
        "x": lambda g, y: g - _by_value(g, y), "y": lambda g, x, y, z: _by_gate(g, y, z - x),
        "z": lambda g, y: _by_value(g, y),
    },
)  # fmt: skip


def gru(by_x: Sequence[Tensor], by_h: Sequence[Tensor], h: Tensor) -> Tensor:
    """Return the next h from the input's and the state's contributions to the three gates (r, z, n), and h."""
    (xr, xz, xn), (hr, hz, hn) = by_x, by_h
    return _GRU_H(_GRU_N(xn, xr + hr, hn), xz + hz, h)
