"""`torch._foreach_*`: an operation on each tensor of a list, or of several lists side by side.

Owns the checks of the lists and of their second operands: one number, a number for each tensor, or tensors. Each
tensor's result is that of the function without the prefix, with its gradient. Small tensors without history and with
the same layout share launches (multi.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..codegen.pointwise import IDENTITY, PointOp
from ..memory_format import preserve_format
from . import multi, writes
from .arguments import invalid_combination
from .core import NUMBERS, Registry, Tensor, is_tensor
from .norms import vector_norm
from .power import POWERS
from .refusals import no_kernel
from .row import FUNCTIONS, METHODS, ROWS, titled

_UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
# Name -> the function for two tensors, and the function for a tensor and a number.
_BINARY = {
    "add": ("add", "add"),
    "sub": ("sub", "sub"),
    "mul": ("mul", "mul"),
    "div": ("div", "div"),
    "pow": ("pow", "pow"),
    "maximum": ("maximum", "clamp_min"),
    "minimum": ("minimum", "clamp_max"),
    "clamp_min": ("maximum", "clamp_min"),
    "clamp_max": ("minimum", "clamp_max"),
}
_OF_NUMBERS = {"pow": "pow_scalar"}  # rows of a tensor and a number that have names of their own
_ASSIGNED, _ZERO = PointOp("assign", "y"), PointOp("zero", "0")
_WITH_TENSOR = ("add", "mul", "div")


def _list(name: str, xs: Any) -> list[Tensor]:
    if not isinstance(xs, tuple | list):
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(xs).__name__}"
        )
    tensor = Registry.tensor
    for x in xs:
        if not isinstance(x, tensor):
            i = next(i for i, x in enumerate(xs) if not is_tensor(x))
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}"
            )
    return list(xs)


def _some(xs: Sequence[Any]) -> None:
    if not xs:
        raise RuntimeError("Tensor list must have at least one tensor.")


def _beside(name: str, xs: list[Tensor], other: Any) -> list[Any]:
    """Return each tensor's second operand: items of a list, or one number or 0-dim tensor for all; else raise."""
    if isinstance(other, tuple | list):
        if len(other) != len(xs):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(xs)} and {len(other)}"
                if any(is_tensor(o) for o in other)
                else "Tensor list must have same number of elements as scalar list."
            )
        _some(xs)
        return list(other)
    if is_tensor(other):
        if other.ndim or other.numel() != 1:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and {other.numel()} elements."
            )
    elif not isinstance(other, NUMBERS):
        raise invalid_combination(name, (xs, other))
    _some(xs)
    return [other] * len(xs)


def _export(name: str, compute: Callable[..., list[Tensor]], doc: str) -> None:
    """Export `_foreach_<name>`, which returns what `compute(full name, tensors, ...)` returns, and its in-place form.

    For the in-place form, whose name ends with "_", `compute` writes the results into the tensors.
    """

    def function(self: Any, *args: Any, **named: Any) -> tuple[Tensor, ...]:
        return tuple(compute(full, self, *args, **named))

    def function_(self: Any, *args: Any, **named: Any) -> Any:
        compute(full + "_", self, *args, **named)
        return self

    full = f"_foreach_{name}"
    FUNCTIONS[full] = titled(function, full, doc)
    FUNCTIONS[full + "_"] = titled(function_, full + "_", f"In-place form of `{full}`.")


def _form(full: str, name: str) -> Callable[..., Tensor]:
    """Return the function `name` of single tensors, in-place if the list function's name `full` ends with "_"."""
    if not full.endswith("_"):
        return FUNCTIONS[name]
    return METHODS.get(name + "_") or (
        lambda x, y: writes.assign(x, lambda t: FUNCTIONS[name](t, y))
    )


def _each(
    full: str, op: PointOp | None, operands: Sequence[Any], alone: Callable[[int], Tensor]
) -> list[Tensor]:
    """Return a formula's result for each tensor, in few launches where multi.py can, else by `alone(i)`."""
    found = multi.apply_op(op, operands, inplace=full.endswith("_"))
    return [alone(i) if t is None else t for i, t in enumerate(found)]


def _unary(name: str) -> Callable[..., list[Tensor]]:
    def compute(full: str, self: Any) -> list[Tensor]:
        xs = _list(full, self)
        _some(xs)
        return _each(full, ROWS[name].op(2), [xs], lambda i: _form(full, name)(xs[i]))

    return compute


