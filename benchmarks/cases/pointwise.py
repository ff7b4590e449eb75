"""Pointwise chains, broadcasting and copies: where memory is the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Case, Kit, Run

Mi, Ki = 1 << 20, 1 << 10


def _two(fn: Callable[[Any, Any, Any], Any], *shape: int, dtype: str = "float32") -> Callable:
    def make(kit: Kit) -> Run:
        a, b = (kit.rand(*shape, seed=s, dtype=dtype) for s in (0, 1))
        return lambda: fn(kit.torch, a, b)

    return make


def chain8(torch: Any, x: Any, y: Any) -> Any:
    z = x * y + 2
    z = z * z - x
    return (torch.sigmoid(z) * y + x) * 0.5


def chain5(torch: Any, x: Any, y: Any) -> Any:
    z = x * y + 2
    return torch.sigmoid(z * z - x)


def _captured(n: int) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        a, b = kit.rand(n), kit.rand(n, seed=1)

        def chain(x: Any, y: Any) -> Any:
            return chain8(kit.torch, x, y)

        fast = getattr(kit.torch, "capture", lambda fn: fn)(chain)
        return lambda: fast(a, b)

    return make


def _numpy_add(n: int) -> Callable[[], Run]:
    def make() -> Run:
        a, b = (np.random.default_rng(s).random(n, dtype=np.float32) for s in (0, 1))
        return lambda: a + b

    return make


def _broadcast(row: bool) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        a, b = kit.rand(4096, 4096), kit.rand(*((1, 4096) if row else (4096, 1)), seed=1)
        return lambda: a + b

    return make


def _transposed(n: int) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        a = kit.rand(n, n)
        return lambda: a.t().contiguous()

    return make


def _strided(kit: Kit) -> Run:
    a = kit.rand(8192, 4096)[::2]
    return lambda: a * 2 + 1


CASES = [
    Case("pointwise", "chain of 8, 16 Mi", _two(chain8, 16 * Mi), 12 * 16 * Mi, 16 * Mi * 12, bar=8, quick=True),
    Case("pointwise", "chain of 5, 16", _two(chain5, 16), bar=0.125, quick=True),
    Case("pointwise", "chain of 8, 16", _two(chain8, 16), bar=0.25, quick=True),
    Case("pointwise", "chain of 8, 16, captured", _captured(16), bar=1.0, quick=True),
    Case("pointwise", "a + b, 16 Mi", _two(lambda t, a, b: a + b, 16 * Mi), 12 * 16 * Mi, bar=2, quick=True, others={"numpy": _numpy_add(16 * Mi)}),
    Case("pointwise", "a + b, 16 Mi - 1", _two(lambda t, a, b: a + b, 16 * Mi - 1), 12 * 16 * Mi),
    Case("pointwise", "a + b, 64 Ki", _two(lambda t, a, b: a + b, 64 * Ki), 12 * 64 * Ki, bar=0.5, quick=True, others={"numpy": _numpy_add(64 * Ki)}),
    Case("pointwise", "a + b, float64, 8 Mi", _two(lambda t, a, b: a + b, 8 * Mi, dtype="float64"), 24 * 8 * Mi),
    Case("pointwise", "a * b + a, float16, 16 Mi", _two(lambda t, a, b: a * b + a, 16 * Mi, dtype="float16"), 6 * 16 * Mi, tolerance=1e-2),
    Case("pointwise", "a * b + a, bfloat16, 16 Mi", _two(lambda t, a, b: a * b + a, 16 * Mi, dtype="bfloat16"), 6 * 16 * Mi, tolerance=1e-1),
    Case("pointwise", "gelu, 4 Mi", _two(lambda t, a, b: t.nn.functional.gelu(a), 4 * Mi), 8 * 4 * Mi),
    Case("broadcast", "matrix + row, 4096²", _broadcast(True), 8 * 16 * Mi, bar=2, quick=True),
    Case("broadcast", "matrix + column, 4096²", _broadcast(False), 8 * 16 * Mi, bar=2, quick=True),
    Case("copy", "clone, 16 Mi", _two(lambda t, a, b: a.clone(), 16 * Mi), 8 * 16 * Mi),
    Case("copy", "transposed, 4096²", _transposed(4096), 8 * 16 * Mi, bar=4, quick=True),
    Case("copy", "transposed, 4095²", _transposed(4095), 8 * 4095**2),
    Case("copy", "every second row times 2 plus 1, 4096²", _strided, 8 * 16 * Mi),
]  # fmt: skip
