"""Choosing between values: where, masked_fill, the larger or smaller of two, and clamping."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes, layouts
from ..errors import caller_level, warn_once
from . import core, writes
from .alike import apply_alike
from .arguments import invalid_combination
from .core import NUMBERS, Tensor, is_tensor
from .elsewhere import Strideless
from .formats import RowMajor
from .operands import normal
from .row import FUNCTIONS, METHODS, Row, public
from .slopes import slope
from .values import check_value, number, refuse_complex

BINARY = ("input", "other")


_NAN_MAX = "where(x != x or x > y, x, y)"


_NAN_MIN = "where(x != x or x < y, x, y)"


def _half_where_equal(g: Tensor, x: Any, y: Any, other_wins: Tensor) -> Tensor:
    return where(FUNCTIONS["eq"](x, y), g / 2, where(other_wins, 0.0, g))


_SHARE = "where(y == z, x / 2, where(y {} z, 0, x))"
_share_of_smaller = slope(
    "smaller_slope", _SHARE.format(">"), lambda g, x, y: _half_where_equal(g, x, y, x > y)
)
_share_of_larger = slope(
    "larger_slope", _SHARE.format("<"), lambda g, x, y: _half_where_equal(g, x, y, x < y)
)
maximum = Row(
    "maximum", {"b": "x or y", "if": _NAN_MAX}, args=BINARY, inplace=False, reference=np.maximum,
    grad={"x": _share_of_larger, "y": _share_of_smaller},
    doc="The larger of two elements; nan where one is nan.",
)  # fmt: skip


minimum = Row(
    "minimum", {"b": "x and y", "if": _NAN_MIN}, args=BINARY, inplace=False, reference=np.minimum,
    grad={"x": _share_of_smaller, "y": _share_of_larger},
    doc="The smaller of two elements; nan where one is nan.",
)  # fmt: skip


fmax = Row(
    "fmax", {"b": "x or y", "i": _NAN_MAX, "f": "fmax(x, y)"}, args=BINARY, inplace=False, reference=np.fmax,
    grad={"x": lambda g, x, y: where((x >= y) | y.isnan(), g, 0.0), "y": lambda g, x, y: where((x >= y) | y.isnan(), 0.0, g)},
    doc="The larger of two elements; the other one where one is nan.",
)  # fmt: skip


fmin = Row(
    "fmin", {"b": "x and y", "i": _NAN_MIN, "f": "fmin(x, y)"}, args=BINARY, inplace=False, reference=np.fmin,
    grad={"x": lambda g, x, y: where((x <= y) | y.isnan(), g, 0.0), "y": lambda g, x, y: where((x <= y) | y.isnan(), 0.0, g)},
    doc="The smaller of two elements; the other one where one is nan.",
)  # fmt: skip


_CLAMP = "where(x != x, x, where({0} > z, z, {0}))".format("where(x < y, y, x)")
# A bound that is a tensor may hold NaN, and then the result is NaN.
_LOW, _HIGH = "where(x < y or y != y, y, x)", "where(x > y or y != y, y, x)"
_BOTH = f"where(x != x, x, where({_LOW} > z or z != z, z, {_LOW}))"


clamp_both = Row(
    "clamp", {"i": _CLAMP, "f": _BOTH}, args=("input", "min", "max"), public=False, node="ClampBackward0", number_nodes={"y": "ClampBackward1"},
    grad={
        "x": lambda g, x, y, z: where((x >= y) & (x <= z), g, 0.0),
        "y": lambda g, x, y, z: where((x < y) & (y < z), g, 0.0),
        "z": lambda g, x, y, z: where((x > z) | (y > z), g, 0.0),
    },
)  # fmt: skip


def _below(name: str, node: str, number_node: str) -> Row:
    return Row(
        name, {"b": "x or y", "i": "where(x < y, y, x)", "f": _LOW}, args=("input", "min"), public=False, node=node, number_nodes={"y": number_node},
        grad={"x": lambda g, x, y: where(x >= y, g, 0.0), "y": lambda g, x, y: where(x < y, g, 0.0)},
    )  # fmt: skip


def _above(name: str, node: str, number_node: str) -> Row:
    return Row(
        name, {"b": "x and y", "i": "where(x > y, y, x)", "f": _HIGH}, args=("input", "max"), public=False, node=node, number_nodes={"y": number_node},
        grad={"x": lambda g, x, y: where(x <= y, g, 0.0), "y": lambda g, x, y: where(x > y, g, 0.0)},
    )  # fmt: skip


# `clamp` with one bound and `clamp_min` compute the same, but torch gives their nodes different names.
clamp_min_row = _below("clamp_min", "ClampMinBackward1", "ClampMinBackward0")
clamp_max_row = _above("clamp_max", "ClampMaxBackward1", "ClampMaxBackward0")
clamp_low = _below("clamp_tensor_low", "ClampBackward0", "ClampBackward1")
clamp_high = _above("clamp_tensor_high", "ClampBackward0", "ClampBackward1")


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
    grad={
        "x": slope(
            "clamp_slope",
            "where(y >= z and y <= w, x, 0)",
            lambda g, x, y, z: where((x >= y) & (x <= z), g, 0.0),
        )
    },
)


def _bound(input: Tensor, bound: Any) -> Any:
    if bound is None or bound.__class__ in NUMBERS or is_tensor(bound):
        return bound
    if not isinstance(bound, (*NUMBERS, np.generic)):
        raise invalid_combination("clamp", (input, bound))
    return number("clamp", "bound", bound)


def _check_numbers(result: Sequence[Any], numbers: Sequence[Any]) -> None:
    """Raise torch's error for a number that the dtype to which the operands `result` promote cannot hold.

    Numbers up to 127 are not checked: every dtype holds them.
    """
    for v in numbers:
        if v.__class__ in NUMBERS and not (abs(v) <= 127):
            check_value(v, core.result_type(result))


def _is_small(dt: dtypes.dtype, *numbers: Any) -> bool:
    """Return whether all of these are numbers up to 127 that leave the dtype, of integers or floats, as it is; a NaN is
    none.
    """
    for v in numbers:
        if v.__class__ is not int and (v.__class__ is not float or dt.category == 1):
            return False
        if not -127 <= v <= 127:
            return False
    return True


def _clamp_call(input: Tensor, min: Any, max: Any) -> tuple[Row, tuple]:
    if (
        input.__class__ is core.Registry.tensor
        and 0 < input.dtype.category < 3
        and _is_small(input.dtype, min, max)
    ):
        return clamp_numbers, (input, min, max)
    if not is_tensor(input):
        raise invalid_combination("clamp", (input, min, max))
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    min, max = _bound(input, min), _bound(input, max)
    tensors = is_tensor(min) or is_tensor(max)
    if input.dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if (
        not tensors
        and core.result_type([x for x in (input, min, max) if x is not None]) is dtypes.bool
    ):
        raise NotImplementedError(
            f"\"clamp{'_min' if max is None else '_max' if min is None else ''}_scalar_cpu\" not implemented for 'Bool'"
        )
    if not tensors:
        _check_numbers([x for x in (input, min, max) if x is not None], (min, max))
    # Only the rows for tensors give NaN for a bound that is NaN.
    tensors = tensors or min != min or max != max
    if max is None:
        return (clamp_low if tensors else clamp_number_low), (input, min)
    if min is None:
        return (clamp_high if tensors else clamp_number_high), (input, max)
    return (clamp_both if tensors else clamp_numbers), (input, min, max)


@public(aliases=("clip",))
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Limit to the range [min, max]; either bound may be a number, a tensor or missing."""
    row, xs = _clamp_call(input, min, max)
    value = row(*normal("clamp", ("input", "min", "max")[: len(xs)], xs))
    return value if out is None else writes.deliver(value, out, "clamp", xs)