def _binary(name: str) -> Callable[..., list[Tensor]]:
    of_tensors, of_numbers = _BINARY[name]

    def compute(full: str, self: Any, other: Any, *, alpha: Any = 1) -> list[Tensor]:
        if name == "pow" and isinstance(self, NUMBERS) and not full.endswith("_"):
            return [FUNCTIONS["pow"](self, x) for x in _list(full, other)]
        xs = _list(full, self)
        if (is_tensor(other) and name not in _WITH_TENSOR) or (
            alpha != 1 and (name not in ("add", "sub") or isinstance(other, NUMBERS))
        ):
            raise invalid_combination(full, (self, other))
        others = _beside(full, xs, other)

        def alone(i: int) -> Tensor:
            fn = _form(full, of_tensors if is_tensor(others[i]) else of_numbers)
            return fn(xs[i], others[i]) if alpha == 1 else fn(xs[i], others[i], alpha=alpha)

        if name == "pow" and isinstance(other, int | float) and other in POWERS:
            return _each(full, POWERS[other].op(2), [xs], alone)
        tensors = is_tensor(others[0])
        row = of_tensors if tensors else _OF_NUMBERS.get(name, of_numbers)
        if alpha == 1:
            zeroth = name == "pow" and not tensors and any(o == 0 or o in POWERS for o in others)
            return _each(full, None if zeroth else ROWS[row].op(2), [xs, other], alone)
        return _each(full, ROWS[row + "_scaled"].op(2), [xs, other, alpha], alone)

    return compute


def _ternary(name: str) -> Callable[..., list[Tensor]]:
    def compute(
        full: str, self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None
    ) -> list[Tensor]:
        xs = _list(full, self)
        first, second = _beside(full, xs, tensor1), _beside(full, xs, tensor2)
        value = value if scalars is None else scalars
        values = _beside(full, xs, value.tolist() if is_tensor(value) else value)
        fn = _form(full, name)

        def alone(i: int) -> Tensor:
            return fn(xs[i], first[i], second[i], value=values[i])

        beside = value if value.__class__ in NUMBERS else values
        return _each(full, ROWS[name].op(2), [xs, first, second, beside], alone)

    return compute


def _lerp(full: str, self: Any, tensors1: Any, weight: Any) -> list[Tensor]:
    xs = _list(full, self)
    ends, weights = _beside(full, xs, tensors1), _beside(full, xs, weight)
    fn = _form(full, "lerp")
    row = ROWS["lerp" if is_tensor(weights[0]) else "lerp_number"]
    beside = weight if weight.__class__ in NUMBERS else weights
    return _each(full, row.op(2), [xs, ends, beside], lambda i: fn(xs[i], ends[i], weights[i]))


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Write each tensor of one list into that of another."""
    xs = _list("_foreach_copy_", self)
    sources = _beside("_foreach_copy_", xs, src)
    _each("_foreach_copy_", _ASSIGNED, [xs, sources], lambda i: xs[i].copy_(sources[i]))
    return self


def _foreach_zero_(self: Any) -> Any:
    """Set all tensors of a list to zero."""
    xs = _list("_foreach_zero_", self)
    _some(xs)
    _each("_foreach_zero_", _ZERO, [xs], lambda i: xs[i].zero_())
    return self


def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """Copy each tensor."""
    xs = _list("_foreach_clone", self)
    _some(xs)
    if memory_format not in (None, preserve_format):
        return tuple([x.clone(memory_format=memory_format) for x in xs])
    return tuple(_each("_foreach_clone", IDENTITY, [xs], lambda i: xs[i].clone()))


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor."""
    xs = _list("_foreach_max", self)
    _some(xs)
    return tuple([x.max() for x in xs])


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor's elements."""
    xs = _list("_foreach_norm", self)
    _some(xs)
    if ord == math.inf and not all(x.numel() for x in xs):
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an identity"
        )
    return tuple([vector_norm(x, ord, dtype=dtype) for x in xs])


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of a power of the absolute values of each tensor's elements."""
    xs = _list("_foreach_powsum", self)
    _some(xs)
    for x in xs:
        if x.dtype.category < 2:
            raise no_kernel("powsum_cpu", x.dtype)
    return tuple([(x if dtype is None else x.to(dtype)).abs().pow(ord).sum() for x in xs])


def _foreach_mm(self: Any, mat2: Any) -> tuple[Tensor, ...]:
    """The product of each pair of matrices."""
    xs = _list("_foreach_mm", self)
    others = _beside("_foreach_mm", xs, mat2)
    return tuple([x.mm(y) for x, y in zip(xs, others, strict=True)])


for _name in _UNARY:
    _export(_name, _unary(_name), f"Compute `{_name}` of each tensor.")
for _name in _BINARY:
    _export(_name, _binary(_name), f"Compute `{_name}` of each tensor and what stands beside it.")
for _name in ("addcmul", "addcdiv"):
    _export(_name, _ternary(_name), f"Compute `{_name}` of each three tensors.")
_export("lerp", _lerp, "Compute `lerp` of each pair of tensors.")
for _fn in (_foreach_copy_, _foreach_zero_, _foreach_clone, _foreach_max, _foreach_norm, _foreach_powsum, _foreach_mm):  # fmt: skip
    FUNCTIONS[_fn.__name__] = _fn
