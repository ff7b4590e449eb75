"""Matrix products in all shapes and transposes: where arithmetic is the limit."""

from __future__ import annotations

from typing import Any

from benchmarks.case import EVERY, Case, Make, on


def product(torch: Any, a: Any, b: Any) -> Any:
    return a @ b


def _mm(m: int, k: int, n: int, ta: bool = False, tb: bool = False, dtype: str = "float32") -> Make:
    def fn(torch: Any, a: Any, b: Any) -> Any:
        return (a.T if ta else a) @ (b.T if tb else b)

    return on(fn, (k, m) if ta else (m, k), (n, k) if tb else (k, n), dtype=dtype)


def _case(name: str, m: int, k: int, n: int, tolerance: float = 1e-3, **how: Any) -> Case:
    size = {"float64": 8.0, "float16": 2.0, "bfloat16": 2.0}.get(how.get("dtype", ""), 4.0)
    return Case("gemm", name, _mm(m, k, n, **how), size * (m * k + k * n + m * n), 2.0 * m * k * n, tolerance=tolerance)  # fmt: skip


def _square(n: int, bar: float, **how: bool) -> Case:
    name = f"{n}³" + "".join(f", {k[1].upper()} transposed" for k in how)
    plain = not how
    return Case("gemm", name, _mm(n, n, n, **how), 12.0 * n * n, 2.0 * n**3, bar=bar, quick=n == 1024 and plain, also=EVERY if plain and n in (512, 1024) else ())  # fmt: skip


def _linear(torch: Any, x: Any, w: Any, b: Any) -> Any:
    return torch.relu(torch.nn.functional.linear(x, w, b))


CASES = [
    *(_square(n, 0.6) for n in (128, 256)),
    *(_square(n, 0.8) for n in (512, 1024, 2048)),
    *(_square(1024, 0.8, **how) for how in ({"ta": True}, {"tb": True}, {"ta": True, "tb": True})),
    _case("1023 x 1025 x 1027", 1023, 1025, 1027),
    _case("127 x 129 x 131", 127, 129, 131),
    _case("64 x 65536 x 64 (long K)", 64, 65536, 64),
    _case("8 x 1048576 x 8 (moments)", 8, 1 << 20, 8, 1e-2, ta=True),
    _case("65536 x 64 x 64 (tall)", 65536, 64, 64),
    _case("65536 x 64 x 16 (few columns)", 65536, 64, 16),
    _case("262144 x 4 x 16 (few columns)", 262144, 4, 16),
    _case("16384 x 1024 x 10 (few columns, long rows)", 16384, 1024, 10),
    _case("16384 x 1024 x 4 (few vectors)", 16384, 1024, 4),
    _case("8 x 1024 x 1024 (few rows)", 8, 1024, 1024),
    _case("32 x 1024 x 1024 (few rows)", 32, 1024, 1024),
    _case("32 x 1024 x 4096, B transposed (few rows)", 32, 1024, 4096, tb=True),
    _case("float64 512³", 512, 512, 512, dtype="float64"),
    _case("bfloat16 512³", 512, 512, 512, 1e-1, dtype="bfloat16"),
    _case("bfloat16 1024³, A transposed", 1024, 1024, 1024, 1e-1, ta=True, dtype="bfloat16"),
    _case("float16 512³", 512, 512, 512, 1e-1, dtype="float16"),
    Case("gemm", "batched 64 x 64²", on(product, (64, 64, 64), (64, 64, 64)), 12.0 * 64**3, 2.0 * 64**4, bar=0.7, quick=True, also=EVERY),
    Case("gemm", "batched 64 x 63²", on(product, (64, 63, 63), (64, 63, 63)), 12.0 * 64 * 63**2, 2.0 * 64 * 63**3),
    Case("gemm", "batched 64 x 64², B transposed", on(lambda t, a, b: a @ b.transpose(1, 2), (64, 64, 64), (64, 64, 64)), 12.0 * 64**3, 2.0 * 64**4),
    Case("gemm", "batched 16 x 256 x 64 x 256", on(product, (16, 256, 64), (16, 64, 256)), 4.0 * 16 * (2 * 256 * 64 + 256**2), 2.0 * 16 * 256 * 64 * 256),
    Case("gemm", "batched 8 x 512³", on(product, (8, 512, 512), (8, 512, 512)), 12.0 * 8 * 512**2, 2.0 * 8 * 512**3),
    Case("gemm", "batched 100,000 x 3³", on(product, (100_000, 3, 3), (100_000, 3, 3)), 4.0 * 27e5, 54e5),
    Case("gemm", "batch by one matrix, 32 x 128 x 256 x 256", on(product, (32, 128, 256), (256, 256)), 4.0 * (64 * 128 * 256 + 256**2), 2.0 * 32 * 128 * 256**2),
    Case("gemv", "4096²", on(product, (4096, 4096), (4096,)), 4.0 * 4096**2, 2.0 * 4096**2, bar=0.95, quick=True, bound="read", also=EVERY),
    Case("gemv", "4096², transposed", on(lambda t, a, x: a.T @ x, (4096, 4096), (4096,)), 4.0 * 4096**2, 2.0 * 4096**2, bound="read"),
    Case("gemv", "4095 x 4097", on(product, (4095, 4097), (4097,)), 4.0 * 4095 * 4097, 2.0 * 4095 * 4097, bound="read"),
    Case("gemv", "131072 x 128 (short rows)", on(product, (131072, 128), (128,)), 4.0 * 131072 * 129, 2.0 * 131072 * 128, bound="read"),
    Case("gemv", "131072 x 128, transposed (few columns)", on(lambda t, a, x: a.T @ x, (131072, 128), (131072,)), 4.0 * 131072 * 129, 2.0 * 131072 * 128, bound="read"),
    Case("gemv", "vector by vector, 16 Mi", on(product, (1 << 24,), (1 << 24,)), 8.0 * (1 << 24), 2.0 * (1 << 24), tolerance=5e-2, bound="read"),
    Case("linear", "512 x 1024 x 1024 + bias, relu", on(_linear, (512, 1024), (1024, 1024), (1024,)), 4.0 * 2 * 1024**2, 2.0 * 512 * 1024 * 1024, bar=0.85, quick=True),
    # The result is also read by the sum, and by relu's gradient.
    Case("linear", "forward and backward", on(_linear, (512, 1024), (1024, 1024), (1024,), grad=True), 4.0 * 6 * 1024**2, 6.0 * 512 * 1024 * 1024),
]  # fmt: skip