def clamp_(t: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place form of `clamp`."""
    row, xs = _clamp_call(t, min, max)
    _check_result(t, xs[1:])
    return row.inplace(*xs)


METHODS["clamp_"] = METHODS["clip_"] = clamp_


def _check_bound(function: str, input: Any, bound: Any) -> None:
    if not is_tensor(input):
        raise invalid_combination(function, (input, bound))
    if input.dtype.is_complex and not is_tensor(bound):
        raise NotImplementedError("clamp is not supported for complex types")
    _check_numbers((input, bound), (bound,))


def _check_result(t: Tensor, bounds: Sequence[Any]) -> None:
    """Raise torch's RuntimeError where `t`, which is to be limited in place by numbers, cannot hold the result."""
    if t.dtype.category < 2 and all(b.__class__ in NUMBERS for b in bounds):
        dt = core.result_type((t, *bounds))
        if not dtypes.can_cast(dt, t.dtype):
            raise RuntimeError(
                f"result type {dt.scalar_name} can't be cast to the desired output type {dtypes.C_NAMES[t.dtype.name]}"
            )


@public()
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Limit from below."""
    _check_bound("clamp_min", input, min)
    value = clamp_min_row(*normal("clamp_min", ("input", "min"), (input, min)))
    return value if out is None else writes.deliver(value, out, "clamp_min", (input,))


@public()
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Limit from above."""
    _check_bound("clamp_max", input, max)
    value = clamp_max_row(*normal("clamp_max", ("input", "max"), (input, max)))
    return value if out is None else writes.deliver(value, out, "clamp_max", (input,))


def clamp_min_(t: Tensor, min: Any) -> Tensor:
    """In-place form of `clamp_min`."""
    return _limited(t, "min", min, clamp_min_row)


def clamp_max_(t: Tensor, max: Any) -> Tensor:
    """In-place form of `clamp_max`."""
    return _limited(t, "max", max, clamp_max_row)


def _limited(t: Tensor, side: str, bound: Any, row: Row) -> Tensor:
    function = f"clamp_{side}_"
    t, bound = normal(function, ("input", side), (t, bound))
    _check_bound(function, t, bound)
    _check_result(t, (bound,))
    return row.inplace(t, bound)


METHODS["clamp_min_"], METHODS["clamp_max_"] = clamp_min_, clamp_max_


class _Where(Row):
    """A row whose first operand is a condition: the short path looks at another one first."""

    short = False

    def __call__(self, *xs: Any) -> Tensor:
        """Return the pending result; see Row."""
        _, x, y = xs
        first = x if x.__class__ not in NUMBERS else y
        try:
            types = self._types.get(first.dtype)
            out = None if types is None else apply_alike(self, types, xs, first=first)
        except (AttributeError, Strideless):
            out = None
        return super().__call__(*xs) if out is None else out


where_row = _Where(
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
        warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of PyTorch. "
            "Use a boolean condition instead."
        )
        condition = condition.bool()
    values = [v.item() if isinstance(v, np.generic) else v for v in (input, other)]
    for name, v in zip(("input", "other"), values, strict=True):
        if not is_tensor(v) and v.__class__ not in NUMBERS:
            raise TypeError(f"where(): argument '{name}' must be Tensor, not {type(v).__name__}")
    _check_numbers(values, values)
    value = where_row(condition, *values)
    return value if out is None else writes.deliver(value, out, "where", (input, other))


METHODS["where"] = lambda self, condition, other: where(condition, self, other)


masked_fill_row = RowMajor(
    "masked_fill", "where(y, z, x)", masks="y", args=("input", "mask", "value"), public=False, node="MaskedFillBackward1", number_nodes={"z": "MaskedFillBackward0"},
    grad={"x": lambda g, y: where(y, 0.0, g), "z": lambda g, y: where(y, g, 0.0).sum()},
)  # fmt: skip


def _fill_value(input: Tensor, mask: Tensor, value: Any) -> Any:
    if not is_tensor(mask):
        raise invalid_combination("masked_fill", (mask, value))
    if mask.dtype is not dtypes.bool:
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            + dtypes.C_NAMES[mask.dtype.name]
        )
    if is_tensor(value):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        refuse_complex(value, input.dtype)
        return value.to(input.dtype)
    if not isinstance(value, (*NUMBERS, np.generic)):
        raise invalid_combination("masked_fill_", (mask, value))
    value = check_value(number("masked_fill_", "value", value), input.dtype)
    if input.dtype.category == 1 and value.__class__ is float:
        return int(value)
    return bool(value) if input.dtype.category == 0 else value


