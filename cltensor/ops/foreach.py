"""`torch._foreach_*`: an operation on each tensor of a list, or of several lists side by side.

Owns the lists' checks and what stands beside them: numbers, a number for each tensor, tensors. Each tensor's result is that of the
function without the prefix, lazy where that is, with its gradient; what fuses one launch of many tensors is optim's (multi.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import writes
from .core import NUMBERS, Tensor, is_tensor
from .norms import vector_norm
from .row import FUNCTIONS, METHODS, invalid_combination, titled

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
# The function of tensors, and of a tensor and a number.
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
_WITH_TENSOR = ("add", "mul", "div")


def _list(name: str, xs: Any) -> list[Tensor]:
    if not isinstance(xs, tuple | list):
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(xs).__name__}"
        )
    for i, x in enumerate(xs):
        if not is_tensor(x):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}"
            )
    return list(xs)


def _some(xs: Sequence[Any]) -> None:
    if not xs:
        raise RuntimeError("Tensor list must have at least one tensor.")


def _beside(name: str, xs: list[Tensor], other: Any) -> list[Any]:
    """What stands beside each tensor: a list's items, or the same for all."""
    if isinstance(other, tuple | list):
        tensors = any(is_tensor(o) for o in other)
        if len(other) != len(xs):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(xs)} and {len(other)}"
                if tensors
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
    """Export `compute(name, tensors, ...)` and its form that writes the results into the tensors."""

    def function(self: Any, *args: Any, **named: Any) -> tuple[Tensor, ...]:
        return tuple(compute(full, self, *args, **named))

    def function_(self: Any, *args: Any, **named: Any) -> list[Tensor]:
        return compute(full + "_", self, *args, **named)

    full = f"_foreach_{name}"
    FUNCTIONS[full] = titled(function, full, doc)
    FUNCTIONS[full + "_"] = titled(function_, full + "_", f"In-place form of `{full}`.")


def _form(full: str, name: str) -> Callable[..., Tensor]:
    """The function or the in-place method behind a name of a list's function."""
    if not full.endswith("_"):
        return FUNCTIONS[name]
    return METHODS.get(name + "_") or (
        lambda x, y: writes.assign(x, lambda t: FUNCTIONS[name](t, y))
    )


def _unary(name: str) -> Callable[..., list[Tensor]]:
    def compute(full: str, self: Any) -> list[Tensor]:
        xs = _list(full, self)
        _some(xs)
        return [_form(full, name)(x) for x in xs]

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
        found = []
        for x, y in zip(xs, _beside(full, xs, other), strict=True):
            fn = _form(full, of_tensors if is_tensor(y) else of_numbers)
            found.append(fn(x, y) if alpha == 1 else fn(x, y, alpha=alpha))
        return found

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
        return [fn(x, a, b, value=v) for x, a, b, v in zip(xs, first, second, values, strict=True)]

    return compute


def _lerp(full: str, self: Any, tensors1: Any, weight: Any) -> list[Tensor]:
    xs = _list(full, self)
    ends, weights = _beside(full, xs, tensors1), _beside(full, xs, weight)
    fn = _form(full, "lerp")
    return [fn(x, e, w) for x, e, w in zip(xs, ends, weights, strict=True)]


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> list[Tensor]:
    """Write each tensor of one list into that of another."""
    xs = _list("_foreach_copy_", self)
    return [x.copy_(s) for x, s in zip(xs, _beside("_foreach_copy_", xs, src), strict=True)]


def _foreach_zero_(self: Any) -> list[Tensor]:
    """Set all tensors of a list to zero."""
    xs = _list("_foreach_zero_", self)
    _some(xs)
    return [x.zero_() for x in xs]


def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """Copy each tensor."""
    xs = _list("_foreach_clone", self)
    _some(xs)
    return tuple([x.clone() for x in xs])


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor."""
    xs = _list("_foreach_max", self)
    _some(xs)
    return tuple([x.max() for x in xs])


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor's elements."""
    xs = _list("_foreach_norm", self)
    _some(xs)
    return tuple([vector_norm(x, ord, dtype=dtype) for x in xs])


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of a power of the absolute values of each tensor's elements."""
    xs = _list("_foreach_powsum", self)
    _some(xs)
    for x in xs:
        if x.dtype.category < 2:
            raise NotImplementedError(f"\"powsum_cpu\" not implemented for '{x.dtype.scalar_name}'")
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
