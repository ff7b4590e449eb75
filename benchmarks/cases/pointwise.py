"""Pointwise chains and broadcasting: where memory is the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.case import EVERY, Case, Kit, Make, Run, on

Mi, Ki = 1 << 20, 1 << 10


def _two(fn: Callable[[Any, Any, Any], Any], n: int, dtype: str = "float32") -> Make:
    return on(fn, (n,), (n,), dtype=dtype)


def _one(fn: Callable[[Any, Any], Any], n: int, dtype: str = "float32") -> Make:
    return on(fn, (n,), dtype=dtype)


def chain8(torch: Any, x: Any, y: Any) -> Any:
    z = x * y + 2
    z = z * z - x
    return (torch.sigmoid(z) * y + x) * 0.5


def chain5(torch: Any, x: Any, y: Any) -> Any:
    z = x * y + 2
    return torch.sigmoid(z * z - x)


def _captured(n: int) -> Make:
    def make(kit: Kit) -> Run:
        a, b = kit.rand(n), kit.rand(n, seed=1)
        fast = kit.recorded(lambda x, y: chain8(kit.torch, x, y))
        return lambda: fast(a, b)

    return make


def add(torch: Any, a: Any, b: Any) -> Any:
    return a + b


def multiply_add(torch: Any, a: Any, b: Any) -> Any:
    return a * b + a


CASES = [
    Case("pointwise", "chain of 8, 16 Mi", _two(chain8, 16 * Mi), 12 * 16 * Mi, 16 * Mi * 12, bar=8, quick=True, also=EVERY),
    # Six passes: the kernel of the result's sum reads both operands, that of the gradients reads them again and writes
    # two gradients.
    Case("pointwise", "chain of 8, forward and backward, 4 Mi", on(chain8, (4 * Mi,), (4 * Mi,), grad=True), 24 * 4 * Mi),
    Case("pointwise", "chain of 5, 16", _two(chain5, 16), bar=0.125, quick=True),
    Case("pointwise", "chain of 8, 16", _two(chain8, 16), bar=0.25, quick=True),
    Case("pointwise", "chain of 8, 16, captured", _captured(16), bar=1.0, quick=True),
    Case("pointwise", "a + b, 16 Mi", _two(add, 16 * Mi), 12 * 16 * Mi, bar=2, quick=True, also=EVERY),
    Case("pointwise", "a + b, 16 Mi - 1", _two(add, 16 * Mi - 1), 12 * (16 * Mi - 1)),
    Case("pointwise", "a + b, 64 Ki", _two(add, 64 * Ki), 12 * 64 * Ki, bar=0.5, quick=True, also=EVERY),
    Case("pointwise", "a += b, 16 Mi", _two(lambda t, a, b: a.add_(b), 16 * Mi), 12 * 16 * Mi, bound="update"),
    Case("pointwise", "a + b, float64, 8 Mi", _two(add, 8 * Mi, "float64"), 24 * 8 * Mi),
    Case("pointwise", "a * b + a, float16, 16 Mi", _two(multiply_add, 16 * Mi, "float16"), 6 * 16 * Mi, tolerance=1e-2),
    Case("pointwise", "a * b + a, bfloat16, 16 Mi", _two(multiply_add, 16 * Mi, "bfloat16"), 6 * 16 * Mi, tolerance=1e-1),
    Case("pointwise", "a * b + a, int32, 16 Mi", _two(multiply_add, 16 * Mi, "int32"), 12 * 16 * Mi),
    Case("pointwise", "a * b + a, int64, 8 Mi", _two(multiply_add, 8 * Mi, "int64"), 24 * 8 * Mi),
    Case("pointwise", "a // 7, int64, 4 Mi", _one(lambda t, a: a // 7, 4 * Mi, "int64"), 16 * 4 * Mi),
    Case("pointwise", "a * b, complex64, 4 Mi", _two(lambda t, a, b: a * b, 4 * Mi, "complex64"), 24 * 4 * Mi),
    Case("pointwise", "to bfloat16, 16 Mi", _one(lambda t, a: a.to(t.bfloat16), 16 * Mi), 6 * 16 * Mi, tolerance=1e-2),
    Case("pointwise", "where(a > b, a, b), 16 Mi", _two(lambda t, a, b: t.where(a > b, a, b), 16 * Mi), 12 * 16 * Mi),
    Case("pointwise", "clamp, 16 Mi", _one(lambda t, a: a.clamp(-0.5, 0.5), 16 * Mi), 8 * 16 * Mi),
    Case("pointwise", "a > b, 16 Mi", _two(lambda t, a, b: a > b, 16 * Mi), 9 * 16 * Mi, bound="read"),
    Case("pointwise", "(a > 0) & (b > 0), 16 Mi", _two(lambda t, a, b: (a > 0) & (b > 0), 16 * Mi), 9 * 16 * Mi, bound="read"),
    Case("pointwise", "gelu, 4 Mi", _one(lambda t, a: t.nn.functional.gelu(a), 4 * Mi), 8 * 4 * Mi),
    Case("pointwise", "tanh, 4 Mi", _one(lambda t, a: t.tanh(a), 4 * Mi), 8 * 4 * Mi),
    Case("pointwise", "sin, 4 Mi", _one(lambda t, a: t.sin(a), 4 * Mi), 8 * 4 * Mi),
    Case("pointwise", "sigmoid, 1 Mi", _one(lambda t, a: t.sigmoid(a), Mi), 8 * Mi),
    Case("pointwise", "a % 3, 4 Mi", _one(lambda t, a: a % 3, 4 * Mi), 8 * 4 * Mi),
    Case("pointwise", "lgamma(exp(a)), 4 Mi", _one(lambda t, a: t.lgamma(t.exp(a)), 4 * Mi), 8 * 4 * Mi),
    Case("pointwise", "exp, float64, 4 Mi", _one(lambda t, a: t.exp(a), 4 * Mi, "float64"), 16 * 4 * Mi),
    Case("pointwise", "log, float64, 4 Mi", _one(lambda t, a: t.log(a.abs()), 4 * Mi, "float64"), 16 * 4 * Mi),
    Case("pointwise", "cos, float64, 4 Mi", _one(lambda t, a: t.cos(a), 4 * Mi, "float64"), 16 * 4 * Mi),
    Case("pointwise", "floor, bfloat16, 4 Mi", _one(lambda t, a: t.floor(a), 4 * Mi, "bfloat16"), 4 * 4 * Mi),
    Case("broadcast", "matrix + row, 4096²", on(add, (4096, 4096), (1, 4096)), 8 * 16 * Mi, bar=2, quick=True, also=EVERY),
    Case("broadcast", "pixels - mean, / deviation, 1024² x 3", on(lambda t, a, m, s: (a - m) / s, (1024, 1024, 3), (3,), (3,)), 8 * 3 * Mi),
    Case("broadcast", "boxes + offset, 1 Mi x 4", on(add, (Mi, 4), (4,)), 8 * 4 * Mi),
    Case("broadcast", "points * weight, 1 Mi x 3", on(lambda t, a, w: a * w, (Mi, 3), (Mi, 1)), 28 * Mi),
    Case("broadcast", "sides of boxes, 1 Mi x 4", on(lambda t, a: a[:, 2:] - a[:, :2], (Mi, 4)), 24 * Mi),
    Case("broadcast", "matrix + column, 4096²", on(add, (4096, 4096), (4096, 1)), 8 * 16 * Mi, bar=2, quick=True, also=EVERY),
    Case("broadcast", "matrix + row, 4095 x 4097", on(add, (4095, 4097), (1, 4097)), 8 * 4095 * 4097),
    Case("broadcast", "column * row, 4096²", on(lambda t, a, b: a * b, (4096, 1), (1, 4096)), 4 * 16 * Mi, bound="write"),
    Case("broadcast", "image * channel, 16 x 64 x 112²", on(lambda t, a, b: a * b, (16, 64, 112, 112), (64, 1, 1)), 8 * 16 * 64 * 112**2),
]  # fmt: skip
