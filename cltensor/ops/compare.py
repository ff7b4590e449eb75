"""Rows of comparison, logic, tests of values, and bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from . import core, writes
from .composite import SMALL, at_once, in_one
from .core import NUMBERS, Tensor, is_tensor
from .operands import check_tensor, normal, promoted, refuse_numbers
from .refusals import no_kernel
from .row import BOOL, FUNCTIONS, METHODS, Row, public, titled
from .values import real

BINARY = ("input", "other")

eq = Row(
    "eq",
    "x == y",
    promote=BOOL,
    args=BINARY,
    numbers="y",
    inplace_nodes=("EqBackward1", "EqBackward0"),
    reference=np.equal,
    doc="Whether elements are equal; nan equals nothing.",
)
ne = Row(
    "ne",
    "x != y",
    promote=BOOL,
    args=BINARY,
    numbers="y",
    inplace_nodes=("NeBackward1", "NeBackward0"),
    aliases=("not_equal",),
    reference=np.not_equal,
    doc="Whether elements differ; nan differs from everything.",
)
lt = Row(
    "lt",
    {"bif": "x < y"},
    promote=BOOL,
    args=BINARY,
    numbers="y",
    inplace_nodes=("LtBackward1", "LtBackward0"),
    aliases=("less",),
    reference=np.less,
    doc="Whether elements of `input` are less than those of `other`.",
)
le = Row(
    "le",
    {"bif": "x <= y"},
    promote=BOOL,
    args=BINARY,
    numbers="y",
    inplace_nodes=("LeBackward1", "LeBackward0"),
    aliases=("less_equal",),
    reference=np.less_equal,
    doc="Whether elements of `input` are less than or equal to those of `other`.",
)
gt = Row(
    "gt",
    {"bif": "x > y"},
    promote=BOOL,
    args=BINARY,
    numbers="y",
    inplace_nodes=("GtBackward1", "GtBackward0"),
    aliases=("greater",),
    reference=np.greater,
    doc="Whether elements of `input` are greater than those of `other`.",
)
ge = Row(
    "ge",
    {"bif": "x >= y"},
    promote=BOOL,
    args=BINARY,
    numbers="y",
    inplace_nodes=("GeBackward1", "GeBackward0"),
    aliases=("greater_equal",),
    reference=np.greater_equal,
    doc="Whether elements of `input` are greater than or equal to those of `other`.",
)

logical_and = Row(
    "logical_and",
    "x != 0 and y != 0",
    promote=BOOL,
    args=BINARY,
    reference=np.logical_and,
    doc="Whether both elements are other than 0.",
)
logical_or = Row(
    "logical_or",
    "x != 0 or y != 0",
    promote=BOOL,
    args=BINARY,
    reference=np.logical_or,
    doc="Whether one of two elements is other than 0.",
)
logical_xor = Row(
    "logical_xor",
    "where(x != 0, 1, 0) != where(y != 0, 1, 0)",
    promote=BOOL,
    args=BINARY,
    reference=np.logical_xor,
    doc="Whether exactly one of two elements is other than 0.",
)
logical_not = Row(
    "logical_not",
    "x == 0",
    promote=BOOL,
    reference=np.logical_not,
    doc="Whether each element is 0.",
)

isnan = Row(
    "isnan",
    "x != x",
    promote=BOOL,
    inplace=False,
    reference=np.isnan,
    doc="Whether each element is nan, of a complex one a part.",
)
isinf = Row(
    "isinf",
    {"bi": "x != x", "fc": "isinf(x)"},
    promote=BOOL,
    inplace=False,
    reference=np.isinf,
    doc="Whether each element is infinite, of a complex one a part.",
)
isfinite = Row(
    "isfinite",
    {"bi": "x == x", "fc": "isfinite(x)"},
    promote=BOOL,
    inplace=False,
    reference=np.isfinite,
    doc="Whether each element is neither nan nor infinite.",
)


class _OnlyBool(Row):
    """A row whose `out=` has to be bool; other comparisons take other dtypes, too."""

    def bind(self, xs: tuple, kwargs: dict[str, Any], name: str = "") -> tuple[tuple, Any]:
        """Match arguments to operands by torch's names."""
        xs, out = super().bind(xs, kwargs, name)
        if out is not None and out.dtype is not dtypes.bool:
            raise RuntimeError(f"{self.name} does not support non-boolean outputs.")
        return xs, out


isposinf = _OnlyBool(
    "isposinf",
    {"bi": "x != x", "f": "x == inf"},
    promote=BOOL,
    inplace=False,
    reference=np.isposinf,
    doc="Whether each element is positive infinity.",
)
isneginf = _OnlyBool(
    "isneginf",
    {"bi": "x != x", "f": "x == -inf"},
    promote=BOOL,
    inplace=False,
    reference=np.isneginf,
    doc="Whether each element is negative infinity.",
)
signbit = _OnlyBool(
    "signbit",
    {"b": "x != x", "i": "x < 0", "f": "copysign(1, x) < 0"},
    promote=BOOL,
    inplace=False,
    reference=np.signbit,
    doc="Whether the sign bit of each element is set: less than 0, or -0.0.",
)
isreal_row = Row(
    "isreal", {"bif": "x == x or x != x", "c": "im(x) == 0"}, promote=BOOL, public=False
)

