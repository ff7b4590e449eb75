"""Random numbers. Every library has its own generator, so that results are not compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.case import Case, Kit, Make, Run, on

Mi = 1 << 20


def _drawn(fn: Callable[[Any, Any], Any]) -> Make:
    """Return the `make` of a case that runs fn(torch, device)."""

    def make(kit: Kit) -> Run:
        return lambda: fn(kit.torch, kit.device)

    return make


def _dropout(torch: Any, x: Any) -> Any:
    return torch.nn.functional.dropout(x, 0.5)


def _case(name: str, make: Make, moved: float, bound: str = "copy") -> Case:
    return Case("random", name, make, moved, check=False, bound=bound)


CASES = [
    _case("rand, 16 Mi", _drawn(lambda t, d: t.rand(16 * Mi, device=d)), 4.0 * 16 * Mi, "write"),
    _case("randn, 16 Mi", _drawn(lambda t, d: t.randn(16 * Mi, device=d)), 4.0 * 16 * Mi, "write"),
    _case("randn, 16", _drawn(lambda t, d: t.randn(16, device=d)), 0.0),
    _case("randint, 8 Mi", _drawn(lambda t, d: t.randint(1000, (8 * Mi,), device=d)), 8.0 * 8 * Mi, "write"),
    _case("randperm, 1 Mi", _drawn(lambda t, d: t.randperm(Mi, device=d)), 8.0 * Mi, "write"),
    _case("bernoulli, 16 Mi", on(lambda t, p: t.bernoulli(p.abs()), (16 * Mi,)), 8.0 * 16 * Mi),
    _case("multinomial, 100 of 1000, 64 rows", on(lambda t, p: t.multinomial(p.abs(), 100), (64, 1000)), 4.0 * 64 * 1000 + 8.0 * 64 * 100),
    _case("dropout, 4096²", on(_dropout, (4096, 4096)), 8.0 * 16 * Mi),
    # For each element, the input is read, the result is written and read by the sum, the gradient is written: 4 bytes
    # each; and the mask, a byte, is written and read.
    _case("dropout, forward and backward, 4096²", on(_dropout, (4096, 4096), grad=True), 18.0 * 16 * Mi),
]  # fmt: skip
