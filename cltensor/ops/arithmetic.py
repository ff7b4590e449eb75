"""Rows of arithmetic: sums, products, quotients, powers, remainders, clamping and selection."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes, layouts
from ..autograd import record as graph
from . import core
from .core import NUMBERS, Tensor, is_tensor
from .row import FLOAT, FUNCTIONS, METHODS, Row, invalid_combination, normal, public

BINARY = ("input", "other")


def conj(v: Any) -> Any:
    """Conjugate of a tensor or number; real values as they are."""
    if v.__class__ in NUMBERS:
        return v.conjugate() if v.__class__ is complex else v
    return v.conj() if v.dtype.is_complex else v


C_NAMES = dtypes.C_NAMES | {
    "int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t",
    "uint64": "uint64_t",
}  # fmt: skip


def check_value(value: Any, dt: dtypes.dtype, name: str = "") -> Any:
    """Return the number as the dtype can take it, a complex one without its zero imaginary part; RuntimeError in torch's words.

    `name` replaces the C name of the type.
    """
    fits = value.__class__ is not complex or dt.is_complex or dt.category == 0 or not value.imag
    if fits and dt.category == 1:
        if value != value or value in (math.inf, -math.inf):
            fits = False
        else:
            bits = dt.itemsize * 8
            low, high = (
                (-(1 << bits - 1), (1 << bits - 1) - 1)
                if dt.is_signed
                else (-(1 << bits) + 1, (1 << bits) - 1)
            )
            fits = low <= int(value.real) <= high
    elif fits and dt.category > 1:
        limit = dtypes.finfo(dt).max
        fits = all(
            abs(part) <= limit or not math.isfinite(part) for part in (value.real, value.imag)
        )
    if not fits:
        raise RuntimeError(
            f"value cannot be converted to type {name or C_NAMES[dt.name]} without overflow"
        )
    return value.real if value.__class__ is complex and dt.category in (1, 2) else value


def refuse_complex(value: Tensor, dt: dtypes.dtype) -> None:
    """Raise torch's RuntimeError for a complex tensor whose value would be written as a real number."""
    if value.dtype.is_complex and not dt.is_complex and dt.category:
        raise RuntimeError(f"value cannot be converted to type {C_NAMES[dt.name]} without overflow")


# ------------------------------------------------------------------------------------------- sums

add_row = Row(
    "add", {"b": "x or y", "ifc": "x + y"}, args=BINARY, public=False, reference=np.add, node="AddBackward0",
    grad={"x": lambda g: g, "y": lambda g: g},
)  # fmt: skip
add_scaled_row = Row(
    "add_scaled", {"b": "x or (z and y)", "ifc": "x + z * y"}, args=("input", "other", "alpha"), weak="z", public=False, node="AddBackward0", graph_inputs=2,
    grad={"x": lambda g: g, "y": lambda g, z: g * conj(z)},
)  # fmt: skip
sub_row = Row(
    "sub", {"ifc": "x - y"}, args=BINARY, public=False, reference=np.subtract, node="SubBackward0",
    grad={"x": lambda g: g, "y": lambda g: -g},
)  # fmt: skip
sub_scaled_row = Row(
    "sub_scaled", {"ifc": "x - z * y"}, args=("input", "other", "alpha"), weak="z", public=False, node="SubBackward0", graph_inputs=2,
    grad={"x": lambda g: g, "y": lambda g, z: -g * conj(z)},
)  # fmt: skip
rsub_row = Row(
    "rsub", {"ifc": "y - z * x"}, args=("input", "other", "alpha"), weak="z", public=False, node="RsubBackward0", number_nodes={"y": "RsubBackward1"}, graph_inputs=2,
    grad={"x": lambda g, z: -g * conj(z), "y": lambda g: g},
)  # fmt: skip


def _operands(name: str, input: Any, other: Any, alpha: Any) -> tuple:
    tensor = core._Registry.tensor
    if input.__class__ is not tensor or (
        other.__class__ is not tensor and other.__class__ not in NUMBERS
    ):
        input, other = normal(name, BINARY, (input, other))
    if alpha.__class__ is not int and alpha != 1:
        dt = core.result_type((input, other))
        if isinstance(alpha, bool) and dt.category != 0:
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
        if dt.category < 2 and isinstance(alpha, float):
            raise RuntimeError(
                "For integral input tensors, argument alpha must not be a floating point number."
            )
    return input, other


