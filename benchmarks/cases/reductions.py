"""Reductions, scans, sorting: a matrix of 4096 by 4096 along every direction, and a million elements in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.case import Case, Kit, Run

N = 4096
BYTES = 4.0 * N * N
WAYS = {"all": None, "dim 0": 0, "dim 1": 1}


def _one(fn: Callable[[Any, Any], Any], *shape: int) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        a = kit.rand(*shape)
        return lambda: fn(kit.torch, a)

    return make


def _along(name: str, dim: int | None) -> Callable[[Any, Any], Any]:
    def call(torch: Any, a: Any) -> Any:
        return getattr(torch, name)(a) if dim is None else getattr(torch, name)(a, dim=dim)

    return call


CASES = [
    Case("reduction", f"{name}, {way}, 4096²", _one(_along(name, dim), N, N), BYTES, bar=bar, quick=name in ("sum", "argmax"))
    for name, bar in (("sum", 0.95), ("mean", 0.95), ("amax", 0.95), ("argmax", 8), ("var", 4))
    for way, dim in WAYS.items()
]  # fmt: skip
CASES += [
    Case("reduction", "sum, dim 1, 4095 x 4097", _one(_along("sum", 1), 4095, 4097), 4.0 * 4095 * 4097),
    Case("reduction", "norm of (x - 1), 16 Mi", _one(lambda t, a: (a - 1).square().sum().sqrt(), 1 << 24), BYTES, quick=True),
    Case("reduction", "logsumexp, dim 1, 4096²", _one(_along("logsumexp", 1), N, N), BYTES),
    Case("scan", "cumsum, 1 Mi", _one(_along("cumsum", 0), 1 << 20), 8.0 * (1 << 20), bar=0.9, quick=True),
    Case("scan", "cumsum, dim 1, 1024²", _one(_along("cumsum", 1), 1024, 1024), 8.0 * (1 << 20)),
    Case("sort", "sort, 1 Mi", _one(lambda t, a: t.sort(a)[0], 1 << 20), bar=0.8, quick=True),
    Case("sort", "sort, dim 1, 1024²", _one(lambda t, a: t.sort(a, dim=1)[0], 1024, 1024)),
    Case("sort", "topk 10, 1 Mi", _one(lambda t, a: t.topk(a, 10)[0], 1 << 20), 4.0 * (1 << 20), bar=0.8, quick=True),
]  # fmt: skip
