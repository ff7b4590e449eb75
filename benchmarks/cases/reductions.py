"""Reductions, scans, sorting: a matrix of 4096 by 4096 along every direction, and a million elements in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.case import EVERY, Case, on

N, Mi = 4096, 1 << 20
BYTES = 4.0 * N * N
WAYS = {"all": None, "dim 0": 0, "dim 1": 1}


def _along(name: str, dim: int | None) -> Callable[[Any, Any], Any]:
    def call(torch: Any, a: Any) -> Any:
        return getattr(a, name)() if dim is None else getattr(a, name)(dim)

    return call


CASES = [
    Case("reduction", f"{name}, {way}, 4096²", on(_along(name, dim), (N, N)), BYTES, bar=bar, quick=name in ("sum", "argmax"), bound="read", also=EVERY if name == "sum" else ())
    for name, bar in (("sum", 0.95), ("mean", 0.95), ("amax", 0.95), ("argmax", 8), ("var", 4))
    for way, dim in WAYS.items()
]  # fmt: skip
CASES += [
    Case("reduction", "sum, dim 1, 4095 x 4097", on(_along("sum", 1), (4095, 4097)), 4.0 * 4095 * 4097, bound="read"),
    Case("reduction", "sum, dim 1 of 64 x 1024 x 256", on(_along("sum", 1), (64, 1024, 256)), BYTES, bound="read"),
    Case("reduction", "sum, all, of every second column, 4096²", on(lambda t, a: a[:, ::2].sum(), (N, 2 * N)), 2 * BYTES, bound="read"),
    Case("reduction", "sum, all, bfloat16, 4096²", on(_along("sum", None), (N, N), dtype="bfloat16"), BYTES / 2, tolerance=2e-2, bound="read"),
    Case("reduction", "sum, dim 1, float64, 2048 x 4096", on(_along("sum", 1), (2048, N), dtype="float64"), BYTES, bound="read"),
    Case("reduction", "mean, dim 0, 4 Mi - 1 x 3", on(_along("mean", 0), (4 * Mi - 1, 3)), 12.0 * (4 * Mi - 1), bound="read"),
    Case("reduction", "any(a > 2), 4096²", on(lambda t, a: (a > 2).any(), (N, N)), BYTES, bound="read"),
    Case("reduction", "norm of (x - 1), 16 Mi", on(lambda t, a: (a - 1).square().sum().sqrt(), (1 << 24,)), BYTES, quick=True, bound="read"),
    Case("reduction", "logsumexp, dim 1, 4096²", on(_along("logsumexp", 1), (N, N)), BYTES, bound="read"),
    Case("reduction", "mean, dim 1, forward and backward, 4096²", on(lambda t, a: a.mean(1).square(), (N, N), grad=True), 2 * BYTES),
    Case("reduction", "amax, dim 1, forward and backward, 4096²", on(_along("amax", 1), (N, N), grad=True), 3 * BYTES),
    Case("reduction", "var, dim 0, forward and backward, 4096²", on(_along("var", 0), (N, N), grad=True), 3 * BYTES),
    Case("scan", "cumsum, 1 Mi", on(lambda t, a: t.cumsum(a, 0), (Mi,)), 8.0 * Mi, bar=0.9, quick=True, also=("numpy", "jax")),
    Case("scan", "cumsum, dim 1, 1024²", on(lambda t, a: t.cumsum(a, 1), (1024, 1024)), 8.0 * Mi),
    Case("scan", "cumsum, dim 0, 1023 x 1025", on(lambda t, a: t.cumsum(a, 0), (1023, 1025)), 8.0 * 1023 * 1025),
    Case("scan", "cumsum, dim 1, 131072 x 8", on(lambda t, a: t.cumsum(a, 1), (131072, 8)), 8.0 * Mi),
    Case("scan", "cumprod, dim 1, 2048²", on(lambda t, a: t.cumprod(a, 1), (2048, 2048)), 8.0 * 4 * Mi),
    Case("scan", "cumprod, dim 1, complex64, 1024²", on(lambda t, a: t.cumprod(a, 1), (1024, 1024), dtype="complex64"), 16.0 * Mi),
    Case("scan", "cummax, dim 1, 1024²", on(lambda t, a: a.cummax(1), (1024, 1024)), 16.0 * Mi),
    Case("scan", "cumsum, forward and backward, 1 Mi", on(lambda t, a: a.cumsum(0), (Mi,), grad=True), 16.0 * Mi),
    Case("sort", "sort, 1 Mi", on(lambda t, a: t.sort(a)[0], (Mi,)), 16.0 * Mi, bar=0.8, quick=True, also=("numpy", "jax")),
    Case("sort", "sort, int64, 1 Mi - 1", on(lambda t, a: t.sort(a)[0], (Mi - 1,), dtype="int64"), 24.0 * (Mi - 1)),
    Case("sort", "sort, dim 1, 1024²", on(lambda t, a: t.sort(a, dim=1)[0], (1024, 1024)), 16.0 * Mi),
    Case("sort", "argsort, dim 0, 1024²", on(lambda t, a: a.argsort(0), (1024, 1024)), 12.0 * Mi, check=False),
    Case("sort", "topk 10, 1 Mi", on(lambda t, a: t.topk(a, 10)[0], (Mi,)), 4.0 * Mi, bar=0.8, quick=True, bound="read"),
    Case("sort", "median, 1 Mi", on(lambda t, a: a.median(), (Mi,)), 4.0 * Mi, bound="read"),
    Case("sort", "unique, 1 Mi of 1000", on(lambda t, a: t.unique(a), (Mi,), dtype="int32"), 4.0 * Mi, bound="read"),
]  # fmt: skip
