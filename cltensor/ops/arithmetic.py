"""Rows of arithmetic: sums, products, quotients, remainders, interpolation, common divisors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from . import core, writes
from .arguments import invalid_combination
from .core import NUMBERS, Tensor, is_tensor
from .old_forms import scaled
from .operands import normal, promoted, refuse_numbers
from .refusals import no_kernel
from .row import FLOAT, FUNCTIONS, METHODS, Row, public
from .slopes import slope
from .values import check_value, conj, number

BINARY = ("input", "other")


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
    tensor = core.Registry.tensor
    if input.__class__ is not tensor or (
        other.__class__ is not tensor and other.__class__ not in NUMBERS
    ):
        input, other = normal(name, BINARY, (input, other))
    first = other if input.__class__ in NUMBERS else input
    if alpha.__class__ is not int and (alpha.__class__ is not float or first.dtype.category < 2):
        alpha = number(name, "alpha", alpha)
        dt = core.result_type((input, other))
        if isinstance(alpha, bool) and dt.category != 0:
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
        if dt.category < 2 and isinstance(alpha, float | complex):
            raise RuntimeError(
                "For integral input tensors, argument alpha must not be a floating point number."
            )
        if dt.category == 2 and isinstance(alpha, complex):
            raise RuntimeError(
                "For non-complex input tensors, argument alpha must not be a complex number."
            )
    if not abs(alpha) <= 127:
        check_value(alpha, core.result_type((input, other)))
    return input, other, alpha


def minus(a: Tensor, b: Tensor | float) -> Tensor:
    """Compute `a - b`."""
    if a.dtype is dtypes.bool or (b.__class__ is a.__class__ and b.dtype is dtypes.bool):
        no_bools(a, b)
    return sub_row(a, b)


def no_bools(a: Any, b: Any) -> None:
    """Raise torch's RuntimeError for a subtraction with a bool operand."""
    ba = a.__class__ is bool or getattr(a, "dtype", None) is dtypes.bool
    bb = b.__class__ is bool or getattr(b, "dtype", None) is dtypes.bool
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
def add(
    input: Tensor | complex,
    other: Tensor | complex,
    *later: Any,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Add `alpha * other` to `input`, broadcasting; dtypes promote."""
    if later:
        other, alpha = scaled("add", other, later)
    input, other, alpha = _operands("add", input, other, alpha)
    value = add_row(input, other) if alpha == 1 else add_scaled_row(input, other, alpha)
    return value if out is None else writes.deliver(value, out, "add", (input, other))


@public(aliases=("subtract",))
def sub(
    input: Tensor | complex,
    other: Tensor | complex,
    *later: Any,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Subtract `alpha * other` from `input`, broadcasting; two bool tensors are refused."""
    if later:
        other, alpha = scaled("sub", other, later)
    input, other, alpha = _operands("sub", input, other, alpha)
    no_bools(input, other)
    value = sub_row(input, other) if alpha == 1 else sub_scaled_row(input, other, alpha)
    return value if out is None else writes.deliver(value, out, "sub", (input, other))


@public()
def rsub(input: Tensor, other: Tensor | complex, alpha: Any = 1) -> Tensor:
    """Compute `other - alpha * input`."""
    if not is_tensor(input):
        raise invalid_combination("rsub", (input, other))
    input, other, alpha = _operands("rsub", input, other, alpha)
    no_bools(input, other)
    return rsub_row(input, other, alpha)


def add_(t: Tensor, other: Any, *later: Any, alpha: Any = 1) -> Tensor:
    """In-place form of `add`."""
    if later:
        other, alpha = scaled("add_", other, later)
    _, other, alpha = _operands("add_", t, other, alpha)
    return add_row.inplace(t, other) if alpha == 1 else add_scaled_row.inplace(t, other, alpha)


def sub_(t: Tensor, other: Any, *later: Any, alpha: Any = 1) -> Tensor:
    """In-place form of `sub`."""
    if later:
        other, alpha = scaled("sub_", other, later)
    _, other, alpha = _operands("sub_", t, other, alpha)
    no_bools(t, other)
    return sub_row.inplace(t, other) if alpha == 1 else sub_scaled_row.inplace(t, other, alpha)


METHODS["add_"] = add_
METHODS["sub_"] = METHODS["subtract_"] = sub_

# ------------------------------------------------------------------------------------------- products and quotients

mul = Row(
    "mul", {"b": "x and y", "ifc": "x * y"}, exact=True, args=BINARY, aliases=("multiply",), numbers="xy", wraps=True, reference=np.multiply,
    grad={"x": lambda g, y: g * conj(y), "y": lambda g, x: g * conj(x)},
    doc="The product of elements; of bools, the logical and.",
)  # fmt: skip
true_divide = Row(
    "div", {"fc": "x / y"}, promote=FLOAT, exact=True, args=BINARY, public=False, reference=np.true_divide, node="DivBackward0", wraps=True,
    grad={"x": lambda g, y: g / conj(y), "y": slope("div_slope", "-x * (y / z / z)", lambda g, x, y: -g * conj((x / y) / y), exact=True)},
)  # fmt: skip

# A product with, or quotient by, a number as torch's composite functions record it: the node has another name, and
# saves the number as a number.
mul_number = Row(
    "mul_number",
    {"fc": "x * y"},
    promote=FLOAT,
    exact=True,
    args=BINARY,
    public=False,
    node="MulBackward1",
    graph_inputs=1,
    grad={"x": lambda g, y: g * conj(y)},
)
div_number = Row(
    "div_number",
    {"fc": "x / y"},
    promote=FLOAT,
    exact=True,
    args=BINARY,
    public=False,
    node="DivBackward1",
    graph_inputs=1,
    grad={"x": lambda g, y: g / conj(y)},
)

# Integer division by 0 or -1 must not reach the hardware, which traps or returns junk (see check_divisor). The test for
# -1 also asks for the sign, because the largest unsigned number has the same bits.
_NEGATES = "(y < 0 and y == -1)"
_TRUNC = f"where({_NEGATES}, 0 - x, x / where(y == 0 or {_NEGATES}, 1, y))"
_TRUNC_REST = f"where(y == 0 or {_NEGATES}, 0, x % where(y == 0 or {_NEGATES}, 1, y))"
_FLOOR_REST = f"where({_TRUNC_REST} != 0 and ({_TRUNC_REST} < 0) != (y < 0), {_TRUNC_REST} + y, {_TRUNC_REST})"
_FLOOR = f"where({_NEGATES}, 0 - x, {_TRUNC} - where({_TRUNC_REST} != 0 and ({_TRUNC_REST} < 0) != (y < 0), 1, 0))"

div_trunc = Row(
    "div_trunc", {"i": _TRUNC, "f": "trunc(x / y)"}, exact=True, args=BINARY, public=False, node="DivBackward2",
    grad={"x": lambda g: writes.nothing(g), "y": lambda g: writes.nothing(g)},
)  # fmt: skip
div_floor = Row(
    "div_floor", {"i": _FLOOR, "f": "floor_quotient(x, y)"}, exact=True, args=BINARY, public=False, node="DivBackward2",
    grad={"x": lambda g: writes.nothing(g), "y": lambda g: writes.nothing(g)},
)  # fmt: skip
floor_divide_row = Row(
    "floor_divide",
    {"i": _FLOOR, "f": "floor_quotient(x, y)"},
    exact=True,
    args=BINARY,
    public=False,
    underivable="floor_divide",
)

# For two tensors of 16-bit floats torch rounds after every step: a quotient of 2.996 becomes 3 before it is truncated.
# Division by a number is done in float32.
_SETTLED = "floor_settled(rounded(rounded(rounded(x - fmod(x, y)) / y) - where(fmod(x, y) != 0 and (x < 0) != (y < 0), 1, 0)), rounded(x / y), y)"
_STEPWISE = {
    "div_trunc": Row(
        "div_trunc_stepwise", {"f": "trunc(rounded(x / y))"}, args=BINARY, public=False, node="DivBackward2",
        grad={"x": lambda g: writes.nothing(g), "y": lambda g: writes.nothing(g)},
    ),
    "div_floor": Row(
        "div_floor_stepwise", {"f": _SETTLED}, args=BINARY, public=False, node="DivBackward2",
        grad={"x": lambda g: writes.nothing(g), "y": lambda g: writes.nothing(g)},
    ),
    "floor_divide": Row(
        "floor_divide_stepwise", {"f": _SETTLED}, args=BINARY, public=False, underivable="floor_divide",
    ),
}  # fmt: skip


def _stepwise(row: Row, dt: dtypes.dtype, b: Any) -> Row:
    """Return the row of `_STEPWISE` that takes the place of `row` for tensors of 16-bit floats; otherwise `row` itself.

    dt: the dtype to which the operands promote. b: the divisor.
    """
    if dt.itemsize != 2 or dt.category != 2 or row.name not in _STEPWISE:
        return row
    return row if b.__class__ in NUMBERS or b.numel() == 1 else _STEPWISE[row.name]


remainder_row = Row(
    "remainder", {"i": _FLOOR_REST, "f": "floor_rest(x, y)"}, args=BINARY, public=False, reference=np.mod, node="RemainderBackward1",
    number_nodes={"x": "NotImplemented", "y": "RemainderBackward0"},
    grad={"x": lambda g: g, "y": lambda g, x, y: -g * div(x, y, rounding_mode="floor")},
)  # fmt: skip
fmod_row = Row(
    "fmod", {"i": _TRUNC_REST, "f": "fmod(x, y)"}, args=BINARY, public=False, reference=np.fmod, node="FmodBackward1", number_nodes={"y": "FmodBackward0"},
    grad={"x": lambda g: g, "y": lambda g, x, y: -g * div(x, y, rounding_mode="trunc")},
)  # fmt: skip


def check_divisor(dt: dtypes.dtype, a: Any, b: Any) -> None:
    """Raise torch's ZeroDivisionError (a RuntimeError) for an integer division by zero on cpu.

    dt: the dtype to which the operands promote.
    """
    if dt.category > 1:
        return
    zero = b == 0 if b.__class__ in NUMBERS else b.device.type == "cpu" and not bool(b.all())
    if zero and (a.__class__ in NUMBERS or a.numel()):
        raise RuntimeError("ZeroDivisionError")


def _divided(row: Row, name: str, input: Any, other: Any, out: Tensor | None) -> Tensor:
    input, other = normal(name, BINARY, (input, other))
    dt = promoted(input, other)
    value = _stepwise(row, dt, other)(input, other)
    check_divisor(dt, input, other)
    return value if out is None else writes.deliver(value, out, name, (input, other))


@public(aliases=("divide",))
def div(
    input: Tensor | complex,
    other: Tensor | complex,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
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
    return value if out is None else writes.deliver(value, out, "div", (input, other))


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
def floor_divide(
    input: Tensor | complex, other: Tensor | complex, *, out: Tensor | None = None
) -> Tensor:
    """Divide and round towards minus infinity."""
    return _divided(floor_divide_row, "floor_divide", input, other, out)


@public()
def remainder(
    input: Tensor | complex, other: Tensor | complex, *, out: Tensor | None = None
) -> Tensor:
    """Remainder with the divisor's sign, as Python's `%`."""
    return _divided(remainder_row, "remainder", input, other, out)


@public()
def fmod(input: Tensor, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
    """Remainder with the dividend's sign, as C's `fmod`."""
    if not is_tensor(input):
        raise invalid_combination("fmod", (input, other))
    return _divided(fmod_row, "fmod", input, other, out)


def _divided_in_place(row: Row, t: Tensor, other: Any) -> Tensor:
    dt = promoted(t, other)
    check_divisor(dt, t, other)
    return _stepwise(row, dt, other).inplace(t, other)


def _inplace_division(name: str, row: Row) -> None:
    def method_(t: Tensor, other: Any) -> Tensor:
        t, other = normal(name + "_", BINARY, (t, other))
        return _divided_in_place(row, t, other)

    method_.__name__ = name + "_"
    method_.__doc__ = f"In-place form of `{name}`."
    METHODS[name + "_"] = method_


def div_(t: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of `div`."""
    t, other = normal("div_", BINARY, (t, other))
    if not rounding_mode:
        return true_divide.inplace(t, other)
    return _divided_in_place(_div_row(rounding_mode), t, other)


METHODS["div_"] = METHODS["divide_"] = div_
METHODS["true_divide_"] = lambda t, other: div_(t, other)
_inplace_division("floor_divide", floor_divide_row)
_inplace_division("remainder", remainder_row)
_inplace_division("fmod", fmod_row)

# ------------------------------------------------------------------------------------------- of three

lerp_row = Row(
    "lerp", {"f": "where(abs(z) < 0.5, x + z * (y - x), y - (y - x) * (1 - z))", "c": "x + z * (y - x)"},
    args=("input", "end", "weight"), public=False, node="LerpBackward1",
    grad={"x": lambda g, z: g * conj(1 - z), "y": lambda g, z: g * conj(z), "z": lambda g, x, y: g * conj(y - x)},
)  # fmt: skip
lerp_number = Row(
    "lerp_number", {"f": "where(abs(z) < 0.5, x + z * (y - x), y - (y - x) * (1 - z))", "c": "x + z * (y - x)"},
    exact=True, args=("input", "end", "weight"), public=False, node="LerpBackward0", graph_inputs=2,
    grad={"x": lambda g, z: g * conj(1 - z), "y": lambda g, z: g * conj(z)},
)  # fmt: skip


def _lerp_call(input: Tensor, end: Tensor, weight: Any) -> tuple[Row, tuple]:
    if not is_tensor(input) or not is_tensor(end):
        raise invalid_combination("lerp", (input, end, weight))
    input, end, weight = normal("lerp", ("input", "end", "weight"), (input, end, weight))
    if end.dtype is not input.dtype:
        raise RuntimeError(
            f"expected dtype {dtypes.C_NAMES[input.dtype.name]} for `end` but got dtype {dtypes.C_NAMES[end.dtype.name]}"
        )
    if is_tensor(weight) and weight.dtype is not input.dtype:
        if not weight.ndim and not weight.requires_grad:
            return lerp_number, (input, end, weight.item())
        raise RuntimeError(
            f"expected dtype {dtypes.C_NAMES[input.dtype.name]} for `weight` but got dtype {dtypes.C_NAMES[weight.dtype.name]}"
        )
    row = lerp_row if is_tensor(weight) else lerp_number
    if input.dtype.category < 2:
        kernel = "lerp_kernel_tensor" if row is lerp_row else "lerp_kernel_scalar"
        raise no_kernel(kernel, input.dtype)
    return row, (input, end, weight)


@public()
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """Interpolate linearly: input + weight * (end - input), broadcast together.

    The tensors are floats of one dtype, to which a number `weight` is converted.
    """
    row, xs = _lerp_call(input, end, weight)
    value = row(*xs)
    return value if out is None else writes.deliver(value, out, "lerp", xs)


METHODS["lerp_"] = lambda t, end, weight: (lambda c: c[0].inplace(*c[1]))(
    _lerp_call(t, end, weight)
)

addcmul_row = Row(
    "addcmul", {"ifc": "x + w * y * z"}, exact=True, args=("input", "tensor1", "tensor2", "value"), public=False, node="AddcmulBackward0", graph_inputs=3,
    grad={"x": lambda g: g, "y": lambda g, z, w: g * conj(z * w), "z": lambda g, y, w: g * conj(y * w)},
)  # fmt: skip
addcdiv_row = Row(
    "addcdiv", {"fc": "x + w * (y / z)"}, exact=True, args=("input", "tensor1", "tensor2", "value"), public=False, node="AddcdivBackward0", graph_inputs=3,
    grad={"x": lambda g: g, "y": lambda g, z, w: g * conj(w / z), "z": lambda g, y, z, w: -g * conj(w * (y / (z * z)))},
)  # fmt: skip


def _need_tensors(function: str, *operands: Any) -> None:
    refuse_numbers(function, ("input", "tensor1", "tensor2"), operands, (False,) * 3)


def _factor(function: str, value: Any, *tensors: Any) -> Any:
    """Return `value` as a number that the tensors' joint dtype can hold; TypeError for an operand that is no tensor."""
    _need_tensors(function, *tensors)
    value = number(function, "value", value)
    if value.__class__ is not complex and tensors[0].dtype.category > 1:
        return value
    dt = core.result_type(tensors)
    if dt is dtypes.bool:
        raise NotImplementedError("\"addcmul_cpu_out\" not implemented for 'Bool'")
    value = check_value(value, dt)
    return int(value) if dt.category == 1 else value


@public()
def addcmul(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None
) -> Tensor:
    """Compute input + value * tensor1 * tensor2; integers take `value` without its fraction."""
    r = addcmul_row(input, tensor1, tensor2, _factor("addcmul", value, input, tensor1, tensor2))
    return r if out is None else writes.deliver(r, out, "addcmul", (input, tensor1, tensor2))


@public()
def addcdiv(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None
) -> Tensor:
    """Compute input + value * tensor1 / tensor2; integer tensors are refused."""
    _refuse_integers("addcdiv", input, tensor1, tensor2)
    r = addcdiv_row(input, tensor1, tensor2, _factor("addcdiv", value, input, tensor1, tensor2))
    return r if out is None else writes.deliver(r, out, "addcdiv", (input, tensor1, tensor2))


def _refuse_integers(function: str, input: Tensor, tensor1: Tensor, tensor2: Tensor) -> None:
    _need_tensors(function, input, tensor1, tensor2)
    if tensor1.dtype.category < 2 and tensor2.dtype.category < 2:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of "
            "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) "
            "for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter "
            "implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )


@public(function=False)
def addcmul_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """In-place form of `addcmul`."""
    factor = _factor("addcmul_", value, self, tensor1, tensor2)
    return addcmul_row.inplace(self, tensor1, tensor2, factor)


@public(function=False)
def addcdiv_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """In-place form of `addcdiv`."""
    _refuse_integers("addcdiv_", self, tensor1, tensor2)
    factor = _factor("addcdiv_", value, self, tensor1, tensor2)
    return addcdiv_row.inplace(self, tensor1, tensor2, factor)


# ------------------------------------------------------------------------------------------- divisors and powers of two

gcd = Row(
    "gcd",
    {"i": "gcd(x, y)"},
    args=BINARY,
    reference=np.gcd,
    domain=(-9, 9),
    doc="The greatest common divisor of the magnitudes; gcd(0, 0) is 0.",
)
lcm_row = Row(
    "lcm",
    {"i": "lcm(x, y)"},
    args=BINARY,
    reference=np.lcm,
    domain=(-9, 9),
    doc="The least common multiple of the magnitudes; 0 where an element is 0.",
)
ldexp = Row(
    "ldexp", {"f": "x * exp2_whole(y)", "c": "x * cexp(y * 0.6931471805599453)"}, args=BINARY, promote=FLOAT,
    grad={"x": lambda g, y: g * FUNCTIONS["exp2"](conj(y)), "y": lambda g, result: g * conj(result) * math.log(2)},
    doc="`input` times 2 to the power `other`.",
)  # fmt: skip