bitwise_and = Row(
    "bitwise_and",
    {"b": "x and y", "i": "x & y"},
    args=BINARY,
    numbers="xy",
    reference=np.bitwise_and,
    doc="The bits that both elements have; of bools, the logical and.",
)
bitwise_or = Row(
    "bitwise_or",
    {"b": "x or y", "i": "x | y"},
    args=BINARY,
    numbers="xy",
    reference=np.bitwise_or,
    doc="The bits that one of two elements has; of bools, the logical or.",
)
bitwise_xor = Row(
    "bitwise_xor",
    {"b": "x != y", "i": "x ^ y"},
    args=BINARY,
    numbers="xy",
    reference=np.bitwise_xor,
    doc="The bits that exactly one of two elements has; of bools, the logical xor.",
)
bitwise_not = Row(
    "bitwise_not",
    {"b": "x == 0", "i": "~x"},
    reference=np.invert,
    doc="All bits turned over; of bools, the logical not.",
)

# As in torch, a shift by the width or more, or by a negative amount, gives 0 (for a right shift the sign).
_BITS = {1: 8, 2: 16, 4: 32, 8: 64}
_left: dict[int, Row] = {
    size: Row(
        f"lshift{bits}",
        {"i": f"where(y < 0 or y >= {bits}, 0, x << where(y < 0 or y >= {bits}, 0, y))"},
        args=BINARY,
        public=False,
    )
    for size, bits in _BITS.items()
}
_right: dict[int, Row] = {
    size: Row(
        f"rshift{bits}",
        {
            "i": f"where(y < 0 or y >= {bits}, where(x < 0, -1, 0), x >> where(y < 0 or y >= {bits}, 0, y))"
        },
        args=BINARY,
        public=False,
    )
    for size, bits in _BITS.items()
}


def _shift(name: str, rows: dict[int, Row], input: Any, other: Any) -> tuple[Row, tuple]:
    xs = normal(name, BINARY, (input, other))
    dt = promoted(*xs)
    if dt.category != 1:
        raise no_kernel(f"{'lshift' if rows is _left else 'rshift'}_cpu", dt)
    return rows[dt.itemsize], xs


@public(aliases=("__lshift__",))
def bitwise_left_shift(
    input: Tensor | complex, other: Tensor | complex, *, out: Tensor | None = None
) -> Tensor:
    """Shift bits left; amounts outside the width give 0."""
    row, xs = _shift("bitwise_left_shift", _left, input, other)
    value = row(*xs)
    return value if out is None else writes.deliver(value, out, "bitwise_left_shift", xs)


@public(aliases=("__rshift__",))
def bitwise_right_shift(
    input: Tensor | complex, other: Tensor | complex, *, out: Tensor | None = None
) -> Tensor:
    """Shift bits right, arithmetically for signed types."""
    row, xs = _shift("bitwise_right_shift", _right, input, other)
    value = row(*xs)
    return value if out is None else writes.deliver(value, out, "bitwise_right_shift", xs)


def _shift_inplace(rows: dict[int, Row], name: str) -> Any:
    def method_(t: Tensor, other: Any) -> Tensor:
        row, xs = _shift(name, rows, t, other)
        return row.inplace(*xs)

    return titled(method_, name, f"In-place form of `{name[:-1]}`.")


METHODS["bitwise_left_shift_"] = _shift_inplace(_left, "bitwise_left_shift_")
METHODS["bitwise_right_shift_"] = _shift_inplace(_right, "bitwise_right_shift_")


@public()
def isreal(input: Tensor) -> Tensor:
    """Return whether each element's imaginary part is 0."""
    return isreal_row(input)


@public()
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether |input - other| <= atol + rtol * |other|, elementwise; equal infinities are close."""
    refuse_numbers("isclose", BINARY, (input, other), (False, False))
    rtol, atol = real("isclose", "rtol", rtol), real("isclose", "atol", atol)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    return _close((input.detach(), other.detach()), rtol, atol, equal_nan)[0]


@in_one
def _close(given: Sequence[Tensor], rtol: Any, atol: Any, equal_nan: bool) -> list[Tensor]:
    input, other = given
    close = input == other
    if equal_nan and input.dtype.category > 1:
        close = close | (input.isnan() & other.isnan())
    if input.dtype.category < 2 and rtol == 0 and atol == 0:
        return [close]
    a, b = (
        v if v.dtype.category > 1 else v.double() if v._storage.backend.info.fp64 else v.float()
        for v in (input, other)
    )
    gap = (a - b).abs()
    return [close | (gap.isfinite() & (gap <= atol + (rtol * b).abs()))]


@at_once
def _all_close(given: Sequence[Tensor], *tolerance: Any) -> list[Tensor]:
    return [isclose(*given, *tolerance).all()]


@at_once
def _all_equal(given: Sequence[Tensor]) -> list[Tensor]:
    return [eq(*given).all()]


@public()
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Return whether all elements are close; see `isclose`."""
    rtol, atol = real("allclose", "rtol", rtol), real("allclose", "atol", atol)
    if is_tensor(input) and is_tensor(other) and max(input.numel(), other.numel()) <= SMALL:
        return bool(_all_close((input, other), rtol, atol, equal_nan)[0])
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@public()
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and elements."""
    check_tensor("equal", "other", 2, other)
    core.common_device((input, other))
    if input.shape != other.shape:
        return False
    alike = input._strides == other._strides and input._offset == other._offset
    if (
        alike
        and input._storage is other._storage
        and input.dtype is other.dtype
        and input.dtype.category < 2
    ):
        return True  # the same elements, and no NaN among integers
    if 0 < input.numel() <= SMALL:
        return bool(_all_equal((input, other))[0])
    return input.numel() == 0 or bool(eq(input, other).all())


@public(method=False)
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """Return the dtype that arithmetic on the two, tensors or numbers, would have."""
    return core.result_type(
        normal("result_type", ("tensor1", "tensor2"), (tensor1, tensor2))
        if not (tensor1.__class__ in NUMBERS and tensor2.__class__ in NUMBERS)
        else (tensor1, tensor2)
    )


FUNCTIONS["can_cast"] = dtypes.can_cast
FUNCTIONS["promote_types"] = dtypes.promote_types
