"""Matrix products in all shapes and transposes: where arithmetic is the limit."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.case import Case, Kit, Run


def _mm(m: int, k: int, n: int, ta: bool = False, tb: bool = False, dtype: str = "float32") -> Callable[[Kit], Run]:  # fmt: skip
    def make(kit: Kit) -> Run:
        a = kit.rand(*((k, m) if ta else (m, k)), dtype=dtype)
        b = kit.rand(*((n, k) if tb else (k, n)), seed=1, dtype=dtype)
        x, y = a.t() if ta else a, b.t() if tb else b
        return lambda: x @ y

    return make


def _bmm(b: int, n: int) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        x, y = kit.rand(b, n, n), kit.rand(b, n, n, seed=1)
        return lambda: kit.torch.bmm(x, y)

    return make


def _gemv(n: int) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        a, x = kit.rand(n, n), kit.rand(n, seed=1)
        return lambda: a @ x

    return make


def _linear(kit: Kit) -> Run:
    x, w, b = kit.rand(512, 1024), kit.rand(1024, 1024, seed=1), kit.rand(1024, seed=2)
    F = kit.torch.nn.functional
    return lambda: F.relu(F.linear(x, w, b))


def _square(n: int, bar: float, **how: bool) -> Case:
    name = f"{n}³" + "".join(f", {k[1].upper()} transposed" for k in how)
    return Case("gemm", name, _mm(n, n, n, **how), 12.0 * n * n, 2.0 * n**3, bar=bar, quick=n == 1024 and not how)  # fmt: skip


CASES = [
    *(_square(n, 0.6) for n in (128, 256)),
    *(_square(n, 0.8) for n in (512, 1024, 2048)),
    *(_square(1024, 0.8, **how) for how in ({"ta": True}, {"tb": True}, {"ta": True, "tb": True})),
    Case("gemm", "1023 x 1025 x 1027", _mm(1023, 1025, 1027), flops=2.0 * 1023 * 1025 * 1027),
    Case("gemm", "64 x 65536 x 64 (long K)", _mm(64, 65536, 64), flops=2.0 * 64 * 64 * 65536),
    Case("gemm", "float64 512³", _mm(512, 512, 512, dtype="float64"), flops=2.0 * 512**3),
    Case("gemm", "bfloat16 512³", _mm(512, 512, 512, dtype="bfloat16"), flops=2.0 * 512**3, tolerance=1e-1),
    Case("gemm", "batched 64 x 64²", _bmm(64, 64), 12.0 * 64**3, 2.0 * 64**4, bar=0.7, quick=True),
    Case("gemv", "4096²", _gemv(4096), 4.0 * 4096**2, 2.0 * 4096**2, bar=0.95, quick=True),
    Case("linear", "512 x 1024 x 1024 + bias, relu", _linear, flops=2.0 * 512 * 1024 * 1024, bar=0.85, quick=True),
]  # fmt: skip