@public()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Replace elements by `value` where the bool mask, broadcast to the tensor, is true."""
    return masked_fill_row(input, mask, _fill_value(input, mask, value))


def masked_fill_(t: Tensor, mask: Tensor, value: Any) -> Tensor:
    """In-place form of `masked_fill`; memory shared by several elements is filled if the mask holds for any of them."""
    value = _fill_value(t, mask, value)
    if is_tensor(value) and value._storage is t._storage:
        value = value.clone()  # `value` may be a view of an element that is filled
    if not warn_expanded("masked_fill_", t):
        return masked_fill_row.inplace(t, mask, value)
    shared = [d for d, step in enumerate(t._strides) if not step]
    cells = t.as_strided(
        [n if t._strides[d] else min(n, 1) for d, n in enumerate(t.shape)], t._strides
    )
    masked_fill_row.inplace(cells, mask.expand(t.shape).any(shared, keepdim=True), value)
    return t


METHODS["masked_fill_"] = masked_fill_


def warn_expanded(function: str, t: Tensor, example: str = "tensor[mask] = scalar") -> bool:
    """Return whether elements of the tensor that `function` will fill share memory, and warn of it as torch does."""
    shared = layouts.internal_overlap(t.shape, t._strides) == layouts.FULL_OVERLAP
    if shared:
        warnings.warn(
            f"Use of {function} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
            f"This also applies to advanced indexing e.g. {example}",
            UserWarning,
            stacklevel=caller_level(),
        )
    return shared
