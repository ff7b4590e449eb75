"""Attention that keeps no matrix of scores."""

from __future__ import annotations

from typing import Any

from benchmarks.case import Case, Make, on


def _attend(b: int, h: int, t: int, d: int, causal: bool, **how: Any) -> Make:
    def fn(torch: Any, q: Any, k: Any, v: Any) -> Any:
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(q, k, v, is_causal=True) if causal else attend(q, k, v)

    return on(fn, *[(b, h, t, d)] * 3, **how)


def _decode(b: int, h: int, s: int, d: int) -> Case:
    """Return the case of a single query per head, as in the generation of text word by word."""

    def fn(torch: Any, q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    make = on(fn, (b, h, 1, d), (b, h, s, d), (b, h, s, d))
    return Case("attention", f"B{b} H{h} D{d}, a query by {s} keys", make, 8.0 * b * h * (s + 1) * d, 4.0 * b * h * s * d, bound="read")  # fmt: skip


def _flops(b: int, h: int, t: int, d: int, causal: bool) -> float:
    """Return the forward pass's operations: two products, of which causal attention needs only half."""
    return 4.0 * b * h * t * t * d / (2 if causal else 1)


def _bytes(b: int, h: int, t: int, d: int) -> float:
    return 16.0 * b * h * t * d  # q, k, v and the result


PLAIN, ODD, LONG = (8, 8, 256, 64), (8, 8, 255, 63), (1, 4, 2048, 64)
# Backward has five products beside the forward's two, and moves twice as many bytes as the forward: it reads operands,
# result and gradient, and writes three gradients.
CASES = [
    Case("attention", "B8 H8 T256 D64 causal, forward", _attend(*PLAIN, True), _bytes(*PLAIN), _flops(*PLAIN, True), bar=0.9, quick=True, also=("jax", "tinygrad")),
    Case("attention", "B8 H8 T256 D64 causal, forward and backward", _attend(*PLAIN, True, grad=True), 3 * _bytes(*PLAIN), 3.5 * _flops(*PLAIN, True), bar=0.9, quick=True),
    Case("attention", "B8 H8 T256 D64, forward", _attend(*PLAIN, False), _bytes(*PLAIN), _flops(*PLAIN, False)),
    Case("attention", "B8 H8 T255 D63 causal, forward", _attend(*ODD, True), _bytes(*ODD), _flops(*ODD, True)),
    Case("attention", "B1 H4 T2048 D64 causal, forward", _attend(*LONG, True), _bytes(*LONG), _flops(*LONG, True)),
    Case("attention", "B1 H4 T2048 D64 causal, forward and backward", _attend(*LONG, True, grad=True), 3 * _bytes(*LONG), 3.5 * _flops(*LONG, True)),
    Case("attention", "B8 H8 T256 D64 causal, bfloat16, forward", _attend(*PLAIN, True, dtype="bfloat16"), _bytes(*PLAIN) / 2, _flops(*PLAIN, True), tolerance=3e-2),
    _decode(4, 8, 512, 64),
    _decode(1, 32, 2048, 128),
]  # fmt: skip