def _no_bools(a: Any, b: Any) -> None:
    ba = a.__class__ is bool or (is_tensor(a) and a.dtype is dtypes.bool)
    bb = b.__class__ is bool or (is_tensor(b) and b.dtype is dtypes.bool)
    if ba and bb:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        )
    if ba or bb:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


@public()
def add(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Add `alpha * other` to `input`, broadcasting; dtypes promote."""
    input, other = _operands("add", input, other, alpha)
    value = add_row(input, other) if alpha == 1 else add_scaled_row(input, other, alpha)
    return value if out is None else core.deliver(value, out, "add", (input, other))


@public(aliases=("subtract",))
def sub(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Subtract `alpha * other` from `input`, broadcasting; two bool tensors are refused."""
    input, other = _operands("sub", input, other, alpha)
    _no_bools(input, other)
    value = sub_row(input, other) if alpha == 1 else sub_scaled_row(input, other, alpha)
    return value if out is None else core.deliver(value, out, "sub", (input, other))


@public()
def rsub(input: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """Compute `other - alpha * input`."""
    if not is_tensor(input):
        raise invalid_combination("rsub", (input, other))
    input, other = _operands("rsub", input, other, alpha)
    _no_bools(input, other)
    return rsub_row(input, other, alpha)


def add_(t: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """In-place form of `add`."""
    _, other = _operands("add_", t, other, alpha)
    return add_row.inplace(t, other) if alpha == 1 else add_scaled_row.inplace(t, other, alpha)


def sub_(t: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """In-place form of `sub`."""
    _, other = _operands("sub_", t, other, alpha)
    _no_bools(t, other)
    return sub_row.inplace(t, other) if alpha == 1 else sub_scaled_row.inplace(t, other, alpha)


METHODS["add_"] = add_
METHODS["sub_"] = METHODS["subtract_"] = sub_

# ------------------------------------------------------------------------------------------- products and quotients

mul = Row(
    "mul", {"b": "x and y", "ifc": "x * y"}, args=BINARY, aliases=("multiply",), numbers="xy", reference=np.multiply,
    grad={"x": lambda g, y: g * conj(y), "y": lambda g, x: g * conj(x)},
)  # fmt: skip
true_divide = Row(
    "div", {"fc": "x / y"}, promote=FLOAT, args=BINARY, public=False, reference=np.true_divide, node="DivBackward0",
    grad={"x": lambda g, y: g / conj(y), "y": lambda g, x, y: -g * conj((x / y) / y)},
)  # fmt: skip

# A quotient by a number inside a composite function of torch's: its node has another name.
div_number = Row(
    "div_number",
    {"fc": "x / y"},
    promote=FLOAT,
    args=BINARY,
    public=False,
    node="DivBackward1",
    graph_inputs=1,
    grad={"x": lambda g, y: g / conj(y)},
)

# Integer quotients never reach the hardware with a divisor of 0 or -1: it traps or returns junk (see check_divisor).
_TRUNC = "where(y == -1, 0 - x, x / where(y == 0 or y == -1, 1, y))"
_TRUNC_REST = "where(y == 0 or y == -1, 0, x % where(y == 0 or y == -1, 1, y))"
_FLOOR_REST = f"where({_TRUNC_REST} != 0 and ({_TRUNC_REST} < 0) != (y < 0), {_TRUNC_REST} + y, {_TRUNC_REST})"
_FLOOR = f"where(y == -1, 0 - x, {_TRUNC} - where({_TRUNC_REST} != 0 and ({_TRUNC_REST} < 0) != (y < 0), 1, 0))"
# Python's floor division of floats: exact remainder first, then a quotient that is rounded to the nearest integer.
_FMOD = "fmod(x, y)"
_FLOAT_REST = f"where({_FMOD} != 0 and (({_FMOD} < 0) != (y < 0)), {_FMOD} + y, {_FMOD})"
_QUOTIENT = f"((x - {_FMOD}) / y - where({_FMOD} != 0 and (({_FMOD} < 0) != (y < 0)), 1, 0))"
_FLOAT_FLOOR = (
    f"where(y == 0, x / y, where({_QUOTIENT} == 0, copysign(0, x / y), "
    f"floor({_QUOTIENT}) + where({_QUOTIENT} - floor({_QUOTIENT}) > 0.5, 1, 0)))"
)

div_trunc = Row(
    "div_trunc", {"i": _TRUNC, "f": "trunc(x / y)"}, args=BINARY, public=False, node="DivBackward2",
    grad={"x": lambda g: g * 0, "y": lambda g: g * 0},
)  # fmt: skip
div_floor = Row(
    "div_floor", {"i": _FLOOR, "f": _FLOAT_FLOOR}, args=BINARY, public=False, node="DivBackward2",
    grad={"x": lambda g: g * 0, "y": lambda g: g * 0},
)  # fmt: skip
floor_divide_row = Row(
    "floor_divide",
    {"i": _FLOOR, "f": _FLOAT_FLOOR},
    args=BINARY,
    public=False,
    underivable="floor_divide",
)
remainder_row = Row(
    "remainder", {"i": _FLOOR_REST, "f": _FLOAT_REST}, args=BINARY, public=False, reference=np.mod, node="RemainderBackward1",
    number_nodes={"x": "NotImplemented", "y": "RemainderBackward0"},
    grad={"x": lambda g: g, "y": lambda g, x, y: -g * div(x, y, rounding_mode="floor")},
)  # fmt: skip
fmod_row = Row(
    "fmod", {"i": _TRUNC_REST, "f": _FMOD}, args=BINARY, public=False, reference=np.fmod, node="FmodBackward1", number_nodes={"y": "FmodBackward0"},
    grad={"x": lambda g: g, "y": lambda g, x, y: -g * div(x, y, rounding_mode="trunc")},
)  # fmt: skip


def check_divisor(a: Any, b: Any) -> None:
    """Raise torch's ZeroDivisionError (a RuntimeError) for an integer division by zero on cpu."""
    if core.result_type((a, b)).category > 1:
        return
    zero = (
        b == 0
        if b.__class__ in NUMBERS
        else b.device.type == "cpu" and b.numel() and bool((b == 0).any())
    )
    if zero and (a.__class__ in NUMBERS or a.numel()):
        raise RuntimeError("ZeroDivisionError")


def _divided(row: Row, name: str, input: Any, other: Any, out: Tensor | None) -> Tensor:
    input, other = normal(name, BINARY, (input, other))
    check_divisor(input, other)
    value = row(input, other)
    return value if out is None else core.deliver(value, out, name, (input, other))


@public(aliases=("divide",))
def div(
    input: Tensor, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None
) -> Tensor:
    """Divide; integers give floats unless `rounding_mode` is "trunc" or "floor"."""
    return (
        _divided(_div_row(rounding_mode), "div", input, other, out)
        if rounding_mode
        else _true(input, other, out)
    )


def _true(input: Any, other: Any, out: Tensor | None) -> Tensor:
    input, other = normal("div", BINARY, (input, other))
    value = true_divide(input, other)
    return value if out is None else core.deliver(value, out, "div", (input, other))


def _div_row(rounding_mode: str | None) -> Row:
    if rounding_mode is None:
        return true_divide
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return div_trunc if rounding_mode == "trunc" else div_floor


@public("true_divide")
def _true_divide(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Divide; integers give floats."""
    return _true(input, other, out)


@public()
def floor_divide(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Divide and round towards minus infinity."""
    return _divided(floor_divide_row, "floor_divide", input, other, out)


@public()
def remainder(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Remainder with the divisor's sign, as Python's `%`."""
    return _divided(remainder_row, "remainder", input, other, out)


@public()
def fmod(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Remainder with the dividend's sign, as C's `fmod`."""
    if not is_tensor(input):
        raise invalid_combination("fmod", (input, other))
    return _divided(fmod_row, "fmod", input, other, out)


def _inplace_division(name: str, row: Row) -> None:
    def method_(t: Tensor, other: Any) -> Tensor:
        t, other = normal(name + "_", BINARY, (t, other))
        check_divisor(t, other)
        return row.inplace(t, other)

    method_.__name__ = name + "_"
    method_.__doc__ = f"In-place form of `{name}`."
    METHODS[name + "_"] = method_


def div_(t: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of `div`."""
    t, other = normal("div_", BINARY, (t, other))
    if rounding_mode:
        check_divisor(t, other)
    return _div_row(rounding_mode).inplace(t, other)


METHODS["div_"] = METHODS["divide_"] = div_
METHODS["true_divide_"] = lambda t, other: div_(t, other)
_inplace_division("floor_divide", floor_divide_row)
_inplace_division("remainder", remainder_row)
_inplace_division("fmod", fmod_row)

# ------------------------------------------------------------------------------------------- powers


def _pow_base_grad(g: Tensor, x: Any, y: Any) -> Tensor:
    if y.__class__ in NUMBERS:
        return g * 0 if y == 0 else g * conj(pow(x, y - 1) * y)
    return where(y == 0, 0.0, g * conj(y * pow(x, y - 1)))


def _pow_exponent_grad(g: Tensor, x: Any, y: Any, result: Tensor) -> Tensor:
    if x.__class__ in NUMBERS:
        if x == 0:
            return (
                where(y >= 0, 0.0, g * conj(result * -math.inf))
                if not y.dtype.is_complex
                else g * 0
            )
        log = math.log(x) if not isinstance(x, complex) and x > 0 else None
        return (
            g * conj(result * log)
            if log is not None
            else g * conj(result * core._Registry.tensor._scalar(complex(x)).log())
        )
    if x.dtype.is_complex or y.dtype.is_complex:
        return where(
            (x == 0) & (y.real >= 0 if y.dtype.is_complex else y >= 0),
            0.0,
            g * conj(result * x.log()),
        )
    return where((x == 0) & (y >= 0), 0.0, g * (result * x.log()))


# x ** y of integers by squaring: 64 bits are enough steps for any exponent that does not overflow.
_INT_POW_STEPS = 6

pow_row = Row(
    "pow", {"f": "pow(x, y)", "c": "cpow(x, y)"}, args=("input", "exponent"), public=False, reference=np.power, node="PowBackward1",
    domain=(0.2, 2.0), grad={"x": _pow_base_grad, "y": _pow_exponent_grad},
)  # fmt: skip


def _power_row(exponent: float, formula: dict[str, str] | str) -> Row:
    return Row(
        f"pow_{str(exponent).replace('.', '_').replace('-', 'm')}", formula, args=("input",), public=False, node="PowBackward0",
        grad={"x": lambda g, x: g * conj(pow(x, exponent - 1) * exponent)},
    )  # fmt: skip


# The exponents torch also treats apart: exact, and far cheaper than a general power.
POWERS = {
    1: _power_row(1, "x"),
    2: _power_row(2, "x * x"),
    3: _power_row(3, "x * x * x"),
    0.5: _power_row(0.5, {"f": "sqrt(x)", "c": "csqrt(x)"}),
    -0.5: _power_row(-0.5, {"f": "1 / sqrt(x)"}),
    -1: _power_row(-1, {"fc": "1 / x"}),
    -2: _power_row(-2, {"f": "1 / (x * x)"}),
}


def _int_power(x: Any, y: Any) -> Tensor:
    """Integer power by repeated squaring, lazily; the result wraps like the multiplications do."""
    dt = core.result_type((x, y))
    shape = layouts.broadcast_shapes(*[t.shape for t in (x, y) if is_tensor(t)])
    if y.__class__ in NUMBERS:
        base = x.to(dt)
        result = None
        while y:
            if y & 1:
                result = base if result is None else result * base
            y >>= 1
            if y:
                base = base * base
        return (
            base.new_ones(()).to(dt).expand(shape).clone()
            if result is None
            else (result if result is not x else result.clone())
        )
    tensors = (x if is_tensor(x) else y.new_full((), x, dtype=dt), y)
    base, e = tensors[0].to(dt), tensors[1].to(dt)
    # A negative exponent is 1 / x ** -e: 1 for 1, +-1 for -1, else 0.
    negative = where(base == 1, 1, where(base == -1, where((e & 1) == 1, -1, 1), 0)).to(dt)
    result, left = base * 0 + 1, e
    square = base
    for _ in range(_INT_POW_STEPS if dt.itemsize > 1 else 3):
        result = where((left & 1) == 1, result * square, result)
        square = square * square
        left = left >> 1
    positive = result if not dt.is_signed else where(e < 0, negative, result)
    return positive.expand(shape)


@public()
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """Raise to a power; integer tensors to negative numbers are refused."""
    if not is_tensor(input) and not is_tensor(exponent):
        raise invalid_combination("pow", (input, exponent))
    input, exponent = normal("pow", ("input", "exponent"), (input, exponent))
    value = _pow(input, exponent)
    return value if out is None else core.deliver(value, out, "pow", (input, exponent))


def _pow(x: Any, y: Any) -> Tensor:
    dt = core.result_type((x, y))
    if dt.category < 2:
        if y.__class__ in NUMBERS and y < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if dt.category == 0:
            if y.__class__ in NUMBERS:
                return x | (not y)
            return (
                FUNCTIONS["logical_or"](x, FUNCTIONS["logical_not"](y))
                if is_tensor(x)
                else FUNCTIONS["logical_not"](y) | bool(x)
            )
        return _int_power(x, y)
    if y.__class__ in NUMBERS and y.__class__ is not complex:
        if y == 0:
            ones = x.new_ones(x.shape, dtype=dt)
            if graph.needs_grad(x):
                graph.record("PowBackward0", (x,), ones, lambda ctx, g: (g * 0,), {})
            return ones
        row = POWERS.get(y)  # type: ignore[arg-type]
        if row is not None and row.ops[dt.category] is not None:
            return row(x if x.dtype is dt else x.to(dt))
        return scalar_exponent_row(x, y)
    if x.__class__ in NUMBERS:
        return scalar_base_row(x, y)
    return pow_row(x, y)


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
    return core.assign(t, lambda x: pow(x, exponent))


METHODS["pow_"] = pow_


@public()
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """Raise to a power in double precision."""
    input, exponent = normal("float_power", ("input", "exponent"), (input, exponent))
    cplx = any(
        (v.dtype.is_complex if is_tensor(v) else isinstance(v, complex)) for v in (input, exponent)
    )
    wide = dtypes.complex128 if cplx else dtypes.float64
    value = pow(*[v.to(wide) if is_tensor(v) else v for v in (input, exponent)])
    return value if out is None else core.deliver(value, out, "float_power", (input, exponent))


METHODS["float_power_"] = lambda t, exponent: core.assign(t, lambda x: float_power(x, exponent))

# ------------------------------------------------------------------------------------------- extremes, clamping, selection

_NAN_MAX = "where(x != x or x > y, x, y)"
_NAN_MIN = "where(x != x or x < y, x, y)"


def _half_where_equal(g: Tensor, x: Any, y: Any, other_wins: Tensor) -> Tensor:
    return where(FUNCTIONS["eq"](x, y), g / 2, where(other_wins, 0.0, g))


maximum = Row(
    "maximum", {"b": "x or y", "if": _NAN_MAX}, args=BINARY, inplace=False, reference=np.maximum,
    grad={"x": lambda g, x, y: _half_where_equal(g, x, y, x < y), "y": lambda g, x, y: _half_where_equal(g, x, y, x > y)},
)  # fmt: skip
minimum = Row(
    "minimum", {"b": "x and y", "if": _NAN_MIN}, args=BINARY, inplace=False, reference=np.minimum,
    grad={"x": lambda g, x, y: _half_where_equal(g, x, y, x > y), "y": lambda g, x, y: _half_where_equal(g, x, y, x < y)},
)  # fmt: skip
fmax = Row(
    "fmax", {"b": "x or y", "i": _NAN_MAX, "f": "fmax(x, y)"}, args=BINARY, inplace=False, reference=np.fmax,
    grad={"x": lambda g, x, y: where((x >= y) | y.isnan(), g, 0.0), "y": lambda g, x, y: where((x >= y) | y.isnan(), 0.0, g)},
)  # fmt: skip
fmin = Row(
    "fmin", {"b": "x and y", "i": _NAN_MIN, "f": "fmin(x, y)"}, args=BINARY, inplace=False, reference=np.fmin,
    grad={"x": lambda g, x, y: where((x <= y) | y.isnan(), g, 0.0), "y": lambda g, x, y: where((x <= y) | y.isnan(), 0.0, g)},
)  # fmt: skip

_CLAMP = "where(x != x, x, where({0} > z, z, {0}))".format("where(x < y, y, x)")
clamp_both = Row(
    "clamp", {"if": _CLAMP}, args=("input", "min", "max"), public=False, node="ClampBackward1",
    grad={
        "x": lambda g, x, y, z: where((x >= y) & (x <= z), g, 0.0),
        "y": lambda g, x, y, z: where((x < y) & (y <= z), g, 0.0),
        "z": lambda g, x, y, z: where((x > z) | (y > z), g, 0.0),
    },
)  # fmt: skip
clamp_low = Row(
    "clamp_min", {"b": "x or y", "if": "where(x < y, y, x)"}, args=("input", "min"), public=False, node="ClampMinBackward0",
    grad={"x": lambda g, x, y: where(x >= y, g, 0.0), "y": lambda g, x, y: where(x < y, g, 0.0)},
)  # fmt: skip
clamp_high = Row(
    "clamp_max", {"b": "x and y", "if": "where(x > y, y, x)"}, args=("input", "max"), public=False, node="ClampMaxBackward0",
    grad={"x": lambda g, x, y: where(x <= y, g, 0.0), "y": lambda g, x, y: where(x > y, g, 0.0)},
)  # fmt: skip
# With numbers as bounds the node is torch's ClampBackward1 whichever bound is given; only the input differentiates.
clamp_number_low = Row(
    "clamp_low",
    {"if": "where(x < y, y, x)"},
    args=("input", "min"),
    public=False,
    node="ClampBackward1",
    graph_inputs=1,
    grad={"x": lambda g, x, y: where(x >= y, g, 0.0)},
)
clamp_number_high = Row(
    "clamp_high",
    {"if": "where(x > y, y, x)"},
    args=("input", "max"),
    public=False,
    node="ClampBackward1",
    graph_inputs=1,
    grad={"x": lambda g, x, y: where(x <= y, g, 0.0)},
)
clamp_numbers = Row(
    "clamp_numbers",
    {"if": _CLAMP},
    args=("input", "min", "max"),
    public=False,
    node="ClampBackward1",
    graph_inputs=1,
    grad={"x": lambda g, x, y, z: where((x >= y) & (x <= z), g, 0.0)},
)


def _clamp_call(input: Tensor, min: Any, max: Any) -> tuple[Row, tuple]:
    if not is_tensor(input):
        raise invalid_combination("clamp", (input, min, max))
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    tensors = is_tensor(min) or is_tensor(max)
    if input.dtype.is_complex:
        raise RuntimeError("clamp is not supported for complex types")
    if (
        not tensors
        and core.result_type([x for x in (input, min, max) if x is not None]) is dtypes.bool
    ):
        raise NotImplementedError(
            f"\"clamp{'_min' if max is None else '_max' if min is None else ''}_scalar_cpu\" not implemented for 'Bool'"
        )
    if max is None:
        return (clamp_low if tensors else clamp_number_low), (input, min)
    if min is None:
        return (clamp_high if tensors else clamp_number_high), (input, max)
    if not tensors and (min != min or max != max):
        min = max = math.nan
    return (clamp_both if tensors else clamp_numbers), (input, min, max)


@public(aliases=("clip",))
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Limit to the range [min, max]; either bound may be a number, a tensor or missing."""
    row, xs = _clamp_call(input, min, max)
    value = row(*normal("clamp", ("input", "min", "max")[: len(xs)], xs))
    return value if out is None else core.deliver(value, out, "clamp", xs)


def clamp_(t: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place form of `clamp`."""
    row, xs = _clamp_call(t, min, max)
    return row.inplace(*xs)


METHODS["clamp_"] = METHODS["clip_"] = clamp_


def _refuse_number(function: str, input: Any, *others: Any) -> None:
    if not is_tensor(input):
        raise invalid_combination(function, (input, *others))


@public()
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Limit from below."""
    _refuse_number("clamp_min", input, min)
    value = clamp_low(*normal("clamp_min", ("input", "min"), (input, min)))
    return value if out is None else core.deliver(value, out, "clamp_min", (input,))


@public()
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Limit from above."""
    _refuse_number("clamp_max", input, max)
    value = clamp_high(*normal("clamp_max", ("input", "max"), (input, max)))
    return value if out is None else core.deliver(value, out, "clamp_max", (input,))


METHODS["clamp_min_"] = lambda t, min: clamp_low.inplace(
    *normal("clamp_min_", ("input", "min"), (t, min))
)
METHODS["clamp_max_"] = lambda t, max: clamp_high.inplace(
    *normal("clamp_max_", ("input", "max"), (t, max))
)

where_row = Row(
    "where", "where(x, y, z)", masks="x", args=("condition", "input", "other"), public=False, node="WhereBackward0", graph_from=1,
    grad={"y": lambda g, x: where(x, g, 0.0), "z": lambda g, x: where(x, 0.0, g)},
)  # fmt: skip


@public("where", method=False)
def where(
    condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None
) -> Any:
    """Take from `input` where the condition holds, else from `other`; with the condition alone: its nonzero indices."""
    if input is None and other is None:
        return FUNCTIONS["nonzero"](condition, as_tuple=True)
    if not is_tensor(condition):
        raise invalid_combination("where", (condition, input, other))
    if condition.dtype is not dtypes.bool:
        if condition.dtype is not dtypes.uint8:
            raise RuntimeError(
                f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.scalar_name}"
            )
        condition = condition.bool()
    values = [v.item() if isinstance(v, np.generic) else v for v in (input, other)]
    for name, v in zip(("input", "other"), values, strict=True):
        if not is_tensor(v) and v.__class__ not in NUMBERS:
            raise TypeError(f"where(): argument '{name}' must be Tensor, not {type(v).__name__}")
    value = where_row(condition, *values)
    return value if out is None else core.deliver(value, out, "where", (input, other))


METHODS["where"] = lambda self, condition, other: where(condition, self, other)

lerp_row = Row(
    "lerp", {"f": "where(abs(z) < 0.5, x + z * (y - x), y - (y - x) * (1 - z))", "c": "x + z * (y - x)"},
    args=("input", "end", "weight"), public=False, node="LerpBackward1",
    grad={"x": lambda g, z: g * conj(1 - z), "y": lambda g, z: g * conj(z), "z": lambda g, x, y: g * conj(y - x)},
)  # fmt: skip
lerp_number = Row(
    "lerp_number", {"f": "where(abs(z) < 0.5, x + z * (y - x), y - (y - x) * (1 - z))", "c": "x + z * (y - x)"},
    args=("input", "end", "weight"), public=False, node="LerpBackward0", graph_inputs=2,
    grad={"x": lambda g, z: g * conj(1 - z), "y": lambda g, z: g * conj(z)},
)  # fmt: skip


def _lerp_call(input: Tensor, end: Tensor, weight: Any) -> tuple[Row, tuple]:
    if not is_tensor(input) or not is_tensor(end):
        raise invalid_combination("lerp", (input, end, weight))
    input, end, weight = normal("lerp", ("input", "end", "weight"), (input, end, weight))
    if end.dtype is not input.dtype:
        raise RuntimeError(
            f"expected dtype {input.dtype.name} for `end` but got dtype {end.dtype.name}"
        )
    if is_tensor(weight) and weight.dtype is not input.dtype:
        raise RuntimeError(
            f"expected dtype {input.dtype.name} for `weight` but got dtype {weight.dtype.name}"
        )
    return (lerp_row if is_tensor(weight) else lerp_number), (input, end, weight)


@public()
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """Interpolate linearly: input + weight * (end - input)."""
    row, xs = _lerp_call(input, end, weight)
    value = row(*xs)
    return value if out is None else core.deliver(value, out, "lerp", xs)


METHODS["lerp_"] = lambda t, end, weight: (lambda c: c[0].inplace(*c[1]))(
    _lerp_call(t, end, weight)
)

addcmul_row = Row(
    "addcmul", {"ifc": "x + w * y * z"}, args=("input", "tensor1", "tensor2", "value"), public=False, node="AddcmulBackward0", graph_inputs=3,
    grad={"x": lambda g: g, "y": lambda g, z, w: g * conj(z * w), "z": lambda g, y, w: g * conj(y * w)},
)  # fmt: skip
addcdiv_row = Row(
    "addcdiv", {"fc": "x + w * (y / z)"}, args=("input", "tensor1", "tensor2", "value"), public=False, node="AddcdivBackward0", graph_inputs=3,
    grad={"x": lambda g: g, "y": lambda g, z, w: g * conj(w / z), "z": lambda g, y, z, w: -g * conj(w * (y / (z * z)))},
)  # fmt: skip


@public()
def addcmul(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None
) -> Tensor:
    """Compute input + value * tensor1 * tensor2."""
    r = addcmul_row(input, tensor1, tensor2, value)
    return r if out is None else core.deliver(r, out, "addcmul", (input, tensor1, tensor2))


@public()
def addcdiv(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None
) -> Tensor:
    """Compute input + value * tensor1 / tensor2; integer tensors are refused."""
    if core.result_type((tensor1, tensor2)).category < 2:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of "
            "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) "
            "for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter "
            "implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )
    r = addcdiv_row(input, tensor1, tensor2, value)
    return r if out is None else core.deliver(r, out, "addcdiv", (input, tensor1, tensor2))


METHODS["addcmul_"] = lambda t, tensor1, tensor2, *, value=1: addcmul_row.inplace(
    t, tensor1, tensor2, value
)
METHODS["addcdiv_"] = lambda t, tensor1, tensor2, *, value=1: addcdiv_row.inplace(
    t, tensor1, tensor2, value
)

masked_fill_row = Row(
    "masked_fill", "where(y, z, x)", masks="y", args=("input", "mask", "value"), public=False, node="MaskedFillBackward1", number_nodes={"z": "MaskedFillBackward0"},
    grad={"x": lambda g, y: where(y, 0.0, g), "z": lambda g, y: where(y, g, 0.0).sum()},
)  # fmt: skip


def _fill_value(input: Tensor, mask: Tensor, value: Any) -> Any:
    if mask.dtype is not dtypes.bool:
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype " + repr(mask.dtype)
        )
    if is_tensor(value):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        refuse_complex(value, input.dtype)
        return value.to(input.dtype)
    value = check_value(value, input.dtype)
    return (input.dtype.category == 1 and value.__class__ is float and int(value)) or (
        bool(value) if input.dtype.category == 0 else value
    )


@public()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Replace elements by `value` where the bool mask, broadcast to the tensor, is true."""
    return masked_fill_row(input, mask, _fill_value(input, mask, value))


METHODS["masked_fill_"] = lambda t, mask, value: masked_fill_row.inplace(
    t, mask, _fill_value(t, mask, value)
)

# ------------------------------------------------------------------------------------------- divisors and powers of two

gcd = Row("gcd", {"i": "gcd(x, y)"}, args=BINARY, reference=np.gcd, domain=(-9, 9))
lcm_row = Row(
    "lcm",
    {"i": "where(x == 0 or y == 0, 0, abs(x / where(gcd(x, y) == 0, 1, gcd(x, y)) * y))"},
    args=BINARY,
    reference=np.lcm,
    domain=(-9, 9),
)
ldexp = Row(
    "ldexp", {"f": "x * exp2_whole(y)", "c": "x * cexp(y * 0.6931471805599453)"}, args=BINARY, promote=FLOAT,
    grad={"x": lambda g, y: g * FUNCTIONS["exp2"](conj(y)), "y": lambda g, result: g * conj(result) * math.log(2)},
)  # fmt: skip
