"""Powers: exact rows for the exponents torch treats apart, squaring for integers, a general one for the rest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd import dual
from ..autograd import record as graph
from ..autograd.mode import FORWARD, unrecorded
from . import core, writes
from .arguments import invalid_combination
from .core import NUMBERS, Tensor, is_tensor
from .operands import normal
from .refusals import refusal
from .row import FUNCTIONS, METHODS, Row, public
from .selection import where
from .slopes import slope
from .values import conj


def _pow_base_grad(g: Tensor, x: Any, y: Any) -> Tensor:
    if y.__class__ in NUMBERS:
        return writes.nothing(g) if y == 0 else g * conj(pow(x, y - 1) * y)
    return where(y == 0, 0.0, g * conj(y * pow(x, y - 1)))


def _pow_exponent_grad(g: Tensor, x: Any, y: Any, result: Tensor) -> Tensor:
    if x.__class__ in NUMBERS:
        if x == 0:
            return (
                where(y >= 0, 0.0, g * conj(result * -math.inf))
                if not y.dtype.is_complex
                else writes.nothing(g)
            )
        log = math.log(x) if not isinstance(x, complex) and x > 0 else None
        return (
            g * conj(result * log)
            if log is not None
            else g * conj(result * core.Registry.tensor._scalar(complex(x)).log())
        )
    log = x.to(result.dtype).log()  # complex for a negative real base, if the exponent is complex
    if result.dtype.is_complex:
        return where(
            (x == 0) & (y.real >= 0 if y.dtype.is_complex else y >= 0),
            0.0,
            g * conj(result * log),
        )
    return where((x == 0) & (y >= 0), 0.0, g * (result * log))


pow_row = Row(
    "pow", {"i": "ipow(x, y)", "f": "pow(x, y)", "c": "cpow(x, y)"}, args=("input", "exponent"), public=False, reference=np.power, node="PowBackward1",
    domain=(0.2, 2.0), grad={"x": _pow_base_grad, "y": _pow_exponent_grad},
)  # fmt: skip


def _power_row(exponent: float, formula: dict[str, str] | str, less: str = "") -> Row:
    """`less` is the formula for real numbers of y to the power of `exponent` - 1, of those used most."""
    name = f"pow_{str(exponent).replace('.', '_').replace('-', 'm')}"

    def steps(g: Tensor, x: Tensor) -> Tensor:
        return g * conj(pow(x, exponent - 1) * exponent)

    return Row(
        name, formula, args=("input",), public=False, node="PowBackward0",
        grad={"x": slope(name + "_slope", f"x * ({less} * {exponent})", steps) if less else steps},
    )  # fmt: skip


# The exponents torch also treats apart: exact, and far cheaper than a general power.
POWERS = {
    1: _power_row(1, "x"),
    2: _power_row(2, "x * x", "y"),
    3: _power_row(3, "x * x * x", "y * y"),
    0.5: _power_row(0.5, {"f": "sqrt(x)", "c": "csqrt(x)"}),
    -0.5: _power_row(-0.5, {"f": "1 / sqrt(x)"}),
    -1: _power_row(-1, {"fc": "1 / x"}),
    -2: _power_row(-2, {"f": "1 / (x * x)"}),
}


def _int_power(x: Tensor, exponent: int, dt: dtypes.dtype) -> Tensor:
    """Raise integers to a number by repeated squaring, lazily; the result wraps like the multiplications do."""
    base = x.to(dt)
    result = None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if exponent:
            base = base * base
    if result is None:
        return FUNCTIONS["ones_like"](x, dtype=dt)
    return result if result is not x else result.clone()


@public()
def pow(
    input: Tensor | complex, exponent: Tensor | complex, *, out: Tensor | None = None
) -> Tensor:
    """Raise to a power; integer tensors to negative numbers are refused."""
    if not is_tensor(input) and not is_tensor(exponent):
        raise invalid_combination("pow", (input, exponent))
    input, exponent = normal("pow", ("input", "exponent"), (input, exponent))
    value = _pow(input, exponent)
    return value if out is None else writes.deliver(value, out, "pow", (input, exponent))


def _pow(x: Any, y: Any) -> Tensor:
    dt = core.result_type((x, y))
    if dt.category < 2:
        if y.__class__ in NUMBERS and y < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if dt.category == 0:
            if y.__class__ in NUMBERS:
                return x | (not y)
            raise refusal("pow", dt)
        if y.__class__ in NUMBERS:
            return _int_power(x, int(y), dt)  # type: ignore[arg-type]
        return _row_major(pow_row(x, y)) if x.__class__ in NUMBERS else pow_row(x, y)
    if y.__class__ in NUMBERS and y.__class__ is not complex:
        if y == 0:
            ones = FUNCTIONS["ones_like"](x, dtype=dt, requires_grad=False)
            if graph.needs_grad(x):
                graph.record("PowBackward0", (x,), ones, lambda ctx, g: (writes.nothing(g),), {})
            return ones
        row = POWERS.get(y)  # type: ignore[arg-type]
        if row is not None and row.ops[dt.category] is not None:
            return row(x if x.dtype is dt else x.to(dt))
        return scalar_exponent_row(x, y)
    if x.__class__ in NUMBERS:
        return _row_major(scalar_base_row(x, y))
    return pow_row(x, y)


def _row_major(value: Tensor) -> Tensor:
    """Return a fresh result, with its history, in the order of its dims: powers of numbers do not take over the exponent's
    layout.
    """
    if value._contig:
        return value
    with unrecorded():
        dense = value.contiguous()
    dense._node, dense._nr = value._node, value._nr
    if FORWARD.open:
        dual.keep(dense, value)
    return dense


scalar_exponent_row = Row(
    "pow_scalar", {"f": "pow(x, y)", "c": "cpow(x, y)"}, args=("input", "exponent"), public=False, node="PowBackward0", graph_inputs=1,
    grad={"x": _pow_base_grad},
)  # fmt: skip


scalar_base_row = Row(
    "pow_base", {"f": "pow(x, y)", "c": "cpow(x, y)"}, args=("input", "exponent"), public=False, node="PowBackward2",
    grad={"y": _pow_exponent_grad},
)  # fmt: skip


def pow_(t: Tensor, exponent: Any) -> Tensor:
    """In-place form of `pow`."""
    return writes.assign(t, lambda x: pow(x, exponent))


METHODS["pow_"] = pow_


@public()
def float_power(
    input: Tensor | complex, exponent: Tensor | complex, *, out: Tensor | None = None
) -> Tensor:
    """Raise to a power in double precision."""
    input, exponent = normal("float_power", ("input", "exponent"), (input, exponent))
    cplx = any(
        (v.dtype.is_complex if is_tensor(v) else isinstance(v, complex)) for v in (input, exponent)
    )
    wide = dtypes.complex128 if cplx else dtypes.float64
    _check_wide("output", "float_power", out, wide)
    value = pow(*[v.to(wide) if is_tensor(v) else v for v in (input, exponent)])
    return value if out is None else writes.deliver(value, out, "float_power", (input, exponent))


def _check_wide(what: str, function: str, t: Tensor | None, wide: dtypes.dtype) -> None:
    if t is not None and t.dtype is not wide:
        raise RuntimeError(
            f"the {what} given to {function} has dtype {t.dtype.scalar_name} but the operation's "
            f"result requires dtype {wide.scalar_name}"
        )


def float_power_(t: Tensor, exponent: Any) -> Tensor:
    """In-place form of `float_power`, for doubles."""
    value = float_power(t.detach(), exponent)
    _check_wide("base", "float_power_", t, value.dtype)
    return writes.assign(t, lambda x: float_power(x, exponent))


METHODS["float_power_"] = float_power_
